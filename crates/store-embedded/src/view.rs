//! A durable state that readers see: a RocksDB snapshot together with the database it belongs to.
#![allow(unsafe_code)]

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use rocksdb::{ReadOptions, Snapshot};
use zenobe_store::{Direction, Key, KeyRange, Reader, Result, Value, Visitor};

use crate::database::{Database, rocksdb_error};
use crate::groups::Grouping;
use crate::value_cache::ValueCache;

pub(crate) struct View {
    /// Refers to the snapshot, and is dropped before it.
    point_reads: ReadOptions,
    /// Borrows from the database, and is dropped before it.
    snapshot: Snapshot<'static>,
    database: Arc<Database>,
    values: Arc<ValueCache>,
    /// The number of this state for the cache.
    state: u64,
}

impl View {
    /// The state of the database as it is now. Must be published, if at all, after the views made before it.
    pub fn new(database: Arc<Database>, values: Arc<ValueCache>) -> View {
        let state = values.next_state();
        let snapshot = database.rocks().snapshot();
        // SAFETY: the snapshot borrows the `DB` inside the `Arc`, whose address does not change and which
        // lives at least as long as this view, because the view owns a reference to it and fields are
        // dropped in the order of their declaration. No borrow of the longer lifetime leaves this file.
        let snapshot = unsafe { std::mem::transmute::<Snapshot<'_>, Snapshot<'static>>(snapshot) };
        let mut point_reads = ReadOptions::default();
        point_reads.set_snapshot(&snapshot);
        View { point_reads, snapshot, database, values, state }
    }

    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    pub fn state(&self) -> u64 {
        self.state
    }

    /// Whether dropping this view closes the database.
    pub fn is_last(&self) -> bool {
        Arc::strong_count(&self.database) == 1
    }

    pub fn read(&self, key: &[u8]) -> Result<Option<Value>> {
        if let Some(value) = self.values.get(key, self.state) {
            return Ok(Some(value));
        }
        let value = self.read_stored(key)?;
        if let Some(value) = &value {
            self.values.keep(key, self.state, value);
        }
        Ok(value)
    }

    /// Reads past the cache.
    fn read_stored(&self, key: &[u8]) -> Result<Option<Value>> {
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
        Grouping::set_filters(self.database.grouping(), range, &mut options);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use zenobe_store::conformance::{Random, block_on};
    use zenobe_store::{Batch, Decision, Key, KeyRange, Reader, Store, WriteSet};

    use crate::{Durability, EmbeddedStore, Options};

    const WRITES: usize = 3_000;
    const KEYS: usize = 40;

    /// The cache must not be told apart from the state behind it, whatever is written meanwhile.
    #[test]
    fn reads_find_in_the_cache_what_their_state_holds() {
        // The smallest cache forgets all the time, the others mostly keep everything.
        for (cache_bytes, durability) in
            [(64 << 10, Durability::Os), (8 << 20, Durability::Os), (8 << 20, Durability::Sync)]
        {
            check(Options { cache_bytes, durability, ..Options::default() });
        }
    }

    fn check(options: Options) {
        let directory = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(directory.path(), options).unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|seed| {
                    scope.spawn({
                        let store = &store;
                        move || write(store, seed)
                    })
                })
                .collect();
            let readers: Vec<_> = (0..2)
                .map(|seed| {
                    scope.spawn({
                        let (store, is_done) = (&store, &is_done);
                        move || compare(store, seed, is_done)
                    })
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            is_done.store(true, Ordering::Relaxed);
            let hits: usize = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
            assert!(hits > 0, "nothing was ever read from the cache");
        });
    }

    fn write(store: &EmbeddedStore, seed: u64) {
        let mut random = Random::new(seed);
        for _ in 0..WRITES {
            let key = key(random.below(KEYS));
            let keys = [key.clone()];
            let choice = random.below(20);
            let value = random.bytes(100);
            let mut decide = |_: &[_]| {
                let mut batch = Batch::new();
                match choice {
                    0..=12 => batch.put(key.clone(), value.clone()),
                    13..=16 => batch.delete(key.clone()),
                    17 => batch.delete_range(KeyRange::new(key.clone(), self::key(KEYS))),
                    _ => batch.add(Key::from_static(b"counter"), 1),
                }
                Decision::Commit(batch)
            };
            block_on(store.write(WriteSet { guards: &[], keys: &keys }, &mut decide)).unwrap();
        }
    }

    /// Reads until told to stop, by the cache and past it. Yields how often the cache had the value.
    fn compare(store: &EmbeddedStore, seed: u64, is_done: &AtomicBool) -> usize {
        let mut random = Random::new(seed);
        let mut hits = 0;
        while !is_done.load(Ordering::Relaxed) {
            let view = store.shared.published().unwrap();
            for _ in 0..10 {
                let key = match random.below(KEYS + 1) {
                    KEYS => Key::from_static(b"counter"),
                    number => key(number),
                };
                hits += usize::from(view.values.get(&key, view.state).is_some());
                let read = block_on(view.get(&key)).unwrap();
                assert_eq!(read, view.read_stored(&key).unwrap(), "{key:?}");
            }
        }
        hits
    }

    fn key(number: usize) -> Key {
        format!("key {number:03}").into()
    }
}
