//! A disk that takes no more: writes are refused honestly, reads go on, nothing acknowledged is lost.

use rand::RngExt;
use serde_json::{Value, json};
use zenobe_testing::{Seed, ServerOptions, ServerProcess, TemporaryDirectory};

use crate::tables::{create_simple, get, scan};

const TABLE: &str = "full";
/// Eight megabytes in the 512-byte blocks of POSIX `ulimit -f`: room to open a store, not to fill one.
const FILE_SIZE_BLOCKS_MAX: u64 = 16 * 1024;
const ITEM_FILLER_BYTES: usize = 100_000;
/// More than the limit can hold in any one file.
const WRITES_MAX: usize = 400;

#[test]
fn a_full_disk_refuses_writes_and_loses_none() {
    let directory = TemporaryDirectory::new("full");
    let limited = ServerOptions {
        file_size_blocks_max: Some(FILE_SIZE_BLOCKS_MAX),
        ..ServerOptions::default()
    };
    let server = ServerProcess::start_with(directory.path(), &limited);
    let client = &mut server.client();
    create_simple(client, TABLE);
    let mut acknowledged = Vec::new();
    let refusal = (0..WRITES_MAX).find_map(|number| {
        let request = json!({"TableName": TABLE, "Item": item(number)});
        let reply = client.call("PutItem", &request).expect("the server answers");
        match reply.is_success() {
            true => acknowledged.push(number),
            false => return Some(reply),
        }
        None
    });
    let refusal = refusal.expect("a write fails before the limit is passed several times over");
    assert_eq!(
        (refusal.status, refusal.error()),
        (500, Some("InternalServerError")),
        "{}",
        refusal.body
    );
    assert!(!acknowledged.is_empty(), "the limit leaves room for some writes");

    // Whatever comes next is answered in time, and truthfully.
    for number in WRITES_MAX..WRITES_MAX + 5 {
        let reply = client.call("PutItem", &json!({"TableName": TABLE, "Item": item(number)}));
        let reply = reply.expect("the server answers");
        match reply.status {
            200 => acknowledged.push(number),
            status => assert_eq!((status, reply.error()), (500, Some("InternalServerError"))),
        }
    }
    for number in &acknowledged {
        assert_eq!(
            get(client, TABLE, &key(*number)),
            Some(item(*number)),
            "item {number} on a full disk"
        );
    }
    // A refused write may have happened or not; but once a reader has seen it, it must stay.
    let seen = scan(client, TABLE, None);
    server.kill();

    let server = ServerProcess::start(directory.path());
    let client = &mut server.client();
    for number in &acknowledged {
        assert_eq!(
            get(client, TABLE, &key(*number)),
            Some(item(*number)),
            "item {number} after a restart"
        );
    }
    let kept = scan(client, TABLE, None);
    assert!(seen.iter().all(|item| kept.contains(item)), "a reader saw what was never stored");
    client.expect("PutItem", &json!({"TableName": TABLE, "Item": item(2 * WRITES_MAX)}));
    assert_eq!(server.stop().code(), Some(0));
}

fn key(number: usize) -> Value {
    json!({"pk": {"S": format!("item{number}")}})
}

fn item(number: usize) -> Value {
    // Different in every item and hard to compress, so that files really grow.
    let mut random = Seed::from(number as u64).generator(0);
    let filler: String =
        (0..ITEM_FILLER_BYTES).map(|_| char::from(random.random_range(b'!'..=b'~'))).collect();
    let mut item = key(number);
    item["filler"] = json!({"S": filler});
    item
}
