//! An item's entry in an index: its key and the attributes it carries.

use zenobe_store::Key;
use zenobe_value::limits::{PARTITION_KEY_SIZE_BYTES_MAX, SORT_KEY_SIZE_BYTES_MAX};
use zenobe_value::{AttributeType, EncodedItem, ItemRef, ValueRef, key_bytes};

use crate::catalog::{Table, TableIndex};
use crate::keys::PrimaryKey;
use crate::keyspace::EntryKeyBuilder;
use crate::schema::{IndexKind, IndexProjection, KeyAttribute, KeySchema};

use super::projects;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub key: Key,
    pub value: EncodedItem,
}

impl IndexEntry {
    pub fn size_bytes(&self) -> u64 {
        self.value.as_item().size_bytes() as u64
    }
}

/// An item's entry in an index. `None` if the item is not in the index: a key attribute is missing,
/// or its value can't be a key. Such a value must be older than the index, because writes reject
/// it.
pub(crate) fn entry(
    table: &Table,
    index: TableIndex<'_>,
    primary: &PrimaryKey,
    item: &EncodedItem,
) -> Option<IndexEntry> {
    let key = entry_key(table, index, primary, item.as_item())?;
    Some(IndexEntry { key, value: projected(table, index, item) })
}

/// The key of an item's entry, if the item is in the index.
pub(crate) fn entry_key(
    table: &Table,
    index: TableIndex<'_>,
    primary: &PrimaryKey,
    item: ItemRef<'_>,
) -> Option<Key> {
    let KeySchema { partition, sort } = &index.definition.keys;
    let tail = match index.definition.kind {
        IndexKind::Local => primary.sort(),
        IndexKind::Global => primary.bytes(),
    };
    let mut key = EntryKeyBuilder::new(index.prefix, tail);
    push_part(partition, item, PARTITION_KEY_SIZE_BYTES_MAX, key.bytes())?;
    key.end_partition(partition);
    push_part(sort, item, SORT_KEY_SIZE_BYTES_MAX, key.bytes())?;
    Some(key.finish(primary.tie(&table.definition().keys), tail))
}

/// The attributes of `item` that an entry of `index` carries.
pub(crate) fn projected(table: &Table, index: TableIndex<'_>, item: &EncodedItem) -> EncodedItem {
    match index.definition.projection {
        IndexProjection::All => item.clone(),
        IndexProjection::KeysOnly | IndexProjection::Include(_) => {
            let keys = &table.definition().keys;
            item.as_item().retain(|name| projects(keys, index.definition, name))
        }
    }
}

/// Appends the key bytes of all partition or all sort attributes.
fn push_part(
    attributes: &[KeyAttribute],
    item: ItemRef<'_>,
    size_bytes_max: usize,
    bytes: &mut Vec<u8>,
) -> Option<()> {
    let mut size_bytes = 0;
    for attribute in attributes {
        let value = item.get(&attribute.name)?;
        if value.attribute_type() != attribute.scalar_type.attribute_type() || is_empty(value) {
            return None;
        }
        size_bytes += value.size_bytes();
        key_bytes::encode_ref(value, bytes).ok()?;
    }
    (size_bytes <= size_bytes_max).then_some(())
}

/// Whether a value is an empty string or binary, which can't be a key.
pub(crate) fn is_empty(value: ValueRef<'_>) -> bool {
    matches!(value.attribute_type(), AttributeType::S | AttributeType::B) && value.size_bytes() == 0
}
