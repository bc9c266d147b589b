//! PutMetricAlarm: creates an alarm, or replaces the configuration of one and keeps its state.

use zenobe_engine::lease::Lease;

use super::super::alarms::configuration::Configuration;
use super::super::alarms::history::HistoryItem;
use super::super::alarms::{ALARMS_MAX, Alarm, AlarmState};
use super::super::error::{CloudWatchError, CloudWatchErrorKind};
use super::super::metric::{Dimension, check_length};
use super::super::wire::Members;
use super::{Answered, Call, tags};

pub async fn answer(call: Call<'_>) -> Answered {
    let name = call.members.required_text("AlarmName")?;
    check_length("AlarmName", name, 255)?;
    if name.chars().any(|it| it.is_ascii_control()) {
        return Err(CloudWatchError::invalid(
            "The value of AlarmName must not have control characters.",
        ));
    }
    let configuration = Configuration::read(call.members)?;
    configuration.check_limits()?;
    check_dimensions(call.members)?;
    let given_tags = tags::read(call.members)?;
    let alarms = &call.cloudwatch.alarms;
    if alarms.get(call.namespace, name).await?.is_none()
        && alarms.count(call.namespace).await? >= ALARMS_MAX
    {
        let message = format!("The maximum limit of {ALARMS_MAX} alarms exceeded");
        return Err(CloudWatchError::new(CloudWatchErrorKind::LimitExceeded, message));
    }
    let now_ms = call.cloudwatch.now_ms();
    let put = |known: Option<&Alarm>| {
        Some(Alarm {
            name: name.to_owned(),
            configuration: configuration.clone(),
            configured_ms: now_ms,
            state: known.map_or_else(|| AlarmState::initial(now_ms), |known| known.state.clone()),
            // An alarm that exists keeps its tags, whatever tags come with the request.
            tags: known.map_or_else(|| given_tags.clone(), |known| known.tags.clone()),
        })
    };
    let lease = Lease::default();
    let (before, after) = alarms.change(call.namespace, name, &lease, put).await?;
    if let Some(alarm) = after {
        let what = if before.is_some() { "Update" } else { "Create" };
        let item = HistoryItem::configured(&alarm, what, now_ms);
        alarms.record(call.namespace, &lease, &[item]).await?;
    }
    Ok(None)
}

/// Checks the dimensions of the alarm's metric, or of all its metrics.
fn check_dimensions(members: Members<'_>) -> Result<(), CloudWatchError> {
    Dimension::check_all(members)?;
    for query in members.structures("Metrics")? {
        if let Some(statistic) = query.structure("MetricStat")?
            && let Some(metric) = statistic.structure("Metric")?
        {
            Dimension::check_all(metric)?;
        }
    }
    Ok(())
}
