//! The in-memory backend, for tests and temporary servers.
//!
//! The entries live in a persistent ordered map that clones in constant time, so a snapshot is a
//! clone. Writes run one at a time. Nothing survives the process, so every write is as durable as
//! it will ever be the moment it is applied.

use std::convert::Infallible;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt, ready};
use imbl::OrdMap;
use parking_lot::{Mutex, RwLock};

use crate::stamp::{stamp_of, stamped_key, stamped_puts};
use crate::{
    Batch, CommitOutcome, Decide, Decision, Direction, Error, Key, KeyRange, LogEnd, Mutation,
    Reader, Result, Stamp, Statistics, Store, Value, Visitor, WriteSet, decode_counter,
    encode_log_entry, log_entry_key,
};

#[derive(Default)]
pub struct MemoryStore {
    /// What readers see. Locked only to look up a key, to clone the map or to apply one batch,
    /// never during a decision.
    entries: RwLock<Entries>,
    /// Locked by the one running write. Holds what only writes need.
    writer: Mutex<MemoryWriter>,
    closed: AtomicBool,
    commits: AtomicU64,
    size_bytes: AtomicU64,
    is_shared: bool,
}

type Entries = OrdMap<Key, Value>;

#[derive(Default)]
struct MemoryWriter {
    /// Kept apart from the entries because a log's numbering continues after its entries have been
    /// deleted.
    log_ends: OrdMap<Key, LogEnd>,
}

impl MemoryWriter {
    /// The stamp of a batch, if it has stamped puts.
    fn stamp(&self, batch: &Batch) -> Stamp {
        let clock = |clock: &Key| {
            let end = self.log_ends.get(clock).copied().unwrap_or_default();
            Ok::<_, Infallible>(end.clock())
        };
        let Ok(stamp) = stamp_of(stamped_puts(&batch.mutations), clock);
        stamp
    }

    fn advance(&mut self, clock: Key, to: Stamp) {
        let end = self.log_ends.get(&clock).copied().unwrap_or_default();
        self.log_ends.insert(clock, end.advance(to));
    }
}

impl MemoryStore {
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// A store that several engines of this process may open.
    pub fn shared() -> MemoryStore {
        MemoryStore { is_shared: true, ..MemoryStore::default() }
    }

    /// Another store with the same content. Both change independently from here on, and share in
    /// memory what neither has changed. Takes the same time whatever the size.
    #[must_use]
    pub fn fork(&self) -> MemoryStore {
        // No write is between the entries and the ends of logs while its lock is held.
        let writer = self.writer.lock();
        MemoryStore {
            entries: RwLock::new(self.entries.read().clone()),
            writer: Mutex::new(MemoryWriter { log_ends: writer.log_ends.clone() }),
            size_bytes: AtomicU64::new(self.size_bytes.load(Ordering::Relaxed)),
            is_shared: self.is_shared,
            ..MemoryStore::default()
        }
    }

    /// How many logs have a numbering to continue.
    pub fn logs(&self) -> usize {
        self.writer.lock().log_ends.len()
    }

    fn run_write(&self, set: WriteSet<'_>, decide: &mut Decide<'_>) -> Result<CommitOutcome> {
        let mut writer = self.writer.lock();
        self.check_open()?;
        let reads: Vec<Option<Value>> = {
            let entries = self.entries.read();
            set.guards.iter().chain(set.keys).map(|key| entries.get(key).cloned()).collect()
        };
        let Decision::Commit(batch) = decide(&reads) else {
            return Ok(CommitOutcome::default());
        };
        check_counters(&self.entries.read(), &batch)?;
        let outcome = self.apply(&mut writer, batch);
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(outcome)
    }

    fn apply(&self, writer: &mut MemoryWriter, batch: Batch) -> CommitOutcome {
        let mut outcome = CommitOutcome::default();
        let stamp = writer.stamp(&batch);
        let mut entries = SizedEntries { entries: &mut self.entries.write(), size_change: 0 };
        for mutation in batch.mutations {
            match mutation {
                Mutation::Put { key, value } => entries.put(key, value),
                Mutation::Delete { key } => entries.delete(&key),
                Mutation::DeleteRange { range } => entries.delete_range(&range),
                Mutation::Append { log, stamp, value } => {
                    let end = writer.log_ends.get(&log).copied().unwrap_or_default().append(stamp);
                    let mut entry = Vec::with_capacity(size_of::<u64>() + value.len());
                    encode_log_entry(end.stamp, &value, &mut entry);
                    entries.put(log_entry_key(&log, end.sequence), entry.into());
                    writer.log_ends.insert(log, end);
                    outcome.sequences.push(end.sequence);
                }
                Mutation::ForgetLog { log } => {
                    writer.log_ends.remove(&log);
                }
                Mutation::SetLogEnd { log, end } => {
                    writer.log_ends.insert(log, end);
                }
                Mutation::Add { key, delta } => {
                    let current = entries.entries.get(&key).map(|value| &value[..]);
                    let sum = decode_counter(current).unwrap_or(0).wrapping_add(delta);
                    match sum {
                        0 => entries.delete(&key),
                        _ => entries.put(key, Bytes::copy_from_slice(&sum.to_be_bytes())),
                    }
                }
                Mutation::PutStamped(put) => {
                    entries.put(stamped_key(&put.key, stamp), put.value);
                    outcome.stamp = Some(stamp);
                    writer.advance(put.clock, stamp);
                }
                Mutation::Advance { clock, to } => writer.advance(clock, to),
            }
        }
        self.size_bytes.fetch_add(entries.size_change as u64, Ordering::Relaxed);
        outcome
    }

    fn check_open(&self) -> Result<()> {
        match self.closed.load(Ordering::Acquire) {
            true => Err(Error::Closed),
            false => Ok(()),
        }
    }

    fn clone_entries(&self) -> Result<Entries> {
        self.check_open()?;
        Ok(self.entries.read().clone())
    }
}

/// Fails if the batch adds to something that is not a counter, so that [`MemoryStore::apply`]
/// cannot fail halfway.
fn check_counters(entries: &Entries, batch: &Batch) -> Result<()> {
    for (position, mutation) in batch.mutations.iter().enumerate() {
        let Mutation::Add { key, .. } = mutation else { continue };
        let earlier = batch.mutations[..position].iter().rev().find_map(|earlier| match earlier {
            Mutation::Put { key: put, value } if put == key => Some(Some(&value[..])),
            Mutation::Delete { key: deleted } if deleted == key => Some(None),
            Mutation::DeleteRange { range } if range.contains(key) => Some(None),
            _ => None,
        });
        let current = earlier.unwrap_or_else(|| entries.get(key).map(|value| &value[..]));
        decode_counter(current)?;
    }
    Ok(())
}

/// The map, and how many bytes a batch has added to it (or removed, modulo 2^64).
struct SizedEntries<'a> {
    entries: &'a mut Entries,
    size_change: i64,
}

impl SizedEntries<'_> {
    fn put(&mut self, key: Key, value: Value) {
        let key_size = key.len() as i64;
        self.size_change += key_size + value.len() as i64;
        if let Some(old) = self.entries.insert(key, value) {
            self.size_change -= key_size + old.len() as i64;
        }
    }

    fn delete(&mut self, key: &[u8]) {
        if let Some(old) = self.entries.remove(key) {
            self.size_change -= (key.len() + old.len()) as i64;
        }
    }

    fn delete_range(&mut self, range: &KeyRange) {
        let Some(bounds) = bounds(range) else { return };
        let keys: Vec<Key> = self.entries.range(bounds).map(|(key, _)| key.clone()).collect();
        for key in &keys {
            self.delete(key);
        }
    }
}

fn bounds(range: &KeyRange) -> Option<(Bound<Key>, Bound<Key>)> {
    // The map panics on a range that ends before it starts. Such a range contains no keys.
    if range.is_empty() {
        return None;
    }
    let end = range.end.clone().map_or(Bound::Unbounded, Bound::Excluded);
    Some((Bound::Included(range.start.clone()), end))
}

impl Reader for MemoryStore {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move {
            self.check_open()?;
            Ok(self.entries.read().get(key).cloned())
        }
        .boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move {
            self.check_open()?;
            let entries = self.entries.read();
            Ok(keys.iter().map(|key| entries.get(key).cloned()).collect())
        }
        .boxed()
    }

    fn scan<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        visit: &'a mut Visitor<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            scan_entries(&self.clone_entries()?, &range, direction, visit);
            Ok(())
        }
        .boxed()
    }
}

impl Store for MemoryStore {
    fn snapshot(&self) -> Arc<dyn Reader> {
        Arc::new(MemoryReader { entries: self.clone_entries() })
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<CommitOutcome>> {
        async move { self.run_write(set, decide) }.boxed()
    }

    fn log_ends<'a>(
        &'a self,
        start: &'a [u8],
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<(Key, LogEnd)>>> {
        async move {
            self.check_open()?;
            let ends = self.writer.lock().log_ends.clone();
            let from = (Bound::Included(Key::copy_from_slice(start)), Bound::Unbounded);
            let found = ends.range(from).take(count_max);
            Ok(found.map(|(log, end)| (log.clone(), *end)).collect())
        }
        .boxed()
    }

    fn checkpoint<'a>(&'a self, _directory: &'a Path) -> BoxFuture<'a, Result<()>> {
        let detail = "a store in memory has no files to copy".to_owned();
        ready(Err(Error::Unsupported { detail })).boxed()
    }

    fn reclaim<'a>(&'a self, _range: KeyRange) -> BoxFuture<'a, Result<()>> {
        ready(Ok(())).boxed()
    }

    fn statistics(&self) -> Statistics {
        let commits = self.commits.load(Ordering::Relaxed);
        Statistics {
            size_bytes: self.size_bytes.load(Ordering::Relaxed),
            commit_groups: commits,
            committed_writes: commits,
            write_failure: None,
        }
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        async move {
            // Taking the writer's lock lets a running write finish first.
            let _writer = self.writer.lock();
            self.closed.store(true, Ordering::Release);
            Ok(())
        }
        .boxed()
    }
}

struct MemoryReader {
    entries: Result<Entries>,
}

impl MemoryReader {
    fn entries(&self) -> Result<&Entries> {
        self.entries.as_ref().map_err(Error::clone)
    }
}

impl Reader for MemoryReader {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move { Ok(self.entries()?.get(key).cloned()) }.boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move {
            let entries = self.entries()?;
            Ok(keys.iter().map(|key| entries.get(key).cloned()).collect())
        }
        .boxed()
    }

    fn scan<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        visit: &'a mut Visitor<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            scan_entries(self.entries()?, &range, direction, visit);
            Ok(())
        }
        .boxed()
    }
}

fn scan_entries(
    entries: &Entries,
    range: &KeyRange,
    direction: Direction,
    visit: &mut Visitor<'_>,
) {
    let Some(bounds) = bounds(range) else { return };
    let mut step = |(key, value): (&Key, &Value)| match visit(key, value) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(()),
    };
    // The error only means that the visitor broke off.
    let _ = match direction {
        Direction::Forward => entries.range(bounds).try_for_each(&mut step),
        Direction::Reverse => entries.range(bounds).rev().try_for_each(&mut step),
    };
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;

    use super::MemoryStore;
    use crate::conformance::Backend;
    use crate::{Batch, Decision, Key, Reader, Store, Value, WriteSet};

    struct Memory;

    impl Backend for Memory {
        fn open(&self) -> Arc<dyn Store> {
            Arc::new(MemoryStore::new())
        }

        fn survives_reopening(&self) -> bool {
            false
        }
    }

    crate::conformance_tests!(Memory);

    /// Writes one entry and appends one to a log; returns the entry's number.
    fn write(store: &MemoryStore, value: &'static str) -> u64 {
        let key = Key::from("k");
        let set = WriteSet { guards: &[], keys: std::slice::from_ref(&key) };
        let mut decide = |_: &[Option<Value>]| {
            let mut batch = Batch::new();
            batch.put(key.clone(), value);
            batch.append("log", 1, value);
            Decision::Commit(batch)
        };
        let outcome = store.write(set, &mut decide).now_or_never().expect("memory never waits");
        outcome.unwrap().sequences[0]
    }

    fn value(store: &MemoryStore) -> Option<Value> {
        store.get(b"k").now_or_never().expect("memory never waits").unwrap()
    }

    #[test]
    fn a_fork_has_everything_and_shares_nothing_that_changes() {
        let store = MemoryStore::new();
        assert_eq!((write(&store, "a"), write(&store, "b")), (1, 2));
        let fork = store.fork();
        assert_eq!(fork.statistics().size_bytes, store.statistics().size_bytes);
        assert_eq!(write(&fork, "forked"), 3, "the log goes on where it was");
        assert_eq!(value(&store), Some(Value::from("b")));
        assert_eq!(write(&store, "c"), 3);
        assert_eq!(value(&fork), Some(Value::from("forked")));
        store.close().now_or_never().expect("memory never waits").unwrap();
        assert_eq!(value(&fork), Some(Value::from("forked")));
    }
}
