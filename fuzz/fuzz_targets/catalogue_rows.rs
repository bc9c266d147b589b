//! Rows of the catalogue. The first byte chooses the row of a table, a stream or a trigger; the
//! rest is its content. An engine opens on it or reports that it can't, and answers requests about
//! it with JSON.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};
use zenobe_api::{Api, ApiOptions, Operation, is_valid_json};
use zenobe_engine::clock::ManualClock;
use zenobe_engine::schema::Namespace;
use zenobe_engine::{Engine, EngineOptions, keyspace};
use zenobe_store::memory::MemoryStore;
use zenobe_store::{Batch, Decision, Store, Value, WriteSet};

/// The same as in the seeds.
const ACCOUNT: &str = "123456789012";
const REGION: &str = "eu-west-1";
const TABLE: &str = "Orders";

const REQUESTS: [(Operation, &str); 5] = [
    (Operation::ListTables, "{}"),
    (Operation::DescribeTable, r#"{"TableName":"Orders"}"#),
    (Operation::Scan, r#"{"TableName":"Orders"}"#),
    (Operation::DescribeTimeToLive, r#"{"TableName":"Orders"}"#),
    (Operation::DeleteTable, r#"{"TableName":"Orders"}"#),
];

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().build().expect("a runtime can be built");
}

fuzz_target!(|input: &[u8]| RUNTIME.with(|runtime| runtime.block_on(open_on(input))));

async fn open_on(input: &[u8]) {
    let [kind, row @ ..] = input else { return };
    let namespace = Arc::new(Namespace { account: ACCOUNT.into(), region: REGION.into() });
    let key = match kind % 3 {
        0 => keyspace::table_row(&namespace, TABLE),
        1 => keyspace::stream_row(&namespace, TABLE, "2026-10-09T05:53:25.330"),
        _ => keyspace::consumer_row(&namespace, "trigger"),
    };
    let store = Arc::new(MemoryStore::new());
    let mut decide = |_: &[Option<Value>]| {
        let mut batch = Batch::new();
        batch.put(key.clone(), row.to_vec());
        Decision::Commit(batch)
    };
    store.write(WriteSet::default(), &mut decide).await.expect("memory takes writes");
    let options = EngineOptions {
        clock: Arc::new(ManualClock::new(1_700_000_000_000)),
        random_seed: Some(1),
        ..EngineOptions::default()
    };
    let Ok(engine) = Engine::open(store, options).await else { return };
    // Errors are fine; a panic is not.
    let _ = engine.consumers().await;
    let _ = engine.run_pending_work().await;
    let api = Api::new(engine, ApiOptions::default());
    for (operation, body) in REQUESTS {
        let response = api.handle(operation, &namespace, body.as_bytes()).await;
        assert!(is_valid_json(&response.body), "{operation:?}: {response:?}");
    }
}
