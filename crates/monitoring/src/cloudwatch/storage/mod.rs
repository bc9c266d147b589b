//! Data points in the store: how they are written, read and trimmed.
//!
//! A row has one series and one hour of the points that one node has seen ([`hour`]). Reading a series
//! over a day reads 24 rows per node and no others; reading it over 15 days takes one scan per day. A
//! minute writes one row for each series that had traffic in it. Rows that hold one minute of all series
//! would be written once, but reading one series would then read all of them.
//!
//! **Bounded.** A namespace has at most [`SERIES_MAX`] series; each has at most 1,440 points a day and
//! node, and days are trimmed.

pub mod catalogue;
pub mod hour;
pub mod keys;
mod trim;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zenobe_engine::Engine;
use zenobe_engine::error::{Error, Result};
use zenobe_engine::schema::Namespace;

use super::metric::{Metric, Unit};
use super::statistics::StatisticSet;
use hour::Hour;
use keys::{DAY_MS, HOUR_MS, HourKey, MINUTE_MS, NodeId};
use write::Writer;

pub use catalogue::{Series, SeriesFilter};
pub use write::{Point, TooManySeries};

/// How many metrics a namespace may have.
pub const SERIES_MAX: usize = 10_000;

pub struct Storage {
    pub(super) engine: Arc<Engine>,
    node: NodeId,
    retention_days: u64,
    writer: tokio::sync::Mutex<Writer>,
    /// Points that were not stored because there are too many series.
    dropped_points: AtomicU64,
}

/// Which points of a series to read. Times are in milliseconds; `to_ms` is excluded.
#[derive(Debug, Clone, Copy)]
pub struct Range<'m> {
    pub metric: &'m Metric,
    pub unit: Option<Unit>,
    pub from_ms: u64,
    pub to_ms: u64,
}

impl Storage {
    pub fn new(engine: Arc<Engine>, retention_days: u64) -> Storage {
        let uuid = engine.new_uuid();
        let mut node = NodeId::default();
        let bytes = hex::decode(uuid.replace('-', "")).unwrap_or_default();
        // Half of the UUID's digits are enough to tell nodes apart.
        for (byte, given) in node.iter_mut().zip(bytes) {
            *byte = given;
        }
        Storage {
            engine,
            node,
            retention_days,
            writer: tokio::sync::Mutex::default(),
            dropped_points: AtomicU64::new(0),
        }
    }

    pub fn now_ms(&self) -> u64 {
        self.engine.clock().now_ms()
    }

    /// The beginning of the first day that is kept.
    pub fn first_ms(&self) -> u64 {
        (self.now_ms() / DAY_MS).saturating_sub(self.retention_days) * DAY_MS
    }

    pub fn dropped_points(&self) -> u64 {
        self.dropped_points.load(Ordering::Relaxed)
    }

    /// The points of a series by the beginning of their period and their unit. Periods are counted
    /// from `from_ms`.
    pub async fn read(
        &self,
        namespace: &Namespace,
        range: Range<'_>,
        period_ms: u64,
    ) -> Result<BTreeMap<(u64, Unit), StatisticSet>> {
        let series = range.metric.series_id();
        let from_ms = range.from_ms.max(self.first_ms());
        let mut periods: BTreeMap<(u64, Unit), StatisticSet> = BTreeMap::new();
        if from_ms >= range.to_ms {
            return Ok(periods);
        }
        let (first, last) = (from_ms / HOUR_MS, (range.to_ms - 1).min(self.last_ms()) / HOUR_MS);
        let mut hour = first;
        while hour <= last {
            let day_end = hour / 24 * 24 + 23;
            let mut rows_range = keys::hours(&series, hour, last.min(day_end));
            loop {
                let rows = self.rows(namespace, rows_range.clone()).await?;
                for row in &rows {
                    let key = HourKey::parse(&row.key).ok_or_else(|| corrupt_key(&row.key))?;
                    if range.unit.is_none_or(|unit| unit == key.unit) {
                        add(&mut periods, &key, &Hour::from_fields(&row.fields)?, range, period_ms);
                    }
                }
                match rows.last() {
                    Some(row) if rows.len() == Storage::ROWS_AT_ONCE => {
                        rows_range.start = [&row.key[..], &[0]].concat();
                    }
                    _ => break,
                }
            }
            hour = day_end + 1;
        }
        Ok(periods)
    }

    /// Like [`Storage::read`], with the points of all units added up.
    pub async fn read_merged(
        &self,
        namespace: &Namespace,
        range: Range<'_>,
        period_ms: u64,
    ) -> Result<BTreeMap<u64, StatisticSet>> {
        let mut merged: BTreeMap<u64, StatisticSet> = BTreeMap::new();
        for ((at_ms, _), statistics) in self.read(namespace, range, period_ms).await? {
            match merged.get_mut(&at_ms) {
                Some(known) => known.merge(&statistics),
                None => _ = merged.insert(at_ms, statistics),
            }
        }
        Ok(merged)
    }

    /// No point is later than this: PutMetricData accepts two hours of the future.
    fn last_ms(&self) -> u64 {
        self.now_ms() + 3 * HOUR_MS
    }
}

fn add(
    periods: &mut BTreeMap<(u64, Unit), StatisticSet>,
    key: &HourKey,
    hour: &Hour,
    range: Range<'_>,
    period_ms: u64,
) {
    for (minute, statistics) in &hour.0 {
        let at_ms = key.hour * HOUR_MS + u64::from(*minute) * MINUTE_MS;
        if !(range.from_ms..range.to_ms).contains(&at_ms) {
            continue;
        }
        let start_ms = at_ms - (at_ms - range.from_ms) % period_ms;
        match periods.get_mut(&(start_ms, key.unit)) {
            Some(known) => known.merge(statistics),
            None => _ = periods.insert((start_ms, key.unit), statistics.clone()),
        }
    }
}

fn corrupt_key(key: &[u8]) -> Error {
    Error::Corrupt { detail: format!("the key of a row of data points: {key:?}") }
}

#[cfg(test)]
mod tests;
