//! Tags of alarms: TagResource, UntagResource and ListTagsForResource.

use std::collections::BTreeMap;

use zenobe_engine::lease::Lease;

use super::super::alarms::Alarm;
use super::super::error::{CloudWatchError, CloudWatchErrorKind};
use super::super::wire::{Members, Structure, Value};
use super::{Answered, Call};

const TAGS_MAX: usize = 50;

pub async fn list(call: Call<'_>) -> Answered {
    let name = alarm_name(call)?;
    let alarm = call.cloudwatch.alarms.get(call.namespace, &name).await?;
    let tags = alarm.ok_or_else(not_found)?.tags;
    let render = |(key, value): (String, String)| -> Structure {
        vec![("Key".into(), Value::from(key)), ("Value".into(), Value::from(value))]
    };
    Ok(Some(vec![("Tags".into(), Value::structures(tags.into_iter().map(render)))]))
}

pub async fn tag(call: Call<'_>) -> Answered {
    let given = read(call.members)?;
    change(call, |tags| tags.extend(given.clone())).await
}

pub async fn untag(call: Call<'_>) -> Answered {
    let keys = call.members.texts("TagKeys")?.ok_or_else(|| CloudWatchError::missing("TagKeys"))?;
    change(call, |tags| tags.retain(|key, _| !keys.contains(key))).await
}

/// The member `Tags`.
pub fn read(members: Members<'_>) -> Result<BTreeMap<String, String>, CloudWatchError> {
    let mut tags = BTreeMap::new();
    for tag in members.structures("Tags")? {
        let key = tag.required_text("Key")?;
        let value = tag.text("Value")?.unwrap_or_default();
        if key.chars().count() > 128 || value.chars().count() > 256 {
            return Err(CloudWatchError::invalid(
                "Tag keys may have 128 characters, and tag values 256.",
            ));
        }
        if key.to_ascii_lowercase().starts_with("aws:") {
            return Err(CloudWatchError::invalid("Tag keys must not begin with aws:"));
        }
        tags.insert(key.to_owned(), value.to_owned());
    }
    match tags.len() > TAGS_MAX {
        true => Err(too_many()),
        false => Ok(tags),
    }
}

async fn change(
    call: Call<'_>,
    edit: impl Fn(&mut BTreeMap<String, String>) + Send + Sync,
) -> Answered {
    let name = alarm_name(call)?;
    let change = |known: Option<&Alarm>| {
        let mut alarm = known?.clone();
        edit(&mut alarm.tags);
        (alarm.tags.len() <= TAGS_MAX).then_some(alarm)
    };
    let lease = Lease::default();
    match call.cloudwatch.alarms.change(call.namespace, &name, &lease, change).await? {
        (None, _) => Err(not_found()),
        (Some(_), None) => Err(too_many()),
        (Some(_), Some(_)) => Ok(Some(Vec::new())),
    }
}

/// The name of the alarm that an ARN of this account and region names.
fn alarm_name(call: Call<'_>) -> Result<String, CloudWatchError> {
    let arn = call.members.required_text("ResourceARN")?;
    let prefix = Alarm::arn(call.namespace, "");
    match arn.strip_prefix(prefix.as_str()) {
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ if arn.starts_with("arn:") => Err(not_found()),
        _ => Err(CloudWatchError::invalid(format!(
            "The value {arn} for parameter ResourceARN is not an ARN."
        ))),
    }
}

fn too_many() -> CloudWatchError {
    CloudWatchError::invalid(format!("A resource may have {TAGS_MAX} tags."))
}

fn not_found() -> CloudWatchError {
    CloudWatchError::new(
        CloudWatchErrorKind::ResourceNotFoundException,
        "The named resource does not exist.",
    )
}
