//! The operations of CloudWatch, by name.

mod alarm_actions;
mod alarm_history;
mod delete_alarms;
mod describe_alarms;
mod get_insight_rule_report;
mod get_metric_data;
mod get_metric_statistics;
mod labels;
mod list_metrics;
mod put_metric_alarm;
mod put_metric_data;
mod set_alarm_state;
mod tags;
mod tokens;

use std::sync::Arc;

use zenobe_engine::schema::Namespace;

use super::CloudWatch;
use super::error::{CloudWatchError, CloudWatchErrorKind};
use super::wire::{Members, Structure};

/// What operations work with.
#[derive(Clone, Copy)]
pub(super) struct Call<'c> {
    pub cloudwatch: &'c CloudWatch,
    pub namespace: &'c Arc<Namespace>,
    pub members: Members<'c>,
}

/// What an operation answers. `None` is the answer of operations that have no result.
type Answered = Result<Option<Structure>, CloudWatchError>;

/// The operations that are implemented.
pub const OPERATIONS: [&str; 16] = [
    "DeleteAlarms",
    "DescribeAlarmHistory",
    "DescribeAlarms",
    "DescribeAlarmsForMetric",
    "DisableAlarmActions",
    "EnableAlarmActions",
    "GetInsightRuleReport",
    "GetMetricData",
    "GetMetricStatistics",
    "ListMetrics",
    "ListTagsForResource",
    "PutMetricAlarm",
    "PutMetricData",
    "SetAlarmState",
    "TagResource",
    "UntagResource",
];

pub(super) async fn answer(call: Call<'_>, operation: &str) -> Answered {
    match operation {
        "DeleteAlarms" => delete_alarms::answer(call).await,
        "DescribeAlarmHistory" => alarm_history::answer(call).await,
        "DescribeAlarms" => describe_alarms::answer(call).await,
        "DescribeAlarmsForMetric" => describe_alarms::answer_for_metric(call).await,
        "DisableAlarmActions" => alarm_actions::answer(call, false).await,
        "EnableAlarmActions" => alarm_actions::answer(call, true).await,
        "GetInsightRuleReport" => get_insight_rule_report::answer(call).await,
        "GetMetricData" => get_metric_data::answer(call).await,
        "GetMetricStatistics" => get_metric_statistics::answer(call).await,
        "ListMetrics" => list_metrics::answer(call).await,
        "ListTagsForResource" => tags::list(call).await,
        "PutMetricAlarm" => put_metric_alarm::answer(call).await,
        "PutMetricData" => put_metric_data::answer(call).await,
        "SetAlarmState" => set_alarm_state::answer(call).await,
        "TagResource" => tags::tag(call).await,
        "UntagResource" => tags::untag(call).await,
        _ => Err(CloudWatchError::new(
            CloudWatchErrorKind::UnknownOperation,
            format!("The operation {operation} of CloudWatch is not supported by Zenobe."),
        )),
    }
}
