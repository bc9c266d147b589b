//! A state of the store: a RocksDB snapshot together with the database it belongs to.
#![allow(unsafe_code)]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rocksdb::{DB, DBRawIteratorWithThreadMode, ErrorKind, ReadOptions};
use zenobe_store::{Direction, Key, KeyRange, Result, Value, Visitor};

use crate::prefix_extractor::PrefixExtractor;
use crate::rocks_database::{RocksDatabase, rocksdb_error};
use crate::value_cache::ValueCache;

/// How many keys one call of RocksDB looks up.
const BATCH_KEYS: usize = 128;

/// How many dead entries (tombstones and overwritten versions) a walk steps over at once.
pub(crate) const DEAD_ENTRIES_MAX: u64 = 1_000;

/// How long a walk keeps its thread, and after how many entries it looks at the clock.
const WALK_MAX: Duration = Duration::from_millis(1);
const ENTRIES_PER_LOOK: usize = 16;

/// Why a walk has ended, and the last entry that it visited if the scan continues after it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WalkEnd {
    /// All that the visitor wants to see has been visited.
    Ended,
    /// Other tasks on the thread have waited long enough.
    TimeOver { last: Key },
    /// More dead entries follow than may be stepped over here.
    DeadRun { last: Option<Key> },
}

pub(crate) struct Snapshot {
    /// Refers to the snapshot, and is dropped before it.
    point_reads: ReadOptions,
    /// Borrows from the database, and is dropped before it.
    snapshot: rocksdb::Snapshot<'static>,
    database: Arc<RocksDatabase>,
    value_cache: Arc<ValueCache>,
    /// What the value cache knows this state by.
    version: u64,
}

impl Snapshot {
    /// The state of the database as it is now. Must be published, if at all, after the snapshots made before it.
    pub fn new(database: Arc<RocksDatabase>, value_cache: Arc<ValueCache>) -> Snapshot {
        let version = value_cache.next_version();
        let snapshot = database.rocks().snapshot();
        // SAFETY: the snapshot borrows the `DB` inside the `Arc`, whose address does not change and which
        // lives at least as long as this, because this owns a reference to it and fields are
        // dropped in the order of their declaration. No borrow of the longer lifetime leaves this file.
        let snapshot = unsafe {
            std::mem::transmute::<rocksdb::Snapshot<'_>, rocksdb::Snapshot<'static>>(snapshot)
        };
        let mut point_reads = ReadOptions::default();
        point_reads.set_snapshot(&snapshot);
        Snapshot { point_reads, snapshot, database, value_cache, version }
    }

    pub fn database(&self) -> &Arc<RocksDatabase> {
        &self.database
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether dropping this snapshot closes the database.
    pub fn is_last(&self) -> bool {
        Arc::strong_count(&self.database) == 1
    }

    pub fn read(&self, key: &[u8]) -> Result<Option<Value>> {
        if let Some(value) = self.value_cache.get(key, self.version) {
            return Ok(Some(value));
        }
        let value = self.read_stored(key)?;
        if let Some(value) = &value {
            self.value_cache.keep(key, self.version, value);
        }
        Ok(value)
    }

    /// Reads past the cache.
    fn read_stored(&self, key: &[u8]) -> Result<Option<Value>> {
        let found = self.database.rocks().get_pinned_opt(key, &self.point_reads);
        let found = found.map_err(|error| rocksdb_error(&error))?;
        Ok(found.map(|value| Bytes::copy_from_slice(&value)))
    }

    /// Like [`Snapshot::read`] for each of many different keys. RocksDB looks up keys in their order in one pass, which costs it less than
    /// as many single reads.
    pub fn read_batch(&self, keys: &[&Key]) -> Result<Vec<Option<Value>>> {
        let mut values: Vec<Option<Value>> =
            keys.iter().map(|key| self.value_cache.get(key, self.version)).collect();
        let mut missing: Vec<usize> = (0..keys.len()).filter(|at| values[*at].is_none()).collect();
        missing.sort_by_key(|at| keys[*at]);
        // RocksDB holds what it has found until it is copied, so large items are read a few at a time.
        for some in missing.chunks(BATCH_KEYS) {
            let sorted = some.iter().map(|at| keys[*at]);
            let found = self.database.read_sorted(sorted, &self.point_reads);
            for (&at, found) in some.iter().zip(found) {
                if let Some(value) = found.map_err(|error| rocksdb_error(&error))? {
                    let value = Bytes::copy_from_slice(&value);
                    self.value_cache.keep(keys[at], self.version, &value);
                    values[at] = Some(value);
                }
            }
        }
        Ok(values)
    }

    pub fn read_many(&self, keys: &[Key]) -> Result<Vec<Option<Value>>> {
        keys.iter().map(|key| self.read(key)).collect()
    }

    /// Visits entries of a range until it ends, the visitor breaks, or the thread has something else to do.
    pub fn walk(
        &self,
        range: &KeyRange,
        direction: Direction,
        visit: &mut Visitor<'_>,
    ) -> Result<WalkEnd> {
        if range.is_empty() {
            return Ok(WalkEnd::Ended);
        }
        let begin = Instant::now();
        let mut entries = self.entries(range, Some(DEAD_ENTRIES_MAX));
        let mut last = Vec::new();
        let mut count = 0_usize;
        seek_first(&mut entries, direction);
        while let Some((key, value)) = entries.item() {
            if let ControlFlow::Break(()) = visit(key, value) {
                return Ok(WalkEnd::Ended);
            }
            last.clear();
            last.extend_from_slice(key);
            count += 1;
            if count.is_multiple_of(ENTRIES_PER_LOOK) && begin.elapsed() > WALK_MAX {
                return Ok(WalkEnd::TimeOver { last: last.into() });
            }
            match direction {
                Direction::Forward => entries.next(),
                Direction::Reverse => entries.prev(),
            }
        }
        match entries.status() {
            Ok(()) => Ok(WalkEnd::Ended),
            Err(error) if error.kind() == ErrorKind::Incomplete => {
                Ok(WalkEnd::DeadRun { last: (count > 0).then(|| last.into()) })
            }
            // An iterator also ends at damaged data, which must not look like the end of the range.
            Err(error) => Err(rocksdb_error(&error)),
        }
    }

    /// The first entry of a range, in this direction, however many dead ones come before it.
    pub fn first_key(&self, range: &KeyRange, direction: Direction) -> Result<Option<Key>> {
        if range.is_empty() {
            return Ok(None);
        }
        let mut entries = self.entries(range, None);
        seek_first(&mut entries, direction);
        let found = entries.key().map(Key::copy_from_slice);
        entries.status().map_err(|error| rocksdb_error(&error))?;
        Ok(found)
    }

    fn entries(
        &self,
        range: &KeyRange,
        dead_entries_max: Option<u64>,
    ) -> DBRawIteratorWithThreadMode<'_, DB> {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(&range.start[..]);
        if let Some(end) = &range.end {
            options.set_iterate_upper_bound(&end[..]);
        }
        options.set_auto_readahead_size(true);
        if let Some(count) = dead_entries_max {
            options.set_max_skippable_internal_keys(count);
        }
        PrefixExtractor::set_filters(self.database.prefixes(), range, &mut options);
        self.snapshot.raw_iterator_opt(options)
    }
}

fn seek_first(entries: &mut DBRawIteratorWithThreadMode<'_, DB>, direction: Direction) {
    match direction {
        Direction::Forward => entries.seek_to_first(),
        Direction::Reverse => entries.seek_to_last(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use zenobe_store::conformance::{Random, block_on};
    use zenobe_store::{Batch, Decision, Key, KeyRange, Store, WriteSet};

    use crate::{Durability, EmbeddedStore, Options};

    const WRITES: usize = 3_000;
    /// More than are read in one batch.
    const KEYS: usize = 200;

    /// No reader can tell the cache from its snapshot, whatever is written meanwhile.
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

    /// Reads until told to stop, through the cache and past it. Returns how often the cache had the value.
    fn compare(store: &EmbeddedStore, seed: u64, is_done: &AtomicBool) -> usize {
        let mut random = Random::new(seed);
        let mut hits = 0;
        while !is_done.load(Ordering::Relaxed) {
            let snapshot = store.inner.published.get().unwrap();
            for _ in 0..10 {
                let key = match random.below(KEYS + 1) {
                    KEYS => Key::from_static(b"counter"),
                    number => key(number),
                };
                hits += usize::from(snapshot.value_cache.get(&key, snapshot.version).is_some());
                let read = snapshot.read(&key).unwrap();
                assert_eq!(read, snapshot.read_stored(&key).unwrap(), "{key:?}");
            }
            // In another order than that of the keys.
            let all: Vec<Key> = (0..KEYS).rev().map(key).collect();
            let all: Vec<&Key> = all.iter().collect();
            let stored: Vec<_> = all.iter().map(|key| snapshot.read_stored(key).unwrap()).collect();
            assert_eq!(snapshot.read_batch(&all).unwrap(), stored);
        }
        hits
    }

    fn key(number: usize) -> Key {
        format!("key {number:03}").into()
    }
}
