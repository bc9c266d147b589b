//! The alarms that belong to the scaling policies of tables. Another service keeps the policies and does
//! what their alarms ask for. Here they are only shown, in the state that follows from their metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use zenobe_engine::error::Result;
use zenobe_engine::schema::Namespace;

use super::alarms::configuration::{AlarmInput, Comparison, Configuration};
use super::alarms::next_state::next_state;
use super::alarms::{Alarm, AlarmState};
use super::error::CloudWatchError;
use super::metric::Metric;
use super::operations::Call;
use super::queries::MetricStatistic;
use super::statistics::Statistic;

const MINUTE_MS: u64 = 60_000;

/// An alarm on a metric of a table or a global index.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyAlarm {
    pub name: String,
    pub description: String,
    /// The ARN of the policy.
    pub action: String,
    pub configured_ms: u64,
    pub table: String,
    pub index: Option<String>,
    pub metric: &'static str,
    pub is_average: bool,
    pub period_s: u64,
    pub periods: u64,
    pub threshold: f64,
    /// Whether it tells of values above its threshold, rather than below.
    pub is_high: bool,
}

pub trait PolicyAlarms: Send + Sync {
    fn alarms<'a>(
        &'a self,
        namespace: &'a Arc<Namespace>,
    ) -> BoxFuture<'a, Result<Vec<PolicyAlarm>>>;
}

/// Up to `alarms_max` alarms of policies that pass both filters, in the order of their names. Only those
/// that pass the first one are evaluated.
pub async fn list(
    call: Call<'_>,
    alarms_max: usize,
    is_wanted: impl Fn(&Alarm) -> bool,
    is_in_state: impl Fn(&Alarm) -> bool,
) -> Result<Vec<Alarm>, CloudWatchError> {
    let Some(policies) = &call.cloudwatch.policies else { return Ok(Vec::new()) };
    let storage = &call.cloudwatch.storage;
    let all = policies.alarms(call.namespace).await?;
    let mut wanted: Vec<Alarm> = all.into_iter().map(Alarm::from).filter(is_wanted).collect();
    wanted.sort_by(|one, other| one.name.cmp(&other.name));
    let now_ms = storage.now_ms();
    let mut found = Vec::new();
    for mut alarm in wanted {
        if found.len() == alarms_max {
            break;
        }
        let end_ms = now_ms - now_ms % MINUTE_MS;
        if let Some(state) = next_state(storage, call.namespace, &alarm, end_ms).await? {
            alarm.state = state;
        }
        if is_in_state(&alarm) {
            found.push(alarm);
        }
    }
    Ok(found)
}

impl From<PolicyAlarm> for Alarm {
    fn from(alarm: PolicyAlarm) -> Alarm {
        let mut dimensions = vec![("TableName", alarm.table.as_str())];
        let index = alarm.index.as_deref();
        dimensions.extend(index.map(|index| ("GlobalSecondaryIndexName", index)));
        let (statistic, statistic_name) = match alarm.is_average {
            true => (Statistic::Average, "Average"),
            false => (Statistic::Sum, "Sum"),
        };
        let metric = MetricStatistic {
            metric: Metric::dynamodb(alarm.metric, &dimensions),
            period_s: alarm.period_s,
            statistic,
            statistic_name: statistic_name.to_owned(),
            unit: None,
        };
        let configuration = Configuration {
            description: Some(alarm.description),
            actions_enabled: true,
            ok_actions: Vec::new(),
            alarm_actions: vec![alarm.action],
            insufficient_data_actions: Vec::new(),
            target: AlarmInput::Metric(metric),
            evaluation_periods: alarm.periods,
            datapoints_to_alarm: None,
            threshold: alarm.threshold,
            comparison: if alarm.is_high { Comparison::Greater } else { Comparison::Less },
            missing_data: None,
            low_sample_count: None,
        };
        Alarm {
            name: alarm.name,
            configuration,
            configured_ms: alarm.configured_ms,
            state: AlarmState::initial(alarm.configured_ms),
            tags: BTreeMap::new(),
        }
    }
}
