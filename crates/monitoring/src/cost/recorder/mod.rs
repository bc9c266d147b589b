//! Adds the traffic of each minute to the rows of the hour.
//!
//! A recorder keeps the current hour of each table in memory and writes it again after every minute with
//! requests. Rows are keyed by the recorder's id, so nodes never write each other's rows; readers sum
//! them. A minute that could not be stored is stored with the next one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use zenobe_api::Operation;
use zenobe_engine::Engine;
use zenobe_engine::error::Result;
use zenobe_engine::lease::Lease;
use zenobe_engine::schema::Namespace;
use zenobe_engine::service_rows::RowOwner;
use zenobe_value::Attributes;

use super::record::{
    EntryCounts, EntryKey, HourRecord, MINUTES_PER_HOUR, Run, hour_key, hour_keys, hour_of,
    keys_after, run_key, run_keys, runs_namespace, table_of,
};
use crate::minute::MINUTE_MS;
use crate::traffic::{OTHER, TrafficMinute, TrafficRow, TrafficSink};

const OWNER: RowOwner = RowOwner::Cost;
const HOUR_MINUTES: u64 = MINUTES_PER_HOUR as u64;
const HOURS_PER_DAY: u64 = 24;

/// How many tables have an hour of their own in memory; the traffic of others is summed. An hour takes
/// some kilobytes.
const RECORDS_MAX: usize = 10_000;
/// How many rows are written at once.
const BATCH_ROWS_MAX: usize = 100;
/// How many rows of runs are read or deleted at once.
const RUNS_MAX: usize = 100;
/// How often the end of the run is stored while there are no requests, in minutes.
const RUN_MINUTES: u64 = 10;
/// An hour that can't be stored is given up after this many more.
const UNSTORED_HOURS_MAX: u64 = 3;

/// The lease for trimming.
const TRIMMING: &str = "cost records";

pub struct CostRecorder {
    engine: Arc<Engine>,
    /// Tells its rows from those of other nodes and of earlier processes.
    id: String,
    retention_hours: u64,
    state: Mutex<State>,
}

struct State {
    hours: BTreeMap<RecordKey, OpenHour>,
    run: Run,
    /// The end of the run as it was stored last.
    stored_until: u64,
    newest_hour: u64,
    trimmed_in_hour: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RecordKey {
    namespace: Arc<Namespace>,
    hour: u64,
    /// Empty for reads of streams.
    table: String,
}

#[derive(Default)]
struct OpenHour {
    record: HourRecord,
    is_stored: bool,
}

impl TrafficSink for CostRecorder {
    fn store_minute<'a>(&'a self, minute: &'a TrafficMinute) -> BoxFuture<'a, ()> {
        async move {
            let TrafficMinute { start_ms, rows, .. } = minute;
            let mut state = self.state.lock().await;
            if let Err(error) = self.store(&mut state, start_ms / MINUTE_MS, rows).await {
                tracing::warn!(%error, "the traffic of a minute could not be stored; retrying with the next minute");
            }
        }
        .boxed()
    }
}

impl CostRecorder {
    pub fn new(engine: Arc<Engine>, retention_days: u32) -> CostRecorder {
        let id = engine.new_uuid();
        let retention_hours = u64::from(retention_days) * HOURS_PER_DAY;
        // A clock that has jumped says nothing about when the run began.
        let minute = engine.clock_status().expected_ms / MINUTE_MS;
        let run = Run { from: minute, until: minute };
        let hours = BTreeMap::new();
        let state = State { hours, run, stored_until: 0, newest_hour: 0, trimmed_in_hour: 0 };
        CostRecorder { engine, id, retention_hours, state: Mutex::new(state) }
    }

    async fn store(&self, state: &mut State, minute: u64, rows: &[TrafficRow]) -> Result<()> {
        let mut added = Ok(());
        for row in rows {
            added = added.and(self.add(state, minute, row).await);
        }
        let status = self.engine.clock_status();
        let (hour, now) = (minute / HOUR_MINUTES, status.now_ms / MINUTE_MS);
        // If the clock has jumped ahead and back, the minute may lie in the future.
        let present = hour.min(now / HOUR_MINUTES);
        // A clock that has jumped extends no run and makes no record old.
        if !status.is_paused {
            state.advance(minute, now);
        }
        let written = self.write_hours(state).await;
        state.newest_hour = state.newest_hour.max(hour);
        state.forget_stored(hour);
        if written.is_err() && !status.is_paused {
            state.give_up(present);
        }
        written?;
        // A flush in mid-minute is for a reader who wants current figures.
        let is_idle = rows.is_empty() && now != minute;
        self.write_run(state, is_idle).await?;
        if present > state.trimmed_in_hour && !status.is_paused {
            self.trim(present.saturating_sub(self.retention_hours)).await?;
            state.trimmed_in_hour = present;
        }
        added
    }

    async fn add(&self, state: &mut State, minute: u64, row: &TrafficRow) -> Result<()> {
        let key = &row.key;
        let table = match &key.table {
            Some(table) => table.clone(),
            // Reads of streams are paid for; other requests without a table are free.
            None if key.operation == Operation::GetRecords => String::new(),
            None => return Ok(()),
        };
        let (namespace, hour) = (Arc::clone(&key.namespace), minute / HOUR_MINUTES);
        let mut place = RecordKey { namespace, hour, table };
        if state.hours.len() >= RECORDS_MAX && !state.hours.contains_key(&place) {
            place.table = OTHER.to_owned();
        }
        let hour = match state.hours.entry(place) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                // A clock that was set back returns to an hour that has been stored and forgotten.
                let record = match vacant.key().hour < state.newest_hour {
                    true => self.stored(vacant.key()).await?,
                    false => HourRecord::default(),
                };
                vacant.insert(OpenHour { record, is_stored: true })
            }
        };
        hour.is_stored = false;
        let entry =
            EntryKey { index: key.index.clone(), operation: key.operation, pattern: key.pattern };
        let minute = (minute % HOUR_MINUTES) as usize;
        hour.record.add(entry, minute, &EntryCounts::of(&row.counts));
        Ok(())
    }

    async fn stored(&self, place: &RecordKey) -> Result<HourRecord> {
        let key = hour_key(&place.table, place.hour, &self.id);
        let stored = self.engine.service_row(OWNER, &place.namespace, &key).await?;
        stored.map_or_else(|| Ok(HourRecord::default()), HourRecord::decode)
    }

    async fn write_hours(&self, state: &mut State) -> Result<()> {
        let mut unstored: Vec<(&RecordKey, &mut OpenHour)> =
            state.hours.iter_mut().filter(|(_, hour)| !hour.is_stored).collect();
        let mut rest = &mut unstored[..];
        while let Some((first, _)) = rest.first() {
            let namespace = Arc::clone(&first.namespace);
            let is_same = |(place, _): &&(&RecordKey, &mut OpenHour)| place.namespace == namespace;
            let count = rest.iter().take(BATCH_ROWS_MAX).take_while(is_same).count();
            let (batch, others) = std::mem::take(&mut rest).split_at_mut(count);
            let row = |(place, hour): &(&RecordKey, &mut OpenHour)| {
                let key = hour_key(&place.table, place.hour, &self.id);
                (key, Some(hour.record.encode()))
            };
            let rows: Vec<(Vec<u8>, Option<Attributes>)> = batch.iter().map(row).collect();
            let lease = Lease::default();
            self.engine.write_service_rows(OWNER, &namespace, &lease, rows).await?;
            batch.iter_mut().for_each(|(_, hour)| hour.is_stored = true);
            rest = others;
        }
        Ok(())
    }

    /// An idle server does not write every minute.
    async fn write_run(&self, state: &mut State, is_idle: bool) -> Result<()> {
        let run = state.run;
        if run.until == state.stored_until
            || is_idle && run.until < state.stored_until + RUN_MINUTES
        {
            return Ok(());
        }
        let rows = vec![(run_key(&self.id), Some(run.encode()))];
        self.engine.write_service_rows(OWNER, &runs_namespace(), &Lease::default(), rows).await?;
        state.stored_until = run.until;
        Ok(())
    }

    /// Deletes what is older than `hour`, if no other node does: one seek and one deletion per table.
    async fn trim(&self, hour: u64) -> Result<()> {
        let Some(lease) = self.engine.lease(TRIMMING).await? else { return Ok(()) };
        for namespace in self.engine.service_namespaces(OWNER).await? {
            if *namespace == runs_namespace() {
                continue;
            }
            let mut table: Option<String> = None;
            loop {
                let range = keys_after(table.as_deref());
                let first = self.engine.service_rows(OWNER, &namespace, range, 1).await?;
                let Some(row) = first.first() else { break };
                let Some(name) = table_of(&row.key).map(str::to_owned) else { break };
                if hour_of(&row.key).is_some_and(|first| first < hour) {
                    let old = hour_keys(&name, 0..hour);
                    self.engine.delete_service_rows(OWNER, &namespace, &lease, old).await?;
                }
                table = Some(name);
            }
        }
        self.trim_runs(&lease, hour * HOUR_MINUTES).await
    }

    async fn trim_runs(&self, lease: &Lease, minute: u64) -> Result<()> {
        let mut range = run_keys();
        loop {
            let namespace = runs_namespace();
            let rows = self.engine.service_rows(OWNER, &namespace, range.clone(), RUNS_MAX).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            range.start = [&last.key[..], b"\0"].concat();
            let mut old = Vec::new();
            for row in rows {
                if Run::decode(row.fields)?.until < minute {
                    old.push((row.key, None));
                }
            }
            if !old.is_empty() {
                self.engine.write_service_rows(OWNER, &namespace, lease, old).await?;
            }
        }
    }
}

impl State {
    /// A minute has passed, and it is now this one.
    fn advance(&mut self, minute: u64, now: u64) {
        // The present minute counts once it has ended, or once a report is read.
        let ended = now.saturating_sub(1);
        // A minute in the future is left from a clock that has jumped ahead and back.
        let minute = if minute > now { ended } else { minute };
        self.run.until = self.run.until.max(minute).max(ended);
    }

    fn forget_stored(&mut self, current: u64) {
        self.hours.retain(|place, hour| !(hour.is_stored && place.hour < current));
    }

    /// Drops what could not be stored for hours, to bound memory while the store is unreachable.
    fn give_up(&mut self, current: u64) {
        self.hours.retain(|place, _| {
            let is_given_up = place.hour + UNSTORED_HOURS_MAX < current;
            if is_given_up {
                tracing::warn!(
                    table = place.table,
                    "the traffic of an hour could not be stored, and is lost"
                );
            }
            !is_given_up
        });
    }
}

#[cfg(test)]
mod tests;
