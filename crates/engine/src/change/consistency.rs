//! Checks that everything [`super::Change`] maintains (index entries, counts, sizes) agrees with
//! the items. For tests, for use after a crash, and for operators who want to be sure.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use zenobe_store::{Direction, Key, KeyRange, Reader, Value, decode_counter, read_counter};
use zenobe_value::EncodedItem;

use crate::Engine;
use crate::catalog::{StatisticsKeys, Table, TableIndex};
use crate::command::TableName;
use crate::error::Result;
use crate::indexes::index_entry::{IndexEntry, entry};
use crate::indexes::{is_incomplete, maintained};
use crate::keys::PrimaryKey;
use crate::keyspace;
use crate::schema::IndexKind;
use crate::write::decode_stored;

use super::expiry_entry::expiry_entry;
use super::has_collections;
use super::undo::row_size_bytes;

/// A contradiction between the items of a table and the data derived from them. Keys are store
/// keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inconsistency {
    /// An item whose store key does not match its key attributes.
    MisplacedItem {
        key: Key,
    },
    MissingEntry {
        index: String,
        key: Key,
    },
    /// An entry whose attributes differ from its item's.
    WrongEntry {
        index: String,
        key: Key,
    },
    /// An entry whose item doesn't exist or doesn't belong there.
    StrayEntry {
        index: String,
        key: Key,
    },
    /// The count of the table, or of an index.
    ItemCount {
        index: Option<String>,
        stored: i64,
        actual: i64,
    },
    SizeBytes {
        index: Option<String>,
        stored: i64,
        actual: i64,
    },
    /// An item that expires, but has no entry in the expiry index.
    MissingExpiry {
        key: Key,
    },
    /// An entry of the expiry index whose item doesn't exist or doesn't expire at that time.
    StrayExpiry {
        key: Key,
    },
    /// The count or the size of the undo rows.
    HistorySize {
        stored: (i64, i64),
        actual: (i64, i64),
    },
    /// An undo row that is not an image of an item.
    WrongUndoRow {
        key: Key,
    },
    /// `partition` holds the key bytes of the partition key.
    CollectionSize {
        partition: Key,
        stored: i64,
        actual: i64,
    },
}

const READ_AT_ONCE: usize = 128;

impl Engine {
    /// Recomputes all derived data from the items and compares it with what is stored, in one
    /// snapshot. Takes time and memory in proportion to the table.
    pub async fn check_consistency(&self, table: &TableName) -> Result<Vec<Inconsistency>> {
        let table = self.current_table(table).await?;
        let mut check = Check { reader: self.store.snapshot(), table: &table, found: Vec::new() };
        let items = check.items().await?;
        check.statistics(None, table.statistics(), items.totals).await?;
        check.collections(&items.collection_sizes).await?;
        for index in maintained(&table) {
            let totals = check.entries(index).await?;
            check.statistics(Some(index), index.statistics, totals).await?;
        }
        check.expiries().await?;
        check.history().await?;
        Ok(check.found)
    }
}

struct Check<'t> {
    reader: Arc<dyn Reader>,
    table: &'t Table,
    found: Vec<Inconsistency>,
}

#[derive(Default)]
struct Items {
    totals: Totals,
    /// By the key bytes of the partition key.
    collection_sizes: BTreeMap<Key, i64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    count: i64,
    size_bytes: i64,
}

impl Totals {
    fn add(&mut self, item: &EncodedItem) {
        self.count += 1;
        self.size_bytes += size_of(item);
    }
}

impl Check<'_> {
    /// Walks the items and looks up the entries that they should have.
    async fn items(&mut self) -> Result<Items> {
        let mut items = Items::default();
        let mut range = KeyRange::prefix(self.table.item_prefix().clone());
        loop {
            let rows = rows(&*self.reader, &range).await?;
            for (key, value) in &rows {
                self.item(key, value, &mut items).await?;
            }
            match rows.last() {
                Some((last, _)) => range.start = successor(last),
                None => return Ok(items),
            }
        }
    }

    async fn item(&mut self, key: &Key, value: &Value, items: &mut Items) -> Result<()> {
        let item = decode_stored(value)?;
        let primary = PrimaryKey::from_stored(&self.table.definition().keys, item.as_item())?;
        if primary.item_key(self.table) != *key {
            self.found.push(Inconsistency::MisplacedItem { key: key.clone() });
        }
        items.totals.add(&item);
        let mut collection_size = size_of(&item);
        for index in maintained(self.table) {
            let Some(expected) = entry(self.table, index, &primary, &item) else { continue };
            if index.definition.kind == IndexKind::Local {
                collection_size += size_of(&expected.value);
            }
            self.expected_entry(index, expected).await?;
        }
        self.expected_expiry(key, &item).await?;
        let partition = Key::copy_from_slice(primary.partition());
        *items.collection_sizes.entry(partition).or_default() += collection_size;
        Ok(())
    }

    async fn expected_entry(&mut self, index: TableIndex<'_>, expected: IndexEntry) -> Result<()> {
        let stored = self.reader.get(&expected.key).await?;
        let name = || index.definition.name.clone();
        match stored {
            Some(stored) if stored == *expected.value.as_bytes() => {}
            Some(_) => {
                let found = Inconsistency::WrongEntry { index: name(), key: expected.key };
                self.found.push(found);
            }
            // The backfill has not reached this item yet.
            None if is_incomplete(index.definition) => {}
            None => {
                let found = Inconsistency::MissingEntry { index: name(), key: expected.key };
                self.found.push(found);
            }
        }
        Ok(())
    }

    async fn expected_expiry(&mut self, key: &Key, item: &EncodedItem) -> Result<()> {
        let Some(entry) = expiry_entry(self.table, key, item) else { return Ok(()) };
        let is_complete = self.table.definition().ttl_indexed;
        if is_complete && self.reader.get(&entry).await?.is_none() {
            self.found.push(Inconsistency::MissingExpiry { key: entry });
        }
        Ok(())
    }

    /// Walks the expiry index and looks up the items that should expire. The remains of an index
    /// that was disabled on a shared store ([`crate::garbage`]) are not one: nobody reads them.
    async fn expiries(&mut self) -> Result<()> {
        let remains = keyspace::garbage_row(self.table.expiry_prefix());
        if self.reader.get(&remains).await?.is_some() {
            return Ok(());
        }
        let mut range = KeyRange::prefix(self.table.expiry_prefix().clone());
        loop {
            let rows = rows(&*self.reader, &range).await?;
            for (entry, _) in &rows {
                let suffix = keyspace::parts_of_expiry(entry).map_or(&[][..], |(_, suffix)| suffix);
                let item_key = [self.table.item_prefix(), suffix].concat();
                let item = self.reader.get(&item_key).await?;
                let item = item.as_ref().map(decode_stored).transpose()?;
                let expected = item.and_then(|item| expiry_entry(self.table, &item_key, &item));
                if expected.as_ref() != Some(entry) {
                    self.found.push(Inconsistency::StrayExpiry { key: entry.clone() });
                }
            }
            match rows.last() {
                Some((last, _)) => range.start = successor(last),
                None => return Ok(()),
            }
        }
    }

    /// Walks the entries of an index and looks up the items that should have them.
    async fn entries(&mut self, index: TableIndex<'_>) -> Result<Totals> {
        let mut totals = Totals::default();
        let mut range = KeyRange::prefix(index.prefix.clone());
        loop {
            let rows = rows(&*self.reader, &range).await?;
            for (key, value) in &rows {
                let stored = decode_stored(value)?;
                totals.add(&stored);
                if !self.belongs(index, key, &stored).await? {
                    let index = index.definition.name.clone();
                    self.found.push(Inconsistency::StrayEntry { index, key: key.clone() });
                }
            }
            match rows.last() {
                Some((last, _)) => range.start = successor(last),
                None => return Ok(totals),
            }
        }
    }

    async fn belongs(
        &self,
        index: TableIndex<'_>,
        key: &Key,
        stored: &EncodedItem,
    ) -> Result<bool> {
        let primary = PrimaryKey::from_stored(&self.table.definition().keys, stored.as_item())?;
        let item = self.reader.get(&primary.item_key(self.table)).await?;
        let item = item.as_ref().map(decode_stored).transpose()?;
        let expected = item.and_then(|item| entry(self.table, index, &primary, &item));
        Ok(expected.is_some_and(|expected| expected.key == *key))
    }

    async fn statistics(
        &mut self,
        index: Option<TableIndex<'_>>,
        keys: &StatisticsKeys,
        actual: Totals,
    ) -> Result<()> {
        let stored_count = self.counter(&keys.item_count).await?;
        let stored_size = self.counter(&keys.size_bytes).await?;
        let index = index.map(|index| index.definition.name.clone());
        if stored_count != actual.count {
            let (stored, actual) = (stored_count, actual.count);
            self.found.push(Inconsistency::ItemCount { index: index.clone(), stored, actual });
        }
        if stored_size != actual.size_bytes {
            let (stored, actual) = (stored_size, actual.size_bytes);
            self.found.push(Inconsistency::SizeBytes { index, stored, actual });
        }
        Ok(())
    }

    async fn collections(&mut self, actual: &BTreeMap<Key, i64>) -> Result<()> {
        if !has_collections(self.table) {
            return Ok(());
        }
        let prefix = keyspace::collection_size_prefix(self.table.definition().id);
        let mut differences: BTreeMap<Key, (i64, i64)> =
            actual.iter().map(|(partition, size)| (partition.clone(), (0, *size))).collect();
        let mut range = KeyRange::prefix(prefix.clone());
        loop {
            let rows = rows(&*self.reader, &range).await?;
            for (key, value) in &rows {
                let partition = key.slice(prefix.len()..);
                differences.entry(partition).or_default().0 = decode_counter(Some(value))?;
            }
            match rows.last() {
                Some((last, _)) => range.start = successor(last),
                None => break,
            }
        }
        differences.retain(|_, (stored, actual)| stored != actual);
        self.found.extend(differences.into_iter().map(|(partition, (stored, actual))| {
            Inconsistency::CollectionSize { partition, stored, actual }
        }));
        Ok(())
    }

    async fn history(&mut self) -> Result<()> {
        let Some(history) = self.table.history() else { return Ok(()) };
        let mut actual = (0, 0);
        let mut range = KeyRange::prefix(history.prefix.clone());
        loop {
            let rows = rows(&*self.reader, &range).await?;
            for (key, image) in &rows {
                actual.0 += 1;
                actual.1 += row_size_bytes(key.len(), image);
                let is_row = keyspace::parts_of_undo(self.table.item_prefix(), key).is_some();
                if !is_row || !image.is_empty() && decode_stored(image).is_err() {
                    self.found.push(Inconsistency::WrongUndoRow { key: key.clone() });
                }
            }
            match rows.last() {
                Some((last, _)) => range.start = successor(last),
                None => break,
            }
        }
        let stored =
            (self.counter(&history.count).await?, self.counter(&history.size_bytes).await?);
        if stored != actual {
            self.found.push(Inconsistency::HistorySize { stored, actual });
        }
        Ok(())
    }

    async fn counter(&self, key: &Key) -> Result<i64> {
        Ok(read_counter(&*self.reader, key).await?)
    }
}

/// The first rows of a range.
async fn rows(reader: &dyn Reader, range: &KeyRange) -> Result<Vec<(Key, Value)>> {
    let mut rows = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        rows.push((Key::copy_from_slice(key), Value::copy_from_slice(value)));
        if rows.len() < READ_AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    reader.scan(range.clone(), Direction::Forward, &mut visit).await?;
    Ok(rows)
}

fn successor(key: &[u8]) -> Key {
    [key, &[0]].concat().into()
}

fn size_of(item: &EncodedItem) -> i64 {
    item.as_item().size_bytes() as i64
}
