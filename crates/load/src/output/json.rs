//! The report for programs.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::Identity;
use crate::{Interval, OperationReport, Pacing, Plan, Report};

/// Steps of the percentile curve per halving of the distance to 100 %.
const CURVE_STEPS: u32 = 5;

/// The whole plan and all measurements. Times are in microseconds unless the name says otherwise.
pub fn json(identity: &Identity<'_>, plan: &Plan, report: &Report) -> Value {
    json!({
        "zenobe": {"version": identity.version, "commit": identity.commit},
        "plan": plan_json(plan),
        "stopped": report.stopped,
        "elapsed_seconds": report.elapsed.as_secs_f64(),
        "requests": report.requests,
        "requests_per_second": report.requests_per_second(),
        "errors": report.errors,
        "error_messages": report.error_messages,
        "unsent": report.unsent,
        "throttled": report.throttled,
        "reconnects": report.reconnects,
        "bytes_sent": report.bytes_sent,
        "bytes_received": report.bytes_received,
        "items_read": report.items,
        "latency": latency_json(&report.latency),
        "service": latency_json(&report.service),
        "operations": report.operations.iter().map(operation_json).collect::<Vec<_>>(),
        "timeline": report.intervals.iter().map(interval_json).collect::<Vec<_>>(),
    })
}

fn plan_json(plan: &Plan) -> Value {
    let (pacing, rate) = match plan.pacing {
        Pacing::Closed => ("closed", None),
        Pacing::Open { requests_per_second } => ("open", Some(requests_per_second)),
    };
    json!({
        "endpoint": plan.target.to_string(),
        "region": plan.target.region(),
        "signed": plan.target.is_signed(),
        "table": plan.table,
        "workload": plan.workload.name(),
        "keys": plan.keys.to_string(),
        "items": plan.items,
        "item_bytes": plan.item_bytes,
        "connections": plan.connections,
        "threads": plan.workers(),
        "pacing": pacing,
        "rate": rate,
        "warmup_seconds": plan.warmup.as_secs_f64(),
        "duration_seconds": plan.duration.as_secs_f64(),
        "operations_max": plan.operations_max,
        "retry_throttled": plan.retry_throttled,
        "timeout_seconds": plan.timeout.as_secs_f64(),
        "seed": plan.seed,
    })
}

fn latency_json(latency: &Histogram<u64>) -> Value {
    let at = |percent| microseconds(latency.value_at_percentile(percent));
    let curve = latency.iter_quantiles(CURVE_STEPS).map(|step| {
        json!({"quantile": step.quantile_iterated_to(), "us": microseconds(step.value_iterated_to())})
    });
    json!({
        "count": latency.len(),
        "mean": latency.mean() / 1e3,
        "min": microseconds(latency.min()),
        "p50": at(50.0),
        "p75": at(75.0),
        "p90": at(90.0),
        "p99": at(99.0),
        "p99.9": at(99.9),
        "p99.99": at(99.99),
        "max": microseconds(latency.max()),
        "curve": curve.collect::<Vec<_>>(),
    })
}

fn operation_json(report: &OperationReport) -> Value {
    json!({
        "operation": report.operation.name(),
        "requests": report.requests,
        "errors": report.errors,
        "latency": latency_json(&report.latency),
    })
}

fn interval_json(interval: &Interval) -> Value {
    let time = |time: Duration| time.as_nanos() as f64 / 1e3;
    json!({
        "start_seconds": interval.start.as_secs_f64(),
        "length_seconds": interval.length.as_secs_f64(),
        "requests": interval.requests,
        "requests_per_second": interval.requests_per_second(),
        "errors": interval.errors,
        "p50": time(interval.p50),
        "p90": time(interval.p90),
        "p99": time(interval.p99),
        "max": time(interval.max),
    })
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}
