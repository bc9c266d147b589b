//! The one gate through which items change.
//!
//! **Invariant:** nothing else in the engine writes items, index entries or their counters. Every
//! operation that changes an item (put, update, delete, batch, transaction, expiry) locks the
//! item's key, reads the old item under the lock, and passes both images to a [`Change`]. Everything
//! that follows from the two images goes into one atomic batch. A job that fills a new table with
//! items that are known to be absent locks only its own row.

pub(crate) mod backfill_entries;
mod consistency;
mod entry_changes;
pub(crate) mod expiry_entry;
pub(crate) mod index_key_checks;
pub(crate) mod undo;

use zenobe_store::{Batch, Key};
use zenobe_value::EncodedItem;

use crate::capacity_units::{EntryChange, entry_halves};
use crate::catalog::{StatisticsKeys, Table};
use crate::keys::PrimaryKey;
use crate::keyspace;
use crate::schema::{IndexId, IndexKind};
use crate::streams::record::{self, Images};

use self::entry_changes::EntryPair;

pub use consistency::Inconsistency;
pub(crate) use entry_changes::{KnownEntries, NeedsEntries};

/// One item before and after.
pub(crate) struct Change<'a> {
    pub table: &'a Table,
    pub key: &'a PrimaryKey,
    pub item_key: &'a Key,
    pub old: Option<&'a EncodedItem>,
    pub new: Option<&'a EncodedItem>,
    pub cause: Cause,
}

/// The origin of a change, as its stream record and its undo row have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cause {
    pub at_ms: u64,
    /// The time in the table's history, without unconfirmed jumps of the clock.
    pub history_at_ms: u64,
    /// The database itself made the change: the item has expired.
    pub by_service: bool,
}

/// What a change did besides writing the item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ChangeEffect {
    /// The indexes whose entry changed, with the capacity consumed.
    pub indexes: Vec<IndexEffect>,
    /// How much the item collection grew, on tables with local indexes.
    pub collection_delta_bytes: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEffect {
    pub id: IndexId,
    pub kind: IndexKind,
    pub name: String,
    pub halves: u64,
    /// The key of the entry, with a prefix of this length: where it is now, or was before.
    pub entry: Key,
    pub prefix_length: usize,
}

impl Change<'_> {
    /// Adds everything that the change implies to `batch`. Identical images add nothing.
    pub fn write(
        &self,
        known: &KnownEntries,
        batch: &mut Batch,
    ) -> Result<ChangeEffect, NeedsEntries> {
        if self.old == self.new {
            return Ok(ChangeEffect::default());
        }
        let entries = self.entry_pairs(known)?;
        self.write_item(batch);
        let mut effect = ChangeEffect::default();
        effect.collection_delta_bytes += self.size_delta_bytes();
        for pair in &entries {
            let change = pair.write(batch);
            effect.add(pair, change);
        }
        self.write_statistics(&effect, batch);
        self.write_expiry(batch);
        self.write_stream_record(batch);
        if let Some(history) = self.table.history() {
            self.write_undo(history, batch);
        }
        Ok(effect)
    }

    fn write_item(&self, batch: &mut Batch) {
        match self.new {
            Some(item) => batch.put(self.item_key.clone(), item.as_bytes().clone()),
            None => batch.delete(self.item_key.clone()),
        }
    }

    fn write_statistics(&self, effect: &ChangeEffect, batch: &mut Batch) {
        let count_delta = i64::from(self.new.is_some()) - i64::from(self.old.is_some());
        add_statistics(self.table.statistics(), count_delta, self.size_delta_bytes(), batch);
        if has_collections(self.table) && effect.collection_delta_bytes != 0 {
            let key = keyspace::collection_size(self.table.definition().id, self.key.partition());
            batch.add(key, effect.collection_delta_bytes);
        }
    }

    fn write_stream_record(&self, batch: &mut Batch) {
        let definition = self.table.definition();
        let (Some(stream), Some(log)) = (&definition.stream, self.table.stream_log(self.item_key))
        else {
            return;
        };
        let images = Images { old: self.old, new: self.new };
        let Cause { at_ms, by_service, .. } = self.cause;
        let record = record::encode(stream.view_type, &definition.keys, images, by_service);
        batch.append(log.clone(), at_ms, record);
    }

    fn size_delta_bytes(&self) -> i64 {
        size_bytes(self.new) as i64 - size_bytes(self.old) as i64
    }
}

impl ChangeEffect {
    fn add(&mut self, pair: &EntryPair<'_>, change: EntryChange) {
        let Some(entry) = pair.new.as_ref().or(pair.old.as_ref()) else { return };
        if change == EntryChange::Unchanged {
            return;
        }
        let index = pair.index;
        if index.definition.kind == IndexKind::Local {
            self.collection_delta_bytes += change.size_delta_bytes();
        }
        self.indexes.push(IndexEffect {
            id: index.definition.id,
            kind: index.definition.kind,
            name: index.definition.name.clone(),
            halves: entry_halves(change),
            entry: entry.key.clone(),
            prefix_length: index.prefix.len(),
        });
    }
}

/// Whether the table's partitions are item collections, whose sizes are counted and limited.
pub(crate) fn has_collections(table: &Table) -> bool {
    !table.definition().local_indexes.is_empty()
}

pub(crate) fn size_bytes(item: Option<&EncodedItem>) -> u64 {
    item.map_or(0, |item| item.as_item().size_bytes() as u64)
}

fn add_statistics(keys: &StatisticsKeys, count_delta: i64, size_delta: i64, batch: &mut Batch) {
    if count_delta != 0 {
        batch.add(keys.item_count.clone(), count_delta);
    }
    if size_delta != 0 {
        batch.add(keys.size_bytes.clone(), size_delta);
    }
}
