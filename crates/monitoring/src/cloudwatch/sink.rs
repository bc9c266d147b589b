//! What CloudWatch does once a minute: every node stores its traffic; one of them evaluates alarms, records
//! gauges such as provisioned capacity, and trims what is too old.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use zenobe_engine::error::{Error, Result};
use zenobe_engine::lease::Lease;
use zenobe_engine::service_rows::RowOwner;

use super::CloudWatch;
use super::dynamodb::MinutePoints;
use super::storage::keys::{HOUR_MS, MINUTE_MS};
use crate::traffic::{TrafficMinute, TrafficSink};

/// The lease for the work that one node does for all.
const LEASE: &str = "cloudwatch";
/// How often gauges are recorded, as on AWS.
const GAUGES_EVERY_MINUTES: u64 = 5;
/// How many steps of trimming a namespace gets per hour. A step deletes up to 500 rows.
const TRIM_STEPS_MAX: usize = 200;

/// When the work of one node was last done, in minutes and hours since the epoch.
#[derive(Debug)]
pub(super) struct Done {
    minute: u64,
    hour: u64,
}

impl Done {
    /// The minute of the start is not over; what is too old may be trimmed after it.
    pub fn at_start(now_ms: u64) -> Done {
        Done { minute: now_ms / MINUTE_MS, hour: 0 }
    }
}

impl TrafficSink for CloudWatch {
    fn store_minute<'a>(&'a self, minute: &'a TrafficMinute) -> BoxFuture<'a, ()> {
        async move {
            let mut points = MinutePoints::default();
            points.add_traffic(&minute.rows);
            points.add_injected_errors(&minute.injected_errors);
            points.add_expired(&minute.expired_items);
            points.add_returned_records(&minute.returned_records);
            self.store(points, minute.start_ms).await;
            match self.work_for_all().await {
                Ok(()) | Err(Error::LeaseLost { .. }) => {}
                Err(error) => tracing::warn!(%error, "alarms could not be evaluated"),
            }
        }
        .boxed()
    }
}

impl CloudWatch {
    async fn store(&self, points: MinutePoints, at_ms: u64) {
        for (namespace, points) in points.into_points(at_ms) {
            match self.storage.add(&namespace, &points).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => {
                    tracing::warn!("there are too many metrics; new ones were not stored");
                }
                Err(error) => tracing::warn!(%error, "metrics could not be stored"),
            }
        }
    }

    /// Does what is due, if this node holds the lease. An idle server without alarms writes only its
    /// gauges.
    async fn work_for_all(&self) -> Result<()> {
        let minute = self.storage.now_ms() / MINUTE_MS;
        let mut done = self.done.lock().await;
        // The worker also flushes in the middle of a minute.
        if minute == done.minute {
            return Ok(());
        }
        let engine = &self.storage.engine;
        let Some(lease) = engine.lease(LEASE).await? else { return Ok(()) };
        let last_minute = std::mem::replace(&mut done.minute, minute);
        if engine.is_metering()
            && minute / GAUGES_EVERY_MINUTES != last_minute / GAUGES_EVERY_MINUTES
        {
            let mut points = MinutePoints::default();
            points.add_gauges(engine).await?;
            self.store(points, minute * MINUTE_MS).await;
        }
        // Other nodes store the minute at the same time, so their part may not be there yet.
        let behind = u64::from(engine.is_shared());
        let end_ms = minute.saturating_sub(behind) * MINUTE_MS;
        self.alarms.evaluate_all(&self.storage, end_ms, &lease).await?;
        let hour = minute * MINUTE_MS / HOUR_MS;
        if hour != done.hour {
            self.trim(&lease).await?;
            done.hour = hour;
        }
        Ok(())
    }

    async fn trim(&self, lease: &Lease) -> Result<()> {
        // A clock that has jumped is not a reason to delete anything.
        if self.storage.engine.clock_status().is_paused {
            return Ok(());
        }
        for namespace in self.storage.engine.service_namespaces(RowOwner::Metrics).await? {
            for _ in 0..TRIM_STEPS_MAX {
                if !self.storage.trim(&namespace, lease).await? {
                    break;
                }
            }
        }
        self.alarms.trim(lease).await
    }
}
