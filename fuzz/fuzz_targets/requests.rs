//! Requests: every line that clients send (an operation's name, a space, a body) gets a JSON
//! response and never an internal error, and the tables keep correct indexes and counts.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};
use zenobe_api::{Api, ApiOptions, Operation, is_valid_json};
use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::TableName;
use zenobe_engine::schema::Namespace;
use zenobe_engine::{Engine, EngineOptions};
use zenobe_store::memory::MemoryStore;

const REQUESTS_MAX: usize = 16;

/// One table with only a partition key, one with everything.
const TABLES: [(&str, &str); 2] = [
    (
        "Plain",
        r#"{"TableName":"Plain","BillingMode":"PAY_PER_REQUEST",
            "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
            "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}"#,
    ),
    (
        "Pair",
        r#"{"TableName":"Pair","BillingMode":"PAY_PER_REQUEST",
            "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},
                {"AttributeName":"sk","AttributeType":"N"},{"AttributeName":"a","AttributeType":"S"}],
            "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
            "LocalSecondaryIndexes":[{"IndexName":"local","Projection":{"ProjectionType":"KEYS_ONLY"},
                "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"a","KeyType":"RANGE"}]}],
            "GlobalSecondaryIndexes":[{"IndexName":"global","Projection":{"ProjectionType":"ALL"},
                "KeySchema":[{"AttributeName":"a","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]}]}"#,
    ),
];

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().build().expect("a runtime can be built");
}

fuzz_target!(|input: &[u8]| RUNTIME.with(|runtime| runtime.block_on(answer_all(input))));

async fn answer_all(input: &[u8]) {
    let namespace =
        Arc::new(Namespace { account: "000000000000".into(), region: "us-east-1".into() });
    let options = EngineOptions {
        clock: Arc::new(ManualClock::new(1_700_000_000_000)),
        random_seed: Some(1),
        ..EngineOptions::default()
    };
    let engine = Engine::open(Arc::new(MemoryStore::new()), options).await.expect("it opens");
    let api = Api::new(Arc::clone(&engine), ApiOptions::default());
    for (_, body) in TABLES {
        let created = api.handle(Operation::CreateTable, &namespace, body.as_bytes()).await;
        assert_eq!(created.status, 200, "{created:?}");
    }
    for line in input.split(|byte| *byte == b'\n').take(REQUESTS_MAX) {
        answer(&api, &namespace, line).await;
    }
    for (name, _) in TABLES {
        let table = TableName { namespace: Arc::clone(&namespace), name: name.to_owned() };
        // A request may have deleted it.
        if let Ok(found) = engine.check_consistency(&table).await {
            assert!(found.is_empty(), "{name}: {found:?}");
        }
    }
}

async fn answer(api: &Api, namespace: &Arc<Namespace>, line: &[u8]) {
    let blank = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    let (name, body) = line.split_at(blank);
    let Some(operation) = operation(name) else { return };
    let response = api.handle(operation, namespace, body).await;
    // DynamoDB answers some empty settings of UpdateTable with an InternalFailure, and so do we. An
    // InternalServerError would be a failure of the store.
    let is_copied_failure = response.error == Some("InternalFailure");
    assert!(
        matches!(response.status, 200 | 400) || is_copied_failure,
        "{operation:?}: {response:?}"
    );
    let answers_nothing = matches!(operation, Operation::TagResource | Operation::UntagResource)
        && response.status == 200;
    assert!(
        is_valid_json(&response.body) || (answers_nothing && response.body.is_empty()),
        "{operation:?}: {response:?}"
    );
    assert_eq!(response.status == 200, response.error.is_none(), "{operation:?}: {response:?}");
}

fn operation(name: &[u8]) -> Option<Operation> {
    Operation::ALL.iter().copied().find(|operation| operation.name().as_bytes() == name)
}
