//! One writer: random requests on its own keys until the server is gone.

use std::sync::mpsc;

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use zenobe_testing::{Client, ClientError};

use super::TABLE;
use super::ledger::{Answered, Change, Ledger};

/// What a writer saw besides its ledger.
#[derive(Clone, Copy, Default)]
pub struct Outcome {
    pub acknowledged: u64,
    pub increments: i64,
    pub increment_pending: bool,
    pub counter_seen: i64,
}

/// A request, its changes, and the expected response.
struct Step {
    operation: &'static str,
    body: Value,
    change: Change,
    answer: Answer,
}

#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Success,
    ConditionFails,
    Cancelled,
}

pub fn counter_key() -> Value {
    json!({"pk": {"S": "counter"}, "sk": {"N": "0"}})
}

/// Reports each acknowledged write to `acknowledged`, and ends if nobody listens.
pub fn run(
    mut client: Client,
    ledger: &mut Ledger,
    mut random: StdRng,
    acknowledged: &mpsc::Sender<()>,
) -> Outcome {
    let mut outcome = Outcome::default();
    loop {
        let goes_on = if random.random_ratio(1, 10) {
            increment(&mut client, ledger, &mut outcome)
        } else {
            let step = draw(ledger, &mut random);
            take(&mut client, ledger, step, &mut outcome)
        };
        if !goes_on {
            return outcome;
        }
        if acknowledged.send(()).is_err() {
            return outcome;
        }
    }
}

/// Sends one step. Returns false when the server is gone.
fn take(client: &mut Client, ledger: &mut Ledger, step: Step, outcome: &mut Outcome) -> bool {
    let reply = match client.call(step.operation, &step.body) {
        Ok(reply) => reply,
        Err(ClientError::Connect(_)) => return false,
        Err(ClientError::Exchange(_)) => {
            ledger.pending = Some(step.change);
            return false;
        }
    };
    let expected = match step.answer {
        Answer::Success => None,
        Answer::ConditionFails => Some("ConditionalCheckFailedException"),
        Answer::Cancelled => Some("TransactionCanceledException"),
    };
    assert_eq!(reply.error(), expected, "{} {} answers {}", step.operation, step.body, reply.body);
    if step.answer == Answer::Success {
        assert_eq!(reply.status, 200, "{} {} answers {}", step.operation, step.body, reply.body);
        outcome.acknowledged += 1;
    }
    let (request_id, change) = (reply.request_id().to_owned(), step.change.clone());
    ledger.note_answer(Answered { request_id, change, is_increment: false });
    ledger.apply(step.change);
    true
}

fn increment(client: &mut Client, ledger: &mut Ledger, outcome: &mut Outcome) -> bool {
    let request = json!({
        "TableName": TABLE,
        "Key": counter_key(),
        "UpdateExpression": "ADD #value :one",
        "ExpressionAttributeNames": {"#value": "value"},
        "ExpressionAttributeValues": {":one": {"N": "1"}},
        "ReturnValues": "UPDATED_NEW",
    });
    match client.call("UpdateItem", &request) {
        Ok(reply) => {
            assert_eq!(reply.status, 200, "the counter's update returned {}", reply.body);
            outcome.acknowledged += 1;
            outcome.increments += 1;
            let (request_id, change) = (reply.request_id().to_owned(), Change(vec![]));
            ledger.note_answer(Answered { request_id, change, is_increment: true });
            let value = crate::tables::number(&reply.body["Attributes"], "value");
            assert!(
                value > outcome.counter_seen,
                "the counter went from {} to {value}",
                outcome.counter_seen
            );
            outcome.counter_seen = value;
            true
        }
        Err(error) => {
            outcome.increment_pending = matches!(error, ClientError::Exchange(_));
            false
        }
    }
}

fn draw(ledger: &mut Ledger, random: &mut StdRng) -> Step {
    let key = random.random_range(ledger.keys());
    match random.random_range(0..10) {
        0..3 => put(ledger, random, key),
        3..5 => conditional_put(ledger, random, key),
        5..7 => update(ledger, random, key),
        7 => delete(ledger, key),
        _ => {
            let other = (key + random.random_range(1..ledger.keys().end)) % ledger.keys().end;
            transaction(ledger, random, key, other)
        }
    }
}

fn put(ledger: &mut Ledger, random: &mut StdRng, key: u64) -> Step {
    let item = random_item(ledger, random, key);
    let body = json!({"TableName": TABLE, "Item": item});
    let change = Change(vec![(key, Some(item))]);
    Step { operation: "PutItem", body, change, answer: Answer::Success }
}

/// A put on condition that the item is absent, or has the version in the ledger; the ledger knows
/// the right response.
fn conditional_put(ledger: &mut Ledger, random: &mut StdRng, key: u64) -> Step {
    let item = random_item(ledger, random, key);
    let mut body = json!({"TableName": TABLE, "Item": item});
    let current = ledger.items.get(&key);
    let holds = if random.random() {
        body["ConditionExpression"] = json!("attribute_not_exists(pk)");
        current.is_none()
    } else {
        let version = current.map_or(json!({"N": "0"}), |item| item["version"].clone());
        body["ConditionExpression"] = json!("version = :version");
        body["ExpressionAttributeValues"] = json!({":version": version});
        current.is_some()
    };
    let (change, answer) = match holds {
        true => (Change(vec![(key, Some(item))]), Answer::Success),
        false => (Change(vec![]), Answer::ConditionFails),
    };
    Step { operation: "PutItem", body, change, answer }
}

/// An update moves the item in both indexes, or removes it from one.
fn update(ledger: &mut Ledger, random: &mut StdRng, key: u64) -> Step {
    let (mut body, item) = update_parts(ledger, random, key);
    body["TableName"] = json!(TABLE);
    let change = Change(vec![(key, Some(item))]);
    Step { operation: "UpdateItem", body, change, answer: Answer::Success }
}

fn update_parts(ledger: &mut Ledger, random: &mut StdRng, key: u64) -> (Value, Value) {
    let version = json!({"N": ledger.next_version().to_string()});
    let mut item = ledger.items.get(&key).cloned().unwrap_or_else(|| ledger.key(key));
    item["version"] = version.clone();
    let mut body = json!({
        "Key": ledger.key(key),
        "ExpressionAttributeValues": {":version": version},
    });
    if random.random() {
        let group = random_group(random);
        item["g"] = group.clone();
        body["ExpressionAttributeValues"][":group"] = group;
        body["UpdateExpression"] = json!("SET version = :version, g = :group REMOVE l");
        remove(&mut item, "l");
    } else {
        let level = random_level(random);
        item["l"] = level.clone();
        body["ExpressionAttributeValues"][":level"] = level;
        body["UpdateExpression"] = json!("SET version = :version, l = :level REMOVE g");
        remove(&mut item, "g");
    }
    (body, item)
}

fn delete(ledger: &Ledger, key: u64) -> Step {
    let body = json!({"TableName": TABLE, "Key": ledger.key(key)});
    Step {
        operation: "DeleteItem",
        body,
        change: Change(vec![(key, None)]),
        answer: Answer::Success,
    }
}

/// Two items in one transaction. Some have a condition that fails on the second item.
fn transaction(ledger: &mut Ledger, random: &mut StdRng, first: u64, second: u64) -> Step {
    let (mut update, updated) = update_parts(ledger, random, first);
    update["TableName"] = json!(TABLE);
    let (mut action, effect) = if random.random() {
        let item = random_item(ledger, random, second);
        (json!({"Put": {"TableName": TABLE, "Item": item}}), Some(item))
    } else {
        (json!({"Delete": {"TableName": TABLE, "Key": ledger.key(second)}}), None)
    };
    let exists = ledger.items.contains_key(&second);
    let demanded = random.random_ratio(3, 4) == exists;
    let condition = if demanded { "attribute_exists(pk)" } else { "attribute_not_exists(pk)" };
    let kind = if effect.is_some() { "Put" } else { "Delete" };
    action[kind]["ConditionExpression"] = json!(condition);
    let (change, answer) = match demanded == exists {
        true => (Change(vec![(first, Some(updated)), (second, effect)]), Answer::Success),
        false => (Change(vec![]), Answer::Cancelled),
    };
    let body = json!({"TransactItems": [{"Update": update}, action]});
    Step { operation: "TransactWriteItems", body, change, answer }
}

fn random_item(ledger: &mut Ledger, random: &mut StdRng, key: u64) -> Value {
    let mut item = ledger.key(key);
    item["version"] = json!({"N": ledger.next_version().to_string()});
    item["filler"] = json!({"S": "x".repeat(random.random_range(0..1500))});
    if random.random() {
        item["g"] = random_group(random);
    }
    if random.random() {
        item["l"] = random_level(random);
    }
    item
}

fn random_group(random: &mut StdRng) -> Value {
    json!({"S": format!("group{}", random.random_range(0..4))})
}

fn random_level(random: &mut StdRng) -> Value {
    json!({"N": random.random_range(-50..50).to_string()})
}

fn remove(item: &mut Value, name: &str) {
    item.as_object_mut().expect("an item is an object").remove(name);
}
