//! Reads the recorded traffic of all nodes.

use std::collections::BTreeMap;
use std::ops::Range;

use zenobe_engine::Engine;
use zenobe_engine::error::{Error, Result};
use zenobe_engine::schema::Namespace;
use zenobe_engine::service_rows::RowOwner;

use super::needed_capacity::MinuteUse;
use super::record::{
    HourRecord, MINUTES_PER_HOUR, Run, hour_keys, hour_of, keys_after, run_keys, runs_namespace,
    table_of,
};

pub use super::record::{EntryCounts, EntryKey};

const OWNER: RowOwner = RowOwner::Cost;
const HOUR_MINUTES: u64 = MINUTES_PER_HOUR as u64;
/// How many rows are read at once.
const ROWS_MAX: usize = 100;

/// Whole hours, counted from the epoch.
pub type Hours = Range<u64>;

/// The traffic of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableTraffic {
    pub entries: BTreeMap<EntryKey, EntryCounts>,
    /// What the table (`None`) and its global indexes consumed.
    pub uses: BTreeMap<Option<String>, ResourceUse>,
}

/// What a table or index consumed, by minute. Minutes without a use consumed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceUse {
    pub read: Vec<MinuteUse>,
    pub write: Vec<MinuteUse>,
}

/// The tables of a namespace with recorded traffic, in order.
pub async fn tables(engine: &Engine, namespace: &Namespace) -> Result<Vec<String>> {
    let mut tables: Vec<String> = Vec::new();
    loop {
        let range = keys_after(tables.last().map(String::as_str));
        let first = engine.service_rows(OWNER, namespace, range, 1).await?;
        let Some(row) = first.first() else { break };
        tables.push(table_of(&row.key).ok_or_else(corrupt_key)?.to_owned());
    }
    // Reads of streams have a row without a name.
    tables.retain(|table| !table.is_empty());
    Ok(tables)
}

/// The traffic of a table in some hours, on all nodes.
pub async fn traffic(
    engine: &Engine,
    namespace: &Namespace,
    table: &str,
    hours: Hours,
) -> Result<TableTraffic> {
    let mut entries: BTreeMap<EntryKey, EntryCounts> = BTreeMap::new();
    let mut uses: BTreeMap<Option<String>, BTreeMap<u64, [u64; 2]>> = BTreeMap::new();
    let mut range = hour_keys(table, hours);
    loop {
        let rows = engine.service_rows(OWNER, namespace, range.clone(), ROWS_MAX).await?;
        let Some(last) = rows.last() else { break };
        range.start = [&last.key[..], b"\0"].concat();
        for row in rows {
            let hour = hour_of(&row.key).ok_or_else(corrupt_key)?;
            let record = HourRecord::decode(row.fields)?;
            for (key, counts) in record.entries {
                entries.entry(key).or_default().add(&counts);
            }
            for (index, used) in record.minutes {
                let sums = uses.entry(index).or_default();
                let minutes = (hour * HOUR_MINUTES..).zip(used.iter());
                for (minute, [read, written]) in minutes.filter(|(_, used)| **used != [0, 0]) {
                    let sum = sums.entry(minute).or_default();
                    *sum = [sum[0] + read, sum[1] + written];
                }
            }
        }
    }
    let uses = uses.into_iter().map(|(index, sums)| (index, ResourceUse::of(&sums)));
    Ok(TableTraffic { entries, uses: uses.collect() })
}

impl ResourceUse {
    fn of(sums: &BTreeMap<u64, [u64; 2]>) -> ResourceUse {
        let [read, write] = [0, 1].map(|which| {
            let uses = sums.iter().filter(|(_, used)| used[which] > 0);
            uses.map(|(minute, used)| MinuteUse { minute: *minute, halves: used[which] }).collect()
        });
        ResourceUse { read, write }
    }
}

/// How many times streams were read.
pub async fn stream_reads(engine: &Engine, namespace: &Namespace, hours: Hours) -> Result<u64> {
    let traffic = traffic(engine, namespace, "", hours).await?;
    Ok(traffic.entries.values().map(|counts| counts.requests).sum())
}

/// The minutes in which some node recorded, in order.
pub async fn observed_minutes(engine: &Engine, hours: Hours) -> Result<Vec<Range<u64>>> {
    let window = hours.start * HOUR_MINUTES..hours.end.saturating_mul(HOUR_MINUTES);
    let mut runs = Vec::new();
    let mut range = run_keys();
    loop {
        let namespace = runs_namespace();
        let rows = engine.service_rows(OWNER, &namespace, range.clone(), ROWS_MAX).await?;
        let Some(last) = rows.last() else { break };
        range.start = [&last.key[..], b"\0"].concat();
        for row in rows {
            let run = Run::decode(row.fields)?;
            let run = run.from.max(window.start)..(run.until + 1).min(window.end);
            if !run.is_empty() {
                runs.push(run);
            }
        }
    }
    Ok(merged(runs))
}

/// Ranges in order that don't overlap.
fn merged(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => merged.push(range),
        }
    }
    merged
}

fn corrupt_key() -> Error {
    Error::Corrupt { detail: "the key of an hour's traffic".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_runs_are_one() {
        let runs = vec![50..60, 10..20, 15..18, 20..25, 30..31];
        assert_eq!(merged(runs), [10..25, 30..31, 50..60]);
    }
}
