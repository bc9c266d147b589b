//! One client's request, and the response that it got.

use serde_json::{Value, json};
use zenobe_testing::linearizability::{self, NEVER};

pub const KEYS: usize = 4;

/// The number in each item; `None` if there is no item.
pub type State = [Option<i64>; KEYS];

/// The number of an item, required by a condition or seen in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub key: usize,
    pub value: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    Set { key: usize, value: i64 },
    Add { key: usize, value: i64 },
    Delete { key: usize },
}

impl Write {
    pub fn key(self) -> usize {
        match self {
            Write::Set { key, .. } | Write::Add { key, .. } | Write::Delete { key } => key,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All conditions held, and all writes happened.
    Done,
    /// A condition failed, and nothing happened.
    Refused,
    /// No response arrived.
    Unknown,
}

/// One operation on one or several items, as a whole.
#[derive(Debug, Clone)]
pub struct Event {
    pub client: usize,
    pub conditions: Vec<Seen>,
    pub writes: Vec<Write>,
    /// The items before and after the operation, as the response showed them.
    pub before: Vec<Seen>,
    pub after: Vec<Seen>,
    pub outcome: Outcome,
}

impl Event {
    /// Whether the server acknowledged that this gave the item a value.
    pub fn has_written(&self, key: usize) -> bool {
        let writes = |write: &Write| match *write {
            Write::Set { key: written, .. } | Write::Add { key: written, .. } => written == key,
            Write::Delete { .. } => false,
        };
        self.outcome == Outcome::Done && self.writes.iter().any(writes)
    }

    pub fn deletes(&self, key: usize) -> bool {
        self.writes.contains(&Write::Delete { key })
    }

    /// The event as a line of JSON. `tests/histories` reads it.
    pub fn line(&self, called: u64, returned: u64) -> Value {
        let seen = |list: &[Seen]| -> Value {
            list.iter().map(|seen| json!({"key": seen.key, "value": seen.value})).collect()
        };
        let write = |write: &Write| match *write {
            Write::Set { key, value } => json!({"key": key, "kind": "set", "value": value}),
            Write::Add { key, value } => json!({"key": key, "kind": "add", "value": value}),
            Write::Delete { key } => json!({"key": key, "kind": "delete"}),
        };
        let outcome = match self.outcome {
            Outcome::Done => "done",
            Outcome::Refused => "refused",
            Outcome::Unknown => "unknown",
        };
        json!({
            "client": self.client,
            "called": called,
            "returned": (returned != NEVER).then_some(returned),
            "conditions": seen(&self.conditions),
            "writes": self.writes.iter().map(write).collect::<Value>(),
            "before": seen(&self.before),
            "after": seen(&self.after),
            "outcome": outcome,
        })
    }
}

fn holds(state: &State, expected: &[Seen]) -> bool {
    expected.iter().all(|seen| state[seen.key] == seen.value)
}

impl linearizability::Event for Event {
    type State = State;

    fn explained(&self, before: &State) -> Option<State> {
        let is_done = holds(before, &self.conditions);
        let mut after = *before;
        for write in self.writes.iter().filter(|_| is_done) {
            match *write {
                Write::Set { key, value } => after[key] = Some(value),
                Write::Add { key, value } => after[key] = Some(after[key].unwrap_or(0) + value),
                Write::Delete { key } => after[key] = None,
            }
        }
        let fits = match self.outcome {
            Outcome::Unknown => true,
            Outcome::Refused => !is_done && holds(before, &self.before),
            Outcome::Done => is_done && holds(before, &self.before) && holds(&after, &self.after),
        };
        fits.then_some(after)
    }
}
