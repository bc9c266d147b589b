//! Single calls to a server with a loaded table, for realistic bodies and for the figures that it
//! reports.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::Result;
use crate::load::exchange;

/// The response body of a GetItem of one of the table's items.
pub fn get_item(address: SocketAddr, table: &str) -> Result<String> {
    let item = any_item(address, table)?;
    let mut key = serde_json::Map::new();
    for name in key_names(address, table)? {
        key.insert(name.clone(), item[&name].clone());
    }
    call(address, "GetItem", &json!({"TableName": table, "Key": key}))
}

/// The response body of a Query for a page of one of the table's partitions.
pub fn query(address: SocketAddr, table: &str, page_items: usize) -> Result<String> {
    let item = any_item(address, table)?;
    let partition = key_names(address, table)?.into_iter().next().ok_or("a table without a key")?;
    let request = json!({
        "TableName": table,
        "KeyConditionExpression": "#partition = :partition",
        "ExpressionAttributeNames": {"#partition": partition},
        "ExpressionAttributeValues": {":partition": item[&partition]},
        "Limit": page_items,
    });
    call(address, "Query", &request)
}

/// The size of all items, as DynamoDB counts it.
pub fn table_bytes(address: SocketAddr, table: &str) -> Result<u64> {
    describe(address, table)?["TableSizeBytes"].as_u64().ok_or_else(|| "no table size".into())
}

pub fn item_count(address: SocketAddr, table: &str) -> Result<u64> {
    describe(address, table)?["ItemCount"].as_u64().ok_or_else(|| "no item count".into())
}

/// Switches a table's point-in-time recovery on or off.
pub fn keep_history(address: SocketAddr, table: &str, is_on: bool) -> Result<()> {
    let specification = json!({"PointInTimeRecoveryEnabled": is_on});
    let request = json!({"TableName": table, "PointInTimeRecoverySpecification": specification});
    call(address, "UpdateContinuousBackups", &request).map(drop)
}

pub fn describe(address: SocketAddr, table: &str) -> Result<Value> {
    let answer = call(address, "DescribeTable", &json!({"TableName": table}))?;
    let mut answer: Value = serde_json::from_str(&answer)?;
    Ok(answer["Table"].take())
}

pub fn call(address: SocketAddr, operation: &str, request: &Value) -> Result<String> {
    exchange(address, operation, &request.to_string())
}

/// The largest of the first few items: the load generator's marker is small.
fn any_item(address: SocketAddr, table: &str) -> Result<Value> {
    let answer = call(address, "Scan", &json!({"TableName": table, "Limit": 3}))?;
    let mut answer: Value = serde_json::from_str(&answer)?;
    let items = answer["Items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let largest = items.into_iter().max_by_key(|item| item.to_string().len());
    largest.ok_or_else(|| format!("the table {table} has no items").into())
}

/// The partition key's name comes first.
fn key_names(address: SocketAddr, table: &str) -> Result<Vec<String>> {
    let table = describe(address, table)?;
    let schema = table["KeySchema"].as_array().ok_or("a table without a key")?;
    let names = schema.iter().filter_map(|element| element["AttributeName"].as_str());
    Ok(names.map(str::to_owned).collect())
}
