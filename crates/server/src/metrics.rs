//! What the server counts for `/metrics`.
//!
//! Recording a success touches a few atomics and takes no lock; only errors, which have names, do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use zenobe_api::Operation;
use zenobe_store::Statistics;

use crate::prometheus::MetricType::{Counter, Gauge, Histogram};
use crate::prometheus::{Exposition, Seconds};

/// Upper bounds of the latency histogram, in microseconds, with the texts of their labels.
const BUCKETS: [(u64, &str); 14] = [
    (100, "0.0001"),
    (250, "0.00025"),
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (10_000_000, "10"),
];

pub struct Metrics {
    /// Indexed by the operation's number; the last is for requests that name none.
    operations: Vec<OperationMetrics>,
    /// By the service's name and the response's status.
    services: Mutex<BTreeMap<(&'static str, u16), ServiceCounts>>,
    connections: AtomicU64,
    connections_total: AtomicU64,
    connections_refused_total: AtomicU64,
    requests_shed_total: AtomicU64,
    panics_total: AtomicU64,
}

/// What was counted of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationCounts {
    pub operation: &'static str,
    pub succeeded: u64,
    /// By the exception's name.
    pub failed: Vec<(&'static str, u64)>,
    /// Requests that took up to each of [`bounds_us`] and longer than the one before. The slowest
    /// are in none.
    pub buckets: Vec<u64>,
    pub duration_sum_us: u64,
    pub count: u64,
}

/// The upper bounds of the latency histogram, in microseconds.
pub fn bounds_us() -> [u64; BUCKETS.len()] {
    BUCKETS.map(|(bound, _)| bound)
}

/// What was counted of AWS services besides DynamoDB.
#[derive(Default)]
struct ServiceCounts {
    count: u64,
    duration_sum_us: u64,
}

#[derive(Default)]
struct OperationMetrics {
    succeeded: AtomicU64,
    failed: Mutex<BTreeMap<&'static str, u64>>,
    buckets: [AtomicU64; BUCKETS.len()],
    duration_sum_us: AtomicU64,
    duration_count: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let count = Operation::ALL.len() + 1;
        Metrics {
            operations: std::iter::repeat_with(OperationMetrics::default).take(count).collect(),
            services: Mutex::default(),
            connections: AtomicU64::new(0),
            connections_total: AtomicU64::new(0),
            connections_refused_total: AtomicU64::new(0),
            requests_shed_total: AtomicU64::new(0),
            panics_total: AtomicU64::new(0),
        }
    }
}

impl Metrics {
    /// Counts one finished request. `error` is the exception's name.
    pub fn record(
        &self,
        operation: Option<Operation>,
        error: Option<&'static str>,
        duration: Duration,
    ) {
        let slot = operation.map_or(Operation::ALL.len(), |operation| operation as usize);
        let metrics = &self.operations[slot];
        match error {
            None => add(&metrics.succeeded, 1),
            Some(name) => *metrics.failed.lock().entry(name).or_default() += 1,
        }
        let duration_us = microseconds(duration);
        if let Some(bucket) = BUCKETS.iter().position(|(bound, _)| duration_us <= *bound) {
            add(&metrics.buckets[bucket], 1);
        }
        add(&metrics.duration_sum_us, duration_us);
        add(&metrics.duration_count, 1);
    }

    /// Counts one finished request to another AWS service.
    pub fn record_service(&self, service: &'static str, status: u16, duration: Duration) {
        let mut services = self.services.lock();
        let counts = services.entry((service, status)).or_default();
        counts.count += 1;
        counts.duration_sum_us = counts.duration_sum_us.saturating_add(microseconds(duration));
    }

    pub fn record_panic(&self) {
        add(&self.panics_total, 1);
    }

    /// Counts a connection until the guard is dropped.
    pub fn connection_opened(self: &std::sync::Arc<Metrics>) -> ConnectionGuard {
        add(&self.connections, 1);
        add(&self.connections_total, 1);
        ConnectionGuard { metrics: self.clone() }
    }

    /// Counts a connection that was closed at once because its peer has too many.
    pub fn connection_refused(&self) {
        add(&self.connections_refused_total, 1);
    }

    /// Counts a request that was refused because there are too many.
    pub fn request_shed(&self) {
        add(&self.requests_shed_total, 1);
    }

    pub fn render(&self, store: &Statistics, out: &mut Exposition) {
        self.render_requests(out);
        self.render_durations(out);
        self.render_services(out);
        out.single("zenobe_connections", Gauge, load(&self.connections));
        out.single("zenobe_connections_total", Counter, load(&self.connections_total));
        let refused = load(&self.connections_refused_total);
        out.single("zenobe_connections_refused_total", Counter, refused);
        out.single("zenobe_requests_shed_total", Counter, load(&self.requests_shed_total));
        out.single("zenobe_panics_total", Counter, load(&self.panics_total));
        out.single("zenobe_store_size_bytes", Gauge, store.size_bytes);
        out.single("zenobe_store_commit_groups_total", Counter, store.commit_groups);
        out.single("zenobe_store_committed_writes_total", Counter, store.committed_writes);
        let refuses_writes = u64::from(store.write_failure.is_some());
        out.single("zenobe_store_writes_refused", Gauge, refuses_writes);
    }

    /// The operations that were called at least once.
    pub fn operations(&self) -> Vec<OperationCounts> {
        let counts = |(operation, metrics): (&'static str, &OperationMetrics)| OperationCounts {
            operation,
            succeeded: load(&metrics.succeeded),
            failed: metrics.failed.lock().iter().map(|(code, count)| (*code, *count)).collect(),
            buckets: metrics.buckets.iter().map(load).collect(),
            duration_sum_us: load(&metrics.duration_sum_us),
            count: load(&metrics.duration_count),
        };
        self.used().map(counts).collect()
    }

    /// The connections that are open.
    pub fn connections(&self) -> u64 {
        load(&self.connections)
    }

    fn render_requests(&self, out: &mut Exposition) {
        let mut requests = out.metric("zenobe_requests_total", Counter);
        for (operation, metrics) in self.used() {
            let mut count = |code: &str, count: u64| {
                requests.sample(&[("operation", operation), ("code", code)], count);
            };
            let succeeded = load(&metrics.succeeded);
            if succeeded > 0 {
                count("OK", succeeded);
            }
            metrics.failed.lock().iter().for_each(|(code, failed)| count(code, *failed));
        }
    }

    fn render_durations(&self, out: &mut Exposition) {
        let mut durations = out.metric("zenobe_request_duration_seconds", Histogram);
        for (operation, metrics) in self.used() {
            let operation = ("operation", operation);
            let mut cumulative = 0;
            for ((_, bound), bucket) in BUCKETS.iter().zip(&metrics.buckets) {
                cumulative += load(bucket);
                durations.sample_of("_bucket", &[operation, ("le", bound)], cumulative);
            }
            let count = load(&metrics.duration_count);
            let sum = Seconds::FromMicroseconds(load(&metrics.duration_sum_us));
            durations.sample_of("_bucket", &[operation, ("le", "+Inf")], count);
            durations.sample_of("_sum", &[operation], sum);
            durations.sample_of("_count", &[operation], count);
        }
    }

    fn render_services(&self, out: &mut Exposition) {
        let services = self.services.lock();
        if services.is_empty() {
            return;
        }
        let counts = |((service, status), counts): (&(&'static str, u16), &ServiceCounts)| {
            (*service, status.to_string(), counts.count, counts.duration_sum_us)
        };
        let rows: Vec<_> = services.iter().map(counts).collect();
        let mut requests = out.metric("zenobe_service_requests_total", Counter);
        for (service, status, count, _) in &rows {
            requests.sample(&[("service", *service), ("status", status.as_str())], *count);
        }
        let mut durations = out.metric("zenobe_service_request_seconds_total", Counter);
        for (service, status, _, sum_us) in &rows {
            let sum = Seconds::FromMicroseconds(*sum_us);
            durations.sample(&[("service", *service), ("status", status.as_str())], sum);
        }
    }

    /// The operations that were called at least once.
    fn used(&self) -> impl Iterator<Item = (&'static str, &OperationMetrics)> {
        let names = Operation::ALL.iter().map(Operation::name).chain(["none"]);
        names.zip(&self.operations).filter(|(_, metrics)| load(&metrics.duration_count) > 0)
    }
}

pub struct ConnectionGuard {
    metrics: std::sync::Arc<Metrics>,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn requests_are_counted_by_operation_and_code() {
        let metrics = Arc::new(Metrics::default());
        metrics.record(Some(Operation::GetItem), None, Duration::from_micros(300));
        metrics.record(Some(Operation::GetItem), None, Duration::from_secs(60));
        metrics.record(Some(Operation::GetItem), Some("ValidationException"), Duration::ZERO);
        metrics.record(None, Some("UnknownOperationException"), Duration::ZERO);
        metrics.record_service("monitoring", 200, Duration::from_millis(3));
        metrics.record_service("monitoring", 200, Duration::from_millis(4));
        metrics.record_service("application-autoscaling", 400, Duration::ZERO);
        let guard = metrics.connection_opened();
        let rendered = || {
            let mut out = Exposition::default();
            metrics.render(&Statistics::default(), &mut out);
            out.into_text()
        };
        let text = rendered();
        for expected in [
            "zenobe_requests_total{operation=\"GetItem\",code=\"OK\"} 2",
            "zenobe_requests_total{operation=\"GetItem\",code=\"ValidationException\"} 1",
            "zenobe_requests_total{operation=\"none\",code=\"UnknownOperationException\"} 1",
            "zenobe_request_duration_seconds_bucket{operation=\"GetItem\",le=\"0.00025\"} 1",
            "zenobe_request_duration_seconds_bucket{operation=\"GetItem\",le=\"0.0005\"} 2",
            "zenobe_request_duration_seconds_bucket{operation=\"GetItem\",le=\"10\"} 2",
            "zenobe_request_duration_seconds_bucket{operation=\"GetItem\",le=\"+Inf\"} 3",
            "zenobe_request_duration_seconds_sum{operation=\"GetItem\"} 60.000300",
            "zenobe_service_requests_total{service=\"monitoring\",status=\"200\"} 2",
            "zenobe_service_requests_total{service=\"application-autoscaling\",status=\"400\"} 1",
            "zenobe_service_request_seconds_total{service=\"monitoring\",status=\"200\"} 0.007000",
            "zenobe_connections 1",
            "zenobe_store_writes_refused 0",
        ] {
            assert!(text.lines().any(|line| line == expected), "{expected} in\n{text}");
        }
        drop(guard);
        assert!(rendered().contains("\nzenobe_connections 0\n"));
    }
}
