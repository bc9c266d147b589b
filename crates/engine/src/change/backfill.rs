//! Writes the entries of an index for items that are older than the index.

use zenobe_store::{Batch, Key, Store, Value, WriteSet, write_with};

use crate::catalog::{GuardCheck, Table, TableIndex};
use crate::error::Result;
use crate::indexes::entries::{Entry, entry};
use crate::keys::PrimaryKey;
use crate::write::decode_stored;

use super::add_statistics;
use super::expiry::expiry_entry;

/// What became of a step of a backfill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backfilled {
    Done,
    /// The definition in hand is stale; nothing was written. Refresh it and look again whether the index
    /// still wants its entries.
    Stale,
}

/// Gives each of `items` (store key and stored bytes, as scanned) its entry in `index` and stores the progress, under
/// the items' locks and in one batch.
///
/// An item that has changed since it was scanned is left alone: its change knew the index and wrote the
/// entry itself. So is an item whose entry is there already. The scan must therefore have begun after the index
/// entered the table's definition, and `table` must hold a definition with the index.
pub(crate) async fn backfill(
    store: &dyn Store,
    table: &Table,
    index: TableIndex<'_>,
    items: &[(Key, Value)],
    progress_key: &Key,
) -> Result<Backfilled> {
    let Some((last_key, _)) = items.last() else { return Ok(Backfilled::Done) };
    let missing = candidates(table, index, items)?;
    let keys: Vec<Key> = missing
        .iter()
        .flat_map(|candidate| [candidate.item_key.clone(), candidate.entry.key.clone()])
        .chain([progress_key.clone()])
        .collect();
    let guards = [table.guard_key().clone()];
    let decision = write_with(store, WriteSet { guards: &guards, keys: &keys }, |reads| {
        if table.check_guard(reads[0].as_ref()) != GuardCheck::Current {
            return Err(Backfilled::Stale);
        }
        let mut batch = batch(index, &missing, &reads[1..]);
        batch.put(progress_key.clone(), last_key.clone());
        Ok((batch, ()))
    });
    Ok(match decision.await? {
        Ok(_) => Backfilled::Done,
        Err(stale) => stale,
    })
}

/// Gives each of `items` (as scanned) its entry in the expiry index, and stores the progress.
///
/// As above, an item that has changed since it was scanned is left alone: its change wrote the entry.
pub(crate) async fn backfill_expiries(
    store: &dyn Store,
    table: &Table,
    items: &[(Key, Value)],
    progress_key: &Key,
) -> Result<Backfilled> {
    let Some((last_key, _)) = items.last() else { return Ok(Backfilled::Done) };
    let mut candidates = Vec::new();
    for (item_key, scanned) in items {
        let entry = expiry_entry(table, item_key, &decode_stored(scanned)?);
        candidates.extend(entry.map(|entry| (item_key, scanned, entry)));
    }
    let item_keys = candidates.iter().map(|(item_key, ..)| (*item_key).clone());
    let keys: Vec<Key> = item_keys.chain([progress_key.clone()]).collect();
    let guards = [table.guard_key().clone()];
    let decision = write_with(store, WriteSet { guards: &guards, keys: &keys }, |reads| {
        if table.check_guard(reads[0].as_ref()) != GuardCheck::Current {
            return Err(Backfilled::Stale);
        }
        let mut batch = Batch::new();
        for ((_, scanned, entry), read) in candidates.iter().zip(&reads[1..]) {
            if read.as_ref() == Some(*scanned) {
                batch.put(entry.clone(), Value::new());
            }
        }
        batch.put(progress_key.clone(), last_key.clone());
        Ok((batch, ()))
    });
    Ok(match decision.await? {
        Ok(_) => Backfilled::Done,
        Err(stale) => stale,
    })
}

struct Candidate<'a> {
    item_key: &'a Key,
    scanned: &'a Value,
    entry: Entry,
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

/// `reads` begins with the item and the entry of each candidate in turn.
fn batch(index: TableIndex<'_>, missing: &[Candidate<'_>], reads: &[Option<Value>]) -> Batch {
    let mut batch = Batch::new();
    for (candidate, read) in missing.iter().zip(reads.chunks_exact(2)) {
        let unchanged = read[0].as_ref() == Some(candidate.scanned);
        if unchanged && read[1].is_none() {
            let Entry { key, value } = &candidate.entry;
            batch.put(key.clone(), value.as_bytes().clone());
            add_statistics(index.statistics, 1, candidate.entry.size_bytes() as i64, &mut batch);
        }
    }
    batch
}
