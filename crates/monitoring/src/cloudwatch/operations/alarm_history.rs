//! DescribeAlarmHistory.

use super::super::alarms::history::{HistoryItem, HistoryKind, ITEMS_MAX};
use super::super::error::CloudWatchError;
use super::super::wire::{Structure, Value};
use super::describe_alarms::{read_records_max, wants_metric_alarms};
use super::get_metric_data::is_ascending;
use super::{Answered, Call, tokens};

pub async fn answer(call: Call<'_>) -> Answered {
    let members = call.members;
    let alarm = members.text("AlarmName")?;
    let kind = match members.text("HistoryItemType")? {
        None => None,
        Some(name) => {
            let names = HistoryKind::ALL.map(HistoryKind::name);
            let unknown = || CloudWatchError::not_in_set("historyItemType", name, &names);
            Some(HistoryKind::parse(name).ok_or_else(unknown)?)
        }
    };
    let wants_metric_alarms = wants_metric_alarms(call)?;
    let from_ms = members.timestamp_ms("StartDate")?.unwrap_or(0);
    let to_ms = members.timestamp_ms("EndDate")?.unwrap_or(u64::MAX);
    let records_max = read_records_max(call)?;
    let after = members.text("NextToken")?.map(tokens::read).transpose()?;
    let passes = |item: &HistoryItem| {
        wants_metric_alarms
            && alarm.is_none_or(|alarm| item.alarm == alarm)
            && kind.is_none_or(|kind| item.kind == kind)
    };
    let alarms = &call.cloudwatch.alarms;
    let span = (from_ms, to_ms);
    let mut items = match is_ascending(members)? {
        false => {
            let after = after.as_deref();
            alarms.history(call.namespace, span, after, records_max + 1, passes).await?
        }
        // Items are stored with the newest first. Those beyond the bound are about to be trimmed.
        true => {
            let all = alarms.history(call.namespace, span, None, ITEMS_MAX, passes).await?;
            let is_later =
                |(key, _): &(Vec<u8>, HistoryItem)| after.as_ref().is_none_or(|after| key < after);
            all.into_iter().rev().filter(is_later).take(records_max + 1).collect()
        }
    };
    let has_more = items.len() > records_max;
    items.truncate(records_max);
    let rendered = Value::structures(items.iter().map(|(_, item)| render(item)));
    let mut result: Structure = vec![("AlarmHistoryItems".into(), rendered)];
    if let Some((key, _)) = items.last().filter(|_| has_more) {
        result.push(("NextToken".into(), Value::from(tokens::write(key))));
    }
    Ok(Some(result))
}

fn render(item: &HistoryItem) -> Structure {
    vec![
        ("AlarmName".into(), Value::from(item.alarm.as_str())),
        ("AlarmType".into(), Value::from("MetricAlarm")),
        ("Timestamp".into(), Value::time(item.at_ms)),
        ("HistoryItemType".into(), Value::from(item.kind.name())),
        ("HistorySummary".into(), Value::from(item.summary.as_str())),
        ("HistoryData".into(), Value::from(item.data.as_str())),
    ]
}
