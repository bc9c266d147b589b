//! One of many writers on the same keys: random writes of all kinds until the server is gone.

use std::sync::mpsc;
use std::time::{SystemTime, UNIX_EPOCH};

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use zenobe_testing::Client;

use super::rebuild::TABLE;

const PARTITIONS: u64 = 12;
const ITEMS_PER_PARTITION: u64 = 5;

/// The table's time-to-live attribute.
pub const EXPIRES: &str = "expires";

/// Returns the number of acknowledged requests, and reports each to `counted`.
pub fn run(mut client: Client, mut random: StdRng, counted: &mpsc::Sender<()>) -> u64 {
    let mut acknowledged = 0;
    loop {
        let (operation, body) = draw(&mut random);
        let Ok(reply) = client.call(operation, &body) else { return acknowledged };
        match reply.error() {
            None => {
                acknowledged += 1;
                // Nobody counts any more once the server has been killed.
                let _ = counted.send(());
            }
            // Other writers use the same keys.
            Some("TransactionCanceledException" | "ConditionalCheckFailedException") => {}
            Some(_) => panic!("{operation} {body} answers {}", reply.body),
        }
    }
}

fn draw(random: &mut StdRng) -> (&'static str, Value) {
    match random.random_range(0..10) {
        0..3 => ("PutItem", json!({"TableName": TABLE, "Item": item(random)})),
        3..6 => ("UpdateItem", update(random)),
        6 => ("DeleteItem", json!({"TableName": TABLE, "Key": key(random)})),
        7 => ("PutItem", conditional_put(random)),
        8 => ("BatchWriteItem", json!({"RequestItems": {TABLE: batch(random)}})),
        _ => ("TransactWriteItems", json!({"TransactItems": transaction(random)})),
    }
}

fn update(random: &mut StdRng) -> Value {
    json!({
        "TableName": TABLE,
        "Key": key(random),
        "UpdateExpression": "ADD updates :one SET note = :note",
        "ExpressionAttributeValues": {":one": {"N": "1"}, ":note": text(random)},
    })
}

fn conditional_put(random: &mut StdRng) -> Value {
    let condition = ["attribute_exists(pk)", "attribute_not_exists(pk)"][random.random_range(0..2)];
    json!({"TableName": TABLE, "Item": item(random), "ConditionExpression": condition})
}

fn batch(random: &mut StdRng) -> Vec<Value> {
    let puts_or_deletes = distinct_keys(random, 8).into_iter().map(|key| match random.random() {
        true => json!({"PutRequest": {"Item": item_under(key, random)}}),
        false => json!({"DeleteRequest": {"Key": key}}),
    });
    puts_or_deletes.collect()
}

fn transaction(random: &mut StdRng) -> Vec<Value> {
    let actions = distinct_keys(random, 4).into_iter().map(|key| match random.random_range(0..3) {
        0 => json!({"Put": {"TableName": TABLE, "Item": item_under(key, random)}}),
        1 => json!({"Delete": {"TableName": TABLE, "Key": key}}),
        _ => {
            let mut update = update(random);
            update["Key"] = key;
            json!({"Update": update})
        }
    });
    actions.collect()
}

fn distinct_keys(random: &mut StdRng, count: usize) -> Vec<Value> {
    let mut keys: Vec<Value> = Vec::with_capacity(count);
    while keys.len() < count {
        let key = key(random);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

fn key(random: &mut StdRng) -> Value {
    let partition = format!("p{}", random.random_range(0..PARTITIONS));
    let sort = random.random_range(0..ITEMS_PER_PARTITION).to_string();
    json!({"pk": {"S": partition}, "sk": {"N": sort}})
}

fn item(random: &mut StdRng) -> Value {
    let key = key(random);
    item_under(key, random)
}

/// Some items have already expired when they are written.
fn item_under(key: Value, random: &mut StdRng) -> Value {
    let mut item = key;
    item["note"] = text(random);
    if random.random_ratio(1, 10) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is past 1970");
        item[EXPIRES] = json!({"N": (now.as_secs() - 60).to_string()});
    }
    item
}

fn text(random: &mut StdRng) -> Value {
    json!({"S": "x".repeat(random.random_range(0..300)) + &random.random::<u32>().to_string()})
}
