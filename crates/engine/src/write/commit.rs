//! Commits intents: all of them in one atomic, serialisable write, or none.

use std::sync::Arc;

use zenobe_store::{Batch, Key, Mutation, Value, WriteSet, write_with};
use zenobe_value::EncodedItem;

use crate::Engine;
use crate::cache::UncommittedWrites;
use crate::capacity_units::item_write_halves;
use crate::catalog::{GuardCheck, Table};
use crate::change::{Cause, Change, ChangeEffect, KnownEntries, NeedsEntries, size_bytes};
use crate::command::{Consumed, ItemCollection};
use crate::error::{Error, Result};
use crate::jobs::JobStep;
use crate::lease::Lease;
use crate::throughput::ThroughputMode;
use crate::transactions::token::{IdempotencyToken, RepeatedTransaction, TokenState};

use super::collections::{CollectionSizes, partition_attributes};
use super::decode_stored;
use super::intent::{Declaration, Intent, WriteAction};

pub(crate) enum Committed {
    /// What each intent did, in order.
    Written(Vec<WrittenItem>),
    /// Nothing was written: the errors of the intents, in order.
    Refused(Vec<Option<Error>>),
    /// Nothing was written: this table's definition has changed since the intents were prepared.
    Stale(Arc<Table>),
    /// Nothing was written: the token shows that the transaction already happened.
    Replayed(RepeatedTransaction),
}

#[derive(Debug)]
pub(crate) struct WrittenItem {
    pub old: Option<EncodedItem>,
    pub new: Option<EncodedItem>,
    pub effect: ChangeEffect,
    pub collection: Option<ItemCollection>,
}

impl WrittenItem {
    fn new(old: Option<EncodedItem>, new: Option<EncodedItem>) -> WrittenItem {
        WrittenItem { old, new, effect: ChangeEffect::default(), collection: None }
    }

    /// The size that reading or writing this item is charged for: the larger of the item before and after.
    pub fn charged_size_bytes(&self) -> u64 {
        size_bytes(self.old.as_ref()).max(size_bytes(self.new.as_ref()))
    }

    /// What the write costs the table.
    pub fn table_halves(&self, table_factor: u64) -> u64 {
        item_write_halves(self.charged_size_bytes(), table_factor)
    }

    /// Adds the cost of the write.
    pub fn charge(&self, consumed: &mut Consumed, table_factor: u64) {
        consumed.table_halves += self.table_halves(table_factor);
        for index in &self.effect.indexes {
            consumed.add_index(index.kind, &index.name, index.halves);
        }
    }
}

/// What a write depends on besides its tables and items.
#[derive(Clone, Copy)]
pub(crate) enum Terms<'a> {
    None,
    /// The write happens at most once.
    Token(&'a IdempotencyToken),
    /// The write happens only while the lease holds.
    Lease(&'a Lease),
    /// Like a lease. The write also stores the progress of a job.
    Job(&'a JobStep<'a>),
}

impl<'a> Terms<'a> {
    fn token(self) -> Option<&'a IdempotencyToken> {
        match self {
            Terms::Token(token) => Some(token),
            Terms::None | Terms::Lease(_) | Terms::Job(_) => None,
        }
    }

    /// The lease of background work.
    fn lease(self) -> Option<&'a Lease> {
        match self {
            Terms::Lease(lease) => Some(lease),
            Terms::Job(step) => Some(step.lease()),
            Terms::None | Terms::Token(_) => None,
        }
    }

    /// The row besides items that is written.
    fn row_key(self) -> Option<&'a Key> {
        match self {
            Terms::Token(token) => Some(token.row_key()),
            Terms::Job(step) => Some(step.key()),
            Terms::None | Terms::Lease(_) => None,
        }
    }
}

/// Commits `intents`, which must name different items.
pub(crate) async fn commit(
    engine: &Engine,
    intents: &[Intent<'_>],
    terms: Terms<'_>,
) -> Result<Committed> {
    let collections = CollectionSizes::read(engine, intents).await?;
    let mut attempt = Attempt::new(engine, intents, terms);
    let cached = engine.item_cache.as_ref().map(|cache| cache.begin_writes(written_keys(intents)));
    loop {
        let set = WriteSet { guards: &attempt.guards, keys: &attempt.keys };
        let decision =
            write_with(&*engine.store, set, |reads| attempt.decide(reads, &collections)).await;
        let decision = match decision {
            Ok(decision) => decision,
            Err(error) => {
                // After any other error nothing was written.
                let is_settled = !matches!(error, zenobe_store::Error::Uncertain { .. });
                if let Some(cached) = cached.filter(|_| is_settled) {
                    cached.nothing_written();
                }
                return Err(error.into());
            }
        };
        let committed = match decision {
            Ok((written, outcome)) => {
                if !outcome.sequences.is_empty() {
                    announce(engine, &attempt.tables);
                }
                Committed::Written(written)
            }
            Err(NotWritten::Refused(errors)) => Committed::Refused(errors),
            Err(NotWritten::Stale(table)) => Committed::Stale(table),
            Err(NotWritten::Repeated(repeated)) => Committed::Replayed(repeated),
            Err(NotWritten::Failed(error)) => return Err(error),
            Err(NotWritten::NeedsEntries(entries)) => {
                attempt.declare_entries(entries);
                continue;
            }
        };
        if let Some(cached) = cached {
            write_through(cached, intents, terms, &committed);
        }
        return Ok(committed);
    }
}

fn written_keys<'a>(intents: &'a [Intent<'_>]) -> impl Iterator<Item = &'a Key> {
    intents.iter().filter(|intent| !intent.is_check()).map(|intent| &intent.item_key)
}

/// Tells the cache of items what has become of a write.
fn write_through(
    cached: UncommittedWrites<'_>,
    intents: &[Intent<'_>],
    terms: Terms<'_>,
    committed: &Committed,
) {
    match (committed, terms) {
        // Loading a table or expiring its items must not push out what clients use.
        (Committed::Written(_), Terms::Lease(_) | Terms::Job(_)) => cached.changed(),
        (Committed::Written(written), _) => {
            let items = intents.iter().zip(written).filter(|(intent, _)| !intent.is_check());
            cached.written(items.map(|(_, written)| written.new.as_ref()));
        }
        // It was carried out earlier, perhaps by another engine.
        (Committed::Replayed(_), _) => cached.changed(),
        (Committed::Refused(_) | Committed::Stale(_), _) => cached.nothing_written(),
    }
}

/// Notifies those who wait for the records of these tables. Nobody waits for a table without a
/// stream.
fn announce(engine: &Engine, tables: &[&Arc<Table>]) {
    tables.iter().for_each(|table| engine.announcements.announce(table.name()));
}

/// Why a decision writes nothing.
enum NotWritten {
    Refused(Vec<Option<Error>>),
    Stale(Arc<Table>),
    Repeated(RepeatedTransaction),
    NeedsEntries(Vec<Key>),
    Failed(Error),
}

/// When a write happens.
#[derive(Clone, Copy)]
struct Times {
    now_ms: u64,
    /// For undo rows.
    history_ms: u64,
}

impl Times {
    /// Only tables with history ask the trusted clock.
    fn now(engine: &Engine, intents: &[Intent<'_>]) -> Times {
        let now_ms = engine.clock.now_ms();
        let has_history = intents.iter().any(|intent| intent.table.history().is_some());
        let history_ms =
            if has_history { engine.trusted_clock.read().plausible_ms } else { now_ms };
        Times { now_ms, history_ms }
    }
}

/// The write set of one attempt.
///
/// Guards: the version row of each table, the items that are only checked, then the lease. Keys:
/// the row of the token or the job, the items that are read and written, then those entries of incomplete indexes whose
/// presence matters. Items are in the order of their intents.
struct Attempt<'a> {
    engine: &'a Engine,
    intents: &'a [Intent<'a>],
    terms: Terms<'a>,
    times: Times,
    tables: Vec<&'a Arc<Table>>,
    guards: Vec<Key>,
    keys: Vec<Key>,
    entries_start: usize,
}

impl<'a> Attempt<'a> {
    fn new(engine: &'a Engine, intents: &'a [Intent<'a>], terms: Terms<'a>) -> Attempt<'a> {
        let mut tables: Vec<&Arc<Table>> = Vec::with_capacity(1);
        for intent in intents {
            if !tables.iter().any(|table| table.guard_key() == intent.table.guard_key()) {
                tables.push(&intent.table);
            }
        }
        let mut guards: Vec<Key> = tables.iter().map(|table| table.guard_key().clone()).collect();
        let row_key = terms.row_key();
        let mut keys: Vec<Key> = Vec::with_capacity(row_key.iter().len() + intents.len());
        keys.extend(row_key.cloned());
        for intent in intents {
            match intent.declaration() {
                Declaration::Guard => guards.push(intent.item_key.clone()),
                Declaration::Key => keys.push(intent.item_key.clone()),
                Declaration::Nothing => {}
            }
        }
        if let Some(lease) = terms.lease() {
            guards.extend_from_slice(lease.guards());
        }
        let entries_start = keys.len();
        let times = Times::now(engine, intents);
        Attempt { engine, intents, terms, times, tables, guards, keys, entries_start }
    }

    fn declare_entries(&mut self, entries: Vec<Key>) {
        self.keys.truncate(self.entries_start);
        self.keys.extend(entries);
    }

    fn decide(
        &self,
        reads: &[Option<Value>],
        collections: &CollectionSizes,
    ) -> Result<(Batch, Vec<WrittenItem>), NotWritten> {
        let (guards, keys) = reads.split_at(self.guards.len());
        self.check_tables(guards)?;
        self.check_terms(guards, keys)?;
        let mut written = self.images(guards, keys)?;
        let mut batch = self.changes(&mut written, keys)?;
        self.check_throughput(&written)?;
        let sizes = collections.after(self.intents, &written).map_err(NotWritten::Refused)?;
        for ((written, intent), size_bytes) in written.iter_mut().zip(self.intents).zip(sizes) {
            written.collection = collection(intent, size_bytes).map_err(NotWritten::Failed)?;
        }
        if let Some(token) = self.terms.token() {
            let tables = self.intents.iter().map(|intent| &*intent.table);
            token.remember(tables.zip(&written), &mut batch);
        }
        if let Terms::Job(step) = self.terms {
            step.save(keys[0].as_ref(), &mut batch).map_err(NotWritten::Failed)?;
        }
        Ok((batch, written))
    }

    fn check_tables(&self, guards: &[Option<Value>]) -> Result<(), NotWritten> {
        for (table, version) in self.tables.iter().zip(guards) {
            match table.check_guard(version.as_ref()) {
                GuardCheck::Current => {}
                GuardCheck::Changed | GuardCheck::Gone => {
                    return Err(NotWritten::Stale(Arc::clone(table)));
                }
            }
        }
        Ok(())
    }

    fn check_terms(
        &self,
        guards: &[Option<Value>],
        keys: &[Option<Value>],
    ) -> Result<(), NotWritten> {
        if let Some(lease) = self.terms.lease() {
            let (_, guards) = guards.split_at(guards.len() - lease.guards().len());
            return lease.check(guards).map_err(NotWritten::Failed);
        }
        let Some(token) = self.terms.token() else { return Ok(()) };
        match token.state(keys[0].as_ref()).map_err(NotWritten::Failed)? {
            TokenState::Unused => Ok(()),
            TokenState::Done(repeated) => Err(NotWritten::Repeated(repeated)),
        }
    }

    /// Every item before and after, or the errors of the intents as far as the items reveal them.
    fn images(
        &self,
        guards: &[Option<Value>],
        keys: &[Option<Value>],
    ) -> Result<Vec<WrittenItem>, NotWritten> {
        let mut checked = guards[self.tables.len()..].iter();
        let mut changed = keys[self.terms.row_key().iter().len()..].iter();
        let mut images = Vec::with_capacity(self.intents.len());
        // Stays empty, without allocating, until there is an error.
        let mut errors: Vec<Option<Error>> = Vec::new();
        for (position, intent) in self.intents.iter().enumerate() {
            let stored = match intent.declaration() {
                Declaration::Guard => checked.next(),
                Declaration::Key => changed.next(),
                Declaration::Nothing => Some(&None),
            };
            let stored = stored.expect("every item that is read is declared");
            let old = stored.as_ref().map(decode_stored).transpose().map_err(NotWritten::Failed)?;
            match intent.apply(old.as_ref()) {
                Ok(new) => images.push(WrittenItem::new(old, new)),
                Err(error) => {
                    errors.resize_with(position, || None);
                    errors.push(Some(error));
                }
            }
        }
        if errors.is_empty() {
            return Ok(images);
        }
        errors.resize_with(self.intents.len(), || None);
        Err(NotWritten::Refused(errors))
    }

    fn changes(
        &self,
        written: &mut [WrittenItem],
        keys: &[Option<Value>],
    ) -> Result<Batch, NotWritten> {
        let known = self.known_entries(keys);
        let mut batch = Batch::with_capacity(OPERATIONS_EXPECTED * written.len());
        let mut unknown = Vec::new();
        for (intent, written) in self.intents.iter().zip(written) {
            let change = Change {
                table: &intent.table,
                key: &intent.key,
                item_key: &intent.item_key,
                old: written.old.as_ref(),
                new: written.new.as_ref(),
                cause: Cause {
                    at_ms: self.times.now_ms,
                    history_at_ms: self.times.history_ms,
                    by_service: matches!(intent.action, WriteAction::Expire { .. }),
                },
            };
            match change.write(&known, &mut batch) {
                Ok(effect) => written.effect = effect,
                Err(NeedsEntries(entries)) => unknown.extend(entries),
            }
        }
        if unknown.is_empty() {
            match self.intents.len() {
                ..=1 => Ok(batch),
                _ => Ok(sum_counters(batch)),
            }
        } else {
            // Entries that are already known stay declared, or the next attempt would miss them.
            unknown.extend(known.into_keys());
            Err(NotWritten::NeedsEntries(unknown))
        }
    }

    /// An index that can't keep up holds back the writes of its table. What background work writes
    /// is free.
    fn check_throughput(&self, written: &[WrittenItem]) -> Result<(), NotWritten> {
        if self.terms.lease().is_some() {
            return Ok(());
        }
        let is_enforced =
            |table: &Table| self.engine.throughput_mode(table) == ThroughputMode::Enforce;
        let mut errors: Vec<Option<Error>> = Vec::new();
        for (position, (intent, written)) in self.intents.iter().zip(written).enumerate() {
            let effects = &written.effect.indexes;
            if effects.is_empty() || !is_enforced(&intent.table) {
                continue;
            }
            if let Err(error) = self.engine.check_entries(&intent.table, effects) {
                errors.resize_with(position, || None);
                errors.push(Some(error));
            }
        }
        if errors.is_empty() {
            return Ok(());
        }
        errors.resize_with(self.intents.len(), || None);
        Err(NotWritten::Refused(errors))
    }

    fn known_entries(&self, keys: &[Option<Value>]) -> KnownEntries {
        let declared = self.keys[self.entries_start..].iter().cloned();
        declared.zip(keys[self.entries_start..].iter().map(Option::is_some)).collect()
    }
}

/// What the change of an item usually involves: the item, two counters, an index and a stream
/// record.
const OPERATIONS_EXPECTED: usize = 6;

/// The counters of a table and of some indexes. Sizes of item collections may be as many as the items.
const COUNTERS_SUMMED_MAX: usize = 16;

/// Sums the additions to the same counter, and puts them in front. A store looks each addition up, first among what the batch
/// has put before it; a restore would have thousands of additions to the same two counters. Changes of items put no counters,
/// so the order makes no difference.
fn sum_counters(batch: Batch) -> Batch {
    let mut summed = Batch::with_capacity(batch.mutations.len());
    let mut others = Vec::with_capacity(batch.mutations.len());
    for mutation in batch.mutations {
        let Mutation::Add { key, delta } = mutation else {
            others.push(mutation);
            continue;
        };
        let known = summed.mutations.iter_mut().take(COUNTERS_SUMMED_MAX).find_map(|it| match it {
            Mutation::Add { key: known, delta } if *known == key => Some(delta),
            _ => None,
        });
        match known {
            Some(sum) => *sum = sum.wrapping_add(delta),
            None => summed.add(key, delta),
        }
    }
    summed.mutations.append(&mut others);
    summed
}

fn collection(intent: &Intent<'_>, size_bytes: Option<u64>) -> Result<Option<ItemCollection>> {
    let Some(size_bytes) = size_bytes else {
        return Ok(None);
    };
    let key = partition_attributes(&intent.table, &intent.key)?;
    Ok(Some(ItemCollection { key, size_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_to_a_counter_become_one_in_front() {
        let mut batch = Batch::with_capacity(0);
        for (item, size) in [("a", 5), ("b", 7)] {
            batch.put(item, "item");
            batch.add("count", 1);
            batch.add("size", size);
        }
        (0..40).for_each(|number| batch.add(format!("collection {number}"), number));
        batch.delete("c");
        batch.add("size", -2);
        let mut expected = Batch::with_capacity(0);
        expected.add("count", 2);
        expected.add("size", 10);
        (0..40).for_each(|number| expected.add(format!("collection {number}"), number));
        expected.put("a", "item");
        expected.put("b", "item");
        expected.delete("c");
        assert_eq!(sum_counters(batch).mutations, expected.mutations);
    }
}
