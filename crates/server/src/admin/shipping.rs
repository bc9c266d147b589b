//! How far the log has been shipped.

use serde_json::{Value, json};
use zenobe_backup::ship::{ShippingState, ShippingStatus};

use crate::prometheus::MetricType::{Counter, Gauge};
use crate::prometheus::{Exposition, Seconds};

pub fn describe(status: &ShippingStatus) -> Value {
    let state = status.get();
    json!({
        "to": state.place,
        "generation": state.generation,
        "restorable_until_ms": state.restorable_until_ms,
        "age_ms": state.age_ms,
        "waiting_bytes": state.waiting_bytes,
        "segments": state.segments,
        "bytes": state.bytes,
        "gaps": state.gaps,
        "snapshots": state.snapshots,
        "snapshot_bytes": state.snapshot.bytes,
        "snapshot_bytes_total": state.snapshot.bytes_total,
        "problem": state.problem,
        "running": state.is_running,
    })
}

pub fn render_metrics(status: &ShippingStatus, out: &mut Exposition) {
    let ShippingState { age_ms, waiting_bytes, segments, bytes, gaps, snapshots, problem, .. } =
        status.get();
    out.single("zenobe_ship_age_seconds", Gauge, Seconds::FromMilliseconds(age_ms));
    out.single("zenobe_ship_waiting_bytes", Gauge, waiting_bytes);
    out.single("zenobe_ship_segments_total", Counter, segments);
    out.single("zenobe_ship_bytes_total", Counter, bytes);
    out.single("zenobe_ship_snapshots_total", Counter, snapshots);
    out.single("zenobe_ship_gaps_total", Counter, gaps);
    out.single("zenobe_ship_failing", Gauge, u64::from(problem.is_some()));
}
