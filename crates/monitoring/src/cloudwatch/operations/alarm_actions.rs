//! EnableAlarmActions and DisableAlarmActions.

use zenobe_engine::lease::Lease;

use super::super::alarms::Alarm;
use super::super::error::CloudWatchError;
use super::{Answered, Call};

pub async fn answer(call: Call<'_>, enabled: bool) -> Answered {
    for name in alarm_names(call)? {
        // Names that don't exist are passed over, as on AWS.
        let change = |known: Option<&Alarm>| {
            let mut alarm = known?.clone();
            alarm.configuration.actions_enabled = enabled;
            Some(alarm)
        };
        call.cloudwatch.alarms.change(call.namespace, &name, &Lease::default(), change).await?;
    }
    Ok(None)
}

/// The member `AlarmNames`, which is required.
pub fn alarm_names(call: Call<'_>) -> Result<Vec<String>, CloudWatchError> {
    let names =
        call.members.texts("AlarmNames")?.ok_or_else(|| CloudWatchError::missing("AlarmNames"))?;
    match names.len() > 100 {
        true => Err(CloudWatchError::validation(
            "The collection AlarmNames must not have a size greater than 100.",
        )),
        false => Ok(names),
    }
}
