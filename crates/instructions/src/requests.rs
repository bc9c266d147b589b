//! The tables, the items and the requests, all as JSON.
//!
//! `items` has only a partition key; `events` has partitions of [`EVENTS_PER_PARTITION`] items. An
//! item takes about 400 bytes, as in the benchmarks.

use crate::case::INPUTS;

/// More than the requests use, so that keys have neighbours.
const ITEMS: usize = 16 * INPUTS;
const PARTITIONS: usize = 16;
const EVENTS_PER_PARTITION: usize = 40;
/// The maximum of BatchWriteItem.
const BATCH_SIZE_MAX: usize = 25;

const FILL_SIZE_BYTES: usize = 360;

pub fn create_items_table() -> Vec<u8> {
    br#"{"TableName":"items","BillingMode":"PAY_PER_REQUEST",
        "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
        "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}"#
        .to_vec()
}

/// Lets the table serve one unit per second.
pub fn limit_items_table() -> Vec<u8> {
    br#"{"TableName":"items",
        "OnDemandThroughput":{"MaxReadRequestUnits":1,"MaxWriteRequestUnits":1}}"#
        .to_vec()
}

pub fn recover_items_table() -> Vec<u8> {
    br#"{"TableName":"items",
        "PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}"#
        .to_vec()
}

pub fn create_events_table() -> Vec<u8> {
    br#"{"TableName":"events","BillingMode":"PAY_PER_REQUEST",
        "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},
            {"AttributeName":"sk","AttributeType":"N"}],
        "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]}"#
        .to_vec()
}

/// BatchWriteItem bodies that fill both tables.
pub fn load() -> Vec<Vec<u8>> {
    let items: Vec<String> = (0..ITEMS).map(|number| item(&key(number), 0)).collect();
    let places = (0..PARTITIONS)
        .flat_map(|partition| (0..EVENTS_PER_PARTITION).map(move |event| (partition, event)));
    let events: Vec<String> =
        places.map(|(partition, event)| self::event(partition, event)).collect();
    let batches = |table: &'static str, items: &[String]| {
        items
            .chunks(BATCH_SIZE_MAX)
            .map(|items| batch(table, items).into_bytes())
            .collect::<Vec<_>>()
    };
    [batches("items", &items), batches("events", &events)].concat()
}

pub fn get_item() -> Vec<Vec<u8>> {
    bodies(|input| format!(r#"{{"TableName":"items","Key":{{{}}}}}"#, key(spread(input))))
}

/// Two bodies per key, so that each write changes what the previous one left.
pub fn put_item() -> Vec<Vec<u8>> {
    changes(|input, version| {
        format!(r#"{{"TableName":"items","Item":{}}}"#, item(&key(spread(input)), version))
    })
}

pub fn update_item() -> Vec<Vec<u8>> {
    bodies(|input| {
        let key = key(spread(input));
        format!(
            r##"{{"TableName":"items","Key":{{{key}}},
                "ConditionExpression":"attribute_exists(pk) AND #version < :limit",
                "UpdateExpression":"SET #version = #version + :one, active = :yes",
                "ExpressionAttributeNames":{{"#version":"version"}},
                "ExpressionAttributeValues":{{":one":{{"N":"1"}},":limit":{{"N":"1000000"}},":yes":{{"BOOL":true}}}}}}"##
        )
    })
}

/// A page of 25 items from near the start of a partition.
pub fn query() -> Vec<Vec<u8>> {
    bodies(|input| {
        let (partition, first) = (input % PARTITIONS, input / PARTITIONS);
        format!(
            r#"{{"TableName":"events","Limit":25,
                "KeyConditionExpression":"pk = :pk AND sk >= :first",
                "ExpressionAttributeValues":{{":pk":{{"S":"{}"}},":first":{{"N":"{first}"}}}}}}"#,
            partition_name(partition)
        )
    })
}

/// Two items: one that must exist is replaced, the other's counter is incremented.
pub fn transact_write() -> Vec<Vec<u8>> {
    changes(|input, version| {
        let (replaced, counted) = (key(spread(input)), key(spread(input) + 1));
        format!(
            r##"{{"TransactItems":[
                {{"Put":{{"TableName":"items","Item":{},"ConditionExpression":"attribute_exists(pk)"}}}},
                {{"Update":{{"TableName":"items","Key":{{{counted}}},
                    "UpdateExpression":"SET #version = #version + :one",
                    "ExpressionAttributeNames":{{"#version":"version"}},
                    "ExpressionAttributeValues":{{":one":{{"N":"1"}}}}}}}}]}}"##,
            item(&replaced, version)
        )
    })
}

pub fn batch_write() -> Vec<Vec<u8>> {
    changes(|input, version| {
        let numbers = (0..BATCH_SIZE_MAX).map(|place| (input + place * 40) % ITEMS);
        let items: Vec<String> = numbers.map(|number| item(&key(number), version)).collect();
        batch("items", &items)
    })
}

/// Requests as clients send them, without line breaks and spaces.
fn bodies(body: impl Fn(usize) -> String) -> Vec<Vec<u8>> {
    (0..INPUTS).map(|input| compact(&body(input)).into_bytes()).collect()
}

fn changes(body: impl Fn(usize, usize) -> String) -> Vec<Vec<u8>> {
    [1, 2].iter().flat_map(|version| bodies(|input| body(input, *version))).collect()
}

fn compact(body: &str) -> String {
    body.lines().map(str::trim_start).collect()
}

/// Spreads the inputs over the items.
fn spread(input: usize) -> usize {
    input * (ITEMS / INPUTS) + input % 7
}

fn key(number: usize) -> String {
    format!(r#""pk":{{"S":"user#{number:012}"}}"#)
}

fn partition_name(partition: usize) -> String {
    format!("device#{partition:04}")
}

fn item(key: &str, version: usize) -> String {
    let fill = "x".repeat(FILL_SIZE_BYTES);
    format!(
        r#"{{{key},"version":{{"N":"{version}"}},"active":{{"BOOL":true}},"fill":{{"S":"{fill}"}}}}"#
    )
}

fn event(partition: usize, event: usize) -> String {
    item(&format!(r#""pk":{{"S":"{}"}},"sk":{{"N":"{event}"}}"#, partition_name(partition)), 0)
}

fn batch(table: &str, items: &[String]) -> String {
    let puts: Vec<String> =
        items.iter().map(|item| format!(r#"{{"PutRequest":{{"Item":{item}}}}}"#)).collect();
    format!(r#"{{"RequestItems":{{"{table}":[{}]}}}}"#, puts.join(","))
}
