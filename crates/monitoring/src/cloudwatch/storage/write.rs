//! Writing points. Every row belongs to one node, and a node writes one batch after the other, so its
//! cache of its rows is always current.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use zenobe_engine::error::Result;
use zenobe_engine::lease::Lease;
use zenobe_engine::schema::Namespace;
use zenobe_engine::service_rows::RowOwner;
use zenobe_value::Attributes;

use super::super::metric::{Metric, SeriesId, Unit};
use super::super::statistics::StatisticSet;
use super::catalogue::Series;
use super::hour::Hour;
use super::keys::{self, DAY_MS, HOUR_MS, HourKey, MINUTE_MS};
use super::{SERIES_MAX, SeriesFilter, Storage};

/// How many rows are written at once.
const BATCH_ROWS_MAX: usize = 200;
/// How many rows a node remembers. Others are read again when a point is added to them.
const HOURS_MAX: usize = 20_000;
const NAMESPACES_MAX: usize = 256;

/// A point to add to what is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    pub metric: Metric,
    pub unit: Unit,
    pub at_ms: u64,
    pub statistics: StatisticSet,
}

/// Some points were not stored, because the namespace has too many series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManySeries;

/// A node's cache of its rows, by namespace.
#[derive(Default)]
pub(super) struct Writer {
    namespaces: HashMap<Arc<Namespace>, Written>,
}

#[derive(Default)]
struct Written {
    hours: HashMap<HourKey, Hour>,
    /// The last hour in the catalogue.
    series: HashMap<SeriesId, u64>,
    /// The day on which the catalogue was read.
    day: Option<u64>,
}

impl Storage {
    /// Adds points. Those of new series are left out if there are too many already.
    pub async fn add(
        &self,
        namespace: &Arc<Namespace>,
        points: &[Point],
    ) -> Result<std::result::Result<(), TooManySeries>> {
        let mut writer = self.writer.lock().await;
        // Taken out, and put back only if everything was written: after a failure the rows are read again.
        let mut written = writer.namespaces.remove(namespace).unwrap_or_default();
        // Series expire when a day ends. One node trims them, and the others have to forget them as well;
        // otherwise they would refuse new ones.
        let day = Some(self.now_ms() / DAY_MS);
        if written.day != day {
            written.series = self.known_series(namespace).await?;
            written.day = day;
        }
        let mut dropped = 0;
        let (mut hours, mut catalogue) = (BTreeSet::new(), HashMap::new());
        for point in points {
            let key = HourKey {
                series: point.metric.series_id(),
                hour: point.at_ms / HOUR_MS,
                unit: point.unit,
            };
            if !written.series.contains_key(&key.series) && written.series.len() >= SERIES_MAX {
                dropped += 1;
                continue;
            }
            let minute = (point.at_ms % HOUR_MS / MINUTE_MS) as u8;
            self.hour(namespace, &mut written, key).await?.add(minute, &point.statistics);
            hours.insert((key.hour, key.series, key.unit));
            let last_hour = written.series.get(&key.series).copied();
            if last_hour.is_none_or(|last_hour| last_hour < key.hour) {
                written.series.insert(key.series, key.hour);
                let series = Series { metric: point.metric.clone(), last_hour: key.hour };
                catalogue.insert(key.series, series);
            }
        }
        let mut rows: Vec<(Vec<u8>, Option<Attributes>)> = Vec::new();
        for (hour, series, unit) in hours {
            let key = HourKey { series, hour, unit };
            let fields = written.hours.get(&key).map(Hour::to_fields);
            rows.push((key.bytes(self.node), fields));
        }
        for (id, series) in catalogue {
            rows.push((keys::catalogue_row(&series.metric, &id), Some(series.to_fields())));
        }
        self.write(namespace, rows).await?;
        self.forget(&mut written);
        if writer.namespaces.len() >= NAMESPACES_MAX {
            writer.namespaces.clear();
        }
        writer.namespaces.insert(Arc::clone(namespace), written);
        self.dropped_points.fetch_add(dropped, Ordering::Relaxed);
        Ok(if dropped == 0 { Ok(()) } else { Err(TooManySeries) })
    }

    async fn write(
        &self,
        namespace: &Namespace,
        mut rows: Vec<(Vec<u8>, Option<Attributes>)>,
    ) -> Result<()> {
        while !rows.is_empty() {
            let rest = rows.split_off(rows.len().min(BATCH_ROWS_MAX));
            let lease = Lease::default();
            self.engine.write_service_rows(RowOwner::Metrics, namespace, &lease, rows).await?;
            rows = rest;
        }
        Ok(())
    }

    /// The node's row of an hour, as it was written last.
    async fn hour<'w>(
        &self,
        namespace: &Namespace,
        written: &'w mut Written,
        key: HourKey,
    ) -> Result<&'w mut Hour> {
        match written.hours.entry(key) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let bytes = key.bytes(self.node);
                let row = self.engine.service_row(RowOwner::Metrics, namespace, &bytes).await?;
                let hour = row.as_ref().map(Hour::from_fields).transpose()?.unwrap_or_default();
                Ok(place.insert(hour))
            }
        }
    }

    /// The series of the catalogue, without those that are about to be trimmed.
    async fn known_series(&self, namespace: &Namespace) -> Result<HashMap<SeriesId, u64>> {
        let first_hour = self.first_ms() / HOUR_MS;
        let is_kept = |series: &Series| series.last_hour >= first_hour;
        let (series, _) =
            self.list(namespace, SeriesFilter::default(), SERIES_MAX, is_kept).await?;
        Ok(series.iter().map(|it| (it.metric.series_id(), it.last_hour)).collect())
    }

    /// Forgets rows that are complete, and all of them if that is not enough.
    fn forget(&self, written: &mut Written) {
        let now = self.now_ms() / HOUR_MS;
        written.hours.retain(|key, _| key.hour + 1 >= now);
        if written.hours.len() > HOURS_MAX {
            written.hours.clear();
        }
    }

    /// Forgets the series of a namespace, after some were trimmed.
    pub(super) async fn forget_series(&self, namespace: &Namespace) {
        self.writer.lock().await.namespaces.remove(namespace);
    }
}
