//! The numbers that commits give out: counters, and the ends of append logs, among which clocks are kept.
//!
//! They are read from the database once and kept in memory. Each group writes the numbers that it changes once, at its
//! end, however many writes add to them.

use std::borrow::Cow;

use rocksdb::WriteBatch;
use zenobe_store::key_map::KeyMap;
use zenobe_store::stamp::{stamp_of, stamped_puts};
use zenobe_store::{Error, Key, KeyRange, LogEnd, Mutation, Result, Stamp, decode_counter};

use crate::rocks_database::{RocksDatabase, rocksdb_error};

/// Beyond this many, half of the numbers are forgotten, and read again when they are next used.
const NUMBERS_MAX: usize = 64 * 1024;

#[derive(Default)]
pub(crate) struct Numbers {
    counters: NumberMap<i64>,
    log_ends: NumberMap<LogEnd>,
}

impl Numbers {
    /// Adds to a counter. `load` reads its stored value if it is not in memory.
    pub fn add<'a>(
        &mut self,
        key: &Key,
        delta: i64,
        load: impl FnOnce() -> Result<Option<Cow<'a, [u8]>>>,
    ) -> Result<()> {
        let load = || decode_counter(load()?.as_deref());
        self.counters.change(key, load, |value| value.wrapping_add(delta))?;
        Ok(())
    }

    /// The end of an append log with one more entry.
    pub fn append(&mut self, log: &Key, stamp: u64, database: &RocksDatabase) -> Result<LogEnd> {
        self.log_ends.change(log, || load_log_end(log, database), |end| end.append(stamp))
    }

    /// The stamp of a write with stamped puts: later than all that its clocks show.
    pub fn stamp(&mut self, mutations: &[Mutation], database: &RocksDatabase) -> Result<Stamp> {
        stamp_of(stamped_puts(mutations), |clock| {
            let shown =
                self.log_ends.change(clock, || load_log_end(clock, database), |shown| shown);
            Ok(shown?.clock())
        })
    }

    /// Makes a clock show at least this stamp.
    pub fn advance(&mut self, clock: &Key, to: Stamp, database: &RocksDatabase) -> Result<()> {
        let load = || load_log_end(clock, database);
        self.log_ends.change(clock, load, |shown| shown.advance(to))?;
        Ok(())
    }

    /// A log is being dropped. Its numbering restarts, whatever the database still holds of it.
    pub fn forget_log(&mut self, log: &Key) {
        let new = KnownNumber { value: LogEnd::default(), is_changed: false };
        self.log_ends.numbers.insert(log.clone(), new);
    }

    /// A log was copied from elsewhere and continues from there.
    pub fn set_log_end(&mut self, log: &Key, end: LogEnd) {
        self.log_ends.numbers.insert(log.clone(), KnownNumber { value: end, is_changed: true });
        self.log_ends.changed.push(log.clone());
    }

    /// A put or a delete replaces a counter, so its sum is no longer known.
    pub fn forget(&mut self, key: &Key) {
        self.counters.numbers.remove(key);
    }

    pub fn forget_range(&mut self, range: &KeyRange) {
        self.counters.numbers.retain(|key, _| !range.contains(key));
    }

    /// Adds every changed number to the group's write. Returns the counters among them.
    pub fn write_changes(&mut self, database: &RocksDatabase, write: &mut WriteBatch) -> Vec<Key> {
        let mut changed = Vec::new();
        self.counters.take_changes(|key, value| {
            match value {
                0 => write.delete(key),
                _ => write.put(key, value.to_be_bytes()),
            }
            changed.push(key.clone());
        });
        let log_ends = database.log_ends();
        self.log_ends.take_changes(|log, end| write.put_cf(log_ends, log, encode_log_end(end)));
        changed
    }

    /// Bounds the memory by forgetting numbers. Only between groups, when the database itself knows every number.
    pub fn forget_excess(&mut self) {
        if self.counters.numbers.len() + self.log_ends.numbers.len() > NUMBERS_MAX {
            self.counters.forget_half();
            self.log_ends.forget_half();
        }
    }
}

#[derive(Default)]
struct NumberMap<T> {
    numbers: KeyMap<Key, KnownNumber<T>>,
    /// The keys that changed in this group. Some may have been forgotten again.
    changed: Vec<Key>,
}

struct KnownNumber<T> {
    value: T,
    is_changed: bool,
}

impl<T: Copy> NumberMap<T> {
    fn change(
        &mut self,
        key: &Key,
        load: impl FnOnce() -> Result<T>,
        change: impl FnOnce(T) -> T,
    ) -> Result<T> {
        let number = match self.numbers.get_mut(key) {
            Some(number) => number,
            None => {
                let number = KnownNumber { value: load()?, is_changed: false };
                self.numbers.entry(key.clone()).or_insert(number)
            }
        };
        number.value = change(number.value);
        if !number.is_changed {
            number.is_changed = true;
            self.changed.push(key.clone());
        }
        Ok(number.value)
    }

    /// Drops an arbitrary half. Hot numbers that are dropped are soon read again.
    fn forget_half(&mut self) {
        let mut keep = false;
        self.numbers.retain(|_, _| {
            keep = !keep;
            keep
        });
    }

    fn take_changes(&mut self, mut take: impl FnMut(&Key, T)) {
        for key in self.changed.drain(..) {
            if let Some(number) = self.numbers.get_mut(&key).filter(|number| number.is_changed) {
                number.is_changed = false;
                take(&key, number.value);
            }
        }
    }
}

fn load_log_end(log: &Key, database: &RocksDatabase) -> Result<LogEnd> {
    let stored = database.rocks().get_pinned_cf(database.log_ends(), log);
    match stored.map_err(|error| rocksdb_error(&error))? {
        None => Ok(LogEnd::default()),
        Some(bytes) => decode_log_end(&bytes).ok_or_else(|| Error::Corrupt {
            detail: format!("the end of a log in {} bytes, expected 16", bytes.len()),
        }),
    }
}

fn encode_log_end(end: LogEnd) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&end.sequence.to_be_bytes());
    bytes[8..].copy_from_slice(&end.stamp.to_be_bytes());
    bytes
}

pub(crate) fn decode_log_end(bytes: &[u8]) -> Option<LogEnd> {
    let (sequence, stamp) = bytes.split_first_chunk()?;
    let stamp = stamp.try_into().ok()?;
    Some(LogEnd { sequence: u64::from_be_bytes(*sequence), stamp: u64::from_be_bytes(stamp) })
}
