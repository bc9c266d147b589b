//! ImportTable from a directory of buckets, in every format and compression, and on bad days.

use std::path::Path;
use std::time::Duration;

use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};
use std::io::Write;
use zenobe_database::{CallError, Database, Options};
use zenobe_testing::TemporaryDirectory;
use zenobe_transfer::manifest::{self, DataFile};

use crate::support::{call, open_with_buckets};

struct World {
    database: Database,
    buckets: TemporaryDirectory,
}

impl World {
    async fn new() -> World {
        let (database, buckets) = open_with_buckets(Options::default()).await;
        World { database, buckets }
    }

    fn put(&self, key: &str, bytes: &[u8]) {
        let path = self.buckets.path().join("bucket").join(key);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    async fn call(&self, operation: &str, body: Value) -> Result<Value, CallError> {
        call(&self.database, operation, body).await
    }

    /// Runs an import to its end and returns its description.
    async fn import(&self, body: Value) -> Value {
        let started = self.call("ImportTable", body).await.unwrap();
        let arn = started["ImportTableDescription"]["ImportArn"].clone();
        loop {
            let described = self.call("DescribeImport", json!({"ImportArn": arn})).await.unwrap();
            let description = described["ImportTableDescription"].clone();
            if description["ImportStatus"] != "IN_PROGRESS" {
                return description;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn scan(&self, table: &str) -> Vec<Value> {
        let mut scanned = self.call("Scan", json!({"TableName": table})).await.unwrap();
        let mut items: Vec<Value> =
            scanned["Items"].as_array_mut().unwrap().iter_mut().map(Value::take).collect();
        items.sort_by_key(|item| item["pk"]["S"].as_str().map(str::to_owned));
        items
    }
}

fn request(table: &str, prefix: &str, format: &str, compression: &str) -> Value {
    json!({
        "S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": prefix},
        "InputFormat": format,
        "InputCompressionType": compression,
        "TableCreationParameters": {
            "TableName": table,
            "AttributeDefinitions": [
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "n", "AttributeType": "N"},
            ],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
            "GlobalSecondaryIndexes": [{
                "IndexName": "by-n",
                "KeySchema": [{"AttributeName": "n", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }],
        },
    })
}

fn compressed(bytes: &[u8], compression: &str) -> Vec<u8> {
    match compression {
        "GZIP" => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "ZSTD" => compress_to_vec(bytes, CompressionLevel::Fastest),
        _ => bytes.to_vec(),
    }
}

const ALL_TYPES: &str = r#"{"Item":{"pk":{"S":"a"},"n":{"N":"1.5"},"b":{"B":"AAE="},"bool":{"BOOL":true},"null":{"NULL":true},"ss":{"SS":["x","y"]},"ns":{"NS":["2","1"]},"bs":{"BS":["AA==","AQ=="]},"l":{"L":[{"S":""},{"L":[]}]},"m":{"M":{"k":{"N":"-1"}}}}}"#;
const ALL_TYPES_ION: &str = r#"$ion_1_0 {Item:{pk:"a",n:1.5,b:{{AAE=}},bool:true,'null':null,ss:$dynamodb_SS::["x","y"],ns:$dynamodb_NS::[2.,1.],bs:$dynamodb_BS::[{{AA==}},{{AQ==}}],l:["",[]],m:{k:-1.}}}"#;

#[tokio::test]
async fn every_format_and_compression_is_imported() {
    let world = World::new().await;
    let expected: Value = serde_json::from_str(ALL_TYPES).unwrap();
    for compression in ["NONE", "GZIP", "ZSTD"] {
        let many: String =
            (0..3_000).map(|n| format!("{{\"Item\":{{\"pk\":{{\"S\":\"k{n}\"}}}}}}\n")).collect();
        let files = [
            ("DYNAMODB_JSON", format!("{ALL_TYPES}\n\n{many}"), 3_001),
            ("ION", format!("{ALL_TYPES_ION}\n{{Item:{{pk:\"b\"}}}}"), 2),
            ("CSV", "pk,n,x\na,1.5,7\nb,,\n".to_owned(), 2),
        ];
        for (format, file, count) in files {
            let table = format!("{format}.{compression}");
            world.put(&format!("{table}/part.any"), &compressed(file.as_bytes(), compression));
            let described =
                world.import(request(&table, &format!("{table}/pa"), format, compression)).await;
            assert_eq!(described["ImportStatus"], "COMPLETED", "{described}");
            assert_eq!(described["ProcessedItemCount"], count);
            assert_eq!(described["ImportedItemCount"], count);
            assert_eq!(described["ErrorCount"], 0);
            assert_eq!(described["ProcessedSizeBytes"], file.len());
            let items = world.scan(&table).await;
            match format {
                "CSV" => {
                    let row = json!({"pk": {"S": "a"}, "n": {"N": "1.5"}, "x": {"S": "7"}});
                    assert_eq!(items, [row, json!({"pk": {"S": "b"}})]);
                }
                _ => assert_eq!(items[0], expected["Item"]),
            }
            let table = world.call("DescribeTable", json!({"TableName": table})).await.unwrap();
            assert_eq!(table["Table"]["TableStatus"], "ACTIVE");
            assert_eq!(table["Table"]["ItemCount"], count);
            assert_eq!(table["Table"]["GlobalSecondaryIndexes"][0]["ItemCount"], 1);
            assert_eq!(table["Table"]["TableId"], described["TableId"]);
        }
    }
}

#[tokio::test]
async fn bad_items_are_counted_and_the_good_ones_stay() {
    let world = World::new().await;
    let line = |item: &str| format!("{{\"Item\":{item}}}\n");
    let lines = [
        line(r#"{"pk":{"S":"a"}}"#),
        line(r#"{"x":{"S":"no key"}}"#),
        line(r#"{"pk":{"S":"index key"},"n":{"S":"text"}}"#),
        line(r#"{"pk":{"S":"set"},"s":{"SS":[]}}"#),
        line(r#"{"pk":{"S":"b"}}"#),
    ];
    world.put("one/1.json", lines.concat().as_bytes());
    // An unparsable line ends its object, and only that.
    let [good, ..] = &lines;
    world.put("one/2.json", format!("{good}not json\n{good}").as_bytes());
    world.put("one/3.json", line(r#"{"pk":{"S":"c"}}"#).as_bytes());
    let described = world.import(request("one", "one/", "DYNAMODB_JSON", "NONE")).await;
    assert_eq!(described["ImportStatus"], "FAILED", "{described}");
    assert_eq!(described["FailureCode"], "ItemValidationError");
    assert_eq!(described["ProcessedItemCount"], 8);
    assert_eq!(described["ErrorCount"], 4);
    assert_eq!(described["ImportedItemCount"], 4);
    let keys: Vec<Value> = world.scan("one").await.iter().map(|it| it["pk"]["S"].clone()).collect();
    assert_eq!(keys, ["a", "b", "c"]);
    // What is left of a compressed file that was cut.
    let whole = compressed(lines[0].repeat(9_999).as_bytes(), "GZIP");
    world.put("cut/1.gz", &whole[..whole.len() - 9]);
    let described = world.import(request("cut", "cut/", "DYNAMODB_JSON", "GZIP")).await;
    assert_eq!(described["FailureCode"], "ItemValidationError", "{described}");
    assert_eq!(described["ErrorCount"], 1);
    assert_eq!(world.scan("cut").await.len(), 1);
}

#[tokio::test]
async fn an_import_that_fails_leaves_no_table() {
    let world = World::new().await;
    let missing = world.import(request("table", "", "DYNAMODB_JSON", "NONE")).await;
    assert_eq!(missing["ImportStatus"], "FAILED");
    assert_eq!(missing["FailureCode"], "S3NoSuchBucket", "{missing}");

    let file = compressed(ALL_TYPES.as_bytes(), "GZIP");
    let key = "AWSDynamoDB/01-ab/data/x.json.gz";
    let entry = |md5: String| {
        let file = DataFile { item_count: 1, md5, etag: String::new(), key: key.to_owned() };
        manifest::files_to_json(&[file])
    };
    world.put(key, &file);
    let files = "AWSDynamoDB/01-ab/manifest-files.json";
    world.put(files, &entry(manifest::md5_base64(b"another file")));
    let prefix = "AWSDynamoDB/01-ab/data/";
    let damaged = world.import(request("table", prefix, "DYNAMODB_JSON", "GZIP")).await;
    assert_eq!(damaged["FailureCode"], "S3ChecksumMismatch", "{damaged}");
    let error = world.call("DescribeTable", json!({"TableName": "table"})).await.unwrap_err();
    let CallError::Exception { exception, .. } = error else { panic!("{error}") };
    assert_eq!(exception, "ResourceNotFoundException");

    world.put(files, &entry(manifest::md5_base64(&file)));
    let whole = world.import(request("table", prefix, "DYNAMODB_JSON", "GZIP")).await;
    assert_eq!(whole["ImportStatus"], "COMPLETED", "{whole}");
    // Nothing matches: an empty table.
    let empty = world.import(request("empty", "nothing/", "CSV", "NONE")).await;
    assert_eq!(empty["ImportStatus"], "COMPLETED", "{empty}");
    assert_eq!(world.scan("empty").await.len(), 0);

    let listed = world.call("ListImports", json!({"PageSize": 3})).await.unwrap();
    let statuses = |listed: &Value| -> Vec<Value> {
        let list = listed["ImportSummaryList"].as_array().unwrap();
        list.iter().map(|import| import["ImportStatus"].clone()).collect()
    };
    assert_eq!(statuses(&listed), ["COMPLETED", "COMPLETED", "FAILED"]);
    let rest = json!({"NextToken": listed["NextToken"]});
    let rest = world.call("ListImports", rest).await.unwrap();
    assert_eq!(statuses(&rest), ["FAILED"]);
    assert_eq!(rest["NextToken"], Value::Null);
}

/// What the account has is known only when the table is created.
#[tokio::test]
async fn an_import_needs_room_in_the_capacity_of_its_account() {
    let world = World::new().await;
    world.put("one/1.json", b"{\"Item\":{\"pk\":{\"S\":\"a\"}}}\n");
    let table = |name: &str, units: u64| {
        json!({
            "TableName": name,
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "ProvisionedThroughput": {"ReadCapacityUnits": units, "WriteCapacityUnits": 1},
        })
    };
    for name in ["first", "second"] {
        world.call("CreateTable", table(name, 39_000)).await.unwrap();
    }
    let mut provisioned = request("imported", "one/", "DYNAMODB_JSON", "NONE");
    provisioned["TableCreationParameters"] = table("imported", 2_001);
    let refused = world.import(provisioned.clone()).await;
    let message = "This request would have caused the ReadCapacityUnits limit to be exceeded for the account \
         in us-east-1. Current ReadCapacityUnits reserved by the account: 78000. Limit: 80000. \
         Requested: 2001. Refer to the Amazon DynamoDB Developer Guide for current limits and how to \
         request higher limits.";
    assert_eq!([&refused["FailureCode"], &refused["FailureMessage"]], ["LimitExceeded", message]);
    provisioned["TableCreationParameters"] = table("imported", 2_000);
    let done = world.import(provisioned).await;
    assert_eq!(done["ImportStatus"], "COMPLETED", "{done}");
}

#[tokio::test]
async fn a_token_repeats_an_import_while_it_runs() {
    let world = World::new().await;
    world.put("x.json", ALL_TYPES.as_bytes());
    let with_token = |table: &str| {
        let mut body = request(table, "", "DYNAMODB_JSON", "NONE");
        body["ClientToken"] = "token".into();
        body
    };
    let done = world.import(with_token("one")).await;
    assert_eq!(done["ImportStatus"], "COMPLETED");
    assert_eq!(done["ClientToken"], "token");
    let error = world.call("ImportTable", with_token("one")).await.unwrap_err().to_string();
    assert!(error.contains("Table already exists: one"), "{error}");
    let again = world.import(with_token("two")).await;
    assert_ne!(again["ImportArn"], done["ImportArn"], "its import has ended");
    assert_eq!(again["TableCreationParameters"]["TableName"], "two");
}

#[tokio::test]
async fn bulk_puts_go_into_an_existing_table() {
    let world = World::new().await;
    let create = &request("table", "", "CSV", "NONE")["TableCreationParameters"];
    world.call("CreateTable", create.clone()).await.unwrap();
    let old = json!({"TableName": "table", "Item": {"pk": {"S": "a"}, "old": {"S": "x"}}});
    world.call("PutItem", old).await.unwrap();
    let unknown = r#"{"Item":{"pk":{"S":"c"}},"Condition":"attribute_exists(pk)"}"#;
    world.put("in/1", format!("{ALL_TYPES}\n{{\"Item\":{{}}}}\n{unknown}\n").as_bytes());
    world.put("in/2", br#"{"Item":{"pk":{"S":"b"}}}"#);
    let body = json!({
        "TableName": "table",
        "InputS3Configuration":
            {"S3Bucket": "bucket", "S3KeyPrefix": "in/", "InputFormat": "DYNAMODB_JSON"},
        "OutputS3Configuration":
            {"S3Bucket": "bucket", "S3KeyPrefix": "out/", "OutputType": ["ERROR"]},
        "MaxWriteRequestUnits": 1_000_000,
        "ClientToken": "token",
    });
    let started = world.call("StartBulkPutItems", body.clone()).await.unwrap();
    let arn = started["BulkOperationDescription"]["BulkOperationArn"].clone();
    let described = loop {
        let body = json!({"BulkOperationArn": arn});
        let described = world.call("DescribeBulkOperation", body).await.unwrap();
        let described = described["BulkOperationDescription"].clone();
        if described["BulkOperationStatus"] != "IN_PROGRESS" {
            break described;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    assert_eq!(described["BulkOperationStatus"], "COMPLETED_WITH_ERRORS", "{described}");
    assert_eq!(described["ProcessedItemCount"], 4);
    assert_eq!(described["FailedItemCount"], 2);
    assert_eq!(described["TotalInputBytes"], described["ProcessedInputBytes"]);
    let items = world.scan("table").await;
    assert_eq!(items.len(), 2);
    assert_eq!(items[0]["old"], Value::Null, "a put replaces the item");
    let id = arn.as_str().unwrap().rsplit('/').next().unwrap();
    let folder = world.buckets.path().join(format!("bucket/out/AWSDynamoDB/bulk-operation/{id}"));
    let report = std::fs::read_to_string(folder.join("error/000001-000000000000.json")).unwrap();
    assert_eq!(report.lines().count(), 2, "{report}");
    assert!(folder.join("manifest.json").exists());
    let again = world.call("StartBulkPutItems", body.clone()).await.unwrap();
    assert_eq!(again["BulkOperationDescription"]["BulkOperationArn"], arn);
    let mut other = body;
    other["MaxWriteRequestUnits"] = 2_048.into();
    let error = world.call("StartBulkPutItems", other).await.unwrap_err().to_string();
    assert!(error.starts_with("IdempotentParameterMismatchException"), "{error}");
    let listed = world.call("ListBulkOperations", json!({})).await.unwrap();
    assert_eq!(listed["BulkOperationsSummaryList"][0]["BulkOperationArn"], arn);
}
