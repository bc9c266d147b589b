//! The server's counters as metrics of the protocol. They are cumulative since the server started.

use serde_json::{Value, json};
use zenobe_engine::throughput::report::units;

use super::attributes::OtlpAttributes;
use crate::metrics::{OperationCounts, bounds_us};
use crate::observer::Observability;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE` of the protocol.
const CUMULATIVE: u32 = 2;

/// Between which moments the counters counted, in nanoseconds since the epoch.
#[derive(Debug, Clone, Copy)]
pub struct Period {
    pub start_ns: u128,
    pub now_ns: u128,
}

impl Period {
    fn point(self, attributes: OtlpAttributes) -> Value {
        json!({
            "attributes": attributes.encode(),
            "startTimeUnixNano": self.start_ns.to_string(),
            "timeUnixNano": self.now_ns.to_string(),
        })
    }

    fn count(self, attributes: OtlpAttributes, count: u64) -> Value {
        let mut point = self.point(attributes);
        point["asInt"] = json!(count.to_string());
        point
    }

    fn amount(self, attributes: OtlpAttributes, amount: f64) -> Value {
        let mut point = self.point(attributes);
        point["asDouble"] = json!(amount);
        point
    }
}

/// All metrics that have a value.
pub fn encode(observability: &Observability, dropped_spans: u64, period: Period) -> Vec<Value> {
    let operations = observability.metrics.operations();
    let mut metrics = vec![
        sum("zenobe.requests", "{request}", &requests(&operations, period)),
        histogram("zenobe.request.duration", "s", &durations(&operations, period)),
        sum(
            "zenobe.otlp.dropped_spans",
            "{span}",
            &[period.count(OtlpAttributes::default(), dropped_spans)],
        ),
    ];
    let (consumed, throttled) = of_tables(observability, period);
    metrics.push(sum("zenobe.consumed_capacity", "{unit}", &consumed));
    metrics.push(sum("zenobe.throttle_events", "{event}", &throttled));
    metrics
}

fn sum(name: &str, unit: &str, points: &[Value]) -> Value {
    json!({
        "name": name,
        "unit": unit,
        "sum": {
            "dataPoints": points,
            "aggregationTemporality": CUMULATIVE,
            "isMonotonic": true,
        },
    })
}

fn histogram(name: &str, unit: &str, points: &[Value]) -> Value {
    json!({
        "name": name,
        "unit": unit,
        "histogram": {"dataPoints": points, "aggregationTemporality": CUMULATIVE},
    })
}

fn requests(operations: &[OperationCounts], period: Period) -> Vec<Value> {
    let mut points = Vec::new();
    for counts in operations {
        let succeeded = (counts.succeeded > 0).then_some((None, counts.succeeded));
        let failed = counts.failed.iter().map(|(code, count)| (Some(*code), *count));
        for (error, count) in succeeded.into_iter().chain(failed) {
            let mut attributes = of_operation(counts);
            if let Some(error) = error {
                attributes.text("error.type", error);
            }
            points.push(period.count(attributes, count));
        }
    }
    points
}

fn durations(operations: &[OperationCounts], period: Period) -> Vec<Value> {
    let bounds: Vec<f64> = bounds_us().iter().map(|bound| *bound as f64 / 1e6).collect();
    let point = |counts: &OperationCounts| {
        let within: u64 = counts.buckets.iter().sum();
        let slowest = counts.count.saturating_sub(within);
        let buckets = counts.buckets.iter().chain([&slowest]);
        let buckets: Vec<String> = buckets.map(|count| count.to_string()).collect();
        let mut point = period.point(of_operation(counts));
        point["count"] = json!((within + slowest).to_string());
        point["sum"] = json!(counts.duration_sum_us as f64 / 1e6);
        point["bucketCounts"] = json!(buckets);
        point["explicitBounds"] = json!(bounds);
        point
    };
    operations.iter().map(point).collect()
}

fn of_operation(counts: &OperationCounts) -> OtlpAttributes {
    let mut attributes = OtlpAttributes::default();
    attributes.text("db.operation.name", counts.operation);
    attributes
}

/// What tables and indexes consumed. The sketches bound how many there are.
fn of_tables(observability: &Observability, period: Period) -> (Vec<Value>, Vec<Value>) {
    let (mut consumed, mut throttled) = (Vec::new(), Vec::new());
    let resources =
        observability.hot_keys.as_ref().map(|keys| keys.resources(None)).unwrap_or_default();
    for keys in resources {
        let (resource, used) = {
            let keys = keys.lock();
            (keys.resource.clone(), keys.total.used)
        };
        let attributes = |access: Option<&str>| {
            let mut attributes = OtlpAttributes::default();
            attributes.text("cloud.account.id", &resource.table.namespace.account);
            attributes.text("cloud.region", &resource.table.namespace.region);
            attributes.text("db.collection.name", &resource.table.name);
            if let Some(index) = resource.index_name() {
                attributes.text("aws.dynamodb.index_name", index);
            }
            if let Some(access) = access {
                attributes.text("zenobe.access", access);
            }
            attributes
        };
        for (access, halves) in [("read", used.read_halves), ("write", used.write_halves)] {
            consumed.push(period.amount(attributes(Some(access)), units(halves)));
        }
        throttled.push(period.count(attributes(None), used.throttle_events));
    }
    (consumed, throttled)
}
