//! Rolls shards over and removes what is past its retention. Whole shards are removed at once, each
//! as a range of the store; until then reads skip what is too old.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use zenobe_store::{Batch, Direction, Key, KeyRange, WriteSet, log_range, write_with};

use super::put_row;
use super::shard_log::ShardLog;
use super::shards::Children;
use super::stream_row::StreamRow;
use crate::Engine;
use crate::catalog::Table;
use crate::catalog::edit::Edit;
use crate::command::TableName;
use crate::error::{Error, Result};
use crate::keyspace;
use crate::lease::Lease;
use crate::schema::{StreamSettings, TableDefinition};
use crate::table_round::TableRound;
use crate::trusted_clock::Moment;

/// The shortest interval between checks of streams.
const LOOK_DELAY: Duration = Duration::from_millis(500);

/// Does what is due on all streams. If one stream fails, the others still proceed.
pub(crate) async fn maintain(engine: &Engine, lease: &Lease) -> Result<()> {
    let mut round = TableRound::new("maintaining the stream of a table failed; retrying");
    for table in engine.catalog.tables().values() {
        let Some(stream) = &table.definition().stream else { continue };
        // A table that is deleted in the meantime has retired its stream.
        round.take(table, maintain_enabled(engine, table, stream, None, lease).await)?;
    }
    round.finish().and(remove_past(engine, lease).await)
}

/// How long to wait before the next check: until the next shard is old enough, but no longer than
/// `longest`. Shards with a limit on records are checked all the time.
pub(crate) fn rest(engine: &Engine, longest: Duration) -> Duration {
    // Not the time of a clock that has jumped: nothing is done by it, so nothing is due.
    let now_ms = engine.trusted_clock.read().past_ms;
    let tables = engine.catalog.tables();
    let streams = tables.values().filter_map(|table| table.definition().stream.as_ref());
    let due_ms = streams.filter_map(|stream| {
        let open = stream.generations.last()?;
        let old_at_ms = open.opened_at_ms.saturating_add(engine.streams.shard_rollover_ms);
        let until_full_ms = engine.streams.shard_records_max.map_or(u64::MAX, |_| 0);
        Some(old_at_ms.saturating_sub(now_ms).min(until_full_ms))
    });
    match due_ms.min() {
        Some(due_ms) => Duration::from_millis(due_ms).clamp(LOOK_DELAY.min(longest), longest),
        None => longest,
    }
}

impl Engine {
    /// Closes the open shards of the table's stream, whatever their age; their children take over.
    /// Returns whether the table has a stream.
    pub async fn roll_over_stream(&self, name: &TableName) -> Result<bool> {
        let table = self.current_table(name).await?;
        let Some(stream) = &table.definition().stream else { return Ok(false) };
        maintain_enabled(self, &table, stream, Some(Children::One), &Lease::default()).await?;
        Ok(true)
    }

    /// Closes the open shards of the table's stream; two children take over from each.
    pub async fn split_stream(&self, name: &TableName) -> Result<StreamSplit> {
        let table = self.current_table(name).await?;
        let Some(stream) = &table.definition().stream else { return Ok(StreamSplit::NoStream) };
        if !stream.can_split() {
            return Ok(StreamSplit::TooManyShards);
        }
        maintain_enabled(self, &table, stream, Some(Children::Two), &Lease::default()).await?;
        Ok(StreamSplit::Split)
    }
}

/// What became of a request to split the shards of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamSplit {
    Split,
    NoStream,
    TooManyShards,
}

async fn maintain_enabled(
    engine: &Engine,
    table: &Arc<Table>,
    stream: &StreamSettings,
    asked: Option<Children>,
    lease: &Lease,
) -> Result<()> {
    let Moment { past_ms: now_ms, is_paused, .. } = engine.trusted_clock.read();
    let horizon_ms = if is_paused { 0 } else { engine.stream_horizon_ms() };
    let children = match asked {
        Some(children) => Some(children),
        None if is_full(engine, table, stream).await? || is_old(engine, stream, now_ms) => {
            Some(Children::One)
        }
        None => None,
    };
    if children.is_none() && stream.trimmed_count(horizon_ms) == 0 {
        return Ok(());
    }
    let open = stream.generations.last().copied();
    let mut dropped = Vec::new();
    let decide = |before: &TableDefinition| {
        let mut edit = Edit::new(before.clone());
        dropped.clear();
        // The name may belong to another table by now, or the table may have another stream.
        let same = before.id == table.definition().id;
        let Some(settings) =
            edit.definition.stream.as_mut().filter(|now| same && now.label == stream.label)
        else {
            return Ok(edit);
        };
        // Another engine may have done it first.
        if let Some(children) = children
            && settings.generations.last().copied() == open
        {
            settings.open_children(children, now_ms);
        }
        for generation in settings.trim(horizon_ms) {
            dropped.extend(settings.logs(before.id, &generation));
        }
        if edit.definition.stream != before.stream {
            dropped.iter().for_each(|log| engine.discard_log(log, &mut edit.batch));
            put_row(&edit.definition, &mut edit.batch);
        }
        Ok(edit)
    };
    engine.catalog.change_leased(&*engine.store, table.name(), lease, decide).await?;
    // Consumers that wait at the end of a shard should learn that it is closed.
    engine.announcements.announce(table.name());
    engine.background.reclaim_later(dropped.iter().map(|log| log_range(log)).collect());
    Ok(())
}

fn is_old(engine: &Engine, stream: &StreamSettings, now_ms: u64) -> bool {
    let opened_at_ms = stream.generations.last().map_or(0, |open| open.opened_at_ms);
    now_ms.saturating_sub(opened_at_ms) >= engine.streams.shard_rollover_ms
}

async fn is_full(engine: &Engine, table: &Table, stream: &StreamSettings) -> Result<bool> {
    let Some(records_max) = engine.streams.shard_records_max else { return Ok(false) };
    for log in stream.open_logs(table.definition().id) {
        if ShardLog::new(&*engine.store, log).last().await?.unwrap_or(0) >= records_max {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes streams that ended before the retention period.
async fn remove_past(engine: &Engine, lease: &Lease) -> Result<()> {
    if engine.trusted_clock.read().is_paused {
        return Ok(());
    }
    let horizon_ms = engine.stream_horizon_ms();
    let mut outcome = Ok(());
    for row in past_rows(engine, horizon_ms).await? {
        outcome = outcome.and(remove(engine, &row, lease).await);
    }
    outcome
}

/// The rows of streams past their retention. A damaged row is logged and stays.
async fn past_rows(engine: &Engine, horizon_ms: u64) -> Result<Vec<StreamRow>> {
    let mut past = Vec::new();
    let mut visit = |key: &[u8], row: &[u8]| {
        match StreamRow::decode(row) {
            Ok(row) if row.is_past(horizon_ms) => past.push(row),
            Ok(_) => {}
            Err(error) => tracing::error!(?key, %error, "a stream's row is damaged; keeping it"),
        }
        ControlFlow::Continue(())
    };
    let range = KeyRange::prefix(keyspace::streams_prefix());
    engine.store.scan(range, Direction::Forward, &mut visit).await?;
    Ok(past)
}

async fn remove(engine: &Engine, row: &StreamRow, lease: &Lease) -> Result<()> {
    let keys = [row.key()];
    let records = keyspace::stream_prefix(row.table_id, &row.settings.label);
    let generations = row.settings.generations.iter();
    let logs = generations.flat_map(|generation| row.settings.logs(row.table_id, generation));
    let logs: Vec<Key> = logs.collect();
    let set = WriteSet { guards: lease.guards(), keys: &keys };
    let decision = write_with(&*engine.store, set, |reads| {
        lease.check(&reads[..lease.guards().len()])?;
        // The row of an ended stream never changes again, so there is nothing to check.
        let mut batch = Batch::new();
        batch.delete(keys[0].clone());
        engine.discard(&records, &mut batch);
        logs.iter().for_each(|log| engine.discard_log(log, &mut batch));
        Ok::<_, Error>((batch, ()))
    });
    decision.await??;
    engine.background.reclaim_later(vec![KeyRange::prefix(records)]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use zenobe_store::memory::MemoryStore;

    use super::*;
    use crate::EngineOptions;
    use crate::catalog::tests::create_table;
    use crate::clock::Clock;
    use crate::command::CreateTable;
    use crate::schema::{Namespace, StreamViewType};

    struct WallClock(AtomicU64);

    impl Clock for WallClock {
        fn now_ms(&self) -> u64 {
            self.0.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn a_clock_that_has_jumped_makes_nothing_due() {
        let clock = Arc::new(WallClock(AtomicU64::new(1_700_000_000_000)));
        let options = EngineOptions { clock: clock.clone(), ..EngineOptions::default() };
        let engine = Engine::open(Arc::new(MemoryStore::new()), options).await.unwrap();
        let namespace = Arc::new(Namespace { account: "1".into(), region: "r".into() });
        let name = TableName { namespace, name: "t".into() };
        let stream = Some(StreamViewType::KeysOnly);
        engine.create_table(CreateTable { stream, ..create_table(&name) }).await.unwrap();
        let longest = Duration::from_secs(30);
        assert_eq!(rest(&engine, longest), longest);

        clock.0.fetch_add(365 * 24 * 60 * 60 * 1_000, Ordering::SeqCst);
        assert_eq!(rest(&engine, longest), longest);
        engine.confirm_clock().await.unwrap();
        assert_eq!(rest(&engine, longest), LOOK_DELAY);
    }
}
