//! PutMetricData: metrics of the caller's own.

use super::super::distribution::Distribution;
use super::super::error::{CloudWatchError, CloudWatchErrorKind};
use super::super::metric::{Dimension, Metric, Unit};
use super::super::statistics::StatisticSet;
use super::super::storage::{Point, TooManySeries};
use super::super::wire::Members;
use super::{Answered, Call};

const METRICS_MAX: usize = 1_000;
const VALUES_MAX: usize = 150;
const HOUR_MS: u64 = 60 * 60 * 1_000;
const FUTURE_MS_MAX: u64 = 2 * HOUR_MS;
const PAST_MS_MAX: u64 = 14 * 24 * HOUR_MS;
/// CloudWatch accepts values between -2^360 and 2^360.
const EXPONENT_MAX: i32 = 360;

pub async fn answer(call: Call<'_>) -> Answered {
    let namespace = call.members.required_text("Namespace")?;
    if namespace.starts_with("AWS/") {
        let message = "The value AWS/ for parameter Namespace is invalid.";
        return Err(CloudWatchError::invalid(message));
    }
    if call.members.has("EntityMetricData") {
        return Err(CloudWatchError::unsupported("The parameter EntityMetricData"));
    }
    let data = call.members.structures("MetricData")?;
    if data.is_empty() {
        return Err(CloudWatchError::missing("MetricData"));
    }
    if data.len() > METRICS_MAX {
        let message =
            format!("The collection MetricData must not have a size greater than {METRICS_MAX}.");
        return Err(CloudWatchError::invalid(message));
    }
    let now_ms = call.cloudwatch.now_ms();
    let read = |(position, datum): (usize, &Members<'_>)| {
        read_datum(*datum, position + 1, namespace, now_ms)
    };
    let points =
        data.iter().enumerate().map(read).collect::<Result<Vec<Point>, CloudWatchError>>()?;
    match call.cloudwatch.storage.add(call.namespace, &points).await? {
        Ok(()) => Ok(None),
        Err(TooManySeries) => {
            let message = "There are too many metrics; those that are new were not stored.";
            Err(CloudWatchError::new(CloudWatchErrorKind::LimitExceeded, message))
        }
    }
}

/// Reads the datum with this number, counted from 1.
fn read_datum(
    datum: Members<'_>,
    number: usize,
    namespace: &str,
    now_ms: u64,
) -> Result<Point, CloudWatchError> {
    let name = datum.required_text("MetricName")?;
    let metric = Metric::with(namespace, name, Dimension::read_all(datum)?)?;
    metric.check_namespace()?;
    Dimension::check_all(datum)?;
    if let Some(resolution) = datum.integer("StorageResolution")?
        && ![1, 60].contains(&resolution)
    {
        return Err(CloudWatchError::invalid("The parameter StorageResolution must be 1 or 60."));
    }
    let at_ms = datum.timestamp_ms("Timestamp")?.unwrap_or(now_ms);
    if at_ms > now_ms + FUTURE_MS_MAX || at_ms.saturating_add(PAST_MS_MAX) < now_ms {
        return Err(CloudWatchError::invalid(format!(
            "The parameter MetricData.member.{number}.Timestamp must specify a time within the past two weeks and no more than two hours in the future."
        )));
    }
    let unknown_unit = || {
        let units = Unit::listed();
        CloudWatchError::invalid(format!(
            "The parameter MetricData.member.{number}.Unit must be a value in the set [ {units} ]."
        ))
    };
    let unit = match datum.text("Unit")? {
        None => Unit::NONE,
        Some(name) => Unit::parse(name).ok_or_else(unknown_unit)?,
    };
    Ok(Point { metric, unit, at_ms, statistics: read_statistics(datum)? })
}

fn read_statistics(datum: Members<'_>) -> Result<StatisticSet, CloudWatchError> {
    let value = datum.number("Value")?;
    let set = datum.structure("StatisticValues")?;
    let values = datum.numbers("Values")?.filter(|values| !values.is_empty());
    match (value, set, values) {
        (Some(value), None, None) => {
            check_value(value)?;
            Ok(StatisticSet::uniform(value, 1.0))
        }
        (None, Some(set), None) => read_set(set),
        (None, None, Some(values)) => read_values(&values, datum.numbers("Counts")?),
        (None, None, None) => Err(CloudWatchError::combination(
            "At least one of the parameters must be specified: Value, Values, StatisticValues.",
        )),
        _ => Err(CloudWatchError::combination(
            "The parameters Value, Values and StatisticValues are mutually exclusive and you have specified more than one.",
        )),
    }
}

fn read_set(set: Members<'_>) -> Result<StatisticSet, CloudWatchError> {
    let count = set.required_number("SampleCount")?;
    let sum = set.required_number("Sum")?;
    let min = set.required_number("Minimum")?;
    let max = set.required_number("Maximum")?;
    [count, sum, min, max].into_iter().try_for_each(check_value)?;
    if count <= 0.0 {
        let message = "The parameter StatisticValues.SampleCount must be greater than 0.";
        return Err(CloudWatchError::invalid(message));
    }
    if min > max {
        let message = "The parameter StatisticValues.Minimum must not be greater than Maximum.";
        return Err(CloudWatchError::invalid(message));
    }
    // The distribution is known only if all values are the same.
    let is_uniform = min == max && sum == min * count;
    let distribution = Distribution::of(min, count).filter(|_| is_uniform);
    Ok(StatisticSet { count, sum, min, max, distribution })
}

fn read_values(values: &[f64], counts: Option<Vec<f64>>) -> Result<StatisticSet, CloudWatchError> {
    let counts = counts.unwrap_or_else(|| vec![1.0; values.len()]);
    if values.len() > VALUES_MAX {
        let message =
            format!("The collection Values must not have a size greater than {VALUES_MAX}.");
        return Err(CloudWatchError::invalid(message));
    }
    if counts.len() != values.len() {
        let message = "The parameters Values and Counts must be of the same size.";
        return Err(CloudWatchError::invalid(message));
    }
    values.iter().chain(&counts).copied().try_for_each(check_value)?;
    if counts.iter().any(|count| *count <= 0.0) {
        return Err(CloudWatchError::invalid(
            "The parameter Counts must have values greater than 0.",
        ));
    }
    let pairs = || values.iter().copied().zip(counts.iter().copied());
    Ok(StatisticSet {
        count: counts.iter().sum(),
        sum: pairs().map(|(value, count)| value * count).sum(),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        distribution: Distribution::from_values(pairs()),
    })
}

fn check_value(value: f64) -> Result<(), CloudWatchError> {
    match value.abs() <= 2f64.powi(EXPONENT_MAX) {
        true => Ok(()),
        // NaN comes here too.
        false => Err(CloudWatchError::invalid(format!(
            "The value {value} for parameter MetricData.member.N.Value is invalid: it must be a number between -2^360 and 2^360."
        ))),
    }
}
