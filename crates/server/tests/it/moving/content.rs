//! A database with something of every kind, and everything that a client can see of it.

use std::time::SystemTime;

use serde_json::{Value, json};
use zenobe_testing::{Client, wait_until};

use super::scan;

const TABLE: &str = "everything";

/// Fills an empty database: items of all sizes, indexes of both kinds, a stream, time to live, tags, a transaction's
/// token, deleted items, a deleted table, a second table with provisioned capacity.
pub fn fill(client: &mut Client) {
    let attribute = |name: &str, kind: &str| json!({"AttributeName": name, "AttributeType": kind});
    let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
    client.expect(
        "CreateTable",
        &json!({
            "TableName": TABLE,
            "AttributeDefinitions": [
                attribute("pk", "S"), attribute("sk", "N"), attribute("g", "S"), attribute("l", "B"),
            ],
            "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
            "BillingMode": "PAY_PER_REQUEST",
            "GlobalSecondaryIndexes": [{
                "IndexName": "by-g", "KeySchema": [key("g", "HASH"), key("sk", "RANGE")],
                "Projection": {"ProjectionType": "ALL"},
            }],
            "LocalSecondaryIndexes": [{
                "IndexName": "by-l", "KeySchema": [key("pk", "HASH"), key("l", "RANGE")],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }],
            "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            "Tags": [{"Key": "team", "Value": "one"}],
        }),
    );
    client.expect(
        "UpdateTimeToLive",
        &json!({
            "TableName": TABLE,
            "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": true},
        }),
    );
    for number in 0..300 {
        put(client, number);
    }
    // Keys as long as they may be, which PostgreSQL stores in another way.
    for number in 300..304 {
        let mut item = item(number);
        item["pk"]["S"] = json!(format!("{}{number}", "p".repeat(2_040)));
        item["g"]["S"] = json!("g".repeat(2_048));
        client.expect("PutItem", &json!({"TableName": TABLE, "Item": item}));
    }
    for number in 0..40 {
        let key = item(number * 7);
        let key = json!({"pk": key["pk"], "sk": key["sk"]});
        client.expect("DeleteItem", &json!({"TableName": TABLE, "Key": key}));
    }
    transact(client);
    for table in ["second", "deleted"] {
        client.expect(
            "CreateTable",
            &json!({
                "TableName": table,
                "AttributeDefinitions": [attribute("pk", "B")],
                "KeySchema": [key("pk", "HASH")],
                "ProvisionedThroughput": {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4},
            }),
        );
        let item = json!({"pk": {"B": "AP8A"}, "empty": {"S": ""}});
        client.expect("PutItem", &json!({"TableName": table, "Item": item}));
    }
    client.expect("DeleteTable", &json!({"TableName": "deleted"}));
}

pub fn put(client: &mut Client, number: usize) {
    client.expect("PutItem", &json!({"TableName": TABLE, "Item": item(number)}));
}

fn item(number: usize) -> Value {
    let mut item = json!({
        "pk": {"S": format!("partition {}", number % 17)},
        "sk": {"N": format!("{}.5", number)},
        "g": {"S": format!("group {}", number % 5)},
        "l": {"B": "AAEC"},
        "value": {"M": {"list": {"L": [{"N": "1.5"}, {"NULL": true}, {"SS": ["a", "b"]}]}}},
        "text": {"S": "x".repeat(number * 13 % 5_000)},
    });
    if number.is_multiple_of(3) {
        item["expires"] = json!({"N": "4000000000"});
    }
    item
}

/// A transaction with a token: repeated, it changes nothing.
pub fn transact(client: &mut Client) {
    let update = json!({
        "TableName": TABLE,
        "Key": {"pk": {"S": "counted"}, "sk": {"N": "0"}},
        "UpdateExpression": "ADD #n :one",
        "ExpressionAttributeNames": {"#n": "n"},
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    });
    client.expect(
        "TransactWriteItems",
        &json!({"ClientRequestToken": "the same token", "TransactItems": [{"Update": update}]}),
    );
}

/// Everything that a client can see, in one value that can be compared.
pub fn see(client: &mut Client) -> Value {
    let tables = client.expect("ListTables", &json!({}));
    let mut seen = json!({"tables": tables, "records": records(client)});
    for table in ["everything", "second"] {
        let description = client.expect("DescribeTable", &json!({"TableName": table}));
        seen[table] = json!({
            "items": scan(client, &json!({"TableName": table, "ConsistentRead": true})),
            "description": description,
        });
    }
    for index in ["by-g", "by-l"] {
        let scanned = json!({"TableName": TABLE, "IndexName": index});
        seen[index] = json!(scan(client, &scanned));
    }
    let name = json!({"TableName": TABLE});
    seen["ttl"] = client.expect("DescribeTimeToLive", &name);
    let arn = seen[TABLE]["description"]["Table"]["TableArn"].clone();
    seen["tags"] = client.expect("ListTagsOfResource", &json!({"ResourceArn": arn}));
    seen
}

/// The records of the stream, shard by shard, with their sequence numbers and times.
pub fn records(client: &mut Client) -> Vec<Value> {
    let mut records = Vec::new();
    for iterator in iterators(client, "TRIM_HORIZON") {
        records.extend(read(client, iterator).0);
    }
    records
}

fn call(client: &mut Client, operation: &str, body: &Value) -> Value {
    let reply = client.call_streams(operation, body).expect("an answer");
    assert_eq!(reply.status, 200, "{operation}: {}", reply.body);
    reply.body
}

fn stream(client: &mut Client) -> String {
    let description = client.expect("DescribeTable", &json!({"TableName": TABLE}));
    description["Table"]["LatestStreamArn"].as_str().expect("a stream").to_owned()
}

pub fn iterators(client: &mut Client, kind: &str) -> Vec<String> {
    let arn = stream(client);
    let description = call(client, "DescribeStream", &json!({"StreamArn": arn}));
    let shards = description["StreamDescription"]["Shards"].as_array().expect("a list");
    let mut iterators = Vec::new();
    for shard in shards {
        let request = json!({
            "StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": kind,
        });
        let iterator = call(client, "GetShardIterator", &request);
        iterators.push(iterator["ShardIterator"].as_str().expect("a text").to_owned());
    }
    iterators
}

/// The records from an iterator on, and the iterator behind them.
pub fn read(client: &mut Client, mut iterator: String) -> (Vec<Value>, String) {
    let mut records = Vec::new();
    loop {
        let page = call(client, "GetRecords", &json!({"ShardIterator": iterator}));
        let found = page["Records"].as_array().expect("a list");
        records.extend(found.iter().cloned());
        match page["NextShardIterator"].as_str() {
            Some(next) if !found.is_empty() => next.clone_into(&mut iterator),
            _ => return (records, iterator),
        }
    }
}

fn an_hour_ago() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time");
    now.as_secs() - 3_600
}

/// What happens to a database that has been moved: everything goes on where it was.
pub fn check_it_goes_on(client: &mut Client, iterators: Vec<String>) {
    let before = see(client);
    // The token is still known.
    transact(client);
    assert_eq!(see(client), before);
    // Iterators from before the move go on, with the next numbers.
    let number = 1_000 + before["records"].as_array().unwrap().len();
    put(client, number);
    let mut news = Vec::new();
    for iterator in iterators {
        news.extend(read(client, iterator).0);
    }
    assert_eq!(news.len(), 1, "{news:?}");
    assert_eq!(news[0]["dynamodb"]["NewImage"], item(number));
    let key = json!({"pk": item(number)["pk"], "sk": item(number)["sk"]});
    client.expect("DeleteItem", &json!({"TableName": TABLE, "Key": key}));
    // An item that has expired goes.
    let mut expiring = item(number);
    expiring["expires"] = json!({"N": an_hour_ago().to_string()});
    client.expect("PutItem", &json!({"TableName": TABLE, "Item": expiring}));
    let get = json!({"TableName": TABLE, "Key": key, "ConsistentRead": true});
    // Longer ago than the clocks of nodes may differ.
    wait_until(|| client.expect("GetItem", &get)["Item"].is_null());
}
