//! What one writer knows about its keys: the model for checking the store.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Counter;

const KEYS_PER_WRITER: u64 = 40;
const PARTITIONS_PER_WRITER: u64 = 5;

/// The state of some keys. A missing entry means that there is no item.
pub type State = BTreeMap<u64, Value>;

pub struct Ledger {
    writer: usize,
    /// The state after the last acknowledged write.
    pub items: State,
    /// The one request without a response, if any.
    pub pending: Option<Change>,
    version: u64,
    /// The responses in order, with their ids.
    answers: Vec<Answered>,
}

#[derive(Clone)]
pub struct Answered {
    pub request_id: String,
    pub change: Change,
    /// Whether the shared counter was incremented.
    pub is_increment: bool,
}

/// The effect of one request: the new item of each key that it touches (`None` means no item).
#[derive(Clone, Debug)]
pub struct Change(pub Vec<(u64, Option<Value>)>);

impl Ledger {
    pub fn new(writer: usize) -> Ledger {
        let (items, pending, answers) = (State::new(), None, Vec::new());
        Ledger { writer, items, pending, version: 0, answers }
    }

    pub fn note_answer(&mut self, answer: Answered) {
        self.answers.push(answer);
    }

    /// The ledger at the moment when only these requests had been answered. The next request may
    /// have been running.
    pub fn as_of(&self, answered: &BTreeSet<String>, counter: &mut Counter) -> Ledger {
        let mut ledger = Ledger::new(self.writer);
        for Answered { request_id, change, is_increment } in self.answers.iter().cloned() {
            if !answered.contains(&request_id) {
                ledger.pending = Some(change);
                counter.uncertain += i64::from(is_increment);
                break;
            }
            counter.acknowledged += i64::from(is_increment);
            ledger.apply(change);
        }
        ledger
    }

    pub fn keys(&self) -> std::ops::Range<u64> {
        0..KEYS_PER_WRITER
    }

    /// The key attributes of one of the writer's own keys.
    pub fn key(&self, number: u64) -> Value {
        let partition = format!("writer{}-{}", self.writer, number % PARTITIONS_PER_WRITER);
        json!({"pk": {"S": partition}, "sk": {"N": number.to_string()}})
    }

    /// Every write gets a new version, so no two states of a key are equal.
    pub fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    pub fn apply(&mut self, change: Change) {
        for (key, item) in change.0 {
            match item {
                Some(item) => self.items.insert(key, item),
                None => self.items.remove(&key),
            };
        }
    }

    /// Resolves the pending request by what the store holds, and checks everything else.
    pub fn settle(&mut self, stored: &State, round: u64) {
        let writer = self.writer;
        if let Some(change) = self.pending.take() {
            let happened = |(key, item): &(u64, Option<Value>)| stored.get(key) == item.as_ref();
            if change.0.iter().all(happened) {
                self.apply(change);
            } else {
                for (key, _) in &change.0 {
                    let (found, before) = (stored.get(key), self.items.get(key));
                    assert_eq!(
                        found, before,
                        "round {round}: half of {change:?} of writer {writer}"
                    );
                }
            }
        }
        for key in self.keys() {
            let (found, expected) = (stored.get(&key), self.items.get(&key));
            assert_eq!(found, expected, "round {round}: key {key} of writer {writer}");
        }
    }
}
