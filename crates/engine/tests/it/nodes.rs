//! Several engines on one store, as on several nodes.

mod caches;
mod catalog;
mod clocks;
mod leases;
mod replicas;
mod stolen;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use zenobe_engine::clock::{Clock, ManualClock};
use zenobe_engine::{Engine, EngineOptions, Limits, StreamOptions};
use zenobe_store::memory::MemoryStore;
use zenobe_store::{Direction, KeyRange, Reader, Store};

use crate::support::Fixture;
use crate::support::commands::Script;

const START_MS: u64 = 1_700_000_000_000;
const MINUTE_MS: u64 = 60 * 1_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const PERIOD: Duration = Duration::from_secs(10);

fn options(clock: &Arc<ManualClock>) -> EngineOptions {
    EngineOptions {
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        limits: Limits { time_to_live_change_interval_ms: 0, ..Limits::default() },
        streams: StreamOptions { shards: 1, ..StreamOptions::default() },
        lease_period: PERIOD,
        clock_skew_ms_max: 0,
        ..EngineOptions::default()
    }
}

async fn node(store: Arc<dyn Store>, options: EngineOptions, clock: &Arc<ManualClock>) -> Script {
    let engine = Engine::open(store, options).await.expect("the store opens");
    Script::with_fixture(Fixture::with_engine(engine, Arc::clone(clock)))
}

/// Everything in the store except the rows about nodes.
async fn contents(store: &MemoryStore) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut entries = BTreeMap::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        if !matches!(key[0], b'M' | b'O') {
            entries.insert(key.to_vec(), value.to_vec());
        }
        ControlFlow::Continue(())
    };
    store.scan(KeyRange::all(), Direction::Forward, &mut visit).await.unwrap();
    entries
}

async fn two_nodes() -> (Arc<MemoryStore>, Arc<ManualClock>, Script, Script) {
    let clock = Arc::new(ManualClock::new(START_MS));
    let store = Arc::new(MemoryStore::shared());
    let here = node(store.clone(), options(&clock), &clock).await;
    let there = node(store.clone(), options(&clock), &clock).await;
    (store, clock, here, there)
}

async fn count(script: &Script, table: &str) -> u64 {
    let table = script.engine().describe_table(&script.table(table)).await.unwrap();
    table.statistics.item_count
}
