use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};
use zenobe_testing::{
    Client, Postgres, Process, Proxy, ServerProcess, TemporaryDirectory, wait_until,
};

use super::{
    Places, content, create_plain_table, name, put_large_items, refuse, rows, scan, serve,
    serve_command, succeed, text,
};
use crate::commands::zenobe;

const WRITERS: usize = 6;

/// The last number that was acknowledged for each item.
type Ledger = BTreeMap<String, u64>;

/// Clients that count items up, remember what was acknowledged, and accept no error.
struct Load {
    stop: &'static AtomicBool,
    acknowledged: &'static AtomicUsize,
    writers: Vec<JoinHandle<(Ledger, Option<String>)>>,
}

impl Load {
    fn start(address: SocketAddr) -> Load {
        Load::on(address, 40)
    }

    /// On this many items per client.
    fn on(address: SocketAddr, items: u64) -> Load {
        let stop: &'static AtomicBool = Box::leak(Box::default());
        let acknowledged: &'static AtomicUsize = Box::leak(Box::default());
        let writer = |number: usize| {
            thread::spawn(move || {
                let mut client = Client::new(address);
                let mut ledger = Ledger::new();
                for step in 1_u64.. {
                    if stop.load(Ordering::SeqCst) {
                        break;
                    }
                    let key = format!("{number}/{}", step % items);
                    if let Err(error) = step_once(&mut client, &mut ledger, &key, step) {
                        return (ledger, Some(error));
                    }
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                }
                (ledger, None)
            })
        };
        Load { stop, acknowledged, writers: (0..WRITERS).map(writer).collect() }
    }

    /// Waits until this many more requests have been acknowledged.
    fn wait(&self, count: usize) {
        let end = self.acknowledged.load(Ordering::SeqCst) + count;
        wait_until(|| {
            let is_broken = self.writers.iter().any(JoinHandle::is_finished);
            is_broken || self.acknowledged.load(Ordering::SeqCst) >= end
        });
    }

    /// What was acknowledged, and the first error of each writer.
    fn end(self) -> (Ledger, Vec<String>) {
        self.stop.store(true, Ordering::SeqCst);
        let mut all = Ledger::new();
        let mut errors = Vec::new();
        for writer in self.writers {
            let (ledger, error) = writer.join().unwrap();
            all.extend(ledger);
            errors.extend(error);
        }
        (all, errors)
    }
}

/// Counts an item up, reads it back now and then, and never sees anything older than what it knows.
fn step_once(client: &mut Client, ledger: &mut Ledger, key: &str, step: u64) -> Result<(), String> {
    let known = ledger.get(key).copied().unwrap_or(0);
    let key_of = json!({"pk": {"S": key}});
    if step.is_multiple_of(3) {
        let get = json!({"TableName": "counters", "Key": key_of, "ConsistentRead": true});
        let read = ask(client, "GetItem", &get)?;
        return match number(&read["Item"]["n"]) {
            found if found == known => Ok(()),
            found => Err(format!("{key} is {found}, though {known} was acknowledged")),
        };
    }
    let names = json!({"#n": "n"});
    let update = json!({
        "TableName": "counters", "Key": key_of, "UpdateExpression": "ADD #n :one",
        "ExpressionAttributeNames": names, "ExpressionAttributeValues": {":one": {"N": "1"}},
    });
    match step % 5 {
        0 => {
            let request = json!({"TransactItems": [{"Update": update}]});
            ask(client, "TransactWriteItems", &request)?;
            ledger.insert(key.to_owned(), known + 1);
        }
        _ => {
            let mut update = update;
            update["ReturnValues"] = json!("UPDATED_NEW");
            let updated = ask(client, "UpdateItem", &update)?;
            let new = number(&updated["Attributes"]["n"]);
            if new != known + 1 {
                return Err(format!("{key} was counted up from {known} to {new}"));
            }
            ledger.insert(key.to_owned(), new);
        }
    }
    Ok(())
}

fn ask(client: &mut Client, operation: &str, body: &Value) -> Result<Value, String> {
    let reply = client.call(operation, body).map_err(|error| error.to_string())?;
    match reply.status {
        200 => Ok(reply.body),
        status => Err(format!("{operation} answers {status}: {}", reply.body)),
    }
}

fn number(value: &Value) -> u64 {
    value["N"].as_str().map_or(0, |text| text.parse().unwrap())
}

fn counted(client: &mut Client) -> Ledger {
    let items = scan(client, &json!({"TableName": "counters", "ConsistentRead": true}));
    let entry = |item: &Value| (item["pk"]["S"].as_str().unwrap().to_owned(), number(&item["n"]));
    items.iter().map(entry).collect()
}

fn move_online(server: &ServerProcess, to: &str) -> std::process::Command {
    zenobe(&["move", "--endpoint", &server.endpoint(), "--to", to])
}

/// Items that take a while to copy.
fn fill(client: &mut Client, batches: usize) {
    create_plain_table(client, "ballast");
    put_large_items(client, "ballast", batches);
}

/// No client notices, nothing acknowledged is lost, and another node can join.
#[test]
fn a_server_moves_itself_under_load() {
    let places = Places::new("move-online");
    let (here, there) = places.both();
    let server = serve(here);
    let mut client = server.client();
    content::fill(&mut client);
    create_plain_table(&mut client, "counters");
    fill(&mut client, 30);
    let iterators = content::iterators(&mut client, "LATEST");
    let mut seen = content::see(&mut client);
    let load = Load::start(server.address());
    load.wait(300);

    let said = succeed(&mut move_online(&server, there));
    assert!(said.contains("writes waited for"), "{said}");
    load.wait(300);
    let (ledger, errors) = load.end();
    assert_eq!(errors, [""; 0]);
    assert_eq!(counted(&mut client), ledger);

    let other = serve(there);
    let mut other_client = other.client();
    assert_eq!(counted(&mut other_client), ledger);
    // It has one more table to see.
    let mut found = content::see(&mut other_client);
    seen["tables"].take();
    found["tables"].take();
    assert_eq!(found, seen);
    content::check_it_goes_on(&mut client, iterators);
    // Each node sees what the other does, tables included.
    create_plain_table(&mut other_client, "new");
    let put = json!({"TableName": "new", "Item": {"pk": {"S": "a"}}});
    client.expect("PutItem", &put);
    other_client.expect("DeleteTable", &json!({"TableName": "new"}));
    assert_eq!(client.call("PutItem", &put).unwrap().status, 400);
    let status = succeed(&mut zenobe(&["status", "--endpoint", &server.endpoint()]));
    assert!(status.contains("2 nodes share it"), "{status}");
    refuse(&mut move_online(&server, here), &["has been moved already"]);
    refuse(&mut move_online(&other, here), &["only a database in a directory"]);
    other.stop();
    server.stop();
    refuse(&mut serve_command(here), &["was moved to", name(there)]);
    let server = serve(there);
    assert_eq!(counted(&mut server.client()), ledger);
    server.stop();
}

/// Few items with many earlier versions, and more by the moment: the move copies what is new, not all of them again.
#[test]
fn items_with_long_histories_move_under_load() {
    let places = Places::new("move-history");
    let (here, there) = places.both();
    let server = serve(here);
    let mut client = server.client();
    create_plain_table(&mut client, "counters");
    let recovery = json!({"PointInTimeRecoveryEnabled": true});
    let enable = json!({"TableName": "counters", "PointInTimeRecoverySpecification": recovery});
    client.expect("UpdateContinuousBackups", &enable);
    let load = Load::on(server.address(), 1);
    load.wait(2_000);
    succeed(&mut move_online(&server, there));
    load.wait(100);
    let (ledger, errors) = load.end();
    assert_eq!(errors, [""; 0]);
    assert_eq!(counted(&mut client), ledger);
    // Every write has left a version, but for the first of each item.
    let writes: u64 = ledger.values().sum();
    let status = client.send("GET", "/_zenobe/status", &[], b"").unwrap().body;
    let versions = status["history"][0]["versions"].as_u64().unwrap_or_default();
    assert!(versions >= writes - ledger.len() as u64, "{writes} writes, but {status}");
    server.stop();
}

/// The server goes on as before, and the same command can be run again.
#[test]
fn a_server_that_is_killed_while_it_moves_keeps_everything() {
    let places = Places::new("move-online-killed");
    let (here, there) = places.both();
    let server = serve(here);
    let mut client = server.client();
    create_plain_table(&mut client, "counters");
    fill(&mut client, 40);
    let load = Load::start(server.address());
    // The network falls silent in the middle, so that the move is still under way when the server is killed.
    let proxy = Proxy::start(Postgres::shared().port);
    proxy.silence_after(5 << 20);
    let mut moving = Process::start(&mut move_online(&server, &proxy.url(there))).unwrap();
    wait_until(|| proxy.is_silent() || moving.ended().is_some());
    assert!(proxy.is_silent() && rows(there) > 0, "{}", moving.output().text());
    load.wait(100);
    let stop = load.stop;
    server.kill();
    stop.store(true, Ordering::SeqCst);
    let _ = moving.wait(zenobe_testing::PATIENCE);
    proxy.reset();
    refuse(&mut serve_command(there), &["unfinished copy of", here]);

    // Writers that were cut off are the only ones with errors, and their last write may have happened or not.
    let server = serve(here);
    let mut client = server.client();
    let found = counted(&mut client);
    let (ledger, _) = load.end();
    assert!(ledger.len() > WRITERS, "{ledger:?}");
    for (key, acknowledged) in &ledger {
        assert!(found[key] >= *acknowledged, "{key}");
    }
    succeed(&mut move_online(&server, there));
    assert_eq!(counted(&mut client), found);
    server.stop();
    let server = serve(there);
    assert_eq!(counted(&mut server.client()), found);
    server.stop();
}

#[test]
fn a_server_stays_where_it_is_if_it_cannot_move() {
    let directory = TemporaryDirectory::new("move-online-refused");
    let here = directory.path().join("here");
    let here = text(&here);
    let server = serve(here);
    let mut client = server.client();
    create_plain_table(&mut client, "counters");
    let full = Postgres::shared().database();
    let other = serve(&full);
    create_plain_table(&mut other.client(), "counters");
    refuse(&mut move_online(&server, &full), &["is not empty"]);
    refuse(&mut move_online(&server, here), &["itself"]);
    refuse(&mut move_online(&server, "mysql://h/d"), &["postgres://"]);
    other.stop();
    client.expect("PutItem", &json!({"TableName": "counters", "Item": {"pk": {"S": "a"}}}));
    server.stop();
    let server = serve(here);
    assert_eq!(scan(&mut server.client(), &json!({"TableName": "counters"})).len(), 1);
    server.stop();
}
