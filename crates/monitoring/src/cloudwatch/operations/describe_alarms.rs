//! DescribeAlarms and DescribeAlarmsForMetric.

use super::super::alarms::next_state::watches;
use super::super::alarms::{Alarm, AlarmPage, StateValue};
use super::super::error::CloudWatchError;
use super::super::metric::{Metric, Unit};
use super::super::policy_alarms;
use super::super::queries::{MetricStatistic, read_period};
use super::super::wire::{Structure, Value};
use super::{Answered, Call, tokens};

const RECORDS_MAX: i64 = 100;
/// DescribeAlarmsForMetric has no pages.
const ALARMS_OF_METRIC_MAX: usize = 500;
const ALARM_TYPES: [&str; 3] = ["CompositeAlarm", "MetricAlarm", "LogAlarm"];

pub async fn answer(call: Call<'_>) -> Answered {
    let members = call.members;
    let names = members.texts("AlarmNames")?;
    let prefix = members.text("AlarmNamePrefix")?;
    if names.is_some() && prefix.is_some() {
        return Err(CloudWatchError::combination(
            "The parameters AlarmNames and AlarmNamePrefix must not be specified together.",
        ));
    }
    for name in ["ChildrenOfAlarmName", "ParentsOfAlarmName"] {
        if members.has(name) {
            return Err(CloudWatchError::unsupported(&format!(
                "The parameter {name} (there are no composite alarms)"
            )));
        }
    }
    let wants_metric_alarms = wants_metric_alarms(call)?;
    let state = read_state(call)?;
    let action_prefix = members.text("ActionPrefix")?;
    let records_max = read_records_max(call)?;
    let after = members.text("NextToken")?.map(tokens::read).transpose()?;
    let after =
        after.map(|after| String::from_utf8(after).map_err(|_| CloudWatchError::next_token()));
    let after = after.transpose()?;
    let is_wanted = |alarm: &Alarm| {
        wants_metric_alarms
            && names.as_ref().is_none_or(|names| names.contains(&alarm.name))
            && prefix.is_none_or(|prefix| alarm.name.starts_with(prefix))
            && action_prefix.is_none_or(|prefix| has_action(alarm, prefix))
            && after.as_ref().is_none_or(|after| alarm.name > *after)
    };
    let is_in_state = |alarm: &Alarm| state.is_none_or(|state| alarm.state.value == state);
    let passes = |alarm: &Alarm| is_wanted(alarm) && is_in_state(alarm);
    let alarms = &call.cloudwatch.alarms;
    let mut page = alarms.list(call.namespace, after.as_deref(), records_max, passes).await?;
    // One more than a page shows whether another follows.
    let of_policies = match wants_metric_alarms {
        true => policy_alarms::list(call, records_max + 1, is_wanted, is_in_state).await?,
        false => Vec::new(),
    };
    add(&mut page, of_policies, records_max);
    let mut result = rendered(call, &page.alarms);
    result.push(("CompositeAlarms".into(), Value::List(Vec::new())));
    if let Some(last) = page.alarms.last().filter(|_| page.has_more) {
        result.push(("NextToken".into(), Value::from(tokens::write(last.name.as_bytes()))));
    }
    Ok(Some(result))
}

/// Adds the alarms of policies to those of a page. An alarm of a caller with the same name hides one.
fn add(page: &mut AlarmPage, of_policies: Vec<Alarm>, alarms_max: usize) {
    for alarm in of_policies {
        if page.alarms.iter().all(|known| known.name != alarm.name) {
            page.alarms.push(alarm);
        }
    }
    page.alarms.sort_by(|one, other| one.name.cmp(&other.name));
    page.has_more |= page.alarms.len() > alarms_max;
    page.alarms.truncate(alarms_max);
}

/// The member `AlarmTypes`. There are metric alarms only.
pub fn wants_metric_alarms(call: Call<'_>) -> Result<bool, CloudWatchError> {
    let types = call.members.texts("AlarmTypes")?.unwrap_or_default();
    if let Some(wrong) = types.iter().find(|it| !ALARM_TYPES.contains(&it.as_str())) {
        return Err(CloudWatchError::not_in_set("alarmTypes", wrong, &ALARM_TYPES));
    }
    Ok(types.is_empty() || types.iter().any(|it| it == "MetricAlarm"))
}

/// The member `MaxRecords`.
pub fn read_records_max(call: Call<'_>) -> Result<usize, CloudWatchError> {
    let records_max = call.members.integer("MaxRecords")?.unwrap_or(RECORDS_MAX);
    match (1..=RECORDS_MAX).contains(&records_max) {
        true => Ok(records_max as usize),
        false => {
            let constraint = format!("have value between 1 and {RECORDS_MAX}");
            Err(CloudWatchError::violation("maxRecords", records_max, &constraint))
        }
    }
}

fn read_state(call: Call<'_>) -> Result<Option<StateValue>, CloudWatchError> {
    let Some(name) = call.members.text("StateValue")? else { return Ok(None) };
    let names = StateValue::ALL.map(StateValue::name);
    StateValue::parse(name)
        .map(Some)
        .ok_or_else(|| CloudWatchError::not_in_set("stateValue", name, &names))
}

fn has_action(alarm: &Alarm, prefix: &str) -> bool {
    let configuration = &alarm.configuration;
    let lists = [
        &configuration.ok_actions,
        &configuration.alarm_actions,
        &configuration.insufficient_data_actions,
    ];
    lists.into_iter().flatten().any(|action| action.starts_with(prefix))
}

fn rendered(call: Call<'_>, alarms: &[Alarm]) -> Structure {
    let alarms = alarms.iter().map(|alarm| alarm.render(call.namespace));
    vec![("MetricAlarms".into(), Value::structures(alarms))]
}

pub async fn answer_for_metric(call: Call<'_>) -> Answered {
    let members = call.members;
    let metric = Metric::read(members)?;
    let statistic = members.text("Statistic")?.or(members.text("ExtendedStatistic")?);
    let (period_s, unit) = (read_period(members)?, Unit::read(members)?);
    let is_it = |watched: &MetricStatistic| {
        watched.metric == metric
            && statistic.is_none_or(|statistic| watched.statistic_name == statistic)
            && period_s.is_none_or(|period_s| watched.period_s == period_s)
            && unit.is_none_or(|unit| watched.unit == Some(unit))
    };
    let passes = |alarm: &Alarm| watches(alarm, is_it);
    let alarms = &call.cloudwatch.alarms;
    let mut page = alarms.list(call.namespace, None, ALARMS_OF_METRIC_MAX, passes).await?;
    let of_policies = policy_alarms::list(call, ALARMS_OF_METRIC_MAX + 1, passes, |_| true).await?;
    add(&mut page, of_policies, ALARMS_OF_METRIC_MAX);
    if page.has_more {
        return Err(CloudWatchError::validation(format!(
            "More than {ALARMS_OF_METRIC_MAX} alarms watch the metric; list them with DescribeAlarms"
        )));
    }
    Ok(Some(rendered(call, &page.alarms)))
}
