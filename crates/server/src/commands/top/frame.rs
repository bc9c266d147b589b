//! One frame: two samples of a server as lines of text.

use std::cmp::Reverse;
use std::time::Duration;

use super::Sort;
use super::sample::{HotKey, OperationSample, Sample, TableSample};

/// A window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

/// How a frame is shown.
#[derive(Debug, Clone)]
pub struct View {
    pub endpoint: String,
    pub interval: Duration,
    pub sort: Sort,
    /// Why there is no newer sample.
    pub problem: Option<String>,
}

/// Lines besides the three lists: two of the head, and a heading and an empty line for each list.
const FIXED_ROWS: usize = 2 + 3 * 2;
/// The shortest length of a list. A window with too few rows for it is cut.
const LIST_ROWS_MIN: usize = 3;

/// The lines of a frame, cut to the window.
pub fn render(before: &Sample, after: &Sample, view: &View, size: Size) -> Vec<String> {
    let seconds = after.now_ms.saturating_sub(before.now_ms) as f64 / 1e3;
    let operations = operations(before, after, seconds, view.sort);
    let tables = tables(before, after, seconds, view.sort);
    let lists = size.rows.saturating_sub(FIXED_ROWS).max(3 * LIST_ROWS_MIN);
    // The list of keys gets the rows that are left.
    let operation_rows = operations.len().min(lists / 3).max(1);
    let table_rows = tables.len().min((lists - operation_rows) / 2).max(1);
    let key_rows = lists - operation_rows - table_rows;

    let mut lines = head(after, view, &operations, &tables);
    lines.push(String::new());
    lines.push(operation_heading());
    lines.extend(operations.iter().take(operation_rows).map(OperationRow::line));
    lines.push(String::new());
    let width = size.columns.saturating_sub(TABLE_COLUMNS_WIDTH).clamp(20, 60);
    lines.push(table_heading(width));
    lines.extend(tables.iter().take(table_rows).map(|row| row.line(width)));
    if !after.is_metering {
        lines.push("(not counted: the server runs with --throughput off)".to_owned());
    }
    lines.push(String::new());
    let width = size.columns.saturating_sub(KEY_COLUMNS_WIDTH).clamp(12, 80);
    lines.push(key_heading(width));
    lines.extend(keys(after, view.sort).iter().take(key_rows).map(|key| key_line(key, width)));
    lines.iter_mut().for_each(|line| cut(line, size.columns));
    lines.truncate(size.rows);
    lines
}

fn head(
    after: &Sample,
    view: &View,
    operations: &[OperationRow],
    tables: &[TableRow],
) -> Vec<String> {
    let seconds = after.now_ms / 1_000;
    let time = format!("{:02}:{:02}:{:02}", seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let first = match &view.problem {
        Some(problem) => format!("zenobe {}  {}  {problem}", after.version, view.endpoint),
        None => format!(
            "zenobe {}  {}  {time} UTC  {} connections  {} stored  every {} s",
            after.version,
            view.endpoint,
            after.connections,
            bytes(after.store_size_bytes),
            view.interval.as_secs_f64(),
        ),
    };
    let sum = |rate: fn(&OperationRow) -> f64| operations.iter().map(rate).sum::<f64>();
    let sum_tables = |rate: fn(&TableRow) -> f64| tables.iter().map(rate).sum::<f64>();
    let second = format!(
        "{} requests/s  {} failed/s  {} read units/s  {} write units/s  {} throttled/s",
        rate(sum(|row| row.requests)),
        rate(sum(|row| row.failed)),
        rate(sum_tables(|row| row.read_units)),
        rate(sum_tables(|row| row.write_units)),
        rate(sum_tables(|row| row.throttled)),
    );
    vec![first, second]
}

/// An operation in the interval; all figures but latencies are per second.
struct OperationRow {
    name: String,
    requests: f64,
    failed: f64,
    mean_us: Option<f64>,
    /// Half of the requests, and all but one in a hundred, took no longer.
    percentiles: [Percentile; 2],
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Percentile {
    None,
    UpTo(u64),
    /// Longer than the last bucket's bound.
    Over(u64),
}

fn operations(before: &Sample, after: &Sample, seconds: f64, sort: Sort) -> Vec<OperationRow> {
    let nothing = OperationSample::default();
    let row = |now: &OperationSample| {
        let then = before.operations.iter().find(|it| it.name == now.name).unwrap_or(&nothing);
        let requests = now.requests.saturating_sub(then.requests);
        let elapsed_us = now.elapsed_us.saturating_sub(then.elapsed_us);
        let then_bucket = |index: usize| then.buckets.get(index).copied().unwrap_or_default();
        let buckets: Vec<u64> = now
            .buckets
            .iter()
            .enumerate()
            .map(|(index, count)| count.saturating_sub(then_bucket(index)))
            .collect();
        OperationRow {
            name: now.name.clone(),
            requests: per_second(requests as f64, seconds),
            failed: per_second(now.failed.saturating_sub(then.failed) as f64, seconds),
            mean_us: mean(elapsed_us, requests),
            percentiles: [0.5, 0.99]
                .map(|share| percentile(&buckets, &after.bounds_us, requests, share)),
        }
    };
    let mut rows: Vec<OperationRow> = after.operations.iter().map(row).collect();
    rows.sort_by(|left, right| left.name.cmp(&right.name));
    match sort {
        Sort::Name => {}
        Sort::Latency => rows.sort_by_key(|row| Reverse(ordered(row.mean_us.unwrap_or_default()))),
        Sort::Units | Sort::Requests | Sort::Throttled => {
            rows.sort_by_key(|row| Reverse(ordered(row.requests)));
        }
    }
    rows
}

fn percentile(buckets: &[u64], bounds_us: &[u64], requests: u64, share: f64) -> Percentile {
    if requests == 0 {
        return Percentile::None;
    }
    let wanted = (requests as f64 * share).ceil() as u64;
    let mut reached = 0;
    for (count, bound) in buckets.iter().zip(bounds_us) {
        reached += count;
        if reached >= wanted {
            return Percentile::UpTo(*bound);
        }
    }
    bounds_us.last().map_or(Percentile::None, |bound| Percentile::Over(*bound))
}

fn operation_heading() -> String {
    let [p50, p99] = ["P50 UP TO", "P99 UP TO"];
    format!("{:<32}{:>10}{:>10}{p50:>12}{p99:>12}{:>12}", "OPERATION", "REQ/S", "FAILED/S", "MEAN")
}

impl OperationRow {
    fn line(&self) -> String {
        let [p50, p99] = self.percentiles.map(|percentile| match percentile {
            Percentile::None => "-".to_owned(),
            Percentile::UpTo(bound) => latency(bound as f64),
            Percentile::Over(bound) => format!("> {}", latency(bound as f64)),
        });
        format!(
            "{:<32}{:>10}{:>10}{p50:>12}{p99:>12}{:>12}",
            self.name,
            rate(self.requests),
            rate(self.failed),
            self.mean_us.map_or_else(|| "-".to_owned(), latency),
        )
    }
}

/// A table or an index in the interval; all figures but the mean are per second.
struct TableRow {
    name: String,
    requests: f64,
    read_units: f64,
    write_units: f64,
    throttled: f64,
    mean_us: Option<f64>,
}

const TABLE_COLUMNS_WIDTH: usize = 10 + 12 + 12 + 13 + 12;

fn tables(before: &Sample, after: &Sample, seconds: f64, sort: Sort) -> Vec<TableRow> {
    let nothing = TableSample::default();
    let row = |now: &TableSample| {
        let then = before.tables.iter().find(|it| it.name == now.name).unwrap_or(&nothing);
        let requests = now.requests.saturating_sub(then.requests);
        let throttled = now.throttle_events.saturating_sub(then.throttle_events);
        TableRow {
            name: now.name.clone(),
            requests: per_second(requests as f64, seconds),
            read_units: per_second((now.read_units - then.read_units).max(0.0), seconds),
            write_units: per_second((now.write_units - then.write_units).max(0.0), seconds),
            throttled: per_second(throttled as f64, seconds),
            mean_us: mean(now.elapsed_us.saturating_sub(then.elapsed_us), requests),
        }
    };
    let mut rows: Vec<TableRow> = after.tables.iter().map(row).collect();
    rows.sort_by(|left, right| left.name.cmp(&right.name));
    let measure = |row: &TableRow| match sort {
        Sort::Units => row.read_units + row.write_units,
        Sort::Requests => row.requests,
        Sort::Throttled => row.throttled,
        Sort::Latency => row.mean_us.unwrap_or_default(),
        Sort::Name => 0.0,
    };
    rows.sort_by_key(|row| Reverse(ordered(measure(row))));
    rows
}

fn table_heading(width: usize) -> String {
    format!(
        "{:<width$}{:>10}{:>12}{:>12}{:>13}{:>12}",
        "TABLE OR INDEX", "REQ/S", "READ/S", "WRITTEN/S", "THROTTLED/S", "MEAN"
    )
}

impl TableRow {
    fn line(&self, width: usize) -> String {
        format!(
            "{:<width$}{:>10}{:>12}{:>12}{:>13}{:>12}",
            shortened(&self.name, width - 1),
            rate(self.requests),
            rate(self.read_units),
            rate(self.write_units),
            rate(self.throttled),
            self.mean_us.map_or_else(|| "-".to_owned(), latency),
        )
    }
}

const KEY_TABLE_WIDTH: usize = 24;
const KEY_COLUMNS_WIDTH: usize = KEY_TABLE_WIDTH + 10 + 10 + 10 + 11;

fn keys(after: &Sample, sort: Sort) -> Vec<HotKey> {
    let mut keys = after.keys.clone();
    match sort {
        // The server sends the hottest first.
        Sort::Units | Sort::Latency => {}
        Sort::Requests => keys.sort_by_key(|key| Reverse(key.accesses)),
        Sort::Throttled => keys.sort_by_key(|key| Reverse(key.throttle_events)),
        Sort::Name => {
            keys.sort_by(|left, right| (&left.table, &left.key).cmp(&(&right.table, &right.key)));
        }
    }
    keys
}

fn key_heading(width: usize) -> String {
    format!(
        "{:<width$}{:<KEY_TABLE_WIDTH$}{:>10}{:>10}{:>10}{:>11}",
        "PARTITION KEY", "TABLE OR INDEX", "ACCESSES", "READ", "WRITTEN", "THROTTLED"
    )
}

fn key_line(key: &HotKey, width: usize) -> String {
    format!(
        "{:<width$}{:<KEY_TABLE_WIDTH$}{:>10}{:>10}{:>10}{:>11}",
        shortened(&key.key, width - 1),
        shortened(&key.table, KEY_TABLE_WIDTH - 1),
        key.accesses,
        key.read_units,
        key.write_units,
        key.throttle_events,
    )
}

fn per_second(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

fn mean(elapsed_us: u64, requests: u64) -> Option<f64> {
    (requests > 0).then(|| elapsed_us as f64 / requests as f64)
}

/// A figure that can be sorted by.
fn ordered(figure: f64) -> u64 {
    (figure * 1e3) as u64
}

fn rate(rate: f64) -> String {
    if rate < 99.95 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

fn latency(microseconds: f64) -> String {
    if microseconds < 999.5 {
        format!("{microseconds:.0} µs")
    } else if microseconds < 999_950.0 {
        format!("{:.1} ms", microseconds / 1e3)
    } else {
        format!("{:.1} s", microseconds / 1e6)
    }
}

fn bytes(count: u64) -> String {
    match count {
        0..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

/// At most this many characters, with an ellipsis if there were more.
fn shortened(text: &str, width: usize) -> String {
    let mut text = text.to_owned();
    if text.chars().count() > width {
        cut(&mut text, width.saturating_sub(1));
        text.push('…');
    }
    text
}

fn cut(text: &mut String, width: usize) {
    if let Some((end, _)) = text.char_indices().nth(width) {
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests;
