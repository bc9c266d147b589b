//! A durable state that readers see: a RocksDB snapshot together with the database it belongs to.
#![allow(unsafe_code)]

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use rocksdb::{ReadOptions, Snapshot};
use zenobe_store::{Direction, Key, KeyRange, Reader, Result, Value, Visitor};

use crate::database::{Database, rocksdb_error};

pub(crate) struct View {
    /// Refers to the snapshot, and is dropped before it.
    point_reads: ReadOptions,
    /// Borrows from the database, and is dropped before it.
    snapshot: Snapshot<'static>,
    database: Arc<Database>,
}

impl View {
    pub fn new(database: Arc<Database>) -> View {
        let snapshot = database.rocks().snapshot();
        // SAFETY: the snapshot borrows the `DB` inside the `Arc`, whose address does not change and which
        // lives at least as long as this view, because the view owns a reference to it and fields are
        // dropped in the order of their declaration. No borrow of the longer lifetime leaves this file.
        let snapshot = unsafe { std::mem::transmute::<Snapshot<'_>, Snapshot<'static>>(snapshot) };
        let mut point_reads = ReadOptions::default();
        point_reads.set_snapshot(&snapshot);
        View { point_reads, snapshot, database }
    }

    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Whether dropping this view closes the database.
    pub fn is_last(&self) -> bool {
        Arc::strong_count(&self.database) == 1
    }

    pub fn read(&self, key: &[u8]) -> Result<Option<Value>> {
        let found = self.database.rocks().get_pinned_opt(key, &self.point_reads);
        let found = found.map_err(|error| rocksdb_error(&error))?;
        Ok(found.map(|value| Bytes::copy_from_slice(&value)))
    }

    pub fn read_many(&self, keys: &[Key]) -> Result<Vec<Option<Value>>> {
        keys.iter().map(|key| self.read(key)).collect()
    }

    pub fn visit(
        &self,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(&range.start[..]);
        if let Some(end) = &range.end {
            options.set_iterate_upper_bound(&end[..]);
        }
        options.set_auto_readahead_size(true);
        let mut entries = self.snapshot.raw_iterator_opt(options);
        match direction {
            Direction::Forward => entries.seek_to_first(),
            Direction::Reverse => entries.seek_to_last(),
        }
        while let Some((key, value)) = entries.item() {
            if let ControlFlow::Break(()) = visit(key, value) {
                return Ok(());
            }
            match direction {
                Direction::Forward => entries.next(),
                Direction::Reverse => entries.prev(),
            }
        }
        // An iterator also ends at damaged data, which must not look like the end of the range.
        entries.status().map_err(|error| rocksdb_error(&error))
    }
}

impl Reader for View {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move { self.read(key) }.boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move { self.read_many(keys) }.boxed()
    }

    fn scan<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        visitor: &'a mut Visitor<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        async move { self.visit(&range, direction, visitor) }.boxed()
    }
}
