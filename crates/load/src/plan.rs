//! What to send, where, and how fast.

use std::time::Duration;

use crate::{KeyDistribution, LoadError, Result, Target, Workload};

pub const ITEM_BYTES_MAX: usize = 350_000;

/// One measurement. [`Plan::new`] fills in the defaults; callers may change every field.
#[derive(Debug, Clone)]
pub struct Plan {
    pub target: Target,
    /// The name of the table, which must have the workload's [`Shape`](crate::Shape).
    pub table: String,
    pub workload: Workload,
    pub keys: KeyDistribution,
    /// How many items to load into the table.
    pub items: u64,
    /// The size of an item as DynamoDB counts it: names and values.
    pub item_bytes: usize,
    pub connections: usize,
    pub threads: usize,
    pub pacing: Pacing,
    /// How long to send load before measuring.
    pub warmup: Duration,
    pub duration: Duration,
    /// Ends the run after this many operations, whatever `duration` says. There is no warm-up then.
    pub operations_max: Option<u64>,
    /// Whether to retry throttled requests after a pause, which counts towards their latency.
    /// Otherwise they are errors.
    pub retry_throttled: bool,
    /// How long to wait at the end for requests that are still running.
    pub timeout: Duration,
    pub seed: u64,
}

/// When to send the next request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pacing {
    /// As soon as the connection has a response. This finds the highest rate.
    Closed,
    /// On a schedule that continues when the server stalls. Latency counts from the scheduled time.
    Open { requests_per_second: f64 },
}

impl Plan {
    pub fn new(target: Target, workload: Workload) -> Plan {
        Plan {
            target,
            table: workload.shape().default_table().to_owned(),
            workload,
            keys: workload.default_keys(),
            items: 100_000,
            item_bytes: 400,
            connections: 64,
            threads: default_threads(),
            pacing: Pacing::Closed,
            warmup: Duration::from_secs(2),
            duration: Duration::from_secs(10),
            operations_max: None,
            retry_throttled: false,
            timeout: Duration::from_secs(10),
            seed: 1,
        }
    }

    /// Rejects a plan that cannot be run.
    pub fn check(&self) -> Result<()> {
        let table_fits = (3..=255).contains(&self.table.len())
            && self
                .table
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        let rate_fits = match self.pacing {
            Pacing::Closed => true,
            Pacing::Open { requests_per_second: rate } => rate.is_finite() && rate > 0.0,
        };
        let minimum = self.workload.shape().item_bytes_min();
        let faults = [
            (
                !table_fits,
                "the table's name needs 3 to 255 of the characters a-z A-Z 0-9 _ - .".into(),
            ),
            (
                self.items < self.workload.items_min(),
                format!("this workload needs at least {} items", self.workload.items_min()),
            ),
            (self.items > 999_999_999_999, "there can be at most 999999999999 items".into()),
            (
                !(minimum..=ITEM_BYTES_MAX).contains(&self.item_bytes),
                format!("items of this workload have between {minimum} and {ITEM_BYTES_MAX} bytes"),
            ),
            (self.connections == 0, "there must be at least one connection".into()),
            (self.threads == 0, "there must be at least one thread".into()),
            (!rate_fits, "the rate must be a positive number of requests per second".into()),
            (
                self.duration.is_zero() && self.operations_max.is_none(),
                "the duration must not be zero".into(),
            ),
        ];
        match faults.into_iter().find(|(is_fault, _)| *is_fault) {
            Some((_, text)) => Err(LoadError::Plan(text)),
            None => Ok(()),
        }
    }

    /// The number of threads that run. Each has at least one connection.
    pub(crate) fn workers(&self) -> usize {
        self.threads.min(self.connections)
    }
}

/// One thread drives about 200,000 requests per second. A server needs several cores for that many.
fn default_threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / 4).max(1)
}
