//! Writers that keep account of every answer, and what the database must hold because of it.
//!
//! An acknowledged write is there. A write that was refused as unavailable is not. A write without
//! an answer may be. Increments are never lost and never happen twice, and a transaction that is
//! repeated under its token, on whichever node, happens once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use zenobe_testing::{Client, ClientError, Reply};

use super::nodes::RECOVERY_TIME_MAX;
use crate::tables::{enable_time_to_live, get, number, pages, scan, stream_arn};

pub const TABLE: &str = "ledger";
const INDEX: &str = "by_kind";
const EXPIRES: &str = "expires";
const COUNTERS: u64 = 3;
/// Nodes consider something as past ten minutes after they could; their clocks differ by less than
/// the rest.
const MARGIN_S: u64 = 900;
/// The pause after an answer that says "later", as clients make one.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// Between two requests of a writer: the machine has more to do.
const PAUSE: Duration = Duration::from_millis(3);

/// Creates the table and returns its stream.
pub fn create_table(client: &mut Client) -> String {
    let request = json!({
        "TableName": TABLE,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
            {"AttributeName": "kind", "AttributeType": "S"},
        ],
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "GlobalSecondaryIndexes": [{
            "IndexName": INDEX,
            "KeySchema": [
                {"AttributeName": "kind", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }],
        "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    });
    client.expect("CreateTable", &request);
    enable_time_to_live(client, TABLE, EXPIRES);
    stream_arn(client, TABLE)
}

/// What the answers say about all writes so far.
#[derive(Default)]
pub struct Ledger {
    /// By key.
    puts: BTreeMap<(String, u64), Put>,
    /// The numbers that increments of each counter were told.
    told: [BTreeSet<i64>; COUNTERS as usize],
    increments_unknown: [u64; COUNTERS as usize],
    tokens: u64,
    pub acknowledged: u64,
    pub unknown: u64,
    pub unavailable: u64,
}

struct Put {
    fate: Fate,
    expires_s: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    NotDone,
    Unknown,
}

impl Ledger {
    /// Adds the account of another writer, or of another round.
    pub fn add(&mut self, other: Ledger) {
        for (key, put) in other.puts {
            assert!(self.puts.insert(key, put).is_none(), "each item is put once");
        }
        for (all, new) in self.told.iter_mut().zip(other.told) {
            for number in new {
                assert!(all.insert(number), "two increments were told {number}");
            }
        }
        for (all, new) in self.increments_unknown.iter_mut().zip(other.increments_unknown) {
            *all += new;
        }
        self.tokens += other.tokens;
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        self.unavailable += other.unavailable;
    }

    /// Adds what the answers of a round say, and checks that and all counters, while nobody writes.
    pub fn add_and_check(&mut self, round: Ledger, client: &mut Client) {
        let names: BTreeSet<&String> = round.puts.keys().map(|(name, _)| name).collect();
        let query = |name: &String| {
            let request = json!({
                "TableName": TABLE,
                "ConsistentRead": true,
                "KeyConditionExpression": "pk = :pk",
                "ExpressionAttributeValues": {":pk": {"S": name}},
            });
            pages(client, "Query", request)
        };
        let items: Vec<Value> = names.into_iter().flat_map(query).collect();
        round.check_puts(&items);
        self.add(round);
        self.check_counters(client);
    }

    /// Checks the whole table and its index, while nobody writes. Returns the items that last.
    pub fn check(&self, client: &mut Client, until: Until) -> Vec<Value> {
        let items = scan(client, TABLE, None);
        self.check_puts(&items);
        self.check_counters(client);
        let items = until.lasting(items);
        let indexed = until.lasting(scan(client, TABLE, Some(INDEX)));
        let sorted = |items: &[Value]| items.iter().map(Value::to_string).collect::<BTreeSet<_>>();
        let (in_table, in_index) = (sorted(&items), sorted(&indexed));
        let different: Vec<&String> = in_table.symmetric_difference(&in_index).take(5).collect();
        assert!(different.is_empty(), "the index differs: {different:?}");
        items
    }

    fn check_puts(&self, items: &[Value]) {
        let now_s = now_s();
        let is_put = |item: &&Value| item["kind"]["S"] == "put";
        let found: BTreeSet<(String, u64)> = items.iter().filter(is_put).map(key_of).collect();
        for (key, put) in &self.puts {
            let is_there = found.contains(key);
            match put.fate {
                // Nothing expires before every node's clock says so, and one of them is right.
                Fate::Done if put.expires_s.is_none_or(|expires_s| now_s < expires_s) => {
                    assert!(is_there, "{key:?} was acknowledged and is lost");
                }
                Fate::NotDone => assert!(!is_there, "{key:?} was refused and is there"),
                Fate::Done | Fate::Unknown => {}
            }
        }
        let invented = found.iter().find(|key| !self.puts.contains_key(*key));
        assert_eq!(invented, None, "nobody wrote this");
    }

    fn check_counters(&self, client: &mut Client) {
        let mut value_of = |pk: &str, sk: u64| {
            let item = get(client, TABLE, &key(pk, sk));
            item.map_or(0, |item| number(&item, "n"))
        };
        for counter in 0..COUNTERS {
            let told = &self.told[counter as usize];
            let value = value_of("counter", counter);
            let count = told.len() as i64;
            let most = count + self.increments_unknown[counter as usize] as i64;
            assert!((count..=most).contains(&value), "{value} is not within {count}..={most}");
            assert!(told.last().is_none_or(|last| *last <= value), "the counter went back");
        }
        for pk in ["tokens", "tokens-copy"] {
            assert_eq!(value_of(pk, 0), self.tokens as i64, "a transaction ran twice or never");
        }
    }

    /// Whether everything has expired that every node must consider as past.
    pub fn has_expired(client: &mut Client) -> bool {
        let is_due = |item: &Value| {
            !item[EXPIRES].is_null() && number(item, EXPIRES) as u64 + MARGIN_S < now_s()
        };
        !scan(client, TABLE, None).iter().any(is_due)
    }
}

/// Items that expire later than this are in every read of a check. Others come and go between two
/// reads.
#[derive(Clone, Copy)]
pub struct Until {
    s: u64,
}

impl Until {
    /// A check takes less time than this leaves.
    pub fn after_a_check() -> Until {
        Until { s: now_s() + 60 }
    }

    pub fn lasting(self, items: Vec<Value>) -> Vec<Value> {
        let lasts = |item: &Value| item[EXPIRES].is_null() || number(item, EXPIRES) as u64 > self.s;
        items.into_iter().filter(lasts).collect()
    }
}

/// When writes were acknowledged, by whichever node.
pub struct Availability {
    last: Mutex<Instant>,
    longest_ms: AtomicU64,
}

impl Availability {
    pub fn new() -> Availability {
        Availability { last: Mutex::new(Instant::now()), longest_ms: AtomicU64::new(0) }
    }

    pub fn acknowledge(&self) {
        let mut last = self.last.lock().expect("nobody panics here");
        let now = Instant::now();
        let gap_ms = now.duration_since(*last).as_millis() as u64;
        self.longest_ms.fetch_max(gap_ms, Ordering::Relaxed);
        *last = now;
    }

    /// The longest time without an acknowledged write.
    pub fn longest(&self) -> Duration {
        Duration::from_millis(self.longest_ms.load(Ordering::Relaxed))
    }
}

/// One writer. It stays with a node until that fails it.
pub struct Writer<'a> {
    clients: Vec<Client>,
    node: usize,
    name: String,
    next: u64,
    ledger: Ledger,
    availability: &'a Availability,
}

enum Answer {
    Done(Value),
    NotDone,
    Unknown,
}

impl<'a> Writer<'a> {
    pub fn new(
        nodes: &[SocketAddr],
        round: u64,
        number: usize,
        availability: &'a Availability,
    ) -> Writer<'a> {
        Writer {
            clients: nodes.iter().copied().map(Client::new).collect(),
            node: number % nodes.len(),
            name: format!("put-{round}-{number}"),
            next: 0,
            ledger: Ledger::default(),
            availability,
        }
    }

    /// Writes until it is told to stop.
    pub fn run(mut self, mut random: StdRng, is_over: &AtomicBool) -> Ledger {
        while !is_over.load(Ordering::Relaxed) {
            thread::sleep(PAUSE);
            match random.random_range(0..10) {
                0..5 => self.put(&mut random),
                5..8 => self.increment(random.random_range(0..COUNTERS)),
                _ => self.transact(),
            }
        }
        self.ledger
    }

    fn put(&mut self, random: &mut StdRng) {
        let sk = self.next;
        self.next += 1;
        let expires_s = match random.random_range(0..10) {
            0 => Some(now_s() + 120),
            1 => Some(now_s() - 1_800),
            _ => None,
        };
        let mut item = json!({"pk": {"S": self.name}, "sk": {"N": sk.to_string()},
            "kind": {"S": "put"}, "text": {"S": "x".repeat(random.random_range(0..300))}});
        if let Some(expires_s) = expires_s {
            item[EXPIRES] = json!({"N": expires_s.to_string()});
        }
        let fate = match self.call("PutItem", &json!({"TableName": TABLE, "Item": item})) {
            Answer::Done(_) => Fate::Done,
            Answer::NotDone => Fate::NotDone,
            Answer::Unknown => Fate::Unknown,
        };
        self.ledger.puts.insert((self.name.clone(), sk), Put { fate, expires_s });
    }

    fn increment(&mut self, counter: u64) {
        let mut request = addition("counter", counter);
        request["ReturnValues"] = json!("ALL_NEW");
        match self.call("UpdateItem", &request) {
            Answer::Done(body) => {
                let told = number(&body["Attributes"], "n");
                let is_new = self.ledger.told[counter as usize].insert(told);
                assert!(is_new, "two increments were told {told}");
            }
            Answer::NotDone => {}
            Answer::Unknown => self.ledger.increments_unknown[counter as usize] += 1,
        }
    }

    /// A transaction that is repeated until it is acknowledged.
    fn transact(&mut self) {
        let token = format!("{}-{}", self.name, self.next);
        self.next += 1;
        let actions = ["tokens", "tokens-copy"].map(|pk| json!({"Update": addition(pk, 0)}));
        let request = json!({"TransactItems": actions, "ClientRequestToken": token});
        let deadline = Instant::now() + RECOVERY_TIME_MAX;
        while !matches!(self.call("TransactWriteItems", &request), Answer::Done(_)) {
            assert!(Instant::now() < deadline, "{token} is never carried out");
        }
        self.ledger.tokens += 1;
    }

    fn call(&mut self, operation: &str, request: &Value) -> Answer {
        let answer = match self.clients[self.node].call(operation, request) {
            Err(ClientError::Connect(_)) => Answer::NotDone,
            Err(ClientError::Exchange(_)) => Answer::Unknown,
            Ok(reply) => judge(operation, reply),
        };
        match &answer {
            Answer::Done(_) => {
                self.ledger.acknowledged += 1;
                self.availability.acknowledge();
                return answer;
            }
            Answer::NotDone => self.ledger.unavailable += 1,
            Answer::Unknown => self.ledger.unknown += 1,
        }
        self.node = (self.node + 1) % self.clients.len();
        thread::sleep(RETRY_PAUSE);
        answer
    }
}

fn judge(operation: &str, reply: Reply) -> Answer {
    match reply.error() {
        None => Answer::Done(reply.body),
        Some("InternalServerError") => Answer::Unknown,
        Some(
            "ServiceUnavailable"
            | "TransactionConflictException"
            | "TransactionCanceledException"
            | "TransactionInProgressException",
        ) => Answer::NotDone,
        Some(_) => panic!("{operation} answers {}", reply.body),
    }
}

fn addition(pk: &str, sk: u64) -> Value {
    json!({
        "TableName": TABLE,
        "Key": key(pk, sk),
        "UpdateExpression": "ADD n :one SET kind = :kind",
        "ExpressionAttributeValues": {":one": {"N": "1"}, ":kind": {"S": "count"}},
    })
}

fn key(pk: &str, sk: u64) -> Value {
    json!({"pk": {"S": pk}, "sk": {"N": sk.to_string()}})
}

fn key_of(item: &Value) -> (String, u64) {
    let pk = item["pk"]["S"].as_str().expect("a key is text").to_owned();
    (pk, number(item, "sk") as u64)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is past 1970").as_secs()
}
