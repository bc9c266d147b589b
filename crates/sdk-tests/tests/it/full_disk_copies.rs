//! Restores, imports and exports to a disk that is full: they fail cleanly and say why, or wait for space. Nothing half done can be
//! read meanwhile, and they succeed once there is space.

use std::path::Path;

use serde_json::{Value, json};
use zenobe_testing::{Client, ServerOptions, ServerProcess, wait_until};

use crate::full_backup_disk::{Site, get, sorted};
use crate::io_failure::{TABLE, write};
use crate::tables::{create_simple, scan};

const ITEMS: usize = 20;
const COPY: &str = "copy";
/// More than one write of an import.
const RECORDS: usize = 1_000;

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// Wherever the space ends, `zenobe restore` says so, no server opens what is there, and the same command finishes it later.
#[test]
fn a_restored_database_without_room() {
    let site = Site::with_full_target(|_| Vec::new());
    let client = &mut site.server.client();
    assert!((0..ITEMS).all(|number| write(client, number)));
    let place = site.directory.path().join("backups");
    site.back_up(text(&place)).expect("there is space for it");
    let expected = site.items();
    let mut failures = 0;
    for first in [1, 2, 3, 5, 9, 17, 33] {
        let target = site.limited.join(format!("restored-{first}"));
        let command = ["restore", "--from", text(&place), "--data", text(&target)];
        if !site.fails_without_room(first, &command) {
            continue;
        }
        failures += 1;
        if target.join("RESTORING").exists() {
            match ServerProcess::try_start(&target, &ServerOptions::default()) {
                Ok(_) => panic!("{first}: a server opens half a database"),
                Err(error) => assert!(error.to_string().contains("unfinished restore"), "{error}"),
            }
        } else {
            let entries = std::fs::read_dir(&target).map_or(0, Iterator::count);
            assert_eq!(entries, 0, "{first}: there is no mark, but something else");
        }
        site.zenobe_there(&command).expect("there is space again");
        let restored = ServerProcess::start(&target);
        assert!(sorted(scan(&mut restored.client(), TABLE, None)) == expected, "{first}");
        restored.stop();
    }
    assert!(failures >= 4, "the space ended in {failures} restores");
    site.server.stop();
}

/// Wherever the space ends, `zenobe export` says so and leaves nothing that looks finished.
#[test]
fn an_exported_table_without_room() {
    let site = Site::with_full_target(|_| Vec::new());
    let client = &mut site.server.client();
    assert!((0..ITEMS).all(|number| write(client, number)));
    let endpoint = site.server.endpoint();
    let mut failures = 0;
    for first in [1, 2, 3, 4, 5, 7, 9] {
        let lake = site.limited.join(format!("lake-{first}"));
        let command = ["export", TABLE, "--to", text(&lake), "--endpoint", &endpoint, "--quiet"];
        if !site.fails_without_room(first, &command) {
            continue;
        }
        failures += 1;
        let folder = lake.join(format!("table={TABLE}"));
        assert!(!folder.join("_SUCCESS").exists(), "{first}: it looks finished");
        assert!(!lake.join(format!(".zenobe-export-{TABLE}")).exists(), "{first}: items wait");
        let said = site.zenobe_there(&command).expect("there is space again");
        assert!(said.contains(&format!("{ITEMS} items")), "{first}: {said}");
        assert!(folder.join("_SUCCESS").exists());
    }
    assert!(failures >= 3, "the space ended in {failures} exports");
    site.server.stop();
}

/// A site whose data is where the space ends, with an object of items elsewhere.
fn with_objects() -> Site {
    let to = |limited: &Path| {
        let buckets = limited.parent().expect("a directory").join("buckets");
        std::fs::create_dir_all(buckets.join("bucket/in")).expect("a directory can be created");
        let line = |number: usize| {
            format!(
                "{{\"Item\":{{\"pk\":{{\"S\":\"{number:05}\"}},\"v\":{{\"S\":\"{number:0300}\"}}}}}}\n"
            )
        };
        let lines: String = (0..RECORDS).map(line).collect();
        std::fs::write(buckets.join("bucket/in/a.json"), lines).expect("a file can be written");
        vec!["--s3-endpoint".to_owned(), format!("file://{}", buckets.display())]
    };
    Site::start("limited", "limited/data", to)
}

/// Runs an operation that begins to write on a full disk, and again afterwards. `begin` asks for it, and `is_done` waits for its end.
fn run_without_room(
    begin: impl Fn(&mut Client, &str) -> Option<Value>,
    is_done: impl Fn(&mut Client, &Value) -> bool,
    expected: impl Fn(&mut Client) -> Vec<Value>,
    prepare: impl Fn(&mut Client, &str),
) {
    for first in [1, 2, 4, 9] {
        let site = with_objects();
        let client = &mut site.server.client();
        assert!((0..ITEMS).all(|number| write(client, number)), "the disk works");
        prepare(client, COPY);
        let expected = expected(client);
        site.fill(first);
        let begun = begin(client, COPY);
        // Something must need the disk, whatever has become of that.
        (ITEMS..ITEMS + 40).take_while(|number| write(client, *number)).for_each(drop);
        assert!(site.control.failed() > 0, "{first}: the space never ended");
        site.control.lift();
        wait_until(|| get(client, "/_zenobe/health/ready").0 == 200);
        if let Some(begun) = begun {
            wait_until(|| is_done(client, &begun));
            let found = sorted(scan(client, COPY, None));
            assert!(found == expected, "{first}: {} of {}", found.len(), expected.len());
        }
        prepare(client, "again");
        let begun = begin(client, "again").expect("there is space again");
        wait_until(|| is_done(client, &begun));
        let found = sorted(scan(client, "again", None));
        assert!(found.len() >= expected.len(), "{first}: {} of {}", found.len(), expected.len());
        assert!(expected.iter().all(|item| found.contains(item)), "{first}: something is missing");
        site.server.stop();
    }
}

/// The answer of a request that may be refused for lack of space.
fn ask(client: &mut Client, operation: &str, request: &Value) -> Option<Value> {
    let reply = client.call(operation, request).expect("the server answers");
    if !reply.is_success() {
        let refused = (reply.status, reply.error());
        assert_eq!(refused, (500, Some("InternalServerError")), "{}", reply.body);
    }
    reply.is_success().then_some(reply.body)
}

/// A table that is being filled shows nothing. Returns whether it is ready.
fn is_active(client: &mut Client, table: &str) -> bool {
    let described = client.expect("DescribeTable", &json!({"TableName": table}));
    let is_active = described["Table"]["TableStatus"] == "ACTIVE";
    if !is_active {
        let reply = client.call("Scan", &json!({"TableName": table})).expect("the server answers");
        // It may have become active since.
        let is_shown = reply.is_success();
        let described = client.expect("DescribeTable", &json!({"TableName": table}));
        assert!(
            !is_shown || described["Table"]["TableStatus"] == "ACTIVE",
            "half of {table} shows"
        );
    }
    is_active
}

#[test]
fn a_table_restored_from_a_backup_without_room() {
    run_without_room(
        |client, target| {
            let listed = client.expect("ListBackups", &json!({"TableName": TABLE}));
            let arn = &listed["BackupSummaries"][0]["BackupArn"];
            let request = json!({"TargetTableName": target, "BackupArn": arn});
            ask(client, "RestoreTableFromBackup", &request)
        },
        |client, begun| is_active(client, name_in(begun)),
        |client| sorted(scan(client, TABLE, None)),
        |client, target| {
            if target == COPY {
                client.expect("CreateBackup", &json!({"TableName": TABLE, "BackupName": "full"}));
            }
        },
    );
}

#[test]
fn a_table_restored_to_a_time_without_room() {
    run_without_room(
        |client, target| {
            let request = json!({
                "SourceTableName": TABLE,
                "TargetTableName": target,
                "UseLatestRestorableTime": true,
            });
            ask(client, "RestoreTableToPointInTime", &request)
        },
        |client, begun| is_active(client, name_in(begun)),
        |client| sorted(scan(client, TABLE, None)),
        |client, target| {
            if target == COPY {
                let recovery = json!({"PointInTimeRecoveryEnabled": true});
                let request =
                    json!({"TableName": TABLE, "PointInTimeRecoverySpecification": recovery});
                client.expect("UpdateContinuousBackups", &request);
            }
        },
    );
}

fn name_in(begun: &Value) -> &str {
    begun["TableDescription"]["TableName"].as_str().expect("a table has a name")
}

fn records() -> Vec<Value> {
    let item = |number: usize| json!({"pk": {"S": format!("{number:05}")}, "v": {"S": format!("{number:0300}")}});
    sorted((0..RECORDS).map(item).collect())
}

#[test]
fn an_imported_table_without_room() {
    run_without_room(
        |client, target| {
            let request = json!({
                "S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": "in/"},
                "InputFormat": "DYNAMODB_JSON",
                "TableCreationParameters": {
                    "TableName": target,
                    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                    "BillingMode": "PAY_PER_REQUEST",
                },
            });
            ask(client, "ImportTable", &request)
        },
        |client, begun| {
            let arn = &begun["ImportTableDescription"]["ImportArn"];
            let described = client.expect("DescribeImport", &json!({"ImportArn": arn}));
            let status = described["ImportTableDescription"]["ImportStatus"].clone();
            assert!(status == "IN_PROGRESS" || status == "COMPLETED", "{described}");
            status == "COMPLETED"
        },
        |_| records(),
        |_, _| {},
    );
}

#[test]
fn items_put_in_bulk_without_room() {
    run_without_room(
        |client, target| {
            let request = json!({
                "TableName": target,
                "InputS3Configuration": {
                    "S3Bucket": "bucket",
                    "S3KeyPrefix": "in/",
                    "InputFormat": "DYNAMODB_JSON",
                },
                "OutputS3Configuration": {
                    "S3Bucket": "bucket",
                    "S3KeyPrefix": "out",
                    "OutputType": ["ERROR"],
                },
            });
            ask(client, "StartBulkPutItems", &request)
        },
        |client, begun| {
            let arn = &begun["BulkOperationDescription"]["BulkOperationArn"];
            let described =
                client.expect("DescribeBulkOperation", &json!({"BulkOperationArn": arn}));
            let status = described["BulkOperationDescription"]["BulkOperationStatus"].clone();
            assert!(status == "IN_PROGRESS" || status == "COMPLETED", "{described}");
            status == "COMPLETED"
        },
        |_| records(),
        create_simple,
    );
}
