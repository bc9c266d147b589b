//! Primary keys: checked against a key schema, then encoded as the bytes that identify an item.
//!
//! Only a check can create a [`PrimaryKey`], so a holder of one needs no further check.

use std::sync::OnceLock;

use zenobe_store::Key;
use zenobe_value::limits::{PARTITION_KEY_SIZE_BYTES_MAX, SORT_KEY_SIZE_BYTES_MAX};
use zenobe_value::{AttributeValue, Attributes, ItemRef, Path, key_bytes};

use crate::catalog::Table;
use crate::error::{Error, KeyError, Result};
use crate::indexes::maintained;
use crate::keyspace::{self, KeyHash};
use crate::schema::{KeyAttribute, KeySchema};

/// The key bytes of a primary key: the partition attributes, then the sort attributes.
#[derive(Debug, Clone)]
pub(crate) struct PrimaryKey {
    bytes: Vec<u8>,
    partition_end: usize,
    /// The hash of the partition attributes.
    hash: KeyHash,
    /// The hash of all attributes, once an index has asked for it.
    tie: OnceLock<KeyHash>,
}

impl PrimaryKey {
    /// Checks a `Key` parameter: the number of attributes, then their names and types, then their
    /// values.
    pub fn from_parameter(
        keys: &KeySchema,
        parameter: &Attributes,
    ) -> Result<PrimaryKey, KeyError> {
        if parameter.len() != keys.attributes().count() {
            return Err(KeyError::SchemaMismatch);
        }
        for attribute in keys.attributes() {
            let value = parameter.get(&attribute.name).ok_or(KeyError::SchemaMismatch)?;
            if value.attribute_type() != attribute.scalar_type.attribute_type() {
                return Err(KeyError::SchemaMismatch);
            }
        }
        PrimaryKey::from_typed(keys, parameter)
    }

    /// Checks the key attributes of an item to put: presence and type first, then their values.
    pub fn from_item(keys: &KeySchema, item: &Attributes) -> Result<PrimaryKey, KeyError> {
        for attribute in keys.attributes() {
            let value = item
                .get(&attribute.name)
                .ok_or_else(|| KeyError::Missing { attribute: attribute.name.clone() })?;
            if value.attribute_type() != attribute.scalar_type.attribute_type() {
                return Err(KeyError::TypeMismatch {
                    attribute: attribute.name.clone(),
                    expected: attribute.scalar_type,
                    actual: value.attribute_type(),
                });
            }
        }
        PrimaryKey::from_typed(keys, item)
    }

    /// The key of a stored item or index entry, which was checked when it was written.
    pub fn from_stored(keys: &KeySchema, item: ItemRef<'_>) -> Result<PrimaryKey> {
        let mut bytes = Vec::new();
        for attribute in &keys.partition {
            push_stored(item, attribute, &mut bytes)?;
        }
        let partition_end = bytes.len();
        for attribute in &keys.sort {
            push_stored(item, attribute, &mut bytes)?;
        }
        Ok(PrimaryKey::new(keys, bytes, partition_end))
    }

    /// The key of a stored item, from the part of its store key after the prefix.
    pub fn from_item_key(keys: &KeySchema, suffix: &[u8]) -> Result<PrimaryKey> {
        let corrupt = |_| Error::Corrupt { detail: "the key of a stored item".to_owned() };
        let (hash, bytes) = keyspace::parts_of_suffix(suffix).ok_or(()).map_err(corrupt)?;
        let mut rest = bytes;
        for attribute in &keys.partition {
            let attribute_type = attribute.scalar_type.attribute_type();
            (_, rest) = key_bytes::decode(rest, attribute_type).map_err(|_| corrupt(()))?;
        }
        let partition_end = bytes.len() - rest.len();
        Ok(PrimaryKey { bytes: bytes.to_vec(), partition_end, hash, tie: OnceLock::new() })
    }

    fn new(keys: &KeySchema, bytes: Vec<u8>, partition_end: usize) -> PrimaryKey {
        let hash = KeyHash::of(&keys.partition, &bytes[..partition_end]);
        PrimaryKey { bytes, partition_end, hash, tie: OnceLock::new() }
    }

    fn from_typed(keys: &KeySchema, attributes: &Attributes) -> Result<PrimaryKey, KeyError> {
        let mut bytes = Vec::new();
        for attribute in &keys.partition {
            let value = checked_value(attribute, attributes)?;
            if value.size_bytes() > PARTITION_KEY_SIZE_BYTES_MAX {
                return Err(KeyError::PartitionKeyTooLong);
            }
            push_checked(value, &mut bytes);
        }
        let partition_end = bytes.len();
        for attribute in &keys.sort {
            let value = checked_value(attribute, attributes)?;
            if value.size_bytes() > SORT_KEY_SIZE_BYTES_MAX {
                return Err(KeyError::SortKeyTooLong);
            }
            push_checked(value, &mut bytes);
        }
        Ok(PrimaryKey::new(keys, bytes, partition_end))
    }

    pub fn partition(&self) -> &[u8] {
        &self.bytes[..self.partition_end]
    }

    pub fn sort(&self) -> &[u8] {
        &self.bytes[self.partition_end..]
    }

    /// Partition and sort key together.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The hash of all attributes, which orders entries with equal index keys. `keys` are the
    /// table's.
    pub fn tie(&self, keys: &KeySchema) -> KeyHash {
        if keys.sort.is_empty() {
            return self.hash;
        }
        *self.tie.get_or_init(|| KeyHash::of(keys.attributes(), &self.bytes))
    }

    /// The store key of this item of `table`.
    pub fn item_key(&self, table: &Table) -> Key {
        self.item_key_below(table.item_prefix())
    }

    /// The store key of this item, given the prefix of its table's items.
    pub fn item_key_below(&self, item_prefix: &[u8]) -> Key {
        keyspace::entry_key(item_prefix, self.hash, &self.bytes)
    }
}

/// Appends the key bytes of a value whose type has been checked.
pub(crate) fn push_checked(value: &AttributeValue, bytes: &mut Vec<u8>) {
    key_bytes::encode(value, bytes).expect("the type of a key value was checked");
}

/// Whether a value is an empty string or binary, which can't be a key.
pub(crate) fn is_empty(value: &AttributeValue) -> bool {
    match value {
        AttributeValue::S(text) => text.is_empty(),
        AttributeValue::B(bytes) => bytes.is_empty(),
        _ => false,
    }
}

/// The key attributes of an item, for callers that identify it or page by it.
pub(crate) fn key_attributes<'k>(
    names: impl Iterator<Item = &'k KeyAttribute>,
    item: ItemRef<'_>,
) -> Attributes {
    names.filter_map(|key| Some((key.name.clone(), item.get(&key.name)?.decode()))).collect()
}

/// Keys are scalars: a path below a key attribute of the table or of one of its indexes is an
/// error.
pub(crate) fn check_paths<'p>(table: &Table, paths: impl Iterator<Item = &'p Path>) -> Result<()> {
    let roots: Vec<&str> = paths.filter(|path| !path.is_top_level()).map(Path::root).collect();
    if roots.is_empty() {
        return Ok(());
    }
    let below = |attribute: &&KeyAttribute| roots.contains(&attribute.name.as_str());
    let fault = |attribute: &KeyAttribute, index| Error::PathBelowKey {
        attribute: attribute.name.clone(),
        index,
    };
    if let Some(attribute) = table.definition().keys.attributes().find(below) {
        return Err(fault(attribute, false));
    }
    let mut index_keys = maintained(table).flat_map(|index| index.definition.keys.attributes());
    match index_keys.find(below) {
        Some(attribute) => Err(fault(attribute, true)),
        None => Ok(()),
    }
}

fn checked_value<'a>(
    attribute: &KeyAttribute,
    attributes: &'a Attributes,
) -> Result<&'a AttributeValue, KeyError> {
    let value = &attributes[&attribute.name];
    if is_empty(value) {
        return Err(KeyError::Empty {
            attribute: attribute.name.clone(),
            scalar_type: attribute.scalar_type,
        });
    }
    Ok(value)
}

fn push_stored(item: ItemRef<'_>, attribute: &KeyAttribute, bytes: &mut Vec<u8>) -> Result<()> {
    let corrupt = || Error::Corrupt {
        detail: format!("a stored item lacks a valid key attribute {}", attribute.name),
    };
    let value = item.get(&attribute.name).ok_or_else(corrupt)?;
    key_bytes::encode_ref(value, bytes).map_err(|_| corrupt())
}
