//! A table for the tests of copies.

use crate::Database;

pub(crate) async fn create(database: &Database) {
    let table = r#"{"TableName": "tab", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}]}"#;
    database.call("CreateTable", table).await.unwrap();
}

pub(crate) async fn put(database: &Database, key: &str) {
    let put = format!(r#"{{"TableName": "tab", "Item": {{"p": {{"S": "{key}"}}}}}}"#);
    database.call("PutItem", put).await.unwrap();
}

/// Whether the table has this many items.
pub(crate) async fn has_items(database: &Database, count: usize) -> bool {
    let scan = r#"{"TableName": "tab", "Select": "COUNT"}"#;
    let answer = database.call("Scan", scan).await.unwrap();
    answer.contains(&format!(r#""Count":{count},"#))
}
