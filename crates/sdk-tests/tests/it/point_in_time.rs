//! Point-in-time recovery under load and `kill -9`: every past second stays readable as it was, and a restore to it has the same items.
//!
//! Transfers between accounts are transactions that keep the sum of all balances. Each writer of notes owns one item and counts up in
//! it. So any state that mixes two moments, or lost a commit, or has one that came later, shows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use zenobe_testing::{
    AUTHORIZATION, Client, ClientError, Seed, ServerOptions, ServerProcess, TemporaryDirectory,
    wait_until,
};

use crate::tables::{create_simple, number, scan};

const TABLE: &str = "accounts";
const RESTORED: &str = "restored";
const ACCOUNTS: usize = 24;
const BALANCE: i64 = 100;
const TELLERS: u64 = 4;
const NOTE_WRITERS: u64 = 3;
const ROUNDS: u64 = 4;
/// How many writes the server acknowledges before it may be killed.
const LIFE_WRITES: RangeInclusive<usize> = 50..=500;
/// How many past seconds are read after each kill, and how many are restored in the end.
const READS: usize = 6;
const RESTORES: usize = 4;

/// The items of a table by their keys.
type Content = BTreeMap<String, Value>;

#[test]
fn past_seconds_stay_whole_across_kills() {
    let seed = Seed::announce("kill under point-in-time recovery");
    let directory = TemporaryDirectory::new("kill-past");
    let mut server = start(&directory);
    let begin = fill(&mut server.client());
    let mut notes: Vec<Vec<Note>> = (0..NOTE_WRITERS).map(|_| Vec::new()).collect();
    let mut known: BTreeMap<u64, Content> = BTreeMap::new();
    for round in 0..ROUNDS {
        let mut random = seed.generator(round << 8 | 0xff);
        live_and_die(server, &mut notes, seed, round, random.random_range(LIFE_WRITES));
        server = start(&directory);
        let client = &mut server.client();
        assert_eq!(sum(&by_key(scan(client, TABLE, None))), ACCOUNTS as i64 * BALANCE);
        let present = now_ms() / 1_000;
        for _ in 0..READS {
            let second = random.random_range(begin..present);
            let found = read_as_of(client, second);
            check(&found, second, &notes);
            // Whatever happened since, it is as it was when it was read before.
            let before = known.entry(second).or_insert_with(|| found.clone());
            assert!(*before == found, "the second {second} has changed: {before:?}, {found:?}");
        }
    }
    let client = &mut server.client();
    let mut random = seed.generator(u64::MAX);
    for _ in 0..RESTORES {
        let at = random.random_range(0..known.len());
        let (second, expected) = known.iter().nth(at).expect("seconds are known");
        assert!(read_as_of(client, *second) == *expected, "the second {second} has changed");
        let found = restore(client, *second);
        assert!(found == *expected, "{second}: {expected:?} became {found:?}");
    }
    let moments: BTreeSet<_> = known.values().map(|content| format!("{content:?}")).collect();
    assert!(moments.len() > 2, "hardly any second differs from another");
    server.stop();
}

fn start(directory: &TemporaryDirectory) -> ServerProcess {
    let arguments = ["--durability", "sync"].map(Into::into).to_vec();
    ServerProcess::start_with(
        directory.path(),
        &ServerOptions { arguments, ..ServerOptions::default() },
    )
}

/// Creates the table. Returns the first second that begins with all accounts.
fn fill(client: &mut Client) -> u64 {
    create_simple(client, TABLE);
    let recovery = json!({"PointInTimeRecoveryEnabled": true});
    let request = json!({"TableName": TABLE, "PointInTimeRecoverySpecification": recovery});
    client.expect("UpdateContinuousBackups", &request);
    for account in 0..ACCOUNTS {
        let mut item = account_key(account);
        item["balance"] = json!({"N": BALANCE.to_string()});
        client.expect("PutItem", &json!({"TableName": TABLE, "Item": item}));
    }
    now_ms() / 1_000 + 1
}

fn account_key(account: usize) -> Value {
    json!({"pk": {"S": format!("account{account:03}")}})
}

fn note_key(writer: u64) -> String {
    format!("note{writer}")
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is past 1970");
    now.as_millis() as u64
}

/// A write of one writer's item: its number is its place in the list.
struct Note {
    sent_ms: u64,
    acknowledged_ms: Option<u64>,
}

/// Lets everybody write until enough writes are acknowledged and two seconds have ended, and then kills the server.
fn live_and_die(
    server: ServerProcess,
    notes: &mut [Vec<Note>],
    seed: Seed,
    round: u64,
    writes: usize,
) {
    let (done, counted) = mpsc::channel();
    let until_second = now_ms() / 1_000 + 2;
    thread::scope(|scope| {
        for teller in 0..TELLERS {
            let (client, done) = (server.client(), done.clone());
            let random = seed.generator(round << 8 | teller);
            scope.spawn(move || transfer(client, random, &done));
        }
        for (writer, notes) in notes.iter_mut().enumerate() {
            let (client, done) = (server.client(), done.clone());
            scope.spawn(move || take_notes(client, writer as u64, notes, &done));
        }
        drop(done);
        counted.iter().take(writes).for_each(drop);
        counted.iter().take_while(|()| now_ms() / 1_000 < until_second).for_each(drop);
        server.kill();
    });
}

/// Moves money between random accounts until the server is gone.
fn transfer(mut client: Client, mut random: StdRng, done: &Sender<()>) {
    loop {
        let from = random.random_range(0..ACCOUNTS);
        let to = (from + random.random_range(1..ACCOUNTS)) % ACCOUNTS;
        let amount = random.random_range(1..=20);
        let update = |account, amount: i64| {
            json!({"Update": {
                "TableName": TABLE,
                "Key": account_key(account),
                "UpdateExpression": "ADD balance :amount",
                "ExpressionAttributeValues": {":amount": {"N": amount.to_string()}},
            }})
        };
        let request = json!({"TransactItems": [update(from, -amount), update(to, amount)]});
        match client.call("TransactWriteItems", &request) {
            // Another transfer was faster.
            Ok(reply) if reply.error() == Some("TransactionCanceledException") => {}
            Ok(reply) => {
                assert_eq!(reply.status, 200, "a transfer answers {}", reply.body);
                // Nobody counts any more once enough is written.
                let _ = done.send(());
            }
            Err(ClientError::Connect(_) | ClientError::Exchange(_)) => return,
        }
    }
}

/// Counts up in an item until the server is gone.
fn take_notes(mut client: Client, writer: u64, notes: &mut Vec<Note>, done: &Sender<()>) {
    loop {
        let number = notes.len();
        let item = json!({"pk": {"S": note_key(writer)}, "number": {"N": number.to_string()}});
        notes.push(Note { sent_ms: now_ms(), acknowledged_ms: None });
        match client.call("PutItem", &json!({"TableName": TABLE, "Item": item})) {
            Ok(reply) => {
                assert_eq!(reply.status, 200, "a note answers {}", reply.body);
                notes[number].acknowledged_ms = Some(now_ms());
                let _ = done.send(());
            }
            Err(ClientError::Connect(_) | ClientError::Exchange(_)) => return,
        }
    }
}

/// What a second must show: the whole sum, every note that was acknowledged by its end, and none that was sent later.
fn check(content: &Content, second: u64, notes: &[Vec<Note>]) {
    assert_eq!(sum(content), ACCOUNTS as i64 * BALANCE, "the sum in the second {second}");
    let end_ms = (second + 1) * 1_000;
    for (writer, notes) in notes.iter().enumerate() {
        let found = content.get(&note_key(writer as u64)).map(|item| number(item, "number"));
        let is_old = |note: &Note| note.acknowledged_ms.is_some_and(|at_ms| at_ms < end_ms);
        let oldest = notes.iter().rposition(is_old);
        let newest = notes.iter().rposition(|note| note.sent_ms < end_ms);
        let found = found.map(|number| number as usize);
        assert!(
            found >= oldest && found <= newest,
            "note {writer} in the second {second} is {found:?}, not {oldest:?} to {newest:?}"
        );
    }
}

fn sum(content: &Content) -> i64 {
    content
        .values()
        .filter(|item| item.get("balance").is_some())
        .map(|it| number(it, "balance"))
        .sum()
}

fn by_key(items: Vec<Value>) -> Content {
    let key = |item: &Value| item["pk"]["S"].as_str().expect("a key").to_owned();
    items.into_iter().map(|item| (key(&item), item)).collect()
}

/// All items as of the end of a second, in pages.
fn read_as_of(client: &mut Client, second: u64) -> Content {
    let mut content = Content::new();
    let mut request = json!({"TableName": TABLE, "Limit": 10});
    loop {
        let second = second.to_string();
        let headers = [
            ("Content-Type", "application/x-amz-json-1.0"),
            ("X-Amz-Date", "20260101T000000Z"),
            ("Authorization", AUTHORIZATION),
            ("X-Amz-Target", "DynamoDB_20120810.Scan"),
            ("X-Zenobe-As-Of", second.as_str()),
        ];
        let reply = client.send("POST", "/", &headers, request.to_string().as_bytes());
        let reply = reply.expect("the server answers");
        assert_eq!(reply.status, 200, "a scan as of {second} answers {}", reply.body);
        content.extend(by_key(reply.body["Items"].as_array().expect("a page has items").clone()));
        match &reply.body["LastEvaluatedKey"] {
            Value::Null => return content,
            last => request["ExclusiveStartKey"] = last.clone(),
        }
    }
}

/// The items of a table that is restored to a second, and deleted again.
fn restore(client: &mut Client, second: u64) -> Content {
    let request = json!({
        "SourceTableName": TABLE,
        "TargetTableName": RESTORED,
        "RestoreDateTime": second,
    });
    client.expect("RestoreTableToPointInTime", &request);
    let name = json!({"TableName": RESTORED});
    wait_until(|| client.expect("DescribeTable", &name)["Table"]["TableStatus"] == "ACTIVE");
    let content = by_key(scan(client, RESTORED, None));
    client.expect("DeleteTable", &name);
    content
}
