//! Deletes expired items.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use zenobe_store::{Direction, Key, KeyRange, yield_now};

use super::{is_due, oldest_due_s};
use crate::Engine;
use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::keys::PrimaryKey;
use crate::keyspace;
use crate::lease::Lease;
use crate::table_round::TableRound;
use crate::write::commit::{Committed, Terms, commit};
use crate::write::intent::{Intent, WriteAction};

/// A batch holds the locks of its items, so it is short. Several run side by side to share the
/// waits for the disk.
const BATCH_ITEMS_MAX: usize = 64;
const BATCHES_AT_ONCE: usize = 8;

/// From this many deletions on, the store is asked to reclaim the index's space: otherwise the next
/// search would step over their tombstones.
const RECLAIM_ITEMS_MIN: u64 = 10_000;

impl Engine {
    /// Deletes all items that have expired by now, and counts them. If one table fails, the others
    /// still proceed.
    pub(crate) async fn expire_items(&self, lease: &Lease) -> Result<u64> {
        let mut round = TableRound::new("could not delete expired items");
        let mut total = 0;
        for table in self.catalog.tables().values() {
            if table.definition().ttl_attribute.is_none() {
                continue;
            }
            total += round.take(table, expire_table(self, table, lease).await)?;
        }
        round.finish().map(|()| total)
    }

    /// How many items this engine has deleted because they had expired.
    pub fn expired_items(&self) -> u64 {
        self.background.expired_items.load(Ordering::Relaxed)
    }

    pub(crate) fn has_time_to_live(&self) -> bool {
        let tables = self.catalog.tables();
        tables.values().any(|table| table.definition().ttl_attribute.is_some())
    }
}

/// A walk over a table's expired items.
#[derive(Clone, Copy)]
struct Pass<'a> {
    table: &'a Arc<Table>,
    lease: &'a Lease,
    now_s: u64,
}

async fn expire_table(engine: &Engine, table: &Arc<Table>, lease: &Lease) -> Result<u64> {
    // Checked for each table: the clock may jump while another table is being processed.
    let moment = engine.trusted_clock.read();
    if moment.is_paused {
        return Ok(0);
    }
    // Rather late than early: the item must have expired by every node's clock.
    let late_ms = engine.clock_skew_ms() + engine.expiry_delay_ms(table.name());
    let now_s = moment.now_ms.saturating_sub(late_ms) / 1_000;
    let pass = Pass { table, lease, now_s };
    let due = keyspace::expiries_between(table.expiry_prefix(), oldest_due_s(now_s), now_s);
    let (mut rest, mut expired) = (due.clone(), 0);
    loop {
        let entries = entries(engine, rest.clone()).await?;
        let Some(last) = entries.last() else { break };
        rest.start = [last, &[0][..]].concat().into();
        let batches = entries.chunks(BATCH_ITEMS_MAX);
        let batches = batches.map(|entries| expire_readable(engine, pass, entries));
        for batch in join_all(batches).await {
            expired += batch?;
        }
        yield_now().await;
    }
    if expired >= RECLAIM_ITEMS_MIN {
        engine.background.reclaim_later(vec![due]);
    }
    Ok(expired)
}

/// Like [`expire_batch`], but skips items that don't decode: a damaged item must not protect its
/// neighbours.
async fn expire_readable(engine: &Engine, pass: Pass<'_>, entries: &[Key]) -> Result<u64> {
    match expire_batch(engine, pass, entries).await {
        Err(Error::Corrupt { .. }) => {}
        expired => return expired,
    }
    let mut expired = 0;
    for entry in entries {
        match expire_batch(engine, pass, std::slice::from_ref(entry)).await {
            Err(error @ Error::Corrupt { .. }) => {
                let table = &pass.table.definition().name;
                tracing::error!(table, ?entry, %error, "an expired item is damaged; keeping it");
            }
            one => expired += one?,
        }
    }
    Ok(expired)
}

/// Deletes the items that are still expired, and counts them.
async fn expire_batch(engine: &Engine, pass: Pass<'_>, entries: &[Key]) -> Result<u64> {
    let Pass { table, lease, now_s } = pass;
    let id = table.definition().id;
    let mut table = Arc::clone(table);
    loop {
        let intents = entries.iter().map(|entry| intent(&table, entry, now_s));
        let intents = intents.collect::<Result<Vec<Intent<'_>>>>()?;
        match commit(engine, &intents, Terms::Lease(lease)).await? {
            Committed::Written(written) => {
                let gone = written.iter().filter(|item| item.old.is_some() && item.new.is_none());
                let count = gone.count() as u64;
                engine.background.expired_items.fetch_add(count, Ordering::Relaxed);
                engine.background.expired_by_table.add(table.name(), count);
                return Ok(count);
            }
            Committed::Stale(stale) => table = engine.refresh(&stale).await?,
            Committed::Refused(errors) => {
                return Err(errors.into_iter().flatten().next().expect("a refusal has a reason"));
            }
            Committed::Replayed(_) => unreachable!("an expiry has no token"),
        }
        if table.definition().id != id {
            return Ok(0);
        }
    }
}

fn intent(table: &Arc<Table>, entry: &[u8], now_s: u64) -> Result<Intent<'static>> {
    let corrupt = || Error::Corrupt { detail: "the key of an expiry".to_owned() };
    let (expires_at_s, suffix) = keyspace::parts_of_expiry(entry).ok_or_else(corrupt)?;
    debug_assert!(is_due(expires_at_s, now_s));
    let key = PrimaryKey::from_item_key(&table.definition().keys, suffix)?;
    Ok(Intent::new(Arc::clone(table), key, None, WriteAction::Expire { now_s }))
}

async fn entries(engine: &Engine, range: KeyRange) -> Result<Vec<Key>> {
    let mut entries = Vec::new();
    let mut visit = |key: &[u8], _: &[u8]| {
        entries.push(Key::copy_from_slice(key));
        match entries.len() < BATCH_ITEMS_MAX * BATCHES_AT_ONCE {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    };
    engine.store.scan(range, Direction::Forward, &mut visit).await?;
    Ok(entries)
}
