//! The memory that requests take, which is in proportion to their size.

use std::sync::Arc;

use zenobe_engine::{Engine, EngineOptions};
use zenobe_store::memory::MemoryStore;
use zenobe_store::{Key, Value, put_or_delete};
use zenobe_testing::allocations;

use crate::cases::World;

const LARGEST_SIZE_BYTES: usize = 16 << 20;

/// Sends a request and returns the response and the peak memory.
fn peak(operation: &str, body: &str) -> (String, usize) {
    // Runs on this thread alone, where memory is counted.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = runtime.block_on(World::new());
    allocations::peak(|| runtime.block_on(world.answer(operation, body)))
}

/// A request of the largest size, with a map of empty entries.
fn empty_entries(member: &str) -> String {
    let mut body =
        format!(r#"{{"TableName":"tab","Key":{{"p":{{"S":"a"}}}},"{member}":{{"a":{{}}"#);
    for number in 0.. {
        let entry = format!(r#","{number}":{{}}"#);
        if body.len() + entry.len() + 2 > LARGEST_SIZE_BYTES {
            break;
        }
        body.push_str(&entry);
    }
    body + "}}"
}

#[test]
fn maps_of_empty_entries_take_little_more_than_the_request() {
    for (operation, member) in
        [("UpdateItem", "Expected"), ("UpdateItem", "AttributeUpdates"), ("PutItem", "Item")]
    {
        let (answer, peak_bytes) = peak(operation, &empty_entries(member));
        assert!(answer.contains("Item size has exceeded the maximum allowed size"), "{answer}");
        assert!(peak_bytes < 6 * LARGEST_SIZE_BYTES, "{member}: {peak_bytes}");
    }
}

#[test]
fn long_names_in_expressions_are_rejected_before_use() {
    let paths: Vec<String> = (0..300).map(|number| format!("#a.#a.b{number}")).collect();
    let body = |name_size_bytes: usize| {
        format!(
            r##"{{"TableName":"tab","Key":{{"p":{{"S":"a"}}}},"UpdateExpression":"REMOVE {}","ExpressionAttributeNames":{{"#a":"{}"}}}}"##,
            paths.join(","),
            "a".repeat(name_size_bytes)
        )
    };
    let (answer, peak_bytes) = peak("UpdateItem", &body(2_000_000));
    let expected = "Attribute name is too large, must be less than 65536 bytes";
    assert!(answer.contains(expected), "{answer}");
    assert!(peak_bytes < 10_000_000, "{peak_bytes}");
    let (answer, peak_bytes) = peak("UpdateItem", &body(65_535));
    assert!(answer.contains("ResourceNotFoundException"), "{answer}");
    assert!(peak_bytes < 1_000_000, "{peak_bytes}");
}

#[test]
fn transactions_are_measured_before_their_expressions_are_bound() {
    let action = |number: usize| {
        format!(
            r##"{{"Update":{{"TableName":"tab","Key":{{"p":{{"S":"{number}"}}}},"UpdateExpression":"SET #a = = :v","ExpressionAttributeNames":{{"#a":"a"}},"ExpressionAttributeValues":{{":v":{{"S":"{}"}}}}}}}}"##,
            "v".repeat(300_000)
        )
    };
    let actions: Vec<String> = (0..15).map(action).collect();
    let body = format!(r#"{{"TransactItems":[{}]}}"#, actions.join(","));
    let (answer, _) = peak("TransactWriteItems", &body);
    assert!(!answer.contains("Syntax error"), "{answer}");
    assert!(answer.contains("ValidationException") && answer.contains("size"), "{answer}");
}

/// Many alternatives of a statement, each with the same large values.
#[test]
fn alternatives_of_a_statement_share_their_values() {
    const VALUE_SIZE_BYTES: usize = 4_000_000;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = runtime.block_on(World::new());
    let create = r#"{"TableName":"pairs","BillingMode":"PAY_PER_REQUEST",
        "AttributeDefinitions":[{"AttributeName":"p","AttributeType":"S"},{"AttributeName":"s","AttributeType":"S"}],
        "KeySchema":[{"AttributeName":"p","KeyType":"HASH"},{"AttributeName":"s","KeyType":"RANGE"}]}"#;
    let created = runtime.block_on(world.answer("CreateTable", create));
    assert!(created.contains("TableDescription"), "{created}");
    let large = "a".repeat(VALUE_SIZE_BYTES);
    let keys = |count: usize| {
        let keys: Vec<String> = (0..count).map(|number| format!("'k{number}'")).collect();
        keys.join(",")
    };
    let select = |condition: &str, count: usize| {
        let body = format!(
            r#"{{"Statement":"SELECT * FROM pairs WHERE p IN [{}] AND {condition}","Parameters":[{{"S":"{large}"}}]}}"#,
            keys(count)
        );
        allocations::peak(|| runtime.block_on(world.answer("ExecuteStatement", &body)))
    };
    let (answer, peak_bytes) = select("s >= ?", 100);
    assert!(answer.contains("Aggregated size of all range keys"), "{answer}");
    assert!(peak_bytes < 6 * VALUE_SIZE_BYTES, "{peak_bytes}");
    let (answer, peak_bytes) = select("v = ?", 50);
    assert!(answer.contains(r#""Items":[]"#), "{answer}");
    assert!(peak_bytes < 8 * VALUE_SIZE_BYTES, "{peak_bytes}");
}

/// A copy of the whole database shares what nobody changes: it takes no more for a large one.
#[test]
fn a_fork_of_a_database_takes_the_same_memory_whatever_its_size() {
    const ENTRIES: usize = 20_000;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let forked = |entries: usize| {
        let store = MemoryStore::new();
        for number in 0..entries {
            // Behind everything that an engine reads when it opens.
            let key = Key::from(format!("\u{7f}{number}"));
            let put = put_or_delete(&store, key, Some(Value::from(vec![0; 100])));
            runtime.block_on(put).unwrap();
        }
        let open = |store: MemoryStore| {
            let engine = Engine::open(Arc::new(store), EngineOptions::default());
            runtime.block_on(engine).unwrap()
        };
        allocations::peak(|| open(store.fork())).1
    };
    let (small, large) = (forked(10), forked(ENTRIES));
    assert!(large <= small + 10_000, "{small} and {large} bytes");
}
