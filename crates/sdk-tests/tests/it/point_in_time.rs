//! Point-in-time recovery under load and crashes: every past second stays readable as it was, and a restore to it has the same items.
//!
//! Transfers between accounts are transactions that keep the sum of all balances. Each writer of notes owns one item and counts up in
//! it. So any state that mixes two moments, or lost a commit, or has one that came later, shows. Other clients read past seconds
//! meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use zenobe_testing::{
    Client, ClientError, PATIENCE, Postgres, Reply, Seed, ServerOptions, ServerProcess, SetOnDrop,
    TemporaryDirectory, server_binary, wait_until, without_options,
};

use crate::tables::{create_simple, number, scan};

const TABLE: &str = "accounts";
const RESTORED: &str = "restored";
const ACCOUNTS: usize = 24;
const BALANCE: i64 = 100;
const TELLERS: u64 = 4;
const NOTE_WRITERS: u64 = 3;
/// How old the seconds are that are read under load.
const READ_AGES_SECONDS: RangeInclusive<u64> = 1..=4;
/// How many writes are acknowledged before something crashes, and how many more after that, if a server is left.
const WRITES_BEFORE_CRASH: RangeInclusive<usize> = 50..=500;
const WRITES_AFTER_CRASH: usize = 50;
/// How many past seconds are read after each crash, and how many are restored in the end.
const READS: usize = 6;
const RESTORES: usize = 4;

/// The items of a table by their keys.
type Content = BTreeMap<String, Value>;

/// What crashes in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    /// One of the servers.
    Server,
    Store,
}

/// What holds the data, and outlives the servers.
enum Store {
    Directory(TemporaryDirectory),
    Postgres { postgres: Postgres, url: String },
}

#[test]
fn past_seconds_stay_whole_across_kills() {
    let store = Store::Directory(TemporaryDirectory::new("kill-past"));
    run_rounds(store, 1, &[Victim::Server; 4]);
}

#[test]
fn past_seconds_stay_whole_while_nodes_and_postgres_crash() {
    let postgres = Postgres::start(&[]);
    let url = postgres.database();
    let victims = [Victim::Server, Victim::Store, Victim::Server, Victim::Store, Victim::Server];
    run_rounds(Store::Postgres { postgres, url }, 2, &victims);
}

fn run_rounds(mut store: Store, servers_count: usize, victims: &[Victim]) {
    let seed = Seed::announce("crashes under point-in-time recovery");
    let mut servers: Vec<ServerProcess> = (0..servers_count).map(|_| store.serve()).collect();
    let begin = fill(&mut servers[0].client());
    let mut notes: Vec<Vec<Note>> = (0..NOTE_WRITERS).map(|_| Vec::new()).collect();
    let mut known: BTreeMap<u64, Content> = BTreeMap::new();
    for (number, victim) in (0..).zip(victims) {
        let round = Round { seed, number, victim: *victim, begin };
        let readings = round.run(&mut servers, &mut store, &mut notes);
        servers.resize_with(servers_count, || store.serve());
        for server in &servers {
            check_present(&mut server.client(), number);
        }

        let mut random = round.generator(u64::from(u8::MAX));
        let present = now_ms() / 1_000;
        let mut seconds: BTreeSet<u64> =
            (0..READS).map(|_| random.random_range(begin..present)).collect();
        seconds.extend(readings.notes.iter().map(|reading| reading.second));
        let mut read = readings.tables;
        for (second, server) in seconds.into_iter().zip(servers.iter().cycle()) {
            read.push((second, read_as_of(&mut server.client(), second)));
        }
        for (second, found) in read {
            check(&found, second, &notes);
            // Whatever happened since, it is as it was when it was read before.
            let before = known.entry(second).or_insert_with(|| found.clone());
            assert!(*before == found, "the second {second} has changed: {before:?}, {found:?}");
        }
        for NoteReading { second, writer, item } in &readings.notes {
            let found = known[second].get(&note_key(*writer));
            assert_eq!(found, item.as_ref(), "note {writer} in the second {second} has changed");
        }
    }
    let mut random = seed.generator(u64::MAX);
    for server in servers.iter().cycle().take(RESTORES) {
        let client = &mut server.client();
        let at = random.random_range(0..known.len());
        let (second, expected) = known.iter().nth(at).expect("seconds are known");
        let found = read_as_of(client, *second);
        assert!(found == *expected, "the second {second} has changed");
        let found = restore(client, *second);
        assert!(found == *expected, "{second}: {expected:?} became {found:?}");
    }
    let moments: BTreeSet<_> = known.values().map(|content| format!("{content:?}")).collect();
    assert!(moments.len() > 2, "hardly any second differs from another");
    servers.into_iter().for_each(ServerProcess::stop);
}

impl Store {
    fn serve(&self) -> ServerProcess {
        match self {
            Store::Directory(directory) => {
                let arguments = ["--durability", "sync"].map(Into::into).to_vec();
                let options = ServerOptions { arguments, ..ServerOptions::default() };
                ServerProcess::start_with(directory.path(), &options)
            }
            Store::Postgres { url, .. } => {
                let mut command = Command::new(server_binary());
                without_options(&mut command);
                let arguments = ["serve", "--listen", "127.0.0.1:0", "--store", url];
                ServerProcess::launch(command.args(arguments))
            }
        }
    }

    /// Lets it crash, and waits until it has recovered.
    fn crash(&mut self) {
        match self {
            Store::Directory(_) => panic!("a directory crashes with its server"),
            Store::Postgres { postgres, .. } => postgres.crash(),
        }
    }
}

/// Creates the table. Waits for the end of the first whole second with all accounts, and returns that second.
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
    let begin = now_ms() / 1_000 + 1;
    wait_until(|| now_ms() / 1_000 > begin);
    begin
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

/// Checks that a server sees all balances and writes.
fn check_present(client: &mut Client, round: u64) {
    assert_eq!(sum(&by_key(scan(client, TABLE, None))), ACCOUNTS as i64 * BALANCE);
    let item = json!({"pk": {"S": "probe"}, "round": {"N": round.to_string()}});
    client.expect("PutItem", &json!({"TableName": TABLE, "Item": item}));
}

/// A write of one writer's item: its number is its place in the list.
struct Note {
    sent_ms: u64,
    acknowledged_ms: Option<u64>,
}

/// What was read of past seconds under load.
struct Readings {
    tables: Vec<(u64, Content)>,
    notes: Vec<NoteReading>,
}

/// The item of a writer as of a second.
#[derive(PartialEq)]
struct NoteReading {
    second: u64,
    writer: u64,
    item: Option<Value>,
}

/// Everybody writes and reads until the victim crashes, and after the crash as well, if a server still runs.
struct Round {
    seed: Seed,
    number: u64,
    victim: Victim,
    /// The first second that may be read.
    begin: u64,
}

impl Round {
    /// Removes the server that is killed, if one is.
    fn run(
        &self,
        servers: &mut Vec<ServerProcess>,
        store: &mut Store,
        notes: &mut [Vec<Note>],
    ) -> Readings {
        let mut random = self.generator(0);
        let killed = random.random_range(0..servers.len());
        let killed = (self.victim == Victim::Server).then_some(killed);
        let nodes: Vec<SocketAddr> = servers.iter().map(ServerProcess::address).collect();
        let until_second = now_ms() / 1_000 + 2;
        let (crash_begins, is_over) = (&AtomicBool::new(false), &AtomicBool::new(false));
        let caller = |number: u64| Caller {
            clients: nodes.iter().copied().map(Client::new).collect(),
            node: number as usize % nodes.len(),
            killed,
            crash_begins,
            is_over,
        };
        thread::scope(|scope| {
            let end = SetOnDrop(is_over);
            let [(moved, transfers), (noted, written), (scanned, scans), (got, gets)] =
                [(); 4].map(|()| mpsc::channel());
            for teller in 0..TELLERS {
                let (caller, moved) = (caller(teller), moved.clone());
                let random = self.generator(1 + teller);
                scope.spawn(move || transfer(caller, random, &moved));
            }
            for (writer, notes) in (0..).zip(notes) {
                let (caller, noted) = (caller(writer), noted.clone());
                scope.spawn(move || take_notes(caller, writer, notes, &noted));
            }
            // Nothing is waited for once everybody who could send it has failed.
            drop((moved, noted));
            let random_of = |reader| self.generator(1 + TELLERS + reader);
            let (reader, watcher) = (caller(0), caller(1));
            let reader =
                scope.spawn(move || read_tables(reader, random_of(0), self.begin, &scanned));
            let watcher = scope.spawn(move || watch_notes(watcher, random_of(1), self.begin, &got));

            let all = [&transfers, &written, &scans, &gets];
            all.into_iter().for_each(|one| await_counted(one, 1));
            await_counted(&written, random.random_range(WRITES_BEFORE_CRASH));
            while now_ms() / 1_000 < until_second {
                await_counted(&written, 1);
            }
            crash_begins.store(true, Ordering::Release);
            match killed {
                Some(node) => servers.remove(node).kill(),
                None => store.crash(),
            }
            if !servers.is_empty() {
                // Only what is acknowledged from now on counts.
                all.into_iter().for_each(|one| one.try_iter().for_each(drop));
                all.into_iter().for_each(|one| await_counted(one, 1));
                await_counted(&written, WRITES_AFTER_CRASH);
            }
            drop(end);
            Readings {
                tables: reader.join().expect("the reader ends well"),
                notes: watcher.join().expect("the watcher ends well"),
            }
        })
    }

    fn generator(&self, stream: u64) -> StdRng {
        self.seed.generator(self.number << 8 | stream)
    }
}

/// Waits until this many more requests have succeeded.
fn await_counted(succeeded: &Receiver<()>, count: usize) {
    for _ in 0..count {
        succeeded.recv_timeout(PATIENCE).expect("requests succeed");
    }
}

/// A client that goes on with the next server when one is gone.
struct Caller<'a> {
    /// One for each server.
    clients: Vec<Client>,
    /// The server that is asked next.
    node: usize,
    /// The server that is killed. If there is none, the store crashes.
    killed: Option<usize>,
    crash_begins: &'a AtomicBool,
    is_over: &'a AtomicBool,
}

/// What became of a request.
enum Answer {
    Reply(Reply),
    /// Nothing says whether it took effect.
    Unknown,
    /// It never reached a server.
    NotSent,
}

impl Answer {
    fn reply(self) -> Option<Reply> {
        match self {
            Answer::Reply(reply) => Some(reply),
            Answer::Unknown | Answer::NotSent => None,
        }
    }
}

impl Caller<'_> {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// A server may fail a request only while its store is away, and may only be gone if it was killed.
    fn ask(&mut self, ask: impl FnOnce(&mut Client) -> Result<Reply, ClientError>) -> Answer {
        let asked = ask(&mut self.clients[self.node]);
        let crash_begins = self.crash_begins.load(Ordering::Acquire);
        match asked {
            Ok(reply) if reply.status >= 500 => {
                assert!(crash_begins && self.killed.is_none(), "unexpected: {}", reply.body);
                Answer::Unknown
            }
            Ok(reply) => Answer::Reply(reply),
            Err(error) => {
                let is_expected = crash_begins && self.killed == Some(self.node);
                assert!(is_expected, "server {} is gone: {error}", self.node);
                self.node = (self.node + 1) % self.clients.len();
                match error {
                    ClientError::Connect(_) => Answer::NotSent,
                    ClientError::Exchange(_) => Answer::Unknown,
                }
            }
        }
    }
}

/// Moves money between random accounts.
fn transfer(mut caller: Caller<'_>, mut random: StdRng, succeeded: &Sender<()>) {
    while !caller.is_over() {
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
        let answer = caller.ask(|client| client.call("TransactWriteItems", &request));
        let Some(reply) = answer.reply() else { continue };
        if reply.error() == Some("TransactionCanceledException") {
            // Another transfer was faster.
            let reasons = reply.body["CancellationReasons"].as_array().expect("it says why");
            let is_conflict = |reason: &Value| {
                ["None", "TransactionConflict"].iter().any(|code| reason["Code"] == *code)
            };
            assert!(reasons.iter().all(is_conflict), "a transfer answers {}", reply.body);
            continue;
        }
        assert_eq!(reply.status, 200, "a transfer answers {}", reply.body);
        // Nobody counts any more once the round is over.
        let _ = succeeded.send(());
    }
}

/// Counts up in an item.
fn take_notes(mut caller: Caller<'_>, writer: u64, notes: &mut Vec<Note>, succeeded: &Sender<()>) {
    while !caller.is_over() {
        let number = notes.len();
        let item = json!({"pk": {"S": note_key(writer)}, "number": {"N": number.to_string()}});
        let request = json!({"TableName": TABLE, "Item": item});
        notes.push(Note { sent_ms: now_ms(), acknowledged_ms: None });
        match caller.ask(|client| client.call("PutItem", &request)) {
            Answer::Reply(reply) => {
                assert_eq!(reply.status, 200, "a note answers {}", reply.body);
                notes[number].acknowledged_ms = Some(now_ms());
                let _ = succeeded.send(());
            }
            Answer::Unknown => {}
            Answer::NotSent => _ = notes.pop(),
        }
    }
}

/// Reads all items as of past seconds, each page through one server or another.
fn read_tables(
    mut caller: Caller<'_>,
    mut random: StdRng,
    begin: u64,
    succeeded: &Sender<()>,
) -> Vec<(u64, Content)> {
    let mut read = Vec::new();
    while !caller.is_over() {
        let second = now_ms() / 1_000 - random.random_range(READ_AGES_SECONDS);
        let second = second.max(begin);
        let found = by_pages(|request| {
            caller.node = random.random_range(0..caller.clients.len());
            caller.ask(|client| call_as_of(client, second, "Scan", request)).reply()
        });
        let Some(found) = found else { continue };
        let _ = succeeded.send(());
        let reading = (second, found);
        if !read.contains(&reading) {
            read.push(reading);
        }
    }
    read
}

/// Reads single items as of the second that has just ended. Writes that began in it may still be on their way.
fn watch_notes(
    mut caller: Caller<'_>,
    mut random: StdRng,
    begin: u64,
    succeeded: &Sender<()>,
) -> Vec<NoteReading> {
    let mut read = Vec::new();
    while !caller.is_over() {
        let second = (now_ms() / 1_000 - 1).max(begin);
        let writer = random.random_range(0..NOTE_WRITERS);
        caller.node = random.random_range(0..caller.clients.len());
        let request = json!({"TableName": TABLE, "Key": {"pk": {"S": note_key(writer)}}});
        let answer = caller.ask(|client| call_as_of(client, second, "GetItem", &request));
        let Some(mut reply) = answer.reply() else { continue };
        assert_eq!(reply.status, 200, "a past note answers {}", reply.body);
        let _ = succeeded.send(());
        let item = reply.body.get_mut("Item").map(Value::take);
        let reading = NoteReading { second, writer, item };
        if !read.contains(&reading) {
            read.push(reading);
        }
    }
    read
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

/// All items as of the end of a second.
fn read_as_of(client: &mut Client, second: u64) -> Content {
    let content = by_pages(|request| call_as_of(client, second, "Scan", request).ok());
    content.expect("the server answers")
}

/// The items of all pages. `None` if a page is not answered.
fn by_pages(mut ask: impl FnMut(&Value) -> Option<Reply>) -> Option<Content> {
    let mut content = Content::new();
    let mut request = json!({"TableName": TABLE, "Limit": 10});
    loop {
        let reply = ask(&request)?;
        assert_eq!(reply.status, 200, "a scan of the past answers {}", reply.body);
        content.extend(by_key(reply.body["Items"].as_array().expect("a page has items").clone()));
        match &reply.body["LastEvaluatedKey"] {
            Value::Null => return Some(content),
            last => request["ExclusiveStartKey"] = last.clone(),
        }
    }
}

fn call_as_of(
    client: &mut Client,
    second: u64,
    operation: &str,
    request: &Value,
) -> Result<Reply, ClientError> {
    let target = format!("DynamoDB_20120810.{operation}");
    client.call_with(&target, &format!("X-Zenobe-As-Of: {second}\r\n"), request)
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
