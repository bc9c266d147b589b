//! A commit group: batches that are written, synced and acknowledged together.

use std::borrow::Cow;
use std::sync::Arc;

use rocksdb::{ReadOptions, WriteBatch};
use zenobe_store::{
    Error, Key, KeyRange, Operation, Result, WriteOutcome, encode_log_entry, log_entry_key,
};

use crate::counters::Numbers;
use crate::database::{Database, rocksdb_error};
use crate::log;
use crate::queue::Pending;
use crate::view::View;
use crate::written::Written;

pub(crate) struct Group {
    pub batches: Vec<Pending>,
    /// The batches' outcomes, in their order.
    pub outcomes: Vec<WriteOutcome>,
    /// The counters that it changed.
    pub counters: Vec<Key>,
    /// The state after this group, or `None` if it wrote nothing.
    pub view: Option<Arc<View>>,
}

impl Group {
    /// Batches that are not going to be written.
    pub fn without_outcome(batches: Vec<Pending>) -> Group {
        Group { batches, outcomes: Vec::new(), counters: Vec::new(), view: None }
    }

    /// The failure of a group whose outcome is unknown: it may turn up after recovery, or not.
    pub fn fail(self, error: &Error) {
        for pending in self.batches {
            // A write whose future was dropped has nobody waiting for its answer.
            let _ = pending.answer.send(Err(error.clone()));
        }
    }

    pub fn size_bytes(&self) -> usize {
        self.batches.iter().map(|pending| pending.size_bytes).sum()
    }
}

/// What batches come to.
pub(crate) struct Built {
    /// `None` if there is nothing to write.
    pub write: Option<WriteBatch>,
    pub outcomes: Vec<WriteOutcome>,
    pub counters: Vec<Key>,
}

/// Turns batches into one RocksDB write that begins with the horizon.
pub(crate) fn build_write(
    database: &Database,
    numbers: &mut Numbers,
    horizon: u64,
    batches: &[Pending],
) -> Result<Built> {
    let size_bytes: usize = batches.iter().map(|pending| pending.size_bytes).sum();
    let write = log::write_with(database.directory().nonce(), horizon, size_bytes);
    let all = batches.iter().flat_map(|pending| pending.operations.iter());
    let earlier = Earlier { unread: Box::new(all), written: Written::default() };
    let mut builder =
        Builder { database, numbers, batches, earlier, done: 0, write, entry: Vec::new() };
    let mut outcomes = Vec::with_capacity(batches.len());
    for batch in 0..batches.len() {
        outcomes.push(builder.add_batch(batch)?);
    }
    let Builder { mut write, numbers, .. } = builder;
    let counters = numbers.write_changes(database, &mut write);
    // The horizon does not count as an entry.
    let write = (!write.is_empty()).then_some(write);
    Ok(Built { write, outcomes, counters })
}

struct Builder<'a> {
    database: &'a Database,
    numbers: &'a mut Numbers,
    batches: &'a [Pending],
    earlier: Earlier<'a>,
    /// How many operations of the group have been added.
    done: usize,
    write: WriteBatch,
    /// An entry of a log while it is put together.
    entry: Vec<u8>,
}

impl Builder<'_> {
    fn add_batch(&mut self, batch: usize) -> Result<WriteOutcome> {
        let mut outcome = WriteOutcome::default();
        let batches = self.batches;
        for operation in batches[batch].operations.iter() {
            match operation {
                Operation::Put { key, value } => {
                    self.numbers.forget(key);
                    self.write.put(key, value);
                }
                Operation::Delete { key } => {
                    self.numbers.forget(key);
                    self.write.delete(key);
                }
                Operation::DeleteRange { range } => self.delete_range(range)?,
                Operation::Append { log, stamp, value } => {
                    let end = self.numbers.append(log, *stamp, self.database)?;
                    self.entry.clear();
                    encode_log_entry(end.stamp, value, &mut self.entry);
                    self.write.put(log_entry_key(log, end.sequence), &self.entry);
                    outcome.sequences.push(end.sequence);
                }
                Operation::ForgetLog { log } => {
                    self.numbers.forget_log(log);
                    self.write.delete_cf(self.database.log_ends(), log);
                }
                Operation::Add { key, delta } => {
                    let Builder { database, earlier, done, .. } = self;
                    self.numbers
                        .add(key, *delta, || load_counter(key, database, earlier.up_to(*done)))?;
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
                let all = self.batches.iter().flat_map(|pending| pending.operations.iter());
                end_of_keys(self.database, all.take(self.done))?
            }
        };
        if range.start < end {
            self.write.delete_range(&range.start, &end);
        }
        Ok(())
    }
}

/// The operations of the group that have been added, looked at only once a counter is not in memory, and
/// each of them once however many counters are not.
struct Earlier<'a> {
    unread: Box<dyn Iterator<Item = &'a Operation> + 'a>,
    written: Written<'a>,
}

impl<'a> Earlier<'a> {
    fn up_to(&mut self, count: usize) -> &Written<'a> {
        let missing = count - self.written.count();
        self.unread.by_ref().take(missing).for_each(|operation| self.written.record(operation));
        &self.written
    }
}

/// The stored value of a counter that is not in memory: what this group has already written, or else what
/// the database holds.
fn load_counter<'a>(
    key: &Key,
    database: &Database,
    earlier: &Written<'a>,
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
    database: &Database,
    earlier: impl Iterator<Item = &'a Operation>,
) -> Result<Key> {
    let mut reads = ReadOptions::default();
    reads.set_total_order_seek(true);
    let mut entries = database.rocks().raw_iterator_opt(reads);
    entries.seek_to_last();
    let mut last = entries.key().unwrap_or_default().to_vec();
    entries.status().map_err(|error| rocksdb_error(&error))?;
    for operation in earlier {
        match operation {
            Operation::Put { key, .. } => last = last.max(key.to_vec()),
            Operation::Append { log, .. } => last = last.max(log_entry_key(log, u64::MAX).to_vec()),
            _ => {}
        }
    }
    last.push(0);
    Ok(last.into())
}
