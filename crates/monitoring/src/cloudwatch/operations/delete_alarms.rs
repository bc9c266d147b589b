//! DeleteAlarms.

use zenobe_engine::lease::Lease;

use super::super::alarms::history::HistoryItem;
use super::alarm_actions::alarm_names;
use super::{Answered, Call};

pub async fn answer(call: Call<'_>) -> Answered {
    let alarms = &call.cloudwatch.alarms;
    let mut items = Vec::new();
    for name in alarm_names(call)? {
        // AWS deletes those that exist, and says nothing about the others.
        if let Some(alarm) = alarms.delete(call.namespace, &name).await? {
            items.push(HistoryItem::configured(&alarm, "Delete", call.cloudwatch.now_ms()));
        }
    }
    if !items.is_empty() {
        alarms.record(call.namespace, &Lease::default(), &items).await?;
    }
    Ok(None)
}
