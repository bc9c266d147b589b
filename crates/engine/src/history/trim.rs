//! Trims undo rows that nobody needs any more: those that are older than a table's period or, if recovery is off,
//! those that are older than every backup that is being copied.
//!
//! Undo rows are sorted by item, not by time. So a sweep scans all of them in bounded steps, at the pace of background work, and
//! deletes the rows that are too old. It starts again after a twenty-fourth of the period, so a row outlives the period by about
//! that much, plus the clock skew allowed and running restores. An index by time would cost every write another row; a sweep costs nothing until something is too old.

use std::ops::ControlFlow;
use std::sync::Arc;

use zenobe_store::{Batch, Direction, Key, KeyRange, Stamp, Value, WriteSet, write_with};

use crate::Engine;
use crate::catalog::{GuardCheck, HistoryKeys, Table};
use crate::change::undo::row_size_bytes;
use crate::error::{Error, Result};
use crate::keyspace;
use crate::lease::Lease;
use crate::row::Fields;
use crate::schema::HistorySettings;
use crate::table_round::TableRound;

use super::retention;

/// How many rows a step walks.
const ROWS_AT_ONCE_MAX: usize = 2_000;
/// After this many rows of one item that are young enough, the sweep continues with the next item.
const YOUNG_ROWS_MAX: usize = 16;
const SWEEPS_PER_PERIOD: u64 = 24;

/// Trims every table's history. If one table fails, the others still proceed.
pub(crate) async fn trim_all(engine: &Engine, lease: &Lease) -> Result<()> {
    let mut round = TableRound::new("trimming the history of a table failed; retrying");
    for table in engine.catalog.tables().values() {
        round.take(table, trim(engine, table, lease).await)?;
    }
    round.finish()
}

async fn trim(engine: &Engine, table: &Arc<Table>, lease: &Lease) -> Result<()> {
    let definition = table.definition();
    let (Some(era), Some(history)) = (definition.undo_era(), table.history()) else {
        return Ok(());
    };
    let progress_key = keyspace::trim_progress(definition.id);
    let held = engine.pinned_by_backups(definition).await?;
    let due = match &definition.history {
        Some(settings) => due_sweep(engine, settings, &progress_key).await?,
        None => due_sweep_below(engine, era, held, &progress_key).await?,
    };
    let Some(mut sweep) = due else { return Ok(()) };
    let mut horizon = Stamp::first_of_ms(sweep.horizon_ms);
    let read = engine.pinned_by_jobs(definition.id).await?;
    for pinned in [held, read].into_iter().flatten() {
        horizon = horizon.min(pinned.next());
    }
    loop {
        let step = engine.background.pace.begin_step();
        let walked = walk(engine, table, history, &sweep, horizon).await?;
        sweep.position = walked.position.clone();
        let target = TrimmedTable { table, history, progress_key: &progress_key, lease };
        if !target.delete(engine, &walked, &sweep).await? || sweep.position.is_none() {
            return Ok(());
        }
        step.rest().await;
    }
}

/// The sweep that was interrupted, or a new one if it is time.
async fn due_sweep(
    engine: &Engine,
    settings: &HistorySettings,
    progress_key: &Key,
) -> Result<Option<Sweep>> {
    let moment = engine.trusted_clock.read();
    if moment.is_paused {
        return Ok(None);
    }
    let past_ms = moment.past_ms.saturating_sub(engine.clock_skew_ms());
    let horizon_ms = retention::horizon_ms(settings.period_days, past_ms);
    let last_ms = match Sweep::stored(engine, settings.era, progress_key).await? {
        Some(unfinished) if unfinished.position.is_some() => return Ok(Some(unfinished)),
        Some(finished) => {
            finished.horizon_ms + retention::period_ms(settings.period_days) / SWEEPS_PER_PERIOD
        }
        None => settings.since_ms,
    };
    let sweep = Sweep { era: settings.era, horizon_ms, position: Some(Key::new()) };
    Ok((horizon_ms > last_ms).then_some(sweep))
}

/// Like [`due_sweep`], where only backups need the history: what is older than all of them can go. Backups that overlap would
/// otherwise keep an era, and all its rows, forever.
async fn due_sweep_below(
    engine: &Engine,
    era: u32,
    held: Option<Stamp>,
    progress_key: &Key,
) -> Result<Option<Sweep>> {
    let horizon_ms = held.map_or(0, Stamp::at_ms);
    Ok(match Sweep::stored(engine, era, progress_key).await? {
        Some(unfinished) if unfinished.position.is_some() => Some(unfinished),
        Some(finished) if finished.horizon_ms >= horizon_ms => None,
        _ => Some(Sweep { era, horizon_ms, position: Some(Key::new()) }),
    })
}

/// A walk through the history of a table, as stored.
struct Sweep {
    era: u32,
    /// Rows older than this are deleted.
    horizon_ms: u64,
    /// Where the next step begins; `None` once it is finished.
    position: Option<Key>,
}

const WHAT: &str = "the row of a sweep";

impl Sweep {
    /// The last sweep of an era, finished or not.
    async fn stored(engine: &Engine, era: u32, progress_key: &Key) -> Result<Option<Sweep>> {
        let row = engine.store.get(progress_key).await?;
        let sweep = row.as_ref().map(|row| Sweep::decode(row)).transpose()?;
        Ok(sweep.filter(|sweep| sweep.era == era))
    }

    fn encode(&self) -> Value {
        let mut fields = Fields::default();
        fields.number("era", u64::from(self.era));
        fields.number("horizon_ms", self.horizon_ms);
        if let Some(position) = &self.position {
            fields.bytes("position", position);
        }
        fields.encode()
    }

    fn decode(row: &[u8]) -> Result<Sweep> {
        let mut fields = Fields::decode(row, WHAT)?;
        Ok(Sweep {
            era: fields.take_u32("era")?,
            horizon_ms: fields.take_number("horizon_ms")?,
            position: match fields.0.contains_key("position") {
                true => Some(fields.take_bytes("position")?.into()),
                false => None,
            },
        })
    }
}

/// What a step found.
struct Walked {
    old: Vec<Key>,
    size_bytes: i64,
    /// Where the next step begins, if there is one.
    position: Option<Key>,
}

async fn walk(
    engine: &Engine,
    table: &Table,
    history: &HistoryKeys,
    sweep: &Sweep,
    horizon: Stamp,
) -> Result<Walked> {
    let mut range = KeyRange::prefix(history.prefix.clone());
    if let Some(position) = sweep.position.as_ref().filter(|position| !position.is_empty()) {
        range.start = position.clone();
    }
    let mut walked = Walked { old: Vec::new(), size_bytes: 0, position: None };
    let (mut rows, mut item, mut young_rows, mut damaged) = (0, Key::new(), 0, false);
    let mut visit = |key: &[u8], image: &[u8]| {
        let Some((item_key, stamp)) = keyspace::parts_of_undo(table.item_prefix(), key) else {
            damaged = true;
            return ControlFlow::Break(());
        };
        rows += 1;
        if stamp < horizon {
            walked.old.push(Key::copy_from_slice(key));
            walked.size_bytes += row_size_bytes(key.len(), image);
        } else if item == item_key {
            young_rows += 1;
        } else {
            (item, young_rows) = (item_key, 1);
        }
        if rows >= ROWS_AT_ONCE_MAX {
            walked.position = Some([key, &[0]].concat().into());
        } else if young_rows >= YOUNG_ROWS_MAX {
            let undo_key = keyspace::undo_key(&history.prefix, &item);
            walked.position = Some([&undo_key[..], &[0xFF; Stamp::LENGTH]].concat().into());
        }
        match walked.position {
            None => ControlFlow::Continue(()),
            Some(_) => ControlFlow::Break(()),
        }
    };
    engine.store.scan(range, Direction::Forward, &mut visit).await?;
    if damaged {
        return Err(Error::Corrupt { detail: "the key of an undo row".to_owned() });
    }
    Ok(walked)
}

/// What is trimmed.
struct TrimmedTable<'a> {
    table: &'a Table,
    history: &'a HistoryKeys,
    progress_key: &'a Key,
    lease: &'a Lease,
}

impl TrimmedTable<'_> {
    /// Deletes what a step found, and stores how far the sweep has come. Returns whether the table still has this history.
    async fn delete(&self, engine: &Engine, walked: &Walked, sweep: &Sweep) -> Result<bool> {
        let TrimmedTable { table, history, progress_key, lease } = *self;
        let guards = [&[table.guard_key().clone()], lease.guards()].concat();
        let set = WriteSet { guards: &guards, keys: std::slice::from_ref(progress_key) };
        let deleted = write_with(&*engine.store, set, |reads| {
            lease.check(&reads[1..guards.len()])?;
            let mut batch = Batch::new();
            let is_current = table.check_guard(reads[0].as_ref()) == GuardCheck::Current;
            if is_current {
                walked.old.iter().for_each(|row| batch.delete(row.clone()));
                if !walked.old.is_empty() {
                    batch.add(history.count.clone(), -(walked.old.len() as i64));
                    batch.add(history.size_bytes.clone(), -walked.size_bytes);
                }
                batch.put(progress_key.clone(), sweep.encode());
            }
            Ok::<_, Error>((batch, is_current))
        });
        let (is_current, _) = deleted.await??;
        Ok(is_current)
    }
}
