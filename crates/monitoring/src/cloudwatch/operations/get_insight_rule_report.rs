//! GetInsightRuleReport, for the rules of Contributor Insights for DynamoDB.
//!
//! Keys are counted for the last minutes only, so a report has one period: whatever of the time asked
//! for is still counted.

use super::super::error::{CloudWatchError, CloudWatchErrorKind};
use super::super::insights::InsightReport;
use super::super::storage::keys::MINUTE_MS;
use super::super::wire::{Structure, Value};
use super::{Answered, Call};

const CONTRIBUTORS_MAX: i64 = 100;
const CONTRIBUTORS_DEFAULT: i64 = 10;

pub async fn answer(call: Call<'_>) -> Answered {
    let members = call.members;
    let rule = members.required_text("RuleName")?;
    let from_ms = members.required_timestamp_ms("StartTime")?;
    let to_ms = members.required_timestamp_ms("EndTime")?;
    members.integer("Period")?.ok_or_else(|| CloudWatchError::missing("Period"))?;
    let contributors_max = members.integer("MaxContributorCount")?.unwrap_or(CONTRIBUTORS_DEFAULT);
    if !(1..=CONTRIBUTORS_MAX).contains(&contributors_max) {
        let message = format!("MaxContributorCount must be between 1 and {CONTRIBUTORS_MAX}.");
        return Err(CloudWatchError::invalid(message));
    }
    if from_ms >= to_ms {
        let message = "The parameter StartTime must be less than the parameter EndTime.";
        return Err(CloudWatchError::invalid(message));
    }
    let report = match &call.cloudwatch.insights {
        Some(insights) => insights.report(call.namespace, rule).await,
        None => None,
    };
    let Some(mut report) = report else {
        let message = format!("The rule {rule} does not exist.");
        return Err(CloudWatchError::new(CloudWatchErrorKind::ResourceNotFoundException, message));
    };
    if report.to_ms < from_ms || report.from_ms >= to_ms {
        report.contributors.clear();
    }
    let metrics = members.texts("Metrics")?.unwrap_or_default();
    Ok(Some(render(&report, contributors_max as usize, &metrics)))
}

fn render(report: &InsightReport, contributors_max: usize, metrics: &[String]) -> Structure {
    let at = Value::time(report.from_ms - report.from_ms % MINUTE_MS);
    let total: f64 = report.contributors.iter().map(|it| it.value).sum();
    let shown = report.contributors.iter().take(contributors_max).map(|it| -> Structure {
        let point: Structure = vec![
            ("Timestamp".into(), at.clone()),
            ("ApproximateValue".into(), Value::Float(it.value)),
        ];
        vec![
            ("Keys".into(), Value::texts(&it.keys)),
            ("ApproximateAggregateValue".into(), Value::Float(it.value)),
            ("Datapoints".into(), Value::structures([point])),
        ]
    });
    let mut result: Structure = vec![
        ("KeyLabels".into(), Value::texts(&report.key_labels)),
        ("AggregationStatistic".into(), Value::from("Sum")),
        ("AggregateValue".into(), Value::Float(total)),
        ("ApproximateUniqueCount".into(), Value::Integer(report.contributors.len() as i64)),
        ("Contributors".into(), Value::structures(shown)),
    ];
    if !metrics.is_empty() && !report.contributors.is_empty() {
        let count = report.contributors.len() as f64;
        let values = || report.contributors.iter().map(|it| it.value);
        let max = values().fold(f64::MIN, f64::max);
        let known = [
            ("UniqueContributors", count),
            ("MaxContributorValue", max),
            ("SampleCount", count),
            ("Sum", total),
            ("Minimum", values().fold(f64::MAX, f64::min)),
            ("Maximum", max),
            ("Average", total / count),
        ];
        let mut point: Structure = vec![("Timestamp".into(), at.clone())];
        let asked = known.into_iter().filter(|(name, _)| metrics.iter().any(|it| it == name));
        point.extend(asked.map(|(name, value)| (name.into(), Value::Float(value))));
        result.push(("MetricDatapoints".into(), Value::structures([point])));
    }
    result
}
