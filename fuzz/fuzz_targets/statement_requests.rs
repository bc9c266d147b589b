//! PartiQL from end to end: every statement that clients send, one per line, gets a JSON response
//! and never an internal error. Pages come to an end, and tables, indexes and counts agree
//! afterwards.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};
use zenobe_api::{Api, ApiOptions, Operation, Response, is_valid_json};
use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::TableName;
use zenobe_engine::schema::Namespace;
use zenobe_engine::{Engine, EngineOptions};
use zenobe_store::memory::MemoryStore;

const STATEMENTS_MAX: usize = 12;
/// More than the rows that these statements can insert, each on its own page and in each of 50
/// reads.
const PAGES_MAX: usize = 100;

const TABLE: &str = r#"{"TableName":"tab","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},
        {"AttributeName":"sk","AttributeType":"N"},{"AttributeName":"a","AttributeType":"S"}],
    "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
    "LocalSecondaryIndexes":[{"IndexName":"lsi","Projection":{"ProjectionType":"KEYS_ONLY"},
        "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"a","KeyType":"RANGE"}]}],
    "GlobalSecondaryIndexes":[{"IndexName":"gsi","Projection":{"ProjectionType":"KEYS_ONLY"},
        "KeySchema":[{"AttributeName":"a","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]}]}"#;

const PARAMETERS: &str =
    r#"[{"S":"p"},{"N":"1"},{"S":"x"},{"L":[{"S":"p"},{"N":"2"}]},{"SS":["x"]},{"BOOL":true}]"#;

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().build().expect("a runtime can be built");
}

fuzz_target!(|text: &str| RUNTIME.with(|runtime| runtime.block_on(answer_all(text))));

async fn answer_all(text: &str) {
    let namespace =
        Arc::new(Namespace { account: "000000000000".into(), region: "us-east-1".into() });
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    let options = EngineOptions { clock, random_seed: Some(1), ..EngineOptions::default() };
    let engine = Engine::open(Arc::new(MemoryStore::new()), options).await.expect("it opens");
    let api = Api::new(Arc::clone(&engine), ApiOptions::default());
    let send = async |operation: Operation, body: &str| {
        let response = api.handle(operation, &namespace, body.as_bytes()).await;
        check(operation, &response);
        response
    };
    let created = send(Operation::CreateTable, TABLE).await;
    assert_eq!(created.status, 200, "{created:?}");
    let statements: Vec<String> = text.lines().take(STATEMENTS_MAX).map(quoted).collect();
    for statement in &statements {
        let mut token = String::new();
        for page in 0.. {
            assert!(page < PAGES_MAX, "{statement} has no last page");
            let body = format!(
                r#"{{"Statement":{statement},"Parameters":{PARAMETERS},"Limit":1,"ReturnConsumedCapacity":"INDEXES"{token}}}"#
            );
            let response = send(Operation::ExecuteStatement, &body).await;
            let answer = String::from_utf8_lossy(&response.body);
            let Some((_, rest)) = answer.rsplit_once("\"NextToken\":\"") else { break };
            let next = rest.split('"').next().unwrap_or_default();
            token = format!(r#","NextToken":"{next}""#);
        }
    }
    let requests: Vec<String> = statements
        .iter()
        .map(|statement| format!(r#"{{"Statement":{statement},"Parameters":{PARAMETERS}}}"#))
        .collect();
    let requests = requests.join(",");
    send(Operation::BatchExecuteStatement, &format!(r#"{{"Statements":[{requests}]}}"#)).await;
    send(Operation::ExecuteTransaction, &format!(r#"{{"TransactStatements":[{requests}]}}"#)).await;
    let table = TableName { namespace, name: "tab".to_owned() };
    let found = engine.check_consistency(&table).await.expect("statements delete no tables");
    assert!(found.is_empty(), "{found:?}");
}

fn check(operation: Operation, response: &Response) {
    assert!(matches!(response.status, 200 | 400), "{operation:?}: {response:?}");
    assert!(is_valid_json(&response.body), "{operation:?}: {response:?}");
}

/// A text as a JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control < ' ' => quoted += &format!("\\u{:04x}", control as u32),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}
