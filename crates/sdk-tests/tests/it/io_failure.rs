//! A full disk: the server refuses writes and says why, reads continue, and no acknowledged write is
//! lost.

use serde_json::{Value, json};
use zenobe_testing::{Client, ServerOptions, ServerProcess, TemporaryDirectory, wait_until};

use crate::tables::{create_simple, get, scan};

pub const TABLE: &str = "full";
/// Eight megabytes in the 512-byte blocks of POSIX `ulimit -f`: enough to open a store, not to fill
/// one.
const FILE_SIZE_BLOCKS_MAX: u64 = 16 * 1024;
const ITEM_FILLER_BYTES: usize = 100_000;
/// More than the limit can hold in any one file.
const WRITES_MAX: usize = 400;

#[test]
fn a_full_disk_refuses_writes_and_loses_none() {
    let directory = TemporaryDirectory::new("full");
    let (server, mut acknowledged) = fill(&directory);
    let client = &mut server.client();

    // Every further request gets a timely and truthful response.
    for number in WRITES_MAX..WRITES_MAX + 5 {
        if write(client, number) {
            acknowledged.push(number);
        }
    }
    check(client, &acknowledged);
    // A refused write may or may not have happened. But once a reader has seen it, it must stay.
    let seen = scan(client, TABLE, None);
    server.kill();

    let server = ServerProcess::start(directory.path());
    let client = &mut server.client();
    check(client, &acknowledged);
    let kept = scan(client, TABLE, None);
    assert!(seen.iter().all(|item| kept.contains(item)), "a reader saw what was never stored");
    assert!(write(client, 2 * WRITES_MAX), "there is space after a restart");
    server.stop();
}

#[test]
fn a_disk_with_space_again_takes_writes_again() {
    let directory = TemporaryDirectory::new("room");
    let (server, mut acknowledged) = fill(&directory);
    let client = &mut server.client();
    server.lift_file_size_limit();
    wait_until(|| write(client, WRITES_MAX));
    acknowledged.push(WRITES_MAX);
    check(client, &acknowledged);
    server.kill();
    check(&mut ServerProcess::start(directory.path()).client(), &acknowledged);
}

#[test]
fn a_full_disk_shows_in_the_health_checks_and_once_in_the_log() {
    let directory = TemporaryDirectory::new("health");
    let (server, _) = fill(&directory);
    let client = &mut server.client();
    let mut health = |path: &str| {
        let reply = client.send("GET", path, &[], b"").expect("the server answers");
        (reply.status, reply.body)
    };
    let failing =
        json!({"ready": false, "reads": "ok", "writes": "failing", "store": "recovering"});
    assert_eq!(health("/_zenobe/health/ready"), (503, failing));
    assert_eq!(health("/_zenobe/health/live"), (200, json!({"live": true})));
    assert_eq!(health("/").0, 200);

    let client = &mut server.client();
    for number in 0..20 {
        assert!(!write(client, WRITES_MAX + number));
    }
    let lines = |text: &str| server.output().lines().filter(|line| line.contains(text)).count();
    server.expect_output("the store has failed and refuses writes");
    assert_eq!(lines("the store has failed and refuses writes"), 1, "{}", server.output());
    // The one that discovered the failure.
    assert!(lines("request failed") <= 1, "{}", server.output());

    server.lift_file_size_limit();
    let ready = json!({"ready": true, "reads": "ok", "writes": "ok", "store": "open"});
    wait_until(|| client.send("GET", "/_zenobe/health/ready", &[], b"").unwrap().body == ready);
    server.expect_output("the store has recovered and accepts writes again");
    assert_eq!(lines("the store has recovered and accepts writes again"), 1, "{}", server.output());
}

/// Starts a server that may not write large files, and writes until it refuses one.
fn fill(directory: &TemporaryDirectory) -> (ServerProcess, Vec<usize>) {
    let limited = ServerOptions {
        file_size_blocks_max: Some(FILE_SIZE_BLOCKS_MAX),
        ..ServerOptions::default()
    };
    let server = ServerProcess::start_with(directory.path(), &limited);
    let client = &mut server.client();
    create_simple(client, TABLE);
    let acknowledged: Vec<_> =
        (0..WRITES_MAX).take_while(|number| write(client, *number)).collect();
    assert!(!acknowledged.is_empty(), "the limit leaves space for some writes");
    assert!(acknowledged.len() < WRITES_MAX, "the writes exceed the limit several times over");
    (server, acknowledged)
}

/// Writes an item. Returns false if the server reports that it could not.
pub fn write(client: &mut Client, number: usize) -> bool {
    let request = json!({"TableName": TABLE, "Item": item(number)});
    let reply = client.call("PutItem", &request).expect("the server answers");
    if !reply.is_success() {
        assert_eq!(
            (reply.status, reply.error()),
            (500, Some("InternalServerError")),
            "{}",
            reply.body
        );
    }
    reply.is_success()
}

/// Reads continue, whatever happens to writes.
pub fn check(client: &mut Client, acknowledged: &[usize]) {
    for number in acknowledged {
        assert_eq!(get(client, TABLE, &key(*number)), Some(item(*number)), "item {number}");
    }
}

fn key(number: usize) -> Value {
    json!({"pk": {"S": format!("item{number}")}})
}

fn item(number: usize) -> Value {
    // The log is not compressed, so even these items make it grow.
    let filler = format!("{number:010}").repeat(ITEM_FILLER_BYTES / 10);
    let mut item = key(number);
    item["filler"] = json!({"S": filler});
    item
}
