//! ExportTableToPointInTime into a directory of buckets: what is written, what an import makes of it, and bad days.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use zenobe_database::{CallError, Database, Options};
use zenobe_engine::clock::ManualClock;
use zenobe_testing::TemporaryDirectory;
use zenobe_transfer::manifest::{self, DataFile};

use crate::support::{call, open_with_buckets};

const START_S: u64 = 1_765_432_100;
const MINUTE_S: u64 = 60;

struct World {
    database: Database,
    buckets: TemporaryDirectory,
    clock: Arc<ManualClock>,
}

impl World {
    async fn new() -> World {
        let clock = Arc::new(ManualClock::new(START_S * 1_000));
        let options = Options { clock: clock.clone(), ..Options::default() };
        let (database, buckets) = open_with_buckets(options).await;
        std::fs::create_dir(buckets.path().join("bucket")).unwrap();
        World { database, buckets, clock }
    }

    /// With table `orders`, which has recovery.
    async fn with_table() -> World {
        let world = World::new().await;
        world.create().await;
        world
    }

    async fn create(&self) {
        self.call("CreateTable", creation("orders")).await.unwrap();
        let on = json!({"PointInTimeRecoveryEnabled": true});
        let body = json!({"TableName": "orders", "PointInTimeRecoverySpecification": on});
        self.call("UpdateContinuousBackups", body).await.unwrap();
    }

    async fn call(&self, operation: &str, body: Value) -> Result<Value, CallError> {
        call(&self.database, operation, body).await
    }

    async fn put(&self, item: Value) {
        self.call("PutItem", json!({"TableName": "orders", "Item": item})).await.unwrap();
    }

    async fn delete(&self, pk: &str) {
        let key = json!({"pk": {"S": pk}});
        self.call("DeleteItem", json!({"TableName": "orders", "Key": key})).await.unwrap();
    }

    fn advance_s(&self, seconds: u64) {
        self.clock.advance_ms(seconds * 1_000);
    }

    /// Runs an export to its end and returns its description.
    async fn export(&self, more: Value) -> Value {
        let mut body = json!({"TableArn": ARN, "S3Bucket": "bucket"});
        let more = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(more);
        let started = self.call("ExportTableToPointInTime", body).await.unwrap();
        self.ended("DescribeExport", "ExportArn", &started["ExportDescription"]["ExportArn"]).await
    }

    /// Imports what an export has written into table `imported`.
    async fn import(&self, prefix: &str, format: &str) {
        let body = json!({
            "S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": prefix},
            "InputFormat": format,
            "InputCompressionType": "GZIP",
            "TableCreationParameters": creation("imported"),
        });
        let started = self.call("ImportTable", body).await.unwrap();
        let arn = &started["ImportTableDescription"]["ImportArn"];
        let ended = self.ended("DescribeImport", "ImportArn", arn).await;
        assert_eq!(ended["ImportStatus"], "COMPLETED", "{ended}");
    }

    async fn ended(&self, operation: &str, member: &str, arn: &Value) -> Value {
        loop {
            let described = self.call(operation, json!({member: arn})).await.unwrap();
            let (_, description) = described.as_object().unwrap().iter().next().unwrap();
            let statuses = [&description["ExportStatus"], &description["ImportStatus"]];
            if !statuses.contains(&&json!("IN_PROGRESS")) {
                return description.clone();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn scan(&self, table: &str) -> BTreeMap<String, Value> {
        let scanned = self.call("Scan", json!({"TableName": table})).await.unwrap();
        by_key(scanned["Items"].as_array().unwrap().clone())
    }

    fn path(&self, key: &str) -> PathBuf {
        self.buckets.path().join("bucket").join(key)
    }

    fn read(&self, key: &str) -> Vec<u8> {
        std::fs::read(self.path(key)).unwrap_or_else(|error| panic!("{key}: {error}"))
    }

    /// The manifest, whose checksums must be right, and the lines of the data files, which must be as the manifest says.
    fn exported(&self, description: &Value) -> (Value, Vec<String>) {
        assert_eq!(description["ExportStatus"], "COMPLETED", "{description}");
        let summary_key = description["ExportManifest"].as_str().unwrap();
        let summary = self.checked(summary_key);
        let summary: Value = serde_json::from_slice(&summary).unwrap();
        let files = self.checked(summary["manifestFilesS3Key"].as_str().unwrap());
        let mut lines = Vec::new();
        for DataFile { item_count, md5, key, .. } in manifest::parse_files(&files).unwrap() {
            let file = self.read(&key);
            assert_eq!(manifest::md5_base64(&file), md5);
            let mut text = String::new();
            GzDecoder::new(&file[..]).read_to_string(&mut text).unwrap();
            assert_eq!(text.lines().count() as u64, item_count);
            lines.extend(text.lines().map(str::to_owned));
        }
        assert_eq!(summary["itemCount"], lines.len());
        assert_eq!(description["ItemCount"], lines.len());
        (summary, lines)
    }

    fn checked(&self, key: &str) -> Vec<u8> {
        let bytes = self.read(key);
        let md5 = self.read(&key.replace(".json", ".md5"));
        assert_eq!(manifest::md5_base64(&bytes).as_bytes(), md5);
        bytes
    }
}

const ARN: &str = "arn:aws:dynamodb:us-east-1:000000000000:table/orders";

fn creation(table: &str) -> Value {
    json!({
        "TableName": table,
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    })
}

fn item(pk: &str, n: u64) -> Value {
    json!({"pk": {"S": pk}, "n": {"N": n.to_string()}})
}

fn all_types(pk: &str) -> Value {
    json!({
        "pk": {"S": pk}, "n": {"N": "-12.5"}, "large": {"N": "1000000000000000000000000000000000000000"}, "b": {"B": "AAE="},
        "bool": {"BOOL": true}, "null": {"NULL": true}, "ss": {"SS": ["x", "\"y'\n"]}, "ns": {"NS": ["2", "1"]},
        "bs": {"BS": ["AA==", "AQ=="]}, "l": {"L": [{"S": ""}, {"L": []}]}, "m": {"M": {"a b": {"N": "0.0000001"}}},
    })
}

fn by_key(items: Vec<Value>) -> BTreeMap<String, Value> {
    items.into_iter().map(|item| (item["pk"]["S"].as_str().unwrap().to_owned(), item)).collect()
}

/// The changes of an incremental export, by key.
fn changes(lines: &[String]) -> BTreeMap<String, Value> {
    let change = |line: &String| {
        let change: Value = serde_json::from_str(line).unwrap();
        (change["Keys"]["pk"]["S"].as_str().unwrap().to_owned(), change)
    };
    lines.iter().map(change).collect()
}

fn incremental(from_s: u64, to_s: u64) -> Value {
    let specification = json!({"ExportFromTime": from_s, "ExportToTime": to_s});
    json!({"ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": specification})
}

#[tokio::test]
async fn what_is_exported_as_of_a_time_can_be_imported() {
    for format in ["DYNAMODB_JSON", "ION"] {
        let world = World::with_table().await;
        for number in 0..300 {
            world.put(all_types(&format!("k{number}"))).await;
        }
        let before = world.scan("orders").await;
        let table = world.call("DescribeTable", json!({"TableName": "orders"})).await.unwrap();
        world.advance_s(10);
        world.put(item("later", 1)).await;
        world.put(item("k7", 1)).await;
        world.delete("k8").await;
        world.advance_s(10);
        let time =
            json!({"ExportTime": START_S + 5, "S3Prefix": "some/where/", "ExportFormat": format});
        let description = world.export(time).await;
        let (summary, lines) = world.exported(&description);
        assert_eq!(lines.len(), 300);
        let id = description["ExportArn"].as_str().unwrap().rsplit('/').next().unwrap();
        let folder = format!("some/where/AWSDynamoDB/{id}");
        assert_eq!(description["ExportManifest"], format!("{folder}/manifest-summary.json"));
        assert_eq!(description["BilledSizeBytes"], summary["billedSizeBytes"]);
        assert_eq!(summary["billedSizeBytes"], table["Table"]["TableSizeBytes"]);
        assert_eq!(summary["exportTime"], "2025-12-11T05:48:25.000Z");
        assert_eq!(summary["outputFormat"], format);
        assert_eq!(summary["exportArn"], description["ExportArn"]);
        assert_eq!(world.read(&format!("{folder}/_started")), b"");
        world.import(&format!("{folder}/data/"), format).await;
        assert_eq!(world.scan("imported").await, before, "{format}");
    }
}

#[tokio::test]
async fn an_empty_table_has_an_empty_file() {
    let world = World::with_table().await;
    let (summary, lines) = world.exported(&world.export(json!({})).await);
    assert_eq!((summary["itemCount"].clone(), lines.len()), (json!(0), 0));
    let files = world.checked(summary["manifestFilesS3Key"].as_str().unwrap());
    assert_eq!(manifest::parse_files(&files).unwrap().len(), 1);
}

#[tokio::test]
async fn filters_choose_items_and_attributes() {
    let world = World::with_table().await;
    for number in 0..20 {
        world.put(item(&format!("k{number:02}"), number)).await;
    }
    let filtered = |specification: Value| json!({"FilterSpecification": specification});
    let expression = json!({
        "FilterExpression": "n >= :n",
        "ProjectionExpression": "#p",
        "ExpressionAttributeNames": {"#p": "pk"},
        "ExpressionAttributeValues": {":n": {"N": "18"}},
    });
    let (_, mut lines) = world.exported(&world.export(filtered(expression)).await);
    lines.sort();
    assert_eq!(lines, [r#"{"Item":{"pk":{"S":"k18"}}}"#, r#"{"Item":{"pk":{"S":"k19"}}}"#]);
    let partition = json!({
        "KeyConditionExpression": "pk = :k",
        "ExpressionAttributeValues": {":k": {"S": "k03"}},
    });
    let (_, lines) = world.exported(&world.export(filtered(partition)).await);
    assert_eq!(lines, [r#"{"Item":{"n":{"N":"3"},"pk":{"S":"k03"}}}"#]);
}

#[tokio::test]
async fn incremental_exports_have_net_changes() {
    let world = World::with_table().await;
    for pk in ["kept", "changed", "deleted", "restored", "hot", "changed-later"] {
        world.put(item(pk, 0)).await;
    }
    world.advance_s(MINUTE_S);
    let from_s = START_S + MINUTE_S;
    // From here on, and including this moment.
    world.put(item("changed", 1)).await;
    world.delete("deleted").await;
    world.put(item("inserted", 1)).await;
    world.put(item("passing", 1)).await;
    world.put(item("restored", 1)).await;
    for number in 1..40 {
        world.put(item("hot", number)).await;
    }
    world.advance_s(MINUTE_S);
    world.put(item("changed", 2)).await;
    world.delete("passing").await;
    world.put(item("restored", 0)).await;
    let last_s = START_S + 2 * MINUTE_S;
    world.advance_s(14 * MINUTE_S);
    let to_s = from_s + 15 * MINUTE_S;
    // Up to here, and without this moment.
    world.put(item("changed", 3)).await;
    world.put(item("changed-later", 1)).await;
    world.delete("inserted").await;
    for number in 40..80 {
        world.put(item("hot", number)).await;
    }
    world.advance_s(MINUTE_S);

    let description = world.export(incremental(from_s, to_s)).await;
    let (summary, lines) = world.exported(&description);
    let found = changes(&lines);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["changed", "deleted", "hot", "inserted"]);
    let metadata = json!({"WriteTimestampMicros": {"N": (last_s * 1_000_000).to_string()}});
    let changed = json!({
        "Metadata": metadata,
        "Keys": {"pk": {"S": "changed"}},
        "OldImage": item("changed", 0),
        "NewImage": item("changed", 2),
    });
    assert_eq!(found["changed"], changed);
    assert_eq!(found["deleted"]["NewImage"], Value::Null);
    assert_eq!(found["deleted"]["OldImage"], item("deleted", 0));
    assert_eq!(found["inserted"]["OldImage"], Value::Null);
    assert_eq!(found["inserted"]["NewImage"], item("inserted", 1));
    assert_eq!(found["hot"]["OldImage"], item("hot", 0));
    assert_eq!(found["hot"]["NewImage"], item("hot", 39));
    assert_eq!(summary["exportType"], "INCREMENTAL_EXPORT");
    assert_eq!(summary["outputView"], "NEW_AND_OLD_IMAGES");
    assert_eq!(summary["version"], "2023-08-01");
    assert_eq!(summary["billedSizeBytes"], 10_000_000);
    let files = world.checked(summary["manifestFilesS3Key"].as_str().unwrap());
    let [file] = &manifest::parse_files(&files).unwrap()[..] else { panic!() };
    assert!(file.key.starts_with("AWSDynamoDB/data/"), "{}", file.key);
    let shown = &description["IncrementalExportSpecification"];
    assert_eq!(shown["ExportViewType"], "NEW_AND_OLD_IMAGES");
    assert_eq!(description["ExportTime"], Value::Null);

    let mut request = incremental(from_s, to_s);
    request["IncrementalExportSpecification"]["ExportViewType"] = "NEW_IMAGE".into();
    request["FilterSpecification"] = json!({
        "KeyConditionExpression": "pk = :k",
        "ExpressionAttributeValues": {":k": {"S": "changed"}},
    });
    let (_, lines) = world.exported(&world.export(request.clone()).await);
    let found = changes(&lines);
    assert_eq!(found.len(), 1);
    assert_eq!(found["changed"]["OldImage"], Value::Null);
    request["ExportFormat"] = "ION".into();
    let (_, lines) = world.exported(&world.export(request).await);
    let micros = last_s * 1_000_000;
    let expected = format!(
        "$ion_1_0 {{Record:{{Keys:{{pk:\"changed\"}},Metadata:{{WriteTimestampMicros:{micros}.}},NewImage:{{n:2.,pk:\"changed\"}}}}}}"
    );
    assert_eq!(lines, [expected]);
}

#[tokio::test]
async fn exports_survive_their_table() {
    let world = World::with_table().await;
    world.put(item("a", 1)).await;
    let first = world.export(json!({"ClientToken": "token"})).await;
    let again = world.export(json!({"ClientToken": "token"})).await;
    assert_eq!(first, again, "a finished export still has its token");
    world.advance_s(1);
    world.call("DeleteTable", json!({"TableName": "orders"})).await.unwrap();
    let described = world.call("DescribeExport", json!({"ExportArn": first["ExportArn"]})).await;
    assert_eq!(described.unwrap()["ExportDescription"], first);
    world.create().await;
    let second = world.export(json!({})).await;
    let listed = world.call("ListExports", json!({"TableArn": ARN})).await.unwrap();
    assert_eq!(listed["ExportSummaries"].as_array().unwrap().len(), 1);
    assert_eq!(listed["ExportSummaries"][0]["ExportArn"], second["ExportArn"]);
    let listed = world.call("ListExports", json!({"MaxResults": 1})).await.unwrap();
    assert_eq!(listed["ExportSummaries"][0]["ExportArn"], second["ExportArn"]);
    let rest = json!({"NextToken": listed["NextToken"]});
    let rest = world.call("ListExports", rest).await.unwrap();
    assert_eq!(rest["ExportSummaries"][0]["ExportArn"], first["ExportArn"]);
    assert_eq!(rest["NextToken"], Value::Null);
}

#[tokio::test]
async fn an_export_that_fails_leaves_no_manifest() {
    let world = World::with_table().await;
    let missing = world.export(json!({"S3Bucket": "missing"})).await;
    assert_eq!(missing["ExportStatus"], "FAILED");
    assert_eq!(missing["FailureCode"], "S3NoSuchBucket", "{missing}");
    assert_eq!(missing["ExportManifest"], Value::Null);
    let invalid = world.export(json!({"S3Prefix": "a//b"})).await;
    assert_eq!(invalid["FailureCode"], "S3InvalidKey", "{invalid}");
    assert!(!Path::new(&world.path("a")).exists());
}
