//! Backups, shipping and exports to a disk that is full: they fail cleanly and say why, or wait for space; requests go
//! on, and nothing that was not finished passes for a backup.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use zenobe_disk_recorder::{Calls, Control, DiskFault, Recorder};
use zenobe_testing::{
    Client, ServerOptions, ServerProcess, TemporaryDirectory, server_binary, wait_until,
};

use crate::io_failure::{TABLE, check, write};
use crate::tables::{create_simple, scan};

const ENOSPC: u64 = 28;
pub const NO_SPACE: &str = "No space left on device";

/// A server with a directory whose disk becomes full when a test says so.
pub struct Site {
    pub server: ServerProcess,
    pub control: Control,
    /// The directory with the full disk.
    pub limited: PathBuf,
    data: PathBuf,
    pub directory: TemporaryDirectory,
}

impl Site {
    /// The data is on a disk of its own. `arguments` get the directory that becomes full.
    pub fn with_full_target(arguments: impl Fn(&Path) -> Vec<String>) -> Site {
        Site::start("target", "data", arguments)
    }

    /// The data is where the space ends.
    fn with_full_data() -> Site {
        Site::start("limited", "limited/data", |_| Vec::new())
    }

    pub fn start(limited: &str, data: &str, arguments: impl Fn(&Path) -> Vec<String>) -> Site {
        let directory = TemporaryDirectory::new("full-backup-disk");
        let [limited, data] = [limited, data].map(|name| directory.path().join(name));
        std::fs::create_dir(&limited).expect("a directory can be created");
        let control = Control::create(&directory.path().join("control")).expect("a control file");
        let options = ServerOptions {
            environment: Recorder::new(&limited).control(&control).variables(),
            arguments: arguments(&limited).into_iter().map(Into::into).collect(),
            ..ServerOptions::default()
        };
        let server = ServerProcess::start_with(&data, &options);
        create_simple(&mut server.client(), TABLE);
        Site { server, control, limited, data, directory }
    }

    /// Whether a command fails because the space ends at this call. If it does, it says so; otherwise it takes fewer calls.
    pub fn fails_without_room(&self, first: u64, command: &[&str]) -> bool {
        self.fill(first);
        let outcome = self.zenobe_there(command);
        self.control.lift();
        if let Err(said) = &outcome {
            assert!(said.contains(NO_SPACE), "{first}: {said}");
        }
        outcome.is_err()
    }

    /// From its `first` call on, nothing more can be written there.
    pub fn fill(&self, first: u64) {
        let calls = Calls::WRITE | Calls::ALLOCATE | Calls::CREATE | Calls::MAKE_DIRECTORY;
        self.control.set(DiskFault { calls, first, count: u64::MAX, error: ENOSPC });
    }

    pub fn zenobe(&self, arguments: &[&str]) -> Result<String, String> {
        run(Command::new(server_binary()).args(arguments))
    }

    /// A command that finds the disk full, too.
    pub fn zenobe_there(&self, arguments: &[&str]) -> Result<String, String> {
        let variables = Recorder::new(&self.limited).control(&self.control).variables();
        run(Command::new(server_binary()).args(arguments).envs(variables))
    }

    pub fn back_up(&self, place: &str) -> Result<String, String> {
        self.zenobe(&["backup", "--to", place, "--endpoint", &self.server.endpoint()])
    }

    /// The items in what a place holds, restored and served.
    fn restored(&self, place: &str, name: &str) -> Vec<Value> {
        let target = self.directory.path().join(name);
        let restored =
            self.zenobe(&["restore", "--from", place, "--data", target.to_str().expect("a path")]);
        restored.unwrap_or_else(|error| panic!("{place} can't be restored: {error}"));
        let server = ServerProcess::start(&target);
        let items = sorted(scan(&mut server.client(), TABLE, None));
        server.stop();
        items
    }

    pub fn items(&self) -> Vec<Value> {
        sorted(scan(&mut self.server.client(), TABLE, None))
    }

    fn status(&self) -> Value {
        get(&mut self.server.client(), "/_zenobe/status").1
    }
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    if output.status.success() { Ok(text) } else { Err(text) }
}

pub fn sorted(mut items: Vec<Value>) -> Vec<Value> {
    items.sort_by_key(|item| item["pk"].to_string());
    items
}

pub fn get(client: &mut Client, path: &str) -> (u16, Value) {
    let reply = client.send("GET", path, &[], b"").expect("the server answers");
    (reply.status, reply.body)
}

/// Wherever the space ends, `zenobe backup` says so, and the next one is whole.
#[test]
fn a_backup_without_room() {
    let site = Site::with_full_target(|_| Vec::new());
    let client = &mut site.server.client();
    let mut number = 0;
    let mut put = |client: &mut Client| {
        number += 1;
        assert!(write(client, number), "requests go on");
        number
    };
    put(client);
    let mut failures = 0;
    for first in [1, 2, 3, 5, 9, 17] {
        let place = site.limited.join(format!("backups-{first}"));
        let place = place.to_str().expect("a path");
        site.fill(first);
        let failed = site.back_up(place);
        put(client);
        site.control.lift();
        match failed {
            // It took fewer calls.
            Ok(_) => continue,
            Err(text) => assert!(text.contains(NO_SPACE) && text.contains(place), "{text}"),
        }
        failures += 1;
        let target = site.directory.path().join("nothing");
        let nothing =
            site.zenobe(&["restore", "--from", place, "--data", target.to_str().expect("a path")]);
        assert!(nothing.as_ref().is_err_and(|text| text.contains("no backup")), "{nothing:?}");

        let expected = site.items();
        site.back_up(place).expect("there is space again");
        site.zenobe(&["backup", "verify", "--from", place]).expect("the backup is whole");
        assert_eq!(site.restored(place, &format!("restored-{first}")), expected);
    }
    assert!(failures >= 4, "the space ended in {failures} backups");
    site.server.stop();
}

/// Shipping waits for space, and then ships what it has missed. What was shipped before can be restored all the time.
#[test]
fn shipping_without_room() {
    let ship_to = |target: &Path| {
        vec!["--ship-to".to_owned(), format!("file://{}", target.join("shipped").display())]
    };
    let site = Site::with_full_target(ship_to);
    let client = &mut site.server.client();
    let place = site.limited.join("shipped");
    let place = place.to_str().expect("a path");
    // Until the shipper looks again, it does not know of the last writes. So everything must be there that was committed
    // before this call.
    let wait_until_shipped = |site: &Site| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is past 1970");
        let now_ms = now.as_millis() as u64;
        wait_until(|| {
            let shipping = site.status()["shipping"].clone();
            let is_whole =
                shipping["snapshots"].as_u64() > Some(0) && shipping["problem"].is_null();
            is_whole && shipping["restorable_until_ms"].as_u64() > Some(now_ms)
        });
    };
    assert!(write(client, 1));
    wait_until_shipped(&site);
    let before = site.items();

    site.fill(1);
    assert!((2..10).all(|number| write(client, number)), "nothing that commits waits for it");
    wait_until(|| {
        site.status()["shipping"]["problem"].as_str().is_some_and(|it| it.contains(NO_SPACE))
    });
    check(client, &(1..10).collect::<Vec<_>>());
    assert_eq!(site.restored(place, "before"), before);

    site.control.lift();
    wait_until_shipped(&site);
    assert_eq!(site.restored(place, "after"), site.items());
    site.server.stop();
}

fn describe_export(client: &mut Client, arn: &Value) -> Value {
    client.expect("DescribeExport", &json!({ "ExportArn": arn }))["ExportDescription"].clone()
}

/// An export waits for space for a while. If there is none, it fails and leaves nothing that looks finished.
#[test]
fn an_export_without_room() {
    let to =
        |target: &Path| vec!["--s3-endpoint".to_owned(), format!("file://{}", target.display())];
    let site = Site::with_full_target(to);
    std::fs::create_dir(site.limited.join("bucket")).expect("a directory can be created");
    let client = &mut site.server.client();
    let recovery = json!({"PointInTimeRecoveryEnabled": true});
    client.expect(
        "UpdateContinuousBackups",
        &json!({"TableName": TABLE, "PointInTimeRecoverySpecification": recovery}),
    );
    assert!((0..5).all(|number| write(client, number)));
    let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/full";
    let begin = |client: &mut Client, prefix: &str| {
        let request = json!({"TableArn": arn, "S3Bucket": "bucket", "S3Prefix": prefix});
        let begun = client.expect("ExportTableToPointInTime", &request);
        begun["ExportDescription"]["ExportArn"].clone()
    };
    let summaries = |prefix: &str| {
        let mut found = Vec::new();
        let mut folders = vec![site.limited.join("bucket").join(prefix)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.path() {
                    path if path.is_dir() => folders.push(path),
                    path if path.ends_with("manifest-summary.json") => found.push(path),
                    _ => {}
                }
            }
        }
        found
    };

    // Space comes back before the attempts are over.
    site.fill(3);
    let waits = begin(client, "waits");
    wait_until(|| site.control.failed() > 0);
    assert!(write(client, 5), "requests go on");
    assert_eq!(describe_export(client, &waits)["ExportStatus"], "IN_PROGRESS");
    assert_eq!(summaries("waits"), Vec::<PathBuf>::new());
    site.control.lift();
    wait_until(|| describe_export(client, &waits)["ExportStatus"] != "IN_PROGRESS");
    let ended = describe_export(client, &waits);
    assert_eq!((&ended["ExportStatus"], &ended["ItemCount"]), (&json!("COMPLETED"), &json!(5)));
    assert_eq!(summaries("waits").len(), 1);

    // It does not.
    site.fill(1);
    let fails = begin(client, "fails");
    wait_until(|| describe_export(client, &fails)["ExportStatus"] != "IN_PROGRESS");
    let ended = describe_export(client, &fails);
    assert_eq!(ended["ExportStatus"], "FAILED", "{ended}");
    assert_eq!(ended["FailureCode"], "S3Unavailable");
    let message = ended["FailureMessage"].as_str().expect("it says why");
    assert!(
        message.contains("no space is left in bucket") && message.contains(NO_SPACE),
        "{message}"
    );
    assert_eq!(summaries("fails"), Vec::<PathBuf>::new());
    site.control.lift();
    let again = begin(client, "fails");
    wait_until(|| describe_export(client, &again)["ExportStatus"] == "COMPLETED");
    site.server.stop();
}

/// The disk of the database itself is full while a table is backed up. The backup is there once there is space again.
#[test]
fn a_table_backup_without_room() {
    for first in [1, 2, 3, 5, 9] {
        let site = Site::with_full_data();
        let client = &mut site.server.client();
        let mut acknowledged: Vec<usize> = (0..20).collect();
        assert!(acknowledged.iter().all(|number| write(client, *number)), "the disk works");
        site.fill(first);
        let request = json!({"TableName": TABLE, "BackupName": "while-full"});
        let made = client.call("CreateBackup", &request).expect("the server answers");
        let more = 20..60;
        acknowledged.extend(more.take_while(|number| write(client, *number)));
        assert!(site.control.failed() > 0, "{first}: the space never ended");
        check(client, &acknowledged);

        site.control.lift();
        wait_until(|| get(client, "/_zenobe/health/ready").0 == 200);
        let listed = client.expect("ListBackups", &json!({}))["BackupSummaries"].clone();
        let listed = listed.as_array().expect("a list").clone();
        if made.is_success() {
            assert_eq!(listed.len(), 1, "{first}: it was acknowledged");
        } else {
            assert_eq!((made.status, made.error()), (500, Some("InternalServerError")));
        }
        for backup in &listed {
            check_backup(client, &backup["BackupArn"]);
        }
        let request = json!({"TableName": TABLE, "BackupName": "afterwards"});
        let made = client.expect("CreateBackup", &request);
        check_backup(client, &made["BackupDetails"]["BackupArn"]);
        site.server.stop();
    }
}

/// A backup becomes AVAILABLE, and has what its table had.
fn check_backup(client: &mut Client, arn: &Value) {
    wait_until(|| {
        let described = client.expect("DescribeBackup", &json!({ "BackupArn": arn }));
        described["BackupDescription"]["BackupDetails"]["BackupStatus"] == "AVAILABLE"
    });
    let request = json!({"TargetTableName": "restored", "BackupArn": arn});
    client.expect("RestoreTableFromBackup", &request);
    let name = json!({"TableName": "restored"});
    wait_until(|| client.expect("DescribeTable", &name)["Table"]["TableStatus"] == "ACTIVE");
    let (found, all) = (scan(client, "restored", None), scan(client, TABLE, None));
    assert!(found.len() >= 20, "the items before the backup are in it");
    assert!(found.iter().all(|item| all.contains(item)), "and nothing else");
    client.expect("DeleteTable", &name);
}

/// The disk of the database is full while the whole server is backed up elsewhere.
#[test]
fn a_backup_of_a_database_without_room() {
    for first in [1, 2, 4] {
        let site = Site::with_full_data();
        let client = &mut site.server.client();
        assert!((0..20).all(|number| write(client, number)), "the disk works");
        let place = site.directory.path().join("backups");
        let place = place.to_str().expect("a path");
        site.fill(first);
        let failed = site.back_up(place);
        assert!(site.control.failed() > 0, "{first}: the space never ended");
        let text = failed.expect_err("nothing can be linked or written");
        assert!(text.contains(NO_SPACE), "{text}");
        check(client, &(0..20).collect::<Vec<_>>());
        site.control.lift();
        wait_until(|| write(client, 20));
        let copies = std::fs::read_dir(site.data.join("CHECKPOINTS"));
        assert_eq!(copies.map_or(0, Iterator::count), 0, "nothing is left of the attempt");
        site.back_up(place).expect("there is space again");
        assert_eq!(site.restored(place, "restored"), site.items());
        site.server.stop();
    }
}
