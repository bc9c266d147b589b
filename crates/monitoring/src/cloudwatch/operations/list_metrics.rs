//! ListMetrics.

use super::super::error::CloudWatchError;
use super::super::storage::keys::HOUR_MS;
use super::super::storage::{Series, SeriesFilter};
use super::super::wire::{Structure, Value};
use super::{Answered, Call, tokens};

const METRICS_MAX: usize = 500;
const DIMENSIONS_MAX: usize = 10;
const RECENT_HOURS: u64 = 3;

pub async fn answer(call: Call<'_>) -> Answered {
    let members = call.members;
    let given = members.structures("Dimensions")?;
    if given.len() > DIMENSIONS_MAX {
        let message = "The collection Dimensions must not have a size greater than 10.";
        return Err(CloudWatchError::invalid(message));
    }
    let mut dimensions = Vec::new();
    for filter in given {
        dimensions.push((filter.required_text("Name")?, filter.text("Value")?));
    }
    let storage = &call.cloudwatch.storage;
    let since_hour = match members.text("RecentlyActive")? {
        None => 0,
        // To the hour: activity is not recorded more often.
        Some("PT3H") => (storage.now_ms() / HOUR_MS).saturating_sub(RECENT_HOURS),
        Some(other) => return Err(CloudWatchError::not_in_set("recentlyActive", other, &["PT3H"])),
    };
    let owner = members.text("OwningAccount")?;
    let is_own = owner.is_none_or(|owner| owner == call.namespace.account);
    // As on AWS, a metric is listed if it has the named dimensions, whatever others it has.
    let passes = |series: &Series| {
        let has = |(name, value): &(&str, Option<&str>)| match series.metric.dimension(name) {
            None => false,
            Some(known) => value.is_none_or(|value| value == known),
        };
        is_own && series.last_hour >= since_hour && dimensions.iter().all(has)
    };
    let after = members.text("NextToken")?.map(tokens::read).transpose();
    let after = after.map_err(|_| CloudWatchError::invalid("Invalid nextToken"))?;
    let filter = SeriesFilter {
        namespace: members.text("Namespace")?,
        name: members.text("MetricName")?,
        after,
    };
    let (series, next) = storage.list(call.namespace, filter, METRICS_MAX, passes).await?;
    let includes_owners = members.flag("IncludeLinkedAccounts")?.unwrap_or(false);
    let metrics = Value::structures(series.iter().map(|series| series.metric.render()));
    let mut result: Structure = vec![("Metrics".into(), metrics)];
    if includes_owners {
        let owners = series.iter().map(|_| Value::from(call.namespace.account.as_str()));
        result.push(("OwningAccounts".into(), Value::List(owners.collect())));
    }
    result.extend(next.map(|next| ("NextToken".into(), Value::from(tokens::write(&next)))));
    Ok(Some(result))
}
