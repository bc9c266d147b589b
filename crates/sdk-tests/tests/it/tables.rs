//! Set-up and reads of whole tables and indexes through the raw client.

use serde_json::{Value, json};
use zenobe_testing::Client;

/// Every item of a table or index, over all pages of a scan.
pub fn scan(client: &mut Client, table: &str, index: Option<&str>) -> Vec<Value> {
    let mut request = json!({"TableName": table});
    match index {
        Some(index) => request["IndexName"] = json!(index),
        None => request["ConsistentRead"] = json!(true),
    }
    pages(client, "Scan", request)
}

/// Every item of a query or scan, over all pages.
pub fn pages(client: &mut Client, operation: &str, mut request: Value) -> Vec<Value> {
    let mut items = Vec::new();
    loop {
        let mut page = client.expect(operation, &request);
        let Value::Array(found) = page["Items"].take() else { panic!("a page has items: {page}") };
        items.extend(found);
        match page["LastEvaluatedKey"].take() {
            Value::Null => return items,
            last => request["ExclusiveStartKey"] = last,
        }
    }
}

/// The item under a key, read consistently.
pub fn get(client: &mut Client, table: &str, key: &Value) -> Option<Value> {
    let request = json!({"TableName": table, "Key": key, "ConsistentRead": true});
    match client.expect("GetItem", &request)["Item"].take() {
        Value::Null => None,
        item => Some(item),
    }
}

pub fn enable_time_to_live(client: &mut Client, table: &str, attribute: &str) {
    let setting = json!({"Enabled": true, "AttributeName": attribute});
    let request = json!({"TableName": table, "TimeToLiveSpecification": setting});
    client.expect("UpdateTimeToLive", &request);
}

pub fn stream_arn(client: &mut Client, table: &str) -> String {
    let described = client.expect("DescribeTable", &json!({"TableName": table}));
    described["Table"]["LatestStreamArn"].as_str().expect("a stream has an ARN").to_owned()
}

/// Switches the stream off: it then has an end.
pub fn end_stream(client: &mut Client, table: &str) {
    let off = json!({"TableName": table, "StreamSpecification": {"StreamEnabled": false}});
    client.expect("UpdateTable", &off);
}

/// Creates a table whose partition key is the string `pk`.
pub fn create_simple(client: &mut Client, table: &str) {
    let request = json!({
        "TableName": table,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    });
    client.expect("CreateTable", &request);
}

/// A numeric attribute of an item.
pub fn number(item: &Value, name: &str) -> i64 {
    let text = item[name]["N"].as_str().unwrap_or_else(|| panic!("{name} is a number in {item}"));
    text.parse().expect("these tests use small whole numbers")
}
