//! The hottest keys of tables, and the heat of their partitions.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use zenobe_engine::command::TableName;
use zenobe_engine::keyspace::KeyHash;
use zenobe_engine::schema::{ContributorInsights, InsightsMode, InsightsStatus, Namespace};
use zenobe_engine::throughput::cause::Resource;
use zenobe_engine::throughput::report::units;
use zenobe_value::{Attributes, EncodedItem};

use super::throughput::table_error;
use super::{Admin, AdminError, check_method};
use crate::hot_keys::heat::{HeatMinute, Use};
use crate::hot_keys::sketch::Counter;
use crate::hot_keys::{HotKeys, RankedKeys, ResourceKeys};

/// How many keys of each kind a report has. CloudWatch shows as many by default.
const KEYS_MAX: usize = 10;

impl Admin {
    pub(super) async fn answer_hot_keys(
        &self,
        namespace: &Arc<Namespace>,
        method: &Method,
        table: &str,
    ) -> Result<Value, AdminError> {
        check_method(method, &Method::GET)?;
        let name = TableName { namespace: Arc::clone(namespace), name: table.to_owned() };
        let found = self.engine.current_table(&name).await;
        let found = found.map_err(|error| table_error(table, &error))?;
        let Some(hot_keys) = &self.observability.hot_keys else {
            return Err(AdminError::new(StatusCode::NOT_FOUND, "a fork counts no keys"));
        };
        let definition = found.definition();
        let counted = hot_keys.of_table(&name);
        let indexes = definition.global_indexes.iter();
        let settings = indexes.map(|index| (Some(index.name.as_str()), index.insights));
        let settings = std::iter::once((None, definition.insights)).chain(settings);
        let reports = settings.map(|(index, insights)| {
            // A table of the same name that was deleted has another id.
            let is_it = |keys: &&Arc<Mutex<ResourceKeys>>| {
                let resource = keys.lock().resource.clone();
                resource.table_id == definition.id && resource.index_name() == index
            };
            let keys = counted.iter().find(is_it);
            report(hot_keys, keys.map(|keys| &**keys), index, insights)
        });
        Ok(json!({
            "table": table,
            "window": {"from_ms": hot_keys.window_start_ms(), "to_ms": hot_keys.now_ms()},
            "resources": reports.collect::<Vec<_>>(),
        }))
    }
}

fn report(
    hot_keys: &HotKeys,
    keys: Option<&Mutex<ResourceKeys>>,
    index: Option<&str>,
    insights: Option<ContributorInsights>,
) -> Value {
    let now = hot_keys.minute();
    let mut report = json!({
        "index": index,
        "contributor_insights": insights.map_or("DISABLED", describe),
        "partition_keys": {"accessed": [], "throttled": []},
        "keys": {"accessed": [], "throttled": []},
        "heat": [],
    });
    if let Some(keys) = keys {
        // Copied, so that no request waits while it is rendered.
        let (resource, partition_keys, item_keys, heat) = {
            let mut keys = keys.lock();
            let (partition_keys, item_keys) = (keys.partition_keys(now), keys.item_keys(now));
            let heat: Vec<HeatMinute> = keys.heat(now).cloned().collect();
            (keys.resource.clone(), partition_keys, item_keys, heat)
        };
        report["partition_keys"] = ranked(&resource, &partition_keys, false);
        report["keys"] = ranked(&resource, &item_keys, true);
        report["heat"] = heat.iter().map(minute).collect();
    }
    report
}

fn describe(insights: ContributorInsights) -> &'static str {
    match (insights.status, insights.mode) {
        (InsightsStatus::Enabled, InsightsMode::AccessedAndThrottledKeys) => {
            "ACCESSED_AND_THROTTLED_KEYS"
        }
        (InsightsStatus::Enabled, InsightsMode::ThrottledKeys) => "THROTTLED_KEYS",
        (InsightsStatus::Disabled, _) => "DISABLED",
        (InsightsStatus::Failed, _) => "FAILED",
    }
}

fn ranked(resource: &Resource, keys: &RankedKeys, with_sort: bool) -> Value {
    let list = |counters: &[Counter], is_throttled: bool| {
        let shown = counters.iter().filter(|counter| counter.certain() > 0).take(KEYS_MAX);
        shown.map(|counter| hot_key(resource, counter, with_sort, is_throttled)).collect::<Vec<_>>()
    };
    json!({"accessed": list(&keys.accessed, false), "throttled": list(&keys.throttled, true)})
}

/// A key, with the least that it consumed. The sketch's uncertainty is a separate member.
fn hot_key(resource: &Resource, counter: &Counter, with_sort: bool, is_throttled: bool) -> Value {
    let mut key = key_json(resource, counter, with_sort);
    let tally = counter.tally;
    match is_throttled {
        true => {
            key["throttle_events"] = json!(counter.certain());
            key["uncertain_throttle_events"] = json!(counter.error);
        }
        false => {
            key["accesses"] = json!(tally.events);
            key["read_units"] = json!(units(tally.read_halves));
            key["write_units"] = json!(units(tally.write_halves));
            // As CloudWatch's ConsumedThroughputUnits: a written unit counts three times.
            key["weighted_units"] = json!(units(counter.certain()));
            key["uncertain_weighted_units"] = json!(units(counter.error));
        }
    }
    key
}

/// The key as DynamoDB JSON. If it is too long to be kept, only its beginning is shown.
pub(super) fn key_json(resource: &Resource, counter: &Counter, with_sort: bool) -> Value {
    let attributes = resource.key_attributes(&counter.key, with_sort);
    match attributes {
        Some(attributes) => {
            let attributes: Attributes = attributes.into_iter().collect();
            let line = zenobe_api::write_line(EncodedItem::encode(&attributes).as_item());
            let line: Value = serde_json::from_slice(&line).unwrap_or(Value::Null);
            json!({"key": line["Item"]})
        }
        None => {
            let bytes = counter.key.get(KeyHash::LENGTH..).unwrap_or_default();
            json!({"key": null, "key_start": String::from_utf8_lossy(bytes)})
        }
    }
}

fn minute(minute: &HeatMinute) -> Value {
    let mut partitions: Vec<_> = minute.partitions.clone();
    partitions.sort_by_key(|(id, _)| *id);
    let partitions = partitions.iter().map(|(id, used)| {
        let mut partition = usage(*used);
        partition["id"] = json!(id);
        partition
    });
    json!({
        "minute_ms": minute.minute * 60_000,
        "partitions": partitions.collect::<Vec<_>>(),
        "others": (minute.others != Use::default()).then(|| usage(minute.others)),
    })
}

fn usage(used: Use) -> Value {
    json!({
        "read_units": units(used.read_halves),
        "write_units": units(used.write_halves),
        "throttle_events": used.throttle_events,
    })
}
