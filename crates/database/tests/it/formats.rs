//! A data directory of each format, as a program of that time left it. It must open and give the
//! same responses.
//!
//! `tests/formats/N` holds two directories, one closed properly and one whose process died, and the
//! responses to a list of requests. `cargo test -p zenobe-database --test it -- --ignored
//! make_the_current_format` recreates the directory of the current format; those of released
//! formats never change. Where a response changes on purpose, `ZENOBE_BLESS=1` rewrites the
//! responses, to be reviewed as a diff.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use zenobe_database::{Database, Durability, Location, ManualClock, Options};
use zenobe_store_embedded::FORMAT_VERSION;
use zenobe_testing::TemporaryDirectory;

/// The time at which the directories were made, by their own clock: 14 November 2023.
const NOW_MS: u64 = 1_700_000_000_000;

fn formats() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats")
}

async fn open(path: &Path) -> Database {
    let clock = Arc::new(ManualClock::new(NOW_MS));
    let location = Location::Directory { path: path.to_owned(), durability: Durability::Sync };
    Database::open_with(Options { location, clock, ..Options::default() }).await.unwrap()
}

async fn call(database: &Database, operation: &str, body: &Value) -> Value {
    let answer = database.call(operation, body.to_string()).await;
    serde_json::from_str(&answer.unwrap_or_else(|error| panic!("{operation}: {error}"))).unwrap()
}

/// Tables with every kind of key and index, items with every type of value, streams, expiries and
/// an idempotency token.
async fn fill(database: &Database) {
    let attribute = |name: &str, kind: &str| json!({"AttributeName": name, "AttributeType": kind});
    let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
    let all = json!({"ProjectionType": "ALL"});
    call(
        database,
        "CreateTable",
        &json!({
            "TableName": "things",
            "AttributeDefinitions": [
                attribute("pk", "S"), attribute("sk", "N"), attribute("color", "S"), attribute("raw", "B"),
            ],
            "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
            "LocalSecondaryIndexes": [{
                "IndexName": "by_raw", "KeySchema": [key("pk", "HASH"), key("raw", "RANGE")],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }],
            "GlobalSecondaryIndexes": [
                {"IndexName": "by_color", "KeySchema": [key("color", "HASH")], "Projection": all},
                {"IndexName": "by_two", "KeySchema": [
                    key("color", "HASH"), key("pk", "HASH"), key("sk", "RANGE"),
                ], "Projection": all},
            ],
            "BillingMode": "PAY_PER_REQUEST",
            "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            "Tags": [{"Key": "kept", "Value": "yes"}],
        }),
    )
    .await;
    let expiring = json!({"Enabled": true, "AttributeName": "until"});
    call(
        database,
        "UpdateTimeToLive",
        &json!({"TableName": "things", "TimeToLiveSpecification": expiring}),
    )
    .await;
    for number in 0..20 {
        let color = if number % 2 == 0 { "red" } else { "green" };
        let item = json!({
            "pk": {"S": format!("p{}\u{0}é", number % 3)}, "sk": {"N": format!("{}", number - 10)},
            "color": {"S": color}, "raw": {"B": "AAEC/w=="},
            "until": {"N": (NOW_MS / 1_000 + 1_000_000).to_string()},
            "large": {"N": "-1.2345678901234567890123456789012345678E+100"},
            "yes": {"BOOL": true}, "none": {"NULL": true}, "texts": {"SS": ["b", "a"]},
            "numbers": {"NS": ["10", "9.5"]}, "blobs": {"BS": ["AQ==", "/w=="]},
            "nested": {"L": [{"M": {"deep": {"S": ""}}}, {"N": "0"}]},
        });
        call(database, "PutItem", &json!({"TableName": "things", "Item": item})).await;
    }
    let gone = json!({"pk": {"S": "p0\u{0}é"}, "sk": {"N": "-10"}});
    call(database, "DeleteItem", &json!({"TableName": "things", "Key": gone})).await;
    call(database, "TransactWriteItems", &transaction()).await;
}

fn transaction() -> Value {
    json!({
        "ClientRequestToken": "remembered",
        "TransactItems": [{"Put": {"TableName": "things", "Item": {
            "pk": {"S": "by a transaction"}, "sk": {"N": "1"}, "n": {"N": "1"},
        }}}],
        "ReturnConsumedCapacity": "TOTAL",
    })
}

/// The content of a directory, as requests show it. A remembered token costs reads, not writes.
async fn answers(database: &Database) -> Value {
    let of_table = |mut body: Value| {
        body["TableName"] = json!("things");
        body
    };
    let stream = call(database, "DescribeTable", &of_table(json!({}))).await;
    let arn = stream["Table"]["LatestStreamArn"].clone();
    let mut records = Vec::new();
    let described = call(database, "DescribeStream", &json!({"StreamArn": arn})).await;
    for shard in described["StreamDescription"]["Shards"].as_array().unwrap() {
        let position = json!({
            "StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON",
        });
        let position = call(database, "GetShardIterator", &position).await;
        let page =
            call(database, "GetRecords", &json!({"ShardIterator": position["ShardIterator"]}))
                .await;
        records.push(page["Records"].clone());
    }
    let by_color = json!({
        "IndexName": "by_color", "KeyConditionExpression": "color = :c",
        "ExpressionAttributeValues": {":c": {"S": "red"}},
    });
    let by_raw = json!({
        "IndexName": "by_raw", "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "p1\u{0}é"}}, "Select": "ALL_ATTRIBUTES",
    });
    json!({
        "tables": call(database, "ListTables", &json!({})).await,
        "table": stream,
        "expiry": call(database, "DescribeTimeToLive", &of_table(json!({}))).await,
        "items": call(database, "Scan", &of_table(json!({}))).await,
        "by_color": call(database, "Query", &of_table(by_color)).await,
        "by_raw": call(database, "Query", &of_table(by_raw)).await,
        "stream": described,
        "records": records,
        "transaction": call(database, "TransactWriteItems", &transaction()).await,
    })
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        // Nobody reads this file, and it contains the path of the original directory.
        if name.to_string_lossy().starts_with("OPTIONS-") {
            continue;
        }
        let target = to.join(name);
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[tokio::test]
async fn every_format_opens_and_answers_as_it_did() {
    let mut versions = Vec::new();
    for format in fs::read_dir(formats()).unwrap() {
        let format = format.unwrap().path();
        let version: u32 = format.file_name().unwrap().to_str().unwrap().parse().unwrap();
        versions.push(version);
        let expected = fs::read(format.join("answers.json")).unwrap();
        let expected: Value = serde_json::from_slice(&expected).unwrap();
        for state in ["closed", "died"] {
            let directory = TemporaryDirectory::new("format");
            let data = directory.path().join("data");
            copy(&format.join(state), &data);
            let database = open(&data).await;
            let actual = answers(&database).await;
            if std::env::var_os("ZENOBE_BLESS").is_some_and(|value| value == "1") {
                write_answers(&format, &actual);
            } else {
                assert_eq!(actual, expected, "format {version}, {state}");
            }
            // The directory also accepts new writes.
            call(&database, "TransactWriteItems", &transaction()).await;
            let item = json!({"pk": {"S": "new"}, "sk": {"N": "1"}});
            call(&database, "PutItem", &json!({"TableName": "things", "Item": item})).await;
            database.close().await.unwrap();
            drop(database);
            let database = open(&data).await;
            let count = json!({"TableName": "things", "Select": "COUNT"});
            let count = call(&database, "Scan", &count).await;
            let before = expected["items"]["Count"].as_u64().unwrap();
            assert_eq!(count["Count"], before + 1, "format {version}, {state}");
        }
    }
    assert!(
        versions.contains(&FORMAT_VERSION),
        "format {FORMAT_VERSION} has no directory in tests/formats: make one, as this file says"
    );
}

#[tokio::test]
#[ignore = "writes tests/formats; by hand, when the format changes"]
async fn make_the_current_format() {
    let target = formats().join(FORMAT_VERSION.to_string());
    let directory = TemporaryDirectory::new("make-format");
    let data = directory.path().join("data");
    let database = open(&data).await;
    fill(&database).await;
    let answers = answers(&database).await;
    // An idle store records in the log that everything is durable.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let _ = fs::remove_dir_all(&target);
    copy(&data, &target.join("died"));
    database.close().await.unwrap();
    drop(database);
    copy(&data, &target.join("closed"));
    write_answers(&target, &answers);
}

fn write_answers(format: &Path, answers: &Value) {
    let answers = serde_json::to_string_pretty(answers).unwrap() + "\n";
    fs::write(format.join("answers.json"), answers).unwrap();
}
