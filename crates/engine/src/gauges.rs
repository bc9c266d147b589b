//! Figures for services that watch the engine: its tables, what expired, what streams returned, how far new indexes are.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::Engine;
use crate::command::{RecordPage, StreamName, TableName};
use crate::error::Result;
use crate::keyspace;
use crate::schema::IndexStatus;
use crate::throughput::partition_map::hash_of;

/// How many tables, and how many streams, are counted separately between two calls.
const TABLES_MAX: usize = 10_000;

/// How many items of each table have expired since somebody asked.
#[derive(Default)]
pub(crate) struct ExpiredItems(Mutex<HashMap<TableName, u64>>);

impl ExpiredItems {
    pub fn add(&self, table: &TableName, count: u64) {
        let mut tables = self.0.lock();
        let has_room = tables.len() < TABLES_MAX;
        match tables.get_mut(table) {
            Some(known) => *known += count,
            None if count > 0 && has_room => _ = tables.insert(table.clone(), count),
            None => {}
        }
    }
}

/// What the requests for records of a stream have returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReturnedRecords {
    /// Requests that returned any.
    pub requests: u64,
    pub records: u64,
    pub size_bytes: u64,
}

/// What streams have returned since somebody asked.
#[derive(Default)]
pub(crate) struct StreamReturns(Mutex<HashMap<StreamName, ReturnedRecords>>);

/// How far a new global index has got.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexProgress {
    pub table: TableName,
    pub index: String,
    pub percent: f64,
}

impl Engine {
    /// The items that this engine has deleted because they had expired, by table, since the last call.
    pub fn take_expired_items(&self) -> Vec<(TableName, u64)> {
        self.background.expired_by_table.0.lock().drain().collect()
    }

    /// What the next [`Engine::take_expired_items`] will return, if nothing else expires.
    pub fn expired_items_by_table(&self) -> Vec<(TableName, u64)> {
        let tables = self.background.expired_by_table.0.lock();
        tables.iter().map(|(table, count)| (table.clone(), *count)).collect()
    }

    /// Counts the records that a request gets. Consumers poll, and an empty page counts for nothing.
    pub fn note_returned_records(&self, stream: &StreamName, page: &RecordPage) {
        if page.records.is_empty() || !self.is_metering() {
            return;
        }
        let mut streams = self.background.returned_records.0.lock();
        if !streams.contains_key(stream) {
            if streams.len() >= TABLES_MAX {
                return;
            }
            streams.insert(stream.clone(), ReturnedRecords::default());
        }
        if let Some(counts) = streams.get_mut(stream) {
            counts.requests += 1;
            counts.records += page.records.len() as u64;
            counts.size_bytes += page.records.iter().map(|it| it.size_bytes).sum::<u64>();
        }
    }

    /// What streams have returned to requests, since the last call.
    pub fn take_returned_records(&self) -> Vec<(StreamName, ReturnedRecords)> {
        self.background.returned_records.0.lock().drain().collect()
    }

    /// What the next [`Engine::take_returned_records`] returns, if no stream is read in between.
    pub fn returned_records(&self) -> Vec<(StreamName, ReturnedRecords)> {
        let streams = self.background.returned_records.0.lock();
        streams.iter().map(|(stream, returned)| (stream.clone(), *returned)).collect()
    }

    /// The global indexes that are being filled. Items are filled in the order of their hashes, which are
    /// spread evenly, so the last one says how many are left.
    pub async fn filling_indexes(&self) -> Result<Vec<IndexProgress>> {
        let mut indexes = Vec::new();
        for table in self.known_tables().values() {
            for index in &table.definition().global_indexes {
                if !matches!(index.status, IndexStatus::Creating { .. }) {
                    continue;
                }
                let key = keyspace::backfill_progress(table.definition().id, index.id);
                let last = self.store.get(&key).await?;
                let suffix = last.as_ref().and_then(|last| last.get(table.item_prefix().len()..));
                let share = hash_of(suffix.unwrap_or_default()) as f64 / u128::MAX as f64;
                indexes.push(IndexProgress {
                    table: table.name().clone(),
                    index: index.name.clone(),
                    percent: share * 100.0,
                });
            }
        }
        Ok(indexes)
    }
}
