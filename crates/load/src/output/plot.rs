//! Latency by percentile, and throughput and latency over time.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::chart::{Axis, Panel, SERIES_MAX, Series, document};
use super::{human_count, human_time};
use crate::{Interval, Pacing, Plan, Report};

const CURVE_STEPS: u32 = 20;

/// A self-contained SVG document.
pub fn plot(plan: &Plan, report: &Report) -> String {
    let title = format!(
        "{} on {}: {} requests/s",
        plan.workload,
        plan.target,
        human_count(report.requests_per_second() as u64)
    );
    let panels =
        [percentiles(plan, report), throughput(&report.intervals), latencies(&report.intervals)];
    document(&title, &panels)
}

/// The axis counts nines: each step to the right is ten times rarer.
fn percentiles(plan: &Plan, report: &Report) -> Panel {
    let mut named: Vec<(String, &Histogram<u64>)> = vec![("latency".into(), &report.latency)];
    if matches!(plan.pacing, Pacing::Open { .. }) {
        named[0].0 = "from scheduled time".into();
        named.push(("from sending".into(), &report.service));
    }
    if report.operations.len() > 1 {
        let operations = report.operations.iter();
        named.extend(operations.map(|each| (each.operation.name().to_owned(), &each.latency)));
    }
    named.truncate(SERIES_MAX);
    let nines_max = (report.latency.len().max(10) as f64).log10().clamp(1.0, 7.0);
    let series: Vec<Series> = named
        .into_iter()
        .map(|(name, latency)| Series { name, area: false, points: curve(latency, nines_max) })
        .collect();
    let ticks = (0..=nines_max as i32).map(|nines| (f64::from(nines), percent_label(nines)));
    Panel {
        title: "latency by percentile".into(),
        x_title: "percentile",
        x: Axis { from: 0.0, to: nines_max, ticks: ticks.collect() },
        y: time_axis(&series),
        series,
    }
}

/// Points of the number of nines and the logarithm of nanoseconds.
fn curve(latency: &Histogram<u64>, nines_max: f64) -> Vec<(f64, f64)> {
    let steps = latency.iter_quantiles(CURVE_STEPS);
    steps
        .map(|step| {
            let nines = -(1.0 - step.quantile_iterated_to()).max(f64::MIN_POSITIVE).log10();
            (nines.min(nines_max), (step.value_iterated_to().max(1) as f64).log10())
        })
        .collect()
}

/// `90 %` for one nine, `99.9 %` for three.
fn percent_label(nines: i32) -> String {
    match nines {
        0 => "0 %".into(),
        1 => "90 %".into(),
        2 => "99 %".into(),
        more => format!("99.{} %", "9".repeat(more as usize - 2)),
    }
}

fn throughput(intervals: &[Interval]) -> Panel {
    let points = over_time(intervals, Interval::requests_per_second);
    let most = points.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let mut series = vec![Series { name: "requests/s".into(), area: true, points }];
    if intervals.iter().any(|interval| interval.errors > 0) {
        let errors = over_time(intervals, |interval| {
            interval.errors as f64 / interval.length.as_secs_f64().max(1e-9)
        });
        series.push(Series { name: "errors/s".into(), area: false, points: errors });
    }
    Panel {
        title: "throughput".into(),
        x_title: "seconds",
        x: seconds_axis(intervals),
        y: Axis::linear(most * 1.1, |rate| human_count(rate as u64)),
        series,
    }
}

fn latencies(intervals: &[Interval]) -> Panel {
    let line = |name: &str, time: fn(&Interval) -> Duration| {
        let points =
            over_time(intervals, |interval| (time(interval).as_nanos().max(1) as f64).log10());
        Series { name: name.into(), area: false, points }
    };
    let series = vec![
        line("p50", |interval| interval.p50),
        line("p99", |interval| interval.p99),
        line("max", |interval| interval.max),
    ];
    Panel {
        title: "latency over time".into(),
        x_title: "seconds",
        x: seconds_axis(intervals),
        y: time_axis(&series),
        series,
    }
}

/// A point in the middle of each interval. The first and last values extend to the edges.
fn over_time(intervals: &[Interval], value: impl Fn(&Interval) -> f64) -> Vec<(f64, f64)> {
    let middle = |interval: &Interval| (interval.start + interval.length / 2).as_secs_f64();
    let mut points: Vec<(f64, f64)> =
        intervals.iter().map(|interval| (middle(interval), value(interval))).collect();
    if let (Some(first), Some(last)) = (points.first().copied(), points.last().copied()) {
        points.insert(0, (0.0, first.1));
        points.push((end_of(intervals), last.1));
    }
    points
}

fn end_of(intervals: &[Interval]) -> f64 {
    intervals.last().map_or(1.0, |last| (last.start + last.length).as_secs_f64())
}

fn seconds_axis(intervals: &[Interval]) -> Axis {
    Axis::linear(end_of(intervals), |seconds| format!("{seconds}"))
}

/// A logarithmic axis for series of logarithms of nanoseconds.
fn time_axis(series: &[Series]) -> Axis {
    let values = || series.iter().flat_map(|series| series.points.iter().map(|point| point.1));
    let least = values().fold(f64::INFINITY, f64::min);
    let most = values().fold(f64::NEG_INFINITY, f64::max);
    let (least, most) = if least.is_finite() { (least, most) } else { (3.0, 6.0) };
    let (from, to) = ((least - 0.1).max(0.0), most + 0.1);
    // A short range leaves space for more than one label per decade.
    let factors: &[f64] = if to - from < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let decades = from.floor() as i32..=to.ceil() as i32;
    let ticks = decades
        .flat_map(|decade| factors.iter().map(move |factor| factor * 10f64.powi(decade)))
        .filter(|nanoseconds| (from..=to).contains(&nanoseconds.log10()))
        .map(|nanoseconds| {
            let time = Duration::from_nanos(nanoseconds.round() as u64);
            (nanoseconds.log10(), tick_label(time))
        });
    Axis { from, to, ticks: ticks.collect() }
}

/// Drops the zeros after the decimal point that a measured time would have.
fn tick_label(time: Duration) -> String {
    human_time(time).replace(".00 ", " ").replace(".0 ", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_labels() {
        let labels =
            |axis: Axis| axis.ticks.into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        let linear = Axis::linear(54_321.0, |value| human_count(value as u64));
        assert_eq!(labels(linear), ["0", "20,000", "40,000"]);
        let points = vec![(0.0, 5.0), (1.0, 6.0)];
        let times = time_axis(&[Series { name: String::new(), area: false, points }]);
        assert_eq!(labels(times), ["100 µs", "200 µs", "500 µs", "1 ms"]);
        assert_eq!(percent_label(4), "99.99 %");
    }
}
