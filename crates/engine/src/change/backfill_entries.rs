//! Writes the index entries of items that are older than the index.

use futures_util::future::join_all;
use zenobe_store::{Batch, Key, Store, Value, WriteSet, write_with};

use crate::catalog::{GuardCheck, Table, TableIndex};
use crate::error::{Error, Result};
use crate::indexes::index_entry::{IndexEntry, entry};
use crate::keys::PrimaryKey;
use crate::lease::Lease;
use crate::write::decode_stored;

use super::add_statistics;
use super::expiry_entry::expiry_entry;

/// Requests wait for the locks of these items, so a write takes few of them. Waiting for the disk
/// holds no locks, so many such writes may run at once.
const LOCKED_ITEMS_MAX: usize = 8;

/// The result of one step of a backfill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backfilled {
    Done,
    /// The definition is stale and nothing was written. Refresh it and check whether the index
    /// still needs its entries.
    Stale,
}

/// Gives each of `items` (store key and stored bytes, as scanned) its entry in `index`, then stores
/// the progress.
///
/// Skips an item that has changed since it was scanned: that change knew the index and wrote the
/// entry itself. Also skips an item whose entry already exists. The scan must therefore have
/// started after the index entered the table's definition, and `table` must hold a definition with
/// the index.
pub(crate) async fn backfill(
    context: BackfillContext<'_>,
    table: &Table,
    index: TableIndex<'_>,
    items: &[(Key, Value)],
) -> Result<Backfilled> {
    let missing = candidates(table, index, items)?;
    let keys =
        |candidate: &Candidate<'_>| [candidate.item_key.clone(), candidate.entry.key.clone()];
    let add = |candidate: &Candidate<'_>, read: &[Option<Value>; 2], batch: &mut Batch| {
        let unchanged = read[0].as_ref() == Some(candidate.scanned);
        if unchanged && read[1].is_none() {
            let IndexEntry { key, value } = &candidate.entry;
            batch.put(key.clone(), value.as_bytes().clone());
            add_statistics(index.statistics, 1, candidate.entry.size_bytes() as i64, batch);
        }
    };
    let step = BackfillBatch { context, table, items };
    step.take(&missing, keys, add).await
}

/// Gives each of `items` (as scanned) its entry in the expiry index, then stores the progress.
///
/// As above, skips an item that has changed since it was scanned: that change wrote the entry.
pub(crate) async fn backfill_expiries(
    context: BackfillContext<'_>,
    table: &Table,
    items: &[(Key, Value)],
) -> Result<Backfilled> {
    type Expiry<'a> = (&'a Key, &'a Value, Key);
    let mut missing: Vec<Expiry<'_>> = Vec::new();
    for (item_key, scanned) in items {
        let entry = expiry_entry(table, item_key, &decode_stored(scanned)?);
        missing.extend(entry.map(|entry| (item_key, scanned, entry)));
    }
    let keys = |(item_key, ..): &Expiry<'_>| [(*item_key).clone()];
    let add = |(_, scanned, entry): &Expiry<'_>, read: &[Option<Value>; 1], batch: &mut Batch| {
        if read[0].as_ref() == Some(*scanned) {
            batch.put(entry.clone(), Value::new());
        }
    };
    let step = BackfillBatch { context, table, items };
    step.take(&missing, keys, add).await
}

/// A backfill: its store, its lease, and where it stores its progress.
#[derive(Clone, Copy)]
pub(crate) struct BackfillContext<'a> {
    pub store: &'a dyn Store,
    pub lease: &'a Lease,
    pub progress_key: &'a Key,
}

/// Items in one step of a backfill.
struct BackfillBatch<'a> {
    context: BackfillContext<'a>,
    table: &'a Table,
    items: &'a [(Key, Value)],
}

impl BackfillBatch<'_> {
    /// Writes the missing entries, a few items at a time, and then the progress. Calls `add` under
    /// the locks of the candidate's `keys`, with their values.
    async fn take<T: Sync, const KEYS: usize>(
        &self,
        missing: &[T],
        keys: impl Fn(&T) -> [Key; KEYS] + Sync,
        add: impl Fn(&T, &[Option<Value>; KEYS], &mut Batch) + Sync,
    ) -> Result<Backfilled> {
        let Some((last_key, _)) = self.items.last() else { return Ok(Backfilled::Done) };
        let some = missing.chunks(LOCKED_ITEMS_MAX);
        let writes = some.map(|some| self.write_some(some, &keys, &add));
        for written in join_all(writes).await {
            if written? == Backfilled::Stale {
                return Ok(Backfilled::Stale);
            }
        }
        let progress_key = self.context.progress_key;
        let keys = std::slice::from_ref(progress_key);
        self.write(keys, |_, batch| batch.put(progress_key.clone(), last_key.clone())).await
    }

    async fn write_some<T: Sync, const KEYS: usize>(
        &self,
        some: &[T],
        keys: &(impl Fn(&T) -> [Key; KEYS] + Sync),
        add: &(impl Fn(&T, &[Option<Value>; KEYS], &mut Batch) + Sync),
    ) -> Result<Backfilled> {
        let keys: Vec<Key> = some.iter().flat_map(keys).collect();
        let fill = |reads: &[Option<Value>], batch: &mut Batch| {
            for (candidate, read) in some.iter().zip(reads.as_chunks().0) {
                add(candidate, read, batch);
            }
        };
        self.write(&keys, fill).await
    }

    /// Writes what `fill` adds to the batch, given the values of `keys`, unless the definition is
    /// stale or the lease is lost.
    async fn write(
        &self,
        keys: &[Key],
        fill: impl Fn(&[Option<Value>], &mut Batch) + Send + Sync,
    ) -> Result<Backfilled> {
        let BackfillContext { store, lease, .. } = self.context;
        let guards = [std::slice::from_ref(self.table.guard_key()), lease.guards()].concat();
        let decision = write_with(store, WriteSet { guards: &guards, keys }, |reads| {
            let (guards, reads) = reads.split_at(guards.len());
            lease.check(&guards[1..])?;
            let mut batch = Batch::new();
            if self.table.check_guard(guards[0].as_ref()) != GuardCheck::Current {
                return Ok((batch, Backfilled::Stale));
            }
            fill(reads, &mut batch);
            Ok::<_, Error>((batch, Backfilled::Done))
        });
        let (backfilled, _) = decision.await??;
        Ok(backfilled)
    }
}

struct Candidate<'a> {
    item_key: &'a Key,
    scanned: &'a Value,
    entry: IndexEntry,
}

fn candidates<'a>(
    table: &Table,
    index: TableIndex<'_>,
    items: &'a [(Key, Value)],
) -> Result<Vec<Candidate<'a>>> {
    let mut candidates = Vec::with_capacity(items.len());
    for (item_key, scanned) in items {
        let item = decode_stored(scanned)?;
        let primary = PrimaryKey::from_stored(&table.definition().keys, item.as_item())?;
        if let Some(entry) = entry(table, index, &primary, &item) {
            candidates.push(Candidate { item_key, scanned, entry });
        }
    }
    Ok(candidates)
}
