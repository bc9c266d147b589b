//! GetMetricStatistics.

use super::super::error::CloudWatchError;
use super::super::metric::{Metric, Unit};
use super::super::queries::read_period;
use super::super::statistics::{SIMPLE, Statistic, StatisticSet};
use super::super::storage::Range;
use super::super::storage::keys::MINUTE_MS;
use super::super::wire::{Members, Structure, Value};
use super::{Answered, Call};

const POINTS_MAX: u64 = 1_440;

pub async fn answer(call: Call<'_>) -> Answered {
    let members = call.members;
    let metric = Metric::read(members)?;
    let from_ms = members.required_timestamp_ms("StartTime")?;
    let to_ms = members.required_timestamp_ms("EndTime")?;
    if from_ms >= to_ms {
        let message = "The parameter StartTime must be less than the parameter EndTime.";
        return Err(CloudWatchError::invalid(message));
    }
    let period_ms =
        read_period(members)?.ok_or_else(|| CloudWatchError::missing("Period"))? * 1_000;
    let unit = Unit::read(members)?;
    let (names, extended) = read_statistics(members)?;
    let periods = (to_ms - from_ms).div_ceil(period_ms);
    if periods > POINTS_MAX {
        return Err(CloudWatchError::combination(format!(
            "You have requested up to {periods} datapoints, which exceeds the limit of {POINTS_MAX}. You may reduce the datapoints requested by increasing Period, or decreasing the time range."
        )));
    }
    // Periods count from the minute in which the time begins.
    let from_ms = from_ms - from_ms % MINUTE_MS.min(period_ms);
    let range = Range { metric: &metric, unit, from_ms, to_ms };
    let points = call.cloudwatch.storage.read(call.namespace, range, period_ms).await?;
    let points = points
        .iter()
        .map(|((at_ms, unit), statistics)| render(*at_ms, *unit, statistics, &names, &extended));
    Ok(Some(vec![
        ("Label".into(), Value::from(metric.name.as_str())),
        ("Datapoints".into(), Value::structures(points)),
    ]))
}

/// The names of simple statistics, or of percentiles.
fn read_statistics(members: Members<'_>) -> Result<(Vec<String>, Vec<String>), CloudWatchError> {
    let names = members.texts("Statistics")?.unwrap_or_default();
    let extended = members.texts("ExtendedStatistics")?.unwrap_or_default();
    if names.is_empty() == extended.is_empty() {
        let message = "Must specify either Statistics or ExtendedStatistics";
        return Err(CloudWatchError::combination(message));
    }
    if extended.len() > 10 || names.len() > 5 {
        return Err(CloudWatchError::invalid("There are too many statistics."));
    }
    for name in &names {
        Statistic::simple(name)
            .ok_or_else(|| CloudWatchError::not_in_set("statistics", name, &SIMPLE))?;
    }
    extended.iter().try_for_each(|name| Statistic::extended(name).map(drop))?;
    Ok((names, extended))
}

fn render(
    at_ms: u64,
    unit: Unit,
    statistics: &StatisticSet,
    names: &[String],
    extended: &[String],
) -> Structure {
    let mut members: Structure = vec![("Timestamp".into(), Value::time(at_ms))];
    for name in SIMPLE.into_iter().filter(|name| names.iter().any(|asked| asked == name)) {
        let value = Statistic::simple(name).and_then(|statistic| statistics.get(statistic));
        members.extend(value.map(|value| (name.into(), Value::Float(value))));
    }
    members.push(("Unit".into(), Value::from(unit.name())));
    let percentile = |name: &String| {
        let value = statistics.get(Statistic::extended(name).ok()?)?;
        Some((name.clone(), Value::Float(value)))
    };
    if !extended.is_empty() {
        let percentiles: Vec<(String, Value)> = extended.iter().filter_map(percentile).collect();
        members.push(("ExtendedStatistics".into(), Value::Dictionary(percentiles)));
    }
    members
}
