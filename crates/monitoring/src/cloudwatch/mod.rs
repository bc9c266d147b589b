//! CloudWatch: the metrics of tables, metrics of callers, and alarms on both, with CloudWatch's own API.
//!
//! [`dynamodb`] turns a minute of traffic into metrics, [`storage`] keeps data points, [`alarms`] watch
//! them, and [`operations`] answer requests. Only [`wire`] knows the protocols.
//!
//! **Bounded.** Requests, series, alarms, their history, and what a request may compute have limits; each
//! is a constant where it is checked.

mod alarms;
mod distribution;
mod dynamodb;
mod error;
mod insights;
mod math;
mod metric;
mod operations;
mod policy_alarms;
mod queries;
mod sink;
mod statistics;
mod storage;
pub mod wire;

use std::sync::Arc;

use zenobe_engine::Engine;
use zenobe_engine::schema::Namespace;

use alarms::Alarms;
use operations::Call;
use storage::Storage;
use wire::{CloudWatchResponse, Members, Protocol};

pub use insights::{Contributor, InsightReport, InsightReports};
pub use operations::OPERATIONS;
pub use policy_alarms::{PolicyAlarm, PolicyAlarms};

pub struct CloudWatch {
    storage: Storage,
    alarms: Alarms,
    /// The source of hot-key reports, if keys are counted.
    insights: Option<Arc<dyn InsightReports>>,
    /// The source of the alarms of scaling policies, if tables are scaled.
    policies: Option<Arc<dyn PolicyAlarms>>,
    done: tokio::sync::Mutex<sink::Done>,
}

/// A request, without HTTP's types.
pub struct Request<'r> {
    pub protocol: Protocol,
    pub operation: &'r str,
    pub namespace: &'r Arc<Namespace>,
    pub body: &'r [u8],
    pub request_id: &'r str,
}

/// Figures of CloudWatch itself, for the server's metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// By the state that alarms changed to.
    pub alarm_transitions: Vec<(&'static str, u64)>,
    /// Actions of alarms that changed their state. None is carried out.
    pub alarm_actions_skipped: u64,
    /// Data points that were not stored, because there were too many metrics.
    pub dropped_points: u64,
}

impl CloudWatch {
    /// Keeps data points for some days.
    pub fn new(
        engine: Arc<Engine>,
        retention_days: u64,
        insights: Option<Arc<dyn InsightReports>>,
        policies: Option<Arc<dyn PolicyAlarms>>,
    ) -> CloudWatch {
        let storage = Storage::new(Arc::clone(&engine), retention_days);
        let done = tokio::sync::Mutex::new(sink::Done::at_start(storage.now_ms()));
        CloudWatch { storage, alarms: Alarms::new(engine), insights, policies, done }
    }

    pub async fn answer(&self, request: Request<'_>) -> CloudWatchResponse {
        let Request { protocol, operation, namespace, body, request_id } = request;
        let result = match wire::decode(protocol, body) {
            Ok(decoded) => {
                let members = Members::of(&decoded);
                operations::answer(Call { cloudwatch: self, namespace, members }, operation).await
            }
            Err(fault) => Err(fault),
        };
        wire::answer(protocol, operation, request_id, result)
    }

    pub fn counts(&self) -> Counts {
        let transitions = self.alarms.transitions().map(|(state, count)| (state.name(), count));
        Counts {
            alarm_transitions: transitions.collect(),
            alarm_actions_skipped: self.alarms.actions_skipped(),
            dropped_points: self.storage.dropped_points(),
        }
    }

    fn now_ms(&self) -> u64 {
        self.storage.now_ms()
    }
}

#[cfg(test)]
mod tests;
