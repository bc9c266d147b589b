use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use serde_json::json;
use zenobe_testing::{Client, ServerProcess, TemporaryDirectory, wait_until};

use super::{now_ms, restore, serve, shipping, wait_until_shipped};
use crate::commands::zenobe;
use crate::moving::{content, create_plain_table, refuse, scan, succeed, text};

const WRITERS: usize = 4;

/// A write: its key, and when it began and was acknowledged.
struct Write {
    key: String,
    begun_ms: u64,
    acknowledged_ms: u64,
}

/// Clients that write one item after the other, until the server is gone.
struct Load {
    stop: &'static AtomicBool,
    writers: Vec<JoinHandle<Vec<Write>>>,
}

impl Load {
    fn start(address: SocketAddr, name: &'static str) -> Load {
        let stop: &'static AtomicBool = Box::leak(Box::default());
        let writer = |writer: usize| {
            thread::spawn(move || {
                let mut client = Client::new(address);
                let mut writes = Vec::new();
                for number in 0.. {
                    let (key, begun_ms) = (format!("{name}/{writer}/{number:06}"), now_ms());
                    let item = json!({"pk": {"S": key}, "text": {"S": "x".repeat(300)}});
                    let put = client.call("PutItem", &json!({"TableName": "load", "Item": item}));
                    if !put.is_ok_and(|reply| reply.status == 200) {
                        break;
                    }
                    writes.push(Write { key, begun_ms, acknowledged_ms: now_ms() });
                    if stop.load(Ordering::SeqCst) {
                        break;
                    }
                }
                writes
            })
        };
        Load { stop, writers: (0..WRITERS).map(writer).collect() }
    }

    fn end(self) -> Vec<Write> {
        self.stop.store(true, Ordering::SeqCst);
        self.writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    }
}

fn keys(server: &ServerProcess) -> BTreeSet<String> {
    let items = scan(&mut server.client(), &json!({"TableName": "load", "ConsistentRead": true}));
    items.iter().map(|item| item["pk"]["S"].as_str().unwrap().to_owned()).collect()
}

/// What is there is a prefix of the commit order: with a write, everything that was acknowledged before it began.
fn check_prefix(found: &BTreeSet<String>, writes: &[Write]) {
    let there = writes.iter().filter(|write| found.contains(&write.key));
    let newest_ms = there.map(|write| write.begun_ms).max().unwrap_or(0);
    for write in writes.iter().filter(|write| write.acknowledged_ms < newest_ms) {
        assert!(found.contains(&write.key), "{} is missing, and later ones are there", write.key);
    }
}

/// The machine is lost while it writes. What the server said is shipped is in the bucket.
#[test]
fn what_was_shipped_survives_the_machine() {
    let directory = TemporaryDirectory::new("shipped");
    let [data, bucket] = ["data", "bucket"].map(|name| directory.path().join(name));
    let server = serve(&data, &["--ship-to", text(&bucket)]);
    let mut client = server.client();
    content::fill(&mut client);
    let seen = content::see(&mut client);
    create_plain_table(&mut client, "load");
    let load = Load::start(server.address(), "first");
    wait_until_shipped(&server, now_ms());
    let mid_ms = now_ms();
    wait_until_shipped(&server, mid_ms + 2_000);
    let shipped_ms = shipping(&server)["restorable_until_ms"].as_u64().unwrap();
    server.kill();
    let mut writes = load.end();
    std::fs::remove_dir_all(&data).unwrap();

    let said = succeed(&mut zenobe(&[
        "backup",
        "verify",
        "--from",
        text(&bucket),
        "--scratch",
        text(directory.path()),
    ]));
    assert!(said.contains("is whole"), "{said}");
    let restored = directory.path().join("restored");
    succeed(&mut restore(&bucket, &restored, &[]));
    let server = serve(&restored, &["--ship-to", text(&bucket)]);
    let found = keys(&server);
    check_prefix(&found, &writes);
    for write in writes.iter().filter(|write| write.acknowledged_ms < shipped_ms) {
        assert!(found.contains(&write.key), "{} was shipped", write.key);
    }
    assert!(!found.is_empty());
    let mut again = content::see(&mut server.client());
    again["tables"].take();
    let mut expected = seen.clone();
    expected["tables"].take();
    assert_eq!(again, expected);

    // It goes on shipping, to a new generation, and a time of the first is still there.
    let load = Load::start(server.address(), "second");
    wait_until_shipped(&server, now_ms() + 500);
    let more = load.end();
    server.stop();
    writes.retain(|write| found.contains(&write.key));
    writes.extend(more);
    let everything = directory.path().join("everything");
    succeed(&mut restore(&bucket, &everything, &[]));
    let found = keys(&serve(&everything, &[]));
    check_prefix(&found, &writes);
    // A server that stops ships everything.
    let missing = writes.iter().find(|write| !found.contains(&write.key));
    assert_eq!(missing.map(|write| &write.key), None);

    let past = directory.path().join("past");
    let time = (mid_ms / 1_000).to_string();
    succeed(&mut restore(&bucket, &past, &["--to-time", &time]));
    let found = keys(&serve(&past, &[]));
    check_prefix(&found, &writes);
    let end_ms = mid_ms / 1_000 * 1_000 + 999;
    for write in &writes {
        assert!(
            write.acknowledged_ms > end_ms || found.contains(&write.key),
            "{} is missing",
            write.key
        );
        assert!(
            write.begun_ms <= end_ms || !found.contains(&write.key),
            "{} is too late",
            write.key
        );
    }
    refuse(
        &mut restore(&bucket, &directory.path().join("future"), &["--to-time", "4000000000"]),
        &["no state of that time"],
    );
}

/// A second of the shipped log is the same state as a read as of that second.
#[test]
fn a_restored_second_is_what_it_was() {
    let directory = TemporaryDirectory::new("second");
    let [data, bucket, restored] =
        ["data", "bucket", "restored"].map(|name| directory.path().join(name));
    let server = serve(&data, &["--ship-to", text(&bucket)]);
    let mut client = server.client();
    create_plain_table(&mut client, "load");
    client.expect(
        "UpdateContinuousBackups",
        &json!({
            "TableName": "load",
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true},
        }),
    );
    wait_until_shipped(&server, now_ms());
    let mut write = |round: usize| {
        for number in 0..20 {
            let item = json!({"pk": {"S": number.to_string()}, "round": {"N": round.to_string()}});
            client.expect("PutItem", &json!({"TableName": "load", "Item": item}));
        }
    };
    write(1);
    let second = now_ms() / 1_000;
    wait_until(|| now_ms() / 1_000 > second);
    write(2);
    let select = |endpoint: &str, more: &[&str]| {
        let statement = "SELECT * FROM load";
        let arguments = ["sql", "--endpoint", endpoint, "-c", statement];
        succeed(&mut zenobe(&[&arguments[..], more].concat()))
    };
    let time = second.to_string();
    let as_of = select(&server.endpoint(), &["--as-of", &time]);
    wait_until_shipped(&server, now_ms());
    server.kill();
    succeed(&mut restore(&bucket, &restored, &["--to-time", &time]));
    let server = serve(&restored, &[]);
    assert_eq!(select(&server.endpoint(), &[]), as_of);
    let items = scan(&mut server.client(), &json!({"TableName": "load"}));
    assert_eq!(items.len(), 20);
    assert!(items.iter().all(|item| item["round"]["N"] == "1"), "{items:?}");
}
