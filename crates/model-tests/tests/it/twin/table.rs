//! A table: its items, and everything derived from them.

use std::collections::BTreeMap;

use zenobe_engine::command::{Consumed, ItemCollection, TableName};
use zenobe_engine::error::KeyError;
use zenobe_engine::schema::{IndexKind, ItemStatistics, KeyAttribute, KeySchema};
use zenobe_value::limits::{PARTITION_KEY_SIZE_BYTES_MAX, SORT_KEY_SIZE_BYTES_MAX};
use zenobe_value::{AttributeValue, Attributes};

use super::fault::{Fault, Refusal};
use super::hash::hash;
use super::life::Stream;
use super::route::Route;
use super::schema::{Index, IndexState};
use super::value::{Key, has_type, is_empty, item_size_bytes, key_of, size_bytes};

#[derive(Debug, Clone)]
pub struct Table {
    pub name: TableName,
    pub keys: KeySchema,
    pub indexes: Vec<Index>,
    pub items: BTreeMap<Key, Attributes>,
    pub collection_size_bytes_max: u64,
    /// Whether items expire.
    pub expires: bool,
    /// In the order in which they started; only the last may be enabled.
    pub streams: Vec<Stream>,
}

/// An item as an index, or the table itself, shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The values of the partition attributes.
    pub partition: Key,
    pub partition_hash: u128,
    pub place: Place,
    pub attributes: Attributes,
    pub primary: Key,
}

/// The order of entries within a partition: by the sort attributes, then by the hash of the table's
/// key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub sort: Key,
    pub tie: u128,
}

impl Table {
    pub fn index(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.name == name)
    }

    pub fn key_attributes(&self) -> Vec<KeyAttribute> {
        self.keys.attributes().cloned().collect()
    }

    /// An item's entry in an index, or the item itself as the table's own entry.
    pub fn entry(&self, index: Option<&Index>, item: &Attributes) -> Option<Entry> {
        let keys = index.map_or(&self.keys, |index| &index.keys);
        let partition = key_of(&keys.partition, item)?;
        let sort = key_of(&keys.sort, item)?;
        if key_size_bytes(&partition) > PARTITION_KEY_SIZE_BYTES_MAX as u64
            || key_size_bytes(&sort) > SORT_KEY_SIZE_BYTES_MAX as u64
        {
            return None;
        }
        let primary = key_of(&self.key_attributes(), item).expect("a stored item has its keys");
        let attributes = item
            .iter()
            .filter(|(name, _)| index.is_none_or(|index| index.projects(&self.keys, name)))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let place = Place { sort, tie: hash(&primary) };
        let partition_hash = hash(&partition);
        Some(Entry { partition, partition_hash, place, attributes, primary })
    }

    /// Checks a `Key` parameter.
    pub fn check_key(&self, key: &Attributes) -> Result<Key, KeyError> {
        let attributes = self.key_attributes();
        let fits = |attribute: &KeyAttribute| {
            key.get(&attribute.name).is_some_and(|value| has_type(value, attribute.scalar_type))
        };
        if key.len() != attributes.len() || !attributes.iter().all(fits) {
            return Err(KeyError::SchemaMismatch);
        }
        self.check_key_values(key)
    }

    /// Checks the keys of an item to put.
    pub fn check_item_keys(&self, item: &Attributes) -> Result<Key, KeyError> {
        for KeyAttribute { name, scalar_type } in self.key_attributes() {
            match item.get(&name) {
                None => return Err(KeyError::Missing { attribute: name }),
                Some(value) if !has_type(value, scalar_type) => {
                    return Err(KeyError::TypeMismatch {
                        attribute: name,
                        expected: scalar_type,
                        actual: value.attribute_type(),
                    });
                }
                Some(_) => {}
            }
        }
        self.check_key_values(item)
    }

    fn check_key_values(&self, item: &Attributes) -> Result<Key, KeyError> {
        for (position, attribute) in self.key_attributes().iter().enumerate() {
            let value = &item[&attribute.name];
            if is_empty(value) {
                let KeyAttribute { name, scalar_type } = attribute.clone();
                return Err(KeyError::Empty { attribute: name, scalar_type });
            }
            if position == 0 && size_bytes(value) > PARTITION_KEY_SIZE_BYTES_MAX as u64 {
                return Err(KeyError::PartitionKeyTooLong);
            }
            if position == 1 && size_bytes(value) > SORT_KEY_SIZE_BYTES_MAX as u64 {
                return Err(KeyError::SortKeyTooLong);
            }
        }
        Ok(key_of(&self.key_attributes(), item).expect("the keys were checked"))
    }

    /// Keys are scalars: no route may lead below a key of the table or of an index.
    pub fn check_routes<'r>(
        &self,
        routes: impl IntoIterator<Item = &'r Route>,
    ) -> Result<(), Refusal> {
        let nested: Vec<&str> =
            routes.into_iter().filter(|route| route.is_nested()).map(Route::root).collect();
        if nested.iter().any(|root| self.keys.contains(root)) {
            return Err(Fault::PathBelowKey { index: false }.into());
        }
        let maintained = self.indexes.iter().filter(|index| index.is_maintained());
        if maintained.into_iter().any(|index| nested.iter().any(|root| index.keys.contains(root))) {
            return Err(Fault::PathBelowKey { index: true }.into());
        }
        Ok(())
    }

    /// Makes `new` the item of `key` and adds the cost, with the table's part multiplied by
    /// `table_factor`.
    pub fn change(
        &mut self,
        key: &Key,
        new: Option<&Attributes>,
        table_factor: u64,
        consumed: &mut Consumed,
    ) {
        let old = self.items.get(key).cloned();
        consumed.table_halves += table_factor * write_halves(charged_size_bytes(old.as_ref(), new));
        if old.as_ref() == new {
            return;
        }
        let entries: Vec<(Option<Entry>, Option<Entry>)> =
            self.indexes.iter().map(|index| self.entry_change(index, key, new)).collect();
        for (index, (old, new)) in self.indexes.iter_mut().zip(entries) {
            let halves = entry_halves(old.as_ref(), new.as_ref());
            if halves > 0 {
                let arm = match index.kind {
                    IndexKind::Local => &mut consumed.local_index_halves,
                    IndexKind::Global => &mut consumed.global_index_halves,
                };
                *arm.entry(index.name.clone()).or_default() += halves;
            }
            if let IndexState::Creating { reached } = &mut index.state {
                match new {
                    Some(_) => reached.insert(key.clone()),
                    None => reached.remove(key),
                };
            }
        }
        match new {
            Some(item) => self.items.insert(key.clone(), item.clone()),
            None => self.items.remove(key),
        };
        self.record(old.as_ref(), new);
    }

    /// The entry in `index` before and after a change.
    fn entry_change(
        &self,
        index: &Index,
        key: &Key,
        new: Option<&Attributes>,
    ) -> (Option<Entry>, Option<Entry>) {
        let old = match &index.state {
            IndexState::Deleting => return (None, None),
            IndexState::Creating { reached } if !reached.contains(key) => None,
            IndexState::Creating { .. } | IndexState::Active => self.items.get(key),
        };
        let entry = |item| self.entry(Some(index), item);
        (old.and_then(entry), new.and_then(entry))
    }

    pub fn has_collections(&self) -> bool {
        self.indexes.iter().any(|index| index.kind == IndexKind::Local)
    }

    /// The collection that an item belongs to, on a table with collections.
    pub fn collection(&self, key: &Key) -> Option<ItemCollection> {
        if !self.has_collections() {
            return None;
        }
        let attribute = self.keys.partition[0].name.clone();
        Some(ItemCollection {
            key: Attributes::from([(attribute, key[0].value())]),
            size_bytes: self.collection_size_bytes(&key[..1]),
        })
    }

    pub fn collection_size_bytes(&self, partition: &[super::value::Scalar]) -> u64 {
        let items = self.items.iter().filter(|(key, _)| key[..1] == *partition);
        items.map(|(_, item)| self.collected_size_bytes(item)).sum()
    }

    /// The sizes of an item and of its entries in local indexes.
    pub fn collected_size_bytes(&self, item: &Attributes) -> u64 {
        let local = self.indexes.iter().filter(|index| index.kind == IndexKind::Local);
        let entries = local.filter_map(|index| self.entry(Some(index), item));
        let entries: u64 = entries.map(|entry| item_size_bytes(&entry.attributes)).sum();
        item_size_bytes(item) + entries
    }

    pub fn statistics(&self, index: Option<&Index>) -> ItemStatistics {
        let mut statistics = ItemStatistics::default();
        for (key, item) in &self.items {
            let reached = match index.map(|index| &index.state) {
                Some(IndexState::Creating { reached }) => reached.contains(key),
                Some(IndexState::Deleting) => false,
                Some(IndexState::Active) | None => true,
            };
            if let Some(entry) = self.entry(index, item)
                && reached
            {
                statistics.item_count += 1;
                statistics.size_bytes += item_size_bytes(&entry.attributes);
            }
        }
        statistics
    }
}

/// The size of the key attributes together.
pub fn key_size_bytes(key: &Key) -> u64 {
    key.iter().map(|scalar| size_bytes(&scalar.value())).sum()
}

pub fn charged_size_bytes(old: Option<&Attributes>, new: Option<&Attributes>) -> u64 {
    old.map_or(0, item_size_bytes).max(new.map_or(0, item_size_bytes))
}

pub fn write_halves(size_bytes: u64) -> u64 {
    2 * size_bytes.div_ceil(1024).max(1)
}

pub fn read_halves(size_bytes: u64, consistent: bool) -> u64 {
    size_bytes.div_ceil(4096).max(1) * if consistent { 2 } else { 1 }
}

fn entry_halves(old: Option<&Entry>, new: Option<&Entry>) -> u64 {
    let halves = |entry: &Entry| write_halves(item_size_bytes(&entry.attributes));
    match (old, new) {
        (None, None) => 0,
        (None, Some(entry)) | (Some(entry), None) => halves(entry),
        (Some(old), Some(new)) if old == new => 0,
        (Some(old), Some(new)) => {
            let moved = (&old.partition, &old.place) != (&new.partition, &new.place);
            if moved { halves(old) + halves(new) } else { halves(old).max(halves(new)) }
        }
    }
}

/// No capacity at all, to start adding from.
pub fn nothing_consumed(table: &TableName) -> Consumed {
    Consumed {
        table: table.clone(),
        transactional: None,
        table_halves: 0,
        local_index_halves: BTreeMap::new(),
        global_index_halves: BTreeMap::new(),
    }
}

/// The first of these attributes whose value is an empty string or binary.
pub fn first_empty<'a>(
    attributes: impl IntoIterator<Item = &'a KeyAttribute>,
    values: &BTreeMap<String, AttributeValue>,
) -> Option<KeyError> {
    attributes.into_iter().find(|attribute| is_empty(&values[&attribute.name])).map(|attribute| {
        KeyError::Empty { attribute: attribute.name.clone(), scalar_type: attribute.scalar_type }
    })
}
