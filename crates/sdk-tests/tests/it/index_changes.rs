//! Indexes come and go under load. No write misses an index, and no entry outlives one.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use zenobe_testing::{Client, Seed, ServerProcess, wait_until};

use crate::tables::{create_simple, scan};

const TABLE: &str = "changing";
const INDEX: &str = "by-group";
const WRITERS: u64 = 6;
const KEYS: u32 = 60;
const CHANGES: usize = 12;
const WRITES_BETWEEN_CHANGES: u64 = 40;

#[test]
fn an_index_built_under_load_is_complete() {
    let seed = Seed::announce("index changes under load");
    let server = ServerProcess::fresh("index");
    create_simple(&mut server.client(), TABLE);
    let (done, written) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for number in 0..WRITERS {
            let (client, random) = (server.client(), seed.generator(number));
            let (done, written) = (&done, &written);
            scope.spawn(move || write(client, random, done, written));
        }
        // The writers must end even if a change fails, or the failure would never show.
        let changes = scope.spawn(|| change(server.client(), &written)).join();
        done.store(true, Ordering::Relaxed);
        changes.expect("indexes can be created and deleted under load");
    });
    let client = &mut server.client();
    let has_group = |item: &Value| item.get("g").is_some();
    let expected: Vec<_> = scan(client, TABLE, None).into_iter().filter(has_group).collect();
    let found = scan(client, TABLE, Some(INDEX));
    let as_set = |items: &[Value]| items.iter().map(Value::to_string).collect::<BTreeSet<_>>();
    assert_eq!(as_set(&found), as_set(&expected));
    assert_eq!(found.len(), expected.len(), "an entry is there twice");
    let table = client.expect("DescribeTable", &json!({"TableName": TABLE}))["Table"].take();
    assert_eq!(table["GlobalSecondaryIndexes"][0]["ItemCount"], expected.len());
}

/// Creates the index and deletes it again, several times. In the end it stays.
fn change(mut client: Client, written: &AtomicU64) {
    let creation = json!({
        "TableName": TABLE,
        "AttributeDefinitions": [{"AttributeName": "g", "AttributeType": "S"}],
        "GlobalSecondaryIndexUpdates": [{"Create": {
            "IndexName": INDEX,
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }}],
    });
    let deletion = json!({
        "TableName": TABLE,
        "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": INDEX}}],
    });
    for _ in 0..CHANGES {
        wait_for_writes(written);
        client.expect("UpdateTable", &creation);
        wait_for_index(&mut client, |index| index["IndexStatus"] == "ACTIVE");
        wait_for_writes(written);
        client.expect("UpdateTable", &deletion);
        wait_for_index(&mut client, Value::is_null);
    }
    client.expect("UpdateTable", &creation);
    wait_for_index(&mut client, |index| index["IndexStatus"] == "ACTIVE");
}

/// Waits until some more writes have succeeded.
fn wait_for_writes(written: &AtomicU64) {
    let enough = written.load(Ordering::Relaxed) + WRITES_BETWEEN_CHANGES;
    wait_until(|| written.load(Ordering::Relaxed) >= enough);
}

fn wait_for_index(client: &mut Client, reached: impl Fn(&Value) -> bool) {
    wait_until(|| {
        let table = client.expect("DescribeTable", &json!({"TableName": TABLE}))["Table"].take();
        reached(&table["GlobalSecondaryIndexes"][0]) && table["TableStatus"] == "ACTIVE"
    });
}

/// Writes of every kind on few keys. Each moves items into or out of the index.
fn write(mut client: Client, mut random: StdRng, done: &AtomicBool, written: &AtomicU64) {
    while !done.load(Ordering::Relaxed) {
        written.fetch_add(1, Ordering::Relaxed);
        let first = random.random_range(0..KEYS);
        let second = (first + random.random_range(1..KEYS)) % KEYS;
        let (operation, request) = match random.random_range(0..5) {
            0 => ("PutItem", json!({"TableName": TABLE, "Item": item(first, &mut random)})),
            1 => ("DeleteItem", json!({"TableName": TABLE, "Key": key(first)})),
            2 => {
                let mut update = json!({"TableName": TABLE, "Key": key(first)});
                update["UpdateExpression"] = json!("SET g = :g");
                update["ExpressionAttributeValues"] = json!({":g": group(&mut random)});
                ("UpdateItem", update)
            }
            3 => {
                let put = json!({"PutRequest": {"Item": item(first, &mut random)}});
                let delete = json!({"DeleteRequest": {"Key": key(second)}});
                ("BatchWriteItem", json!({"RequestItems": {TABLE: [put, delete]}}))
            }
            _ => {
                let put = json!({"Put": {"TableName": TABLE, "Item": item(first, &mut random)}});
                let remove = json!({"Update": {
                    "TableName": TABLE,
                    "Key": key(second),
                    "UpdateExpression": "REMOVE g",
                }});
                ("TransactWriteItems", json!({"TransactItems": [put, remove]}))
            }
        };
        client.expect(operation, &request);
    }
}

fn key(number: u32) -> Value {
    json!({"pk": {"S": format!("item{number}")}})
}

fn item(number: u32, random: &mut StdRng) -> Value {
    let mut item = key(number);
    item["mark"] = json!({"N": random.random_range(0..1000).to_string()});
    if random.random() {
        item["g"] = group(random);
    }
    item
}

fn group(random: &mut StdRng) -> Value {
    json!({"S": format!("group{}", random.random_range(0..3))})
}
