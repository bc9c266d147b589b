//! SetAlarmState: sets an alarm's state until it is evaluated again.

use zenobe_engine::lease::Lease;

use super::super::alarms::{Alarm, AlarmState, StateValue};
use super::super::error::{CloudWatchError, CloudWatchErrorKind};
use super::super::metric::check_length;
use super::{Answered, Call};

pub async fn answer(call: Call<'_>) -> Answered {
    let members = call.members;
    let name = members.required_text("AlarmName")?;
    let value = members.required_text("StateValue")?;
    let names = StateValue::ALL.map(StateValue::name);
    let value = StateValue::parse(value)
        .ok_or_else(|| CloudWatchError::not_in_set("stateValue", value, &names))?;
    let reason =
        members.text("StateReason")?.ok_or_else(|| CloudWatchError::missing("StateReason"))?;
    check_length("StateReason", reason, 1_023)?;
    let reason_data = members.text("StateReasonData")?;
    if let Some(data) = reason_data {
        check_length("StateReasonData", data, 4_000)?;
        if serde_json::from_str::<serde_json::Value>(data).is_err() {
            let message = "The value of StateReasonData is not valid JSON.";
            return Err(CloudWatchError::new(CloudWatchErrorKind::InvalidFormat, message));
        }
    }
    let now_ms = call.cloudwatch.now_ms();
    let set = |known: Option<&Alarm>| {
        let known = known?;
        let has_changed = known.state.value != value;
        let state = AlarmState {
            value,
            reason: reason.to_owned(),
            reason_data: reason_data.map(str::to_owned),
            updated_ms: now_ms,
            transitioned_ms: if has_changed { now_ms } else { known.state.transitioned_ms },
        };
        Some(Alarm { state, ..known.clone() })
    };
    let alarms = &call.cloudwatch.alarms;
    let lease = Lease::default();
    match alarms.change(call.namespace, name, &lease, set).await? {
        (Some(before), Some(after)) => {
            alarms.announce(call.namespace, &before.state, &after, &lease).await?;
            Ok(None)
        }
        _ => Err(CloudWatchError::new(
            CloudWatchErrorKind::ResourceNotFound,
            format!("Alarm {name} does not exist"),
        )),
    }
}
