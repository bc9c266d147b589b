//! What `zenobe top` shows: counters since the server started, and the currently hottest keys.

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use zenobe_engine::keyspace::KeyHash;
use zenobe_engine::throughput::report::units;

use super::hot_keys::key_json;
use super::{Admin, AdminError, check_method};
use crate::hot_keys::HotKeys;
use crate::hot_keys::sketch::Counter;
use crate::metrics::{OperationCounts, bounds_us};

/// How many keys are sent, of all tables together.
const KEYS_MAX: usize = 50;

impl Admin {
    pub(super) fn answer_top(&self, method: &Method) -> Result<Value, AdminError> {
        check_method(method, &Method::GET)?;
        self.check_alone("ask for the keys of one table at /_zenobe/hot-keys/TABLE")?;
        let Some(hot_keys) = &self.observability.hot_keys else {
            return Err(AdminError::new(StatusCode::NOT_FOUND, "a fork counts no requests"));
        };
        let metrics = &self.observability.metrics;
        let (tables, keys) = tables_and_keys(hot_keys);
        Ok(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "now_ms": hot_keys.now_ms(),
            "window_start_ms": hot_keys.window_start_ms(),
            "throughput": self.engine.is_metering(),
            "connections": metrics.connections(),
            "store_size_bytes": self.engine.store().statistics().size_bytes,
            "bounds_us": bounds_us(),
            "operations": metrics.operations().iter().map(operation).collect::<Vec<_>>(),
            "tables": tables,
            "keys": keys,
        }))
    }
}

fn operation(counts: &OperationCounts) -> Value {
    let failed: u64 = counts.failed.iter().map(|(_, count)| count).sum();
    json!({
        "operation": counts.operation,
        "requests": counts.count,
        "failed": failed,
        "elapsed_us": counts.duration_sum_us,
        "buckets": counts.buckets,
    })
}

/// Tables and indexes with their totals, and the hottest partition keys of all.
fn tables_and_keys(hot_keys: &HotKeys) -> (Vec<Value>, Vec<Value>) {
    let now = hot_keys.minute();
    let (mut tables, mut keys) = (Vec::new(), Vec::new());
    for one in hot_keys.resources(None) {
        let (resource, total, ranked) = {
            let mut one = one.lock();
            (one.resource.clone(), one.total, one.partition_keys(now))
        };
        let place = (resource.table.name.clone(), resource.index_name().map(str::to_owned));
        tables.push(json!({
            "table": place.0,
            "index": place.1,
            "requests": total.requests,
            "elapsed_us": total.elapsed_us,
            "read_units": units(total.used.read_halves),
            "write_units": units(total.used.write_halves),
            "throttle_events": total.used.throttle_events,
        }));
        for counter in ranked.accessed.iter().filter(|it| it.certain() > 0).take(KEYS_MAX) {
            let throttled = ranked.throttled.iter().find(|it| is_same_key(it, counter));
            let mut key = key_json(&resource, counter, false);
            key["table"] = json!(place.0);
            key["index"] = json!(place.1);
            key["accesses"] = json!(counter.tally.events);
            key["read_units"] = json!(units(counter.tally.read_halves));
            key["write_units"] = json!(units(counter.tally.write_halves));
            key["throttle_events"] = json!(throttled.map_or(0, |it| it.certain()));
            keys.push((counter.certain(), key));
        }
    }
    keys.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    keys.truncate(KEYS_MAX);
    (tables, keys.into_iter().map(|(_, key)| key).collect())
}

/// The hash of the partition key comes first in every key.
fn is_same_key(left: &Counter, right: &Counter) -> bool {
    left.key.get(..KeyHash::LENGTH) == right.key.get(..KeyHash::LENGTH)
}
