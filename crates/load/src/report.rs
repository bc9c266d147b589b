//! The measurements of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::MeasuredOperation;

#[derive(Debug, Clone)]
pub struct Report {
    /// Successful operations. Each is a single request, except for YCSB F's read-modify-writes.
    pub requests: u64,
    /// From the end of the warm-up to the last response.
    pub elapsed: Duration,
    /// The latency of successful operations in nanoseconds. In an open loop it counts from the
    /// scheduled time, and includes operations that were due but never sent, with the time that
    /// they had waited at the end.
    pub latency: Histogram<u64>,
    /// The time from sending to the response, in nanoseconds. In a closed loop it equals the
    /// latency.
    pub service: Histogram<u64>,
    /// Failed operations by the name of the exception.
    pub errors: BTreeMap<String, u64>,
    /// An example of each error's message.
    pub error_messages: BTreeMap<String, String>,
    pub operations: Vec<OperationReport>,
    /// One for each second after the warm-up.
    pub intervals: Vec<Interval>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// Items in the pages of Query and Scan.
    pub items: u64,
    /// Scheduled operations for which no connection became free before the end of an open loop.
    pub unsent: u64,
    /// Responses that asked to slow down and were retried, as the plan allows.
    pub throttled: u64,
    /// How often the server closed a connection that was still needed.
    pub reconnects: u64,
    /// Whether the run was stopped early.
    pub stopped: bool,
}

/// The part of a report for one kind of operation.
#[derive(Debug, Clone)]
pub struct OperationReport {
    pub operation: MeasuredOperation,
    pub requests: u64,
    pub errors: u64,
    /// In nanoseconds.
    pub latency: Histogram<u64>,
}

/// One second of a run. The last one may be shorter.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// When it started, counted from the end of the warm-up. During the warm-up it counts from the
    /// start.
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

    /// The latency that this percentage of operations did not exceed.
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
