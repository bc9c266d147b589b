//! Many clients on few keys: no write is lost, nobody wins twice, no reader sees half a transfer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use zenobe_testing::{Client, Reply, Seed, ServerProcess, TemporaryDirectory};

use crate::tables::{create_simple, get, number};

const CLIENTS: u64 = 12;
const TABLE: &str = "contended";

/// Runs `work` in one thread per client and returns each result.
fn all_at_once<T: Send>(address: SocketAddr, work: impl Fn(u64, Client) -> T + Sync) -> Vec<T> {
    let work = &work;
    thread::scope(|scope| {
        let start = |number| scope.spawn(move || work(number, Client::new(address)));
        let threads: Vec<_> = (0..CLIENTS).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a client ends well")).collect()
    })
}

fn start(name: &str) -> (TemporaryDirectory, ServerProcess) {
    let directory = TemporaryDirectory::new(name);
    let server = ServerProcess::start(directory.path());
    create_simple(&mut server.client(), TABLE);
    (directory, server)
}

fn key(name: &str) -> Value {
    json!({"pk": {"S": name}})
}

#[test]
fn a_hot_counter_loses_no_increment() {
    const INCREMENTS: usize = 60;
    let (_directory, server) = start("counter");
    let seen = all_at_once(server.address(), |_, mut client| {
        let increment = json!({
            "TableName": TABLE,
            "Key": key("counter"),
            "UpdateExpression": "SET hits = if_not_exists(hits, :zero) + :one",
            "ExpressionAttributeValues": {":zero": {"N": "0"}, ":one": {"N": "1"}},
            "ReturnValues": "UPDATED_NEW",
        });
        let told = |_| number(&client.expect("UpdateItem", &increment)["Attributes"], "hits");
        (0..INCREMENTS).map(told).collect::<Vec<_>>()
    });
    let total = (CLIENTS as usize * INCREMENTS) as i64;
    assert!(seen.iter().all(|values| values.is_sorted()), "a client saw the counter go back");
    let distinct: BTreeSet<_> = seen.into_iter().flatten().collect();
    assert!(distinct.into_iter().eq(1..=total), "two increments returned the same value");
    let stored = get(&mut server.client(), TABLE, &key("counter")).expect("the counter exists");
    assert_eq!(number(&stored, "hits"), total);
}

#[test]
fn a_contested_name_has_one_winner() {
    const NAMES: usize = 30;
    let (_directory, server) = start("contest");
    let won = all_at_once(server.address(), |number, mut client| {
        let wins = (0..NAMES).filter(|name| {
            let item =
                json!({"pk": {"S": format!("name{name}")}, "holder": {"N": number.to_string()}});
            let request = json!({
                "TableName": TABLE,
                "Item": item,
                "ConditionExpression": "attribute_not_exists(pk)",
            });
            let reply = client.call("PutItem", &request).expect("the server answers");
            assert!(reply.is_success() || is_refusal(&reply), "{}", reply.body);
            reply.is_success()
        });
        wins.map(|name| (name, number as i64)).collect::<Vec<_>>()
    });
    let won: Vec<_> = won.into_iter().flatten().collect();
    assert_eq!(won.len(), NAMES, "each name has one winner");
    let client = &mut server.client();
    for (name, winner) in won {
        let stored =
            get(client, TABLE, &key(&format!("name{name}"))).expect("a won name is stored");
        assert_eq!(number(&stored, "holder"), winner, "name{name}");
    }
}

fn is_refusal(reply: &Reply) -> bool {
    reply.error() == Some("ConditionalCheckFailedException")
}

#[test]
fn versions_are_written_once_each() {
    const ATTEMPTS: usize = 60;
    let (_directory, server) = start("versions");
    let first =
        json!({"TableName": TABLE, "Item": {"pk": {"S": "document"}, "version": {"N": "0"}}});
    server.client().expect("PutItem", &first);
    let written = all_at_once(server.address(), |_, mut client| {
        let attempts = (0..ATTEMPTS).filter_map(|_| {
            let current = get(&mut client, TABLE, &key("document")).expect("the document exists");
            let next = number(&current, "version") + 1;
            let request = json!({
                "TableName": TABLE,
                "Item": {"pk": {"S": "document"}, "version": {"N": next.to_string()}},
                "ConditionExpression": "version = :read",
                "ExpressionAttributeValues": {":read": current["version"]},
            });
            let reply = client.call("PutItem", &request).expect("the server answers");
            assert!(reply.is_success() || is_refusal(&reply), "{}", reply.body);
            reply.is_success().then_some(next)
        });
        attempts.collect::<Vec<_>>()
    });
    let mut versions: Vec<_> = written.into_iter().flatten().collect();
    versions.sort_unstable();
    assert!(versions.iter().copied().eq(1..=versions.len() as i64), "lost updates: {versions:?}");
    let stored = get(&mut server.client(), TABLE, &key("document")).expect("the document exists");
    assert_eq!(number(&stored, "version"), versions.len() as i64);
}

const ACCOUNTS: u64 = 6;
const DEPOSIT: i64 = 100;

#[test]
fn transfers_keep_the_total() {
    const TRANSFERS: usize = 40;
    let seed = Seed::announce("transfers");
    let (_directory, server) = start("bank");
    for account in 0..ACCOUNTS {
        let item = json!({"pk": {"S": format!("account{account}")}, "balance": {"N": DEPOSIT.to_string()}});
        server.client().expect("PutItem", &json!({"TableName": TABLE, "Item": item}));
    }
    let done = AtomicBool::new(false);
    let (moved, reads) = thread::scope(|scope| {
        let audit = scope.spawn(|| audit(server.client(), &done));
        let moved = all_at_once(server.address(), |number, client| {
            transfer(client, seed.generator(number), TRANSFERS)
        });
        done.store(true, Ordering::Relaxed);
        (moved, audit.join().expect("every total was right"))
    });
    assert!(reads > 0, "nobody looked");
    let mut expected: BTreeMap<u64, i64> =
        (0..ACCOUNTS).map(|account| (account, DEPOSIT)).collect();
    for (from, to, amount) in moved.into_iter().flatten() {
        *expected.entry(from).or_default() -= amount;
        *expected.entry(to).or_default() += amount;
    }
    let balances = balances(&mut server.client()).expect("nobody else is there any more");
    assert_eq!(balances, expected.into_values().collect::<Vec<_>>());
    assert!(balances.iter().all(|balance| *balance >= 0), "overdrawn: {balances:?}");
}

/// Moves money between random accounts. Returns the acknowledged moves.
fn transfer(mut client: Client, mut random: StdRng, count: usize) -> Vec<(u64, u64, i64)> {
    let mut moved = Vec::new();
    for _ in 0..count {
        let from = random.random_range(0..ACCOUNTS);
        let to = (from + random.random_range(1..ACCOUNTS)) % ACCOUNTS;
        let amount = random.random_range(1..60);
        let update = |account: u64, expression: &str, condition: &str| {
            json!({"Update": {
                "TableName": TABLE,
                "Key": key(&format!("account{account}")),
                "UpdateExpression": expression,
                "ConditionExpression": condition,
                "ExpressionAttributeValues": {":amount": {"N": amount.to_string()}},
            }})
        };
        let request = json!({"TransactItems": [
            update(from, "SET balance = balance - :amount", "balance >= :amount"),
            update(to, "SET balance = balance + :amount", "attribute_exists(pk)"),
        ]});
        let reply = client.call("TransactWriteItems", &request).expect("the server answers");
        match reply.error() {
            None => moved.push((from, to, amount)),
            Some(error) => assert_eq!(error, "TransactionCanceledException", "{}", reply.body),
        }
    }
    moved
}

/// Reads all accounts in transactions until told to stop. Returns how many reads succeeded.
fn audit(mut client: Client, done: &AtomicBool) -> usize {
    let mut reads = 0;
    while !done.load(Ordering::Relaxed) {
        if let Some(balances) = balances(&mut client) {
            assert_eq!(balances.iter().sum::<i64>(), DEPOSIT * ACCOUNTS as i64, "{balances:?}");
            reads += 1;
        }
    }
    reads
}

/// One transactional read of all accounts. `None` if a conflict cancelled it.
fn balances(client: &mut Client) -> Option<Vec<i64>> {
    let gets: Vec<_> = (0..ACCOUNTS)
        .map(|account| json!({"Get": {"TableName": TABLE, "Key": key(&format!("account{account}"))}}))
        .collect();
    let request = json!({"TransactItems": gets});
    let reply = client.call("TransactGetItems", &request).expect("the server answers");
    match reply.error() {
        Some(error) => {
            assert_eq!(error, "TransactionCanceledException", "{}", reply.body);
            None
        }
        None => {
            let responses = reply.body["Responses"].as_array().expect("responses are a list");
            Some(responses.iter().map(|response| number(&response["Item"], "balance")).collect())
        }
    }
}
