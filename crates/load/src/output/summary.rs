//! A table for the terminal.

use std::fmt::Write;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::{human_bytes, human_count, human_time};
use crate::{Pacing, Plan, Report};

const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
const HEADER: [&str; 9] =
    ["operation", "requests", "requests/s", "errors", "p50", "p90", "p99", "p99.9", "max"];

/// The measurements as lines of text.
pub fn summary(plan: &Plan, report: &Report) -> String {
    let mut text = headline(plan, report);
    text.push('\n');
    write_table(&rows(report), &mut text);
    text.push('\n');
    for line in remarks(plan, report) {
        let _ = writeln!(text, "  {line}");
    }
    text
}

fn headline(plan: &Plan, report: &Report) -> String {
    let pace = match plan.pacing {
        Pacing::Closed => "closed loop".to_owned(),
        Pacing::Open { requests_per_second } => {
            format!("open loop at {requests_per_second} requests/s")
        }
    };
    let threads = match plan.workers() {
        1 => "1 thread".to_owned(),
        workers => format!("{workers} threads"),
    };
    let stopped = if report.stopped { ", stopped early" } else { "" };
    format!(
        "{} on {}, table {}\n{} items of {} bytes, {} keys, {} connections on {}, {pace}, {:.1} s{stopped}\n",
        plan.workload,
        plan.target,
        plan.table,
        human_count(plan.items),
        plan.item_bytes,
        plan.keys,
        plan.connections,
        threads,
        report.elapsed.as_secs_f64(),
    )
}

fn rows(report: &Report) -> Vec<Vec<String>> {
    let row = |name: &str, requests: u64, errors: u64, latency: &Histogram<u64>| {
        let rate = requests as f64 / report.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        let mut row = vec![name.to_owned(), human_count(requests), human_count(rate as u64)];
        row.push(human_count(errors));
        let nanoseconds = PERCENTILES.map(|percent| latency.value_at_percentile(percent));
        let times = nanoseconds.into_iter().chain([latency.max()]);
        row.extend(times.map(|time| human_time(Duration::from_nanos(time))));
        row
    };
    let mut rows = vec![HEADER.map(str::to_owned).to_vec()];
    let operations = report.operations.iter();
    rows.extend(
        operations
            .map(|each| row(each.operation.name(), each.requests, each.errors, &each.latency)),
    );
    // With a single operation the total only adds something if requests failed or were never sent.
    if rows.len() > 2 || report.unsent > 0 || report.error_count() > 0 {
        rows.push(row("all", report.requests, report.error_count(), &report.latency));
    }
    rows
}

/// Aligns the first column to the left and the others to the right.
fn write_table(rows: &[Vec<String>], text: &mut String) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..HEADER.len()).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        let _ = write!(text, "  {:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
    }
}

fn remarks(plan: &Plan, report: &Report) -> Vec<String> {
    let rate = |bytes: u64| {
        let per_second = bytes as f64 / report.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        format!("{} ({}/s)", human_bytes(bytes as f64), human_bytes(per_second))
    };
    let mut lines =
        vec![format!("sent {}, received {}", rate(report.bytes_sent), rate(report.bytes_received))];
    if report.items > 0 {
        let bytes = report.items.saturating_mul(plan.item_bytes as u64);
        lines.push(format!(
            "read {} items, {} of item data",
            human_count(report.items),
            rate(bytes)
        ));
    }
    if let Pacing::Open { .. } = plan.pacing {
        let time =
            |percent| human_time(Duration::from_nanos(report.service.value_at_percentile(percent)));
        lines.push(format!(
            "latency counts from the scheduled time; from sending: p50 {}, p99 {}, p99.9 {}",
            time(50.0),
            time(99.0),
            time(99.9)
        ));
    }
    if report.unsent > 0 {
        lines.push(format!(
            "{} operations were due but no connection was free to send them; they count into the latency of all",
            human_count(report.unsent)
        ));
    }
    if report.throttled > 0 {
        lines.push(format!("{} throttled requests were retried", human_count(report.throttled)));
    }
    if report.reconnects > 0 {
        lines.push(format!("{} connections were opened again", human_count(report.reconnects)));
    }
    for (name, count) in &report.errors {
        let message = report.error_messages.get(name).map(|text| format!(": {text}"));
        lines.push(format!("{} × {name}{}", human_count(*count), message.unwrap_or_default()));
    }
    lines
}
