//! What a run has measured.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::Operation;

#[derive(Debug, Clone)]
pub struct Report {
    /// Operations that succeeded. All are single requests, except for the read-modify-writes of YCSB F.
    pub requests: u64,
    /// From the end of the warm-up to the last answer.
    pub elapsed: Duration,
    /// In nanoseconds, of the operations that succeeded. In an open loop from the scheduled time, and with those that were due but
    /// never sent, by the time that they had waited at the end.
    pub latency: Histogram<u64>,
    /// In nanoseconds, from sending to the answer. In a closed loop the same as the latency.
    pub service: Histogram<u64>,
    /// Failed operations by the name of the exception.
    pub errors: BTreeMap<String, u64>,
    /// An example of each error's message.
    pub error_messages: BTreeMap<String, String>,
    pub operations: Vec<OperationReport>,
    /// One for each second, without the warm-up's.
    pub intervals: Vec<Interval>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Items in the pages of Query and Scan.
    pub items: u64,
    /// Scheduled operations for which no connection became free before the end of an open loop.
    pub unsent: u64,
    /// Answers that asked to slow down and were retried, because the plan says so.
    pub throttled: u64,
    /// How often the server closed a connection that was used further.
    pub reconnects: u64,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

/// The part of a report that is about one kind of operation.
#[derive(Debug, Clone)]
pub struct OperationReport {
    pub operation: Operation,
    pub requests: u64,
    pub errors: u64,
    /// In nanoseconds.
    pub latency: Histogram<u64>,
}

/// One second of a run, or what was left of it at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// When it began, since the end of the warm-up; in the warm-up, since its beginning.
    pub start: Duration,
    pub length: Duration,
    pub warmup: bool,
    pub requests: u64,
    pub errors: u64,
    pub p50: Duration,
    pub p90: Duration,
    pub p99: Duration,
    pub max: Duration,
}

impl Report {
    pub fn requests_per_second(&self) -> f64 {
        per_second(self.requests, self.elapsed)
    }

    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Latency that so many percent of the operations did not exceed.
    pub fn percentile(&self, percentile: f64) -> Duration {
        Duration::from_nanos(self.latency.value_at_percentile(percentile))
    }
}

impl Interval {
    pub fn requests_per_second(&self) -> f64 {
        per_second(self.requests, self.length)
    }
}

fn per_second(count: u64, elapsed: Duration) -> f64 {
    match elapsed.is_zero() {
        true => 0.0,
        false => count as f64 / elapsed.as_secs_f64(),
    }
}
