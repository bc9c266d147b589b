//! One client: random operations on a few items, each recorded with its response.

use std::net::SocketAddr;
use std::sync::mpsc;

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use zenobe_testing::linearizability::{NEVER, Timed};
use zenobe_testing::{Client, ClientError, Reply};

use super::event::{Event, KEYS, Outcome, Seen, Write};
use super::{Clock, TABLE};

pub struct HistoryClient {
    /// One for each node.
    clients: Vec<Client>,
    /// The node that is asked next.
    node: usize,
    history: u64,
    number: usize,
}

/// A request, its conditions and writes, and how to read the items before and after it from the
/// response.
struct Step {
    operation: &'static str,
    body: Value,
    conditions: Vec<Seen>,
    writes: Vec<Write>,
    read: Read,
}

/// What became of a request.
enum Taken {
    Told(Timed<Event>),
    /// The server is gone.
    NotSent,
    /// The answer promises that nothing happened, for a reason that has nothing to do with the
    /// request.
    Unavailable(Value),
    /// The answer does not say whether anything happened.
    Failed(Timed<Event>, Value),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    /// A single item, unchanged by the operation.
    Item(usize),
    /// `Attributes` as they were before a write.
    Old(usize),
    /// `Attributes` as they are after a write.
    New(usize),
    /// The `Responses` of a transaction, for the keys from 0 on.
    Together,
    Nothing,
}

impl HistoryClient {
    /// Each history has its own items. Its clients begin with different nodes.
    pub fn new(nodes: &[SocketAddr], history: u64, number: usize) -> HistoryClient {
        let clients = nodes.iter().copied().map(Client::new).collect();
        HistoryClient { clients, node: number % nodes.len(), history, number }
    }

    /// Runs some operations, or fewer if the server dies first, and reports each response.
    pub fn play(
        mut self,
        operations: usize,
        mut random: StdRng,
        clock: &Clock,
        answered: &mpsc::Sender<()>,
    ) -> Vec<Timed<Event>> {
        let mut history = Vec::new();
        let mut known = None;
        while history.len() < operations {
            let step = self.draw(&mut random, known.as_deref());
            let told = match self.take(step, clock) {
                Taken::Told(told) => told,
                Taken::NotSent => break,
                Taken::Unavailable(answer) | Taken::Failed(_, answer) => unexpected(&answer),
            };
            let is_answered = told.returned != NEVER;
            // The next transaction may build on items that were read together.
            known = (told.event.before.len() == KEYS).then(|| told.event.before.clone());
            history.push(told);
            if !is_answered {
                break;
            }
            // Nobody counts any more once the server has been killed.
            let _ = answered.send(());
        }
        history
    }

    /// Opens new connections: a server closes those that have been idle for long.
    pub fn reconnect(&mut self) {
        self.clients.iter_mut().for_each(Client::disconnect);
    }

    /// Takes one random step. If it got no answer, or none that says what happened, another node is
    /// asked next.
    pub fn step(
        &mut self,
        random: &mut StdRng,
        known: Option<&[Seen]>,
        clock: &Clock,
    ) -> Option<Timed<Event>> {
        let step = self.draw(random, known);
        let taken = self.take(step, clock);
        let told = match taken {
            Taken::Told(told) | Taken::Failed(told, _) => Some(told),
            Taken::NotSent | Taken::Unavailable(_) => None,
        };
        if told.as_ref().is_none_or(|told| told.returned == NEVER) {
            self.node = (self.node + 1) % self.clients.len();
        }
        told
    }

    /// # Panics
    /// If the server does not answer.
    pub fn read_everything(&mut self, clock: &Clock) -> Timed<Event> {
        match self.take(self.get_together(), clock) {
            Taken::Told(told) => told,
            Taken::NotSent => panic!("the server is gone"),
            Taken::Unavailable(answer) | Taken::Failed(_, answer) => unexpected(&answer),
        }
    }

    fn take(&mut self, step: Step, clock: &Clock) -> Taken {
        let called = clock.now();
        let reply = self.clients[self.node].call(step.operation, &step.body);
        let returned = clock.now();
        let Step { conditions, writes, read, .. } = step;
        let mut event = Event {
            client: self.number,
            conditions,
            writes,
            before: Vec::new(),
            after: Vec::new(),
            outcome: Outcome::Done,
        };
        match reply {
            Err(ClientError::Connect(_)) => Taken::NotSent,
            Err(ClientError::Exchange(_)) => {
                event.outcome = Outcome::Unknown;
                Taken::Told(Timed { called, returned: NEVER, event })
            }
            Ok(reply) => match outcome(&reply) {
                None => Taken::Unavailable(reply.body),
                Some(Outcome::Unknown) => {
                    event.outcome = Outcome::Unknown;
                    Taken::Failed(Timed { called, returned: NEVER, event }, reply.body)
                }
                Some(outcome) => {
                    event.outcome = outcome;
                    if event.outcome == Outcome::Done {
                        (event.before, event.after) = read.seen(&reply.body);
                    }
                    Taken::Told(Timed { called, returned, event })
                }
            },
        }
    }

    fn draw(&self, random: &mut StdRng, known: Option<&[Seen]>) -> Step {
        // A client that has just read all items often acts on what it saw.
        if let Some(known) = known
            && random.random_ratio(3, 4)
        {
            return self.write_on_what_was_read(random, known);
        }
        let key = random.random_range(0..KEYS);
        let value = random.random_range(0..5);
        match random.random_range(0..10) {
            0 => self.get(key),
            1 => self.put(key, value, None),
            2 => self.put(key, value, Some(Seen { key, value: None })),
            3 => self.put(key, value, Some(Seen { key, value: Some(random.random_range(0..5)) })),
            4 => self.add(key),
            5 => self.delete(key),
            6..8 => self.write_together(random, key),
            _ => self.get_together(),
        }
    }

    fn key(&self, key: usize) -> Value {
        json!({"pk": {"S": format!("{}-{key}", self.history)}})
    }

    fn item(&self, key: usize, value: i64) -> Value {
        let mut item = self.key(key);
        item["n"] = json!({"N": value.to_string()});
        item
    }

    fn get(&self, key: usize) -> Step {
        let body = json!({"TableName": TABLE, "Key": self.key(key), "ConsistentRead": true});
        Step {
            operation: "GetItem",
            body,
            conditions: vec![],
            writes: vec![],
            read: Read::Item(key),
        }
    }

    fn put(&self, key: usize, value: i64, condition: Option<Seen>) -> Step {
        let mut body =
            json!({"TableName": TABLE, "Item": self.item(key, value), "ReturnValues": "ALL_OLD"});
        demand(&mut body, condition);
        let writes = vec![Write::Set { key, value }];
        let conditions = condition.into_iter().collect();
        Step { operation: "PutItem", body, conditions, writes, read: Read::Old(key) }
    }

    fn add(&self, key: usize) -> Step {
        let mut body = self.addition(key);
        body["ReturnValues"] = json!("ALL_NEW");
        let writes = vec![Write::Add { key, value: 1 }];
        Step { operation: "UpdateItem", body, conditions: vec![], writes, read: Read::New(key) }
    }

    fn addition(&self, key: usize) -> Value {
        json!({
            "TableName": TABLE,
            "Key": self.key(key),
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        })
    }

    fn delete(&self, key: usize) -> Step {
        let body = json!({"TableName": TABLE, "Key": self.key(key), "ReturnValues": "ALL_OLD"});
        let writes = vec![Write::Delete { key }];
        Step { operation: "DeleteItem", body, conditions: vec![], writes, read: Read::Old(key) }
    }

    fn get_together(&self) -> Step {
        let get = |key| json!({"Get": {"TableName": TABLE, "Key": self.key(key)}});
        let body = json!({"TransactItems": (0..KEYS).map(get).collect::<Value>()});
        let (conditions, writes) = (vec![], vec![]);
        Step { operation: "TransactGetItems", body, conditions, writes, read: Read::Together }
    }

    /// Adds to two items.
    fn write_together(&self, random: &mut StdRng, first: usize) -> Step {
        let second = (first + random.random_range(1..KEYS)) % KEYS;
        let writes = [first, second].map(|key| Write::Add { key, value: 1 }).to_vec();
        self.transaction(vec![], writes)
    }

    /// Writes one or two items on condition that these and another one still have the values that
    /// were read. If two such transactions each read what the other writes, they must not both
    /// succeed.
    fn write_on_what_was_read(&self, random: &mut StdRng, known: &[Seen]) -> Step {
        let first = random.random_range(0..KEYS);
        let [second, third] = [(first + 1) % KEYS, (first + 2) % KEYS];
        let value = random.random_range(0..5);
        let mut writes = vec![Write::Set { key: first, value }];
        let mut conditions = vec![known[first], known[second]];
        match random.random_range(0..3) {
            0 => writes.push(Write::Delete { key: second }),
            1 => writes.push(Write::Set { key: second, value: value + 1 }),
            _ => conditions.push(known[third]),
        }
        self.transaction(conditions, writes)
    }

    /// One action for each item: writes carry their own condition, the other items get condition
    /// checks.
    fn transaction(&self, conditions: Vec<Seen>, writes: Vec<Write>) -> Step {
        let condition_of = |key| conditions.iter().copied().find(|seen: &Seen| seen.key == key);
        let mut actions = Vec::new();
        for write in &writes {
            let (kind, key, mut body) = match *write {
                Write::Set { key, value } => {
                    ("Put", key, json!({"TableName": TABLE, "Item": self.item(key, value)}))
                }
                Write::Add { key, .. } => ("Update", key, self.addition(key)),
                Write::Delete { key } => {
                    ("Delete", key, json!({"TableName": TABLE, "Key": self.key(key)}))
                }
            };
            demand(&mut body, condition_of(key));
            actions.push(json!({ kind: body }));
        }
        let is_written = |seen: &&Seen| writes.iter().any(|write| write.key() == seen.key);
        for condition in conditions.iter().filter(|seen| !is_written(seen)) {
            let mut body = json!({"TableName": TABLE, "Key": self.key(condition.key)});
            demand(&mut body, Some(*condition));
            actions.push(json!({"ConditionCheck": body}));
        }
        let body = json!({"TransactItems": actions});
        Step { operation: "TransactWriteItems", body, conditions, writes, read: Read::Nothing }
    }
}

/// Adds a condition to a request.
fn demand(body: &mut Value, condition: Option<Seen>) {
    match condition.map(|seen| seen.value) {
        None => {}
        Some(None) => body["ConditionExpression"] = json!("attribute_not_exists(pk)"),
        Some(Some(value)) => {
            body["ConditionExpression"] = json!("n = :expected");
            body["ExpressionAttributeValues"][":expected"] = json!({"N": value.to_string()});
        }
    }
}

fn unexpected(answer: &Value) -> ! {
    panic!("an unexpected answer: {answer}")
}

/// `None` if nothing happened.
fn outcome(reply: &Reply) -> Option<Outcome> {
    match reply.error() {
        None => Some(Outcome::Done),
        Some("ConditionalCheckFailedException") => Some(Outcome::Refused),
        Some("TransactionCanceledException") => {
            let reasons = reply.body["CancellationReasons"].as_array().expect("reasons are a list");
            let has = |code: &str| reasons.iter().any(|reason| reason["Code"] == code);
            let is_refused = has("ConditionalCheckFailed");
            assert!(is_refused || has("TransactionConflict"), "cancelled: {}", reply.body);
            is_refused.then_some(Outcome::Refused)
        }
        Some("ServiceUnavailable" | "TransactionConflictException") => None,
        Some("InternalServerError") => Some(Outcome::Unknown),
        Some(_) => panic!("an unexpected answer: {}", reply.body),
    }
}

impl Read {
    /// The items before and after the operation, as the response shows them.
    fn seen(self, body: &Value) -> (Vec<Seen>, Vec<Seen>) {
        match self {
            Read::Item(key) => (vec![Seen { key, value: number(&body["Item"]) }], vec![]),
            Read::Old(key) => (vec![Seen { key, value: number(&body["Attributes"]) }], vec![]),
            Read::New(key) => (vec![], vec![Seen { key, value: number(&body["Attributes"]) }]),
            Read::Together => {
                let responses = body["Responses"].as_array().expect("responses are a list");
                let seen = |(key, response): (usize, &Value)| Seen {
                    key,
                    value: number(&response["Item"]),
                };
                (responses.iter().enumerate().map(seen).collect(), vec![])
            }
            Read::Nothing => (vec![], vec![]),
        }
    }
}

fn number(item: &Value) -> Option<i64> {
    (!item.is_null()).then(|| crate::tables::number(item, "n"))
}
