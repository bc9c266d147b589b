//! What the metrics of an alarm say about its state now.

use std::sync::Arc;

use zenobe_engine::schema::Namespace;

use super::super::error::CloudWatchError;
use super::super::math::Points;
use super::super::queries::{self, MetricDataQuery, MetricStatistic, QuerySource, TimeSpan};
use super::super::storage::{Range, Storage};
use super::configuration::{AlarmInput, Configuration};
use super::missing_data::{EXTRA_PERIODS, judge, missing_data};
use super::reason::Evidence;
use super::{Alarm, AlarmState};

const MINUTE_MS: u64 = 60_000;
/// How many samples a percentile needs to be significant: this many on each side of it.
const SAMPLES_BESIDE_PERCENTILE: f64 = 10.0;

/// The state that an alarm should be in by the data before `end_ms`, if it changes.
pub async fn next_state(
    storage: &Storage,
    namespace: &Arc<Namespace>,
    alarm: &Alarm,
    end_ms: u64,
) -> Result<Option<AlarmState>, CloudWatchError> {
    let configuration = &alarm.configuration;
    let period_ms = configuration.target.period_s() * 1_000;
    let periods = configuration.evaluation_periods + EXTRA_PERIODS;
    // Windows slide from minute to minute, whatever the period is. Expressions read their metrics in
    // periods that begin at multiples of their length.
    let end_ms = match &configuration.target {
        AlarmInput::Metric(_) => end_ms - end_ms % period_ms.min(MINUTE_MS),
        AlarmInput::Queries(_) => end_ms - end_ms % period_ms,
    };
    let span = TimeSpan { from_ms: end_ms.saturating_sub(periods * period_ms), to_ms: end_ms };
    let Some(points) = read(storage, namespace, configuration, span).await? else {
        return Ok(None);
    };
    let starts: Vec<u64> = (0..periods).map(|it| span.from_ms + it * period_ms).collect();
    let values: Vec<Option<f64>> = starts.iter().map(|at| points.get(at).copied()).collect();
    let missing_data = missing_data(configuration);
    let judged = judge(configuration, missing_data, &values);
    let Some(to) = judged.filter(|to| *to != alarm.state.value) else {
        return Ok(None);
    };
    let real = starts.iter().zip(values).rev().filter_map(|(at, value)| Some((*at, value?)));
    let needed = usize::try_from(configuration.evaluation_periods).unwrap_or(usize::MAX);
    let real: Vec<(u64, f64)> = real.take(needed).collect();
    let now_ms = storage.now_ms();
    let missing = configuration.evaluation_periods - real.len() as u64;
    let evidence = Evidence { configuration, to, points: &real, missing, now_ms };
    Ok(Some(AlarmState {
        value: to,
        reason: evidence.text(),
        reason_data: Some(evidence.data()),
        updated_ms: now_ms,
        transitioned_ms: now_ms,
    }))
}

/// The values by period; `None` if there are too few samples for the alarm's percentile.
async fn read(
    storage: &Storage,
    namespace: &Arc<Namespace>,
    configuration: &Configuration,
    span: TimeSpan,
) -> Result<Option<Points>, CloudWatchError> {
    match &configuration.target {
        AlarmInput::Metric(metric) => {
            let ignores_few = configuration.low_sample_count.as_deref() == Some("ignore");
            read_metric(storage, namespace, metric, span, ignores_few).await
        }
        AlarmInput::Queries(queries) => {
            let series = queries::evaluate(storage, namespace, queries, span).await?;
            let returned = queries.iter().zip(series).find(|(query, _)| query.returns_data);
            let series = returned.map(|(_, series)| series).unwrap_or_default();
            Ok(series.into_iter().next().or_else(|| Some(Points::new())))
        }
    }
}

async fn read_metric(
    storage: &Storage,
    namespace: &Arc<Namespace>,
    metric: &MetricStatistic,
    span: TimeSpan,
    ignores_few: bool,
) -> Result<Option<Points>, CloudWatchError> {
    let TimeSpan { from_ms, to_ms } = span;
    let range = Range { metric: &metric.metric, unit: metric.unit, from_ms, to_ms };
    let periods = storage.read_merged(namespace, range, metric.period_s * 1_000).await?;
    let mut points = Points::new();
    for (at_ms, statistics) in periods {
        if ignores_few && statistics.count < samples_needed(metric) {
            return Ok(None);
        }
        points.extend(statistics.get(metric.statistic).map(|value| (at_ms, value)));
    }
    Ok(Some(points))
}

/// As documented: ten divided by the share beyond the percentile.
fn samples_needed(metric: &MetricStatistic) -> f64 {
    use super::super::statistics::Statistic;
    match metric.statistic {
        Statistic::Percentile(hundredths) => {
            let share = f64::from(hundredths) / 10_000.0;
            SAMPLES_BESIDE_PERCENTILE / if share < 0.5 { share } else { 1.0 - share }.max(0.0001)
        }
        _ => 0.0,
    }
}

/// Whether the alarm watches this metric itself, for DescribeAlarmsForMetric. As on AWS, an alarm over an
/// expression that uses the metric does not.
pub fn watches(alarm: &Alarm, passes: impl Fn(&MetricStatistic) -> bool) -> bool {
    match &alarm.configuration.target {
        AlarmInput::Metric(metric) => passes(metric),
        AlarmInput::Queries(queries) => match queries.as_slice() {
            [MetricDataQuery { source: QuerySource::Metric(metric), .. }] => passes(metric),
            _ => false,
        },
    }
}
