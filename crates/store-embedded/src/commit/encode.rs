//! How a commit group becomes one RocksDB batch: mutations in the commit order, appends numbered, keys stamped, counters
//! summed.

use std::borrow::Cow;

use rocksdb::{ReadOptions, WriteBatch};
use zenobe_store::stamp::stamped_key;
use zenobe_store::{
    CommitOutcome, Key, KeyRange, Mutation, Result, Stamp, encode_log_entry, log_entry_key,
};

use super::queue::QueuedWrite;
use super::{CommitGroup, size_bytes};
use crate::last_writes::LastWrites;
use crate::numbers::Numbers;
use crate::rocks_database::{RocksDatabase, rocksdb_error};
use crate::write_ahead_log;

/// Encodes a group, with its horizon in front, and fills in its outcomes and counters. `None` if there is nothing to
/// write.
pub(super) fn encode(
    group: &mut CommitGroup,
    database: &RocksDatabase,
    numbers: &mut Numbers,
) -> Result<Option<WriteBatch>> {
    let size_bytes = size_bytes(&group.writes);
    let CommitGroup { writes, outcomes, counters, horizon, newest_stamp, .. } = group;
    let writes: &[QueuedWrite] = writes;
    let batch =
        write_ahead_log::batch_with_horizon(database.directory().nonce(), *horizon, size_bytes);
    let all = writes.iter().flat_map(|write| write.mutations.iter());
    let earlier = Earlier { unread: Box::new(all), last_writes: LastWrites::default() };
    let mut encoder = Encoder {
        database,
        numbers,
        writes,
        earlier,
        done: 0,
        batch,
        entry: Vec::new(),
        newest_stamp,
    };
    for write in writes {
        outcomes.push(encoder.add(write)?);
    }
    let Encoder { mut batch, numbers, .. } = encoder;
    *counters = numbers.write_changes(database, &mut batch);
    // The horizon does not count as an entry.
    Ok((!batch.is_empty()).then_some(batch))
}

struct Encoder<'a> {
    database: &'a RocksDatabase,
    numbers: &'a mut Numbers,
    writes: &'a [QueuedWrite],
    earlier: Earlier<'a>,
    /// How many mutations of the group have been added.
    done: usize,
    batch: WriteBatch,
    /// A buffer for the log entry being encoded.
    entry: Vec<u8>,
    /// The newest stamp that was given out.
    newest_stamp: &'a mut Stamp,
}

impl Encoder<'_> {
    fn add(&mut self, write: &QueuedWrite) -> Result<CommitOutcome> {
        let mut outcome = CommitOutcome::default();
        for mutation in write.mutations.iter() {
            match mutation {
                Mutation::Put { key, value } => {
                    self.numbers.forget(key);
                    self.batch.put(key, value);
                }
                Mutation::Delete { key } => {
                    self.numbers.forget(key);
                    self.batch.delete(key);
                }
                Mutation::DeleteRange { range } => self.delete_range(range)?,
                Mutation::Append { log, stamp, value } => {
                    let end = self.numbers.append(log, *stamp, self.database)?;
                    self.entry.clear();
                    encode_log_entry(end.stamp, value, &mut self.entry);
                    self.batch.put(log_entry_key(log, end.sequence), &self.entry);
                    outcome.sequences.push(end.sequence);
                }
                Mutation::ForgetLog { log } => {
                    self.numbers.forget_log(log);
                    self.batch.delete_cf(self.database.log_ends(), log);
                }
                Mutation::SetLogEnd { log, end } => self.numbers.set_log_end(log, *end),
                Mutation::Add { key, delta } => {
                    let Encoder { database, earlier, done, .. } = self;
                    self.numbers
                        .add(key, *delta, || load_counter(key, database, earlier.up_to(*done)))?;
                }
                Mutation::PutStamped(put) => {
                    // Given out with the first one.
                    let stamp = match outcome.stamp {
                        Some(given) => given,
                        None => {
                            let given = self.numbers.stamp(&write.mutations, self.database)?;
                            *self.newest_stamp = given.max(*self.newest_stamp);
                            *outcome.stamp.insert(given)
                        }
                    };
                    self.numbers.advance(&put.clock, stamp, self.database)?;
                    self.batch.put(stamped_key(&put.key, stamp), &put.value);
                }
                Mutation::Advance { clock, to } => {
                    self.numbers.advance(clock, *to, self.database)?;
                }
            }
            self.done += 1;
        }
        Ok(outcome)
    }

    fn delete_range(&mut self, range: &KeyRange) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        self.numbers.forget_range(range);
        let end = match &range.end {
            Some(end) => end.clone(),
            None => {
                let all = self.writes.iter().flat_map(|write| write.mutations.iter());
                end_of_keys(self.database, all.take(self.done))?
            }
        };
        if range.start < end {
            self.batch.delete_range(&range.start, &end);
        }
        Ok(())
    }
}

/// The mutations that the group has added so far. They are indexed when a counter is first missing from memory, and
/// each only once.
struct Earlier<'a> {
    unread: Box<dyn Iterator<Item = &'a Mutation> + 'a>,
    last_writes: LastWrites<'a>,
}

impl<'a> Earlier<'a> {
    fn up_to(&mut self, count: usize) -> &LastWrites<'a> {
        let missing = count - self.last_writes.count();
        self.unread.by_ref().take(missing).for_each(|mutation| self.last_writes.record(mutation));
        &self.last_writes
    }
}

/// The stored value of a counter that is not in memory: what this group has already written, or else what the
/// database holds.
fn load_counter<'a>(
    key: &Key,
    database: &RocksDatabase,
    earlier: &LastWrites<'a>,
) -> Result<Option<Cow<'a, [u8]>>> {
    match earlier.get(key) {
        Some(value) => Ok(value.map(|value| Cow::Borrowed(&value[..]))),
        None => {
            let stored = database.rocks().get(key).map_err(|error| rocksdb_error(&error))?;
            Ok(stored.map(Cow::Owned))
        }
    }
}

/// A key after every key that exists: RocksDB cannot delete up to the end of its key space.
fn end_of_keys<'a>(
    database: &RocksDatabase,
    earlier: impl Iterator<Item = &'a Mutation>,
) -> Result<Key> {
    let mut reads = ReadOptions::default();
    reads.set_total_order_seek(true);
    let mut entries = database.rocks().raw_iterator_opt(reads);
    entries.seek_to_last();
    let mut last = entries.key().unwrap_or_default().to_vec();
    entries.status().map_err(|error| rocksdb_error(&error))?;
    for mutation in earlier {
        match mutation {
            Mutation::Put { key, .. } => last = last.max(key.to_vec()),
            Mutation::Append { log, .. } => last = last.max(log_entry_key(log, u64::MAX).to_vec()),
            Mutation::PutStamped(put) => {
                let key = stamped_key(&put.key, Stamp::from_bits(u64::MAX));
                last = last.max(key.to_vec());
            }
            _ => {}
        }
    }
    last.push(0);
    Ok(last.into())
}
