//! Writes that share a transaction.

use std::collections::{BTreeMap, HashSet};

use tokio::sync::{oneshot, watch};
use zenobe_store::{Error, Key};

use super::effects::Segment;

pub type GroupId = u64;

/// The size at which a group is closed to more writes.
const WRITES_MAX: usize = 256;
const SIZE_BYTES_MAX: usize = 4 << 20;

/// A key as a decision saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The revision of its row, or `None` if there was none.
    pub revision: Option<i64>,
    /// Whether it is a key, not only a guard.
    pub is_exclusive: bool,
}

/// A declared key of one write.
#[derive(Debug, Clone)]
pub struct Seen {
    pub key: Key,
    pub expected: Expected,
    /// The group whose change was seen, if that group was in flight.
    pub in_group: Option<GroupId>,
}

pub struct Group {
    pub id: GroupId,
    /// The revision of the rows that its first segment writes. Each later segment adds one.
    pub revision: i64,
    pub reads: BTreeMap<Key, Expected>,
    pub segments: Vec<Segment>,
    pub waiting: Vec<Waiting>,
    /// Groups that must commit first, because decisions in this group depend on them.
    pub after: HashSet<GroupId>,
    /// Whether no other write may join.
    pub is_alone: bool,
    /// Whether some decision in it was made on what the node remembered, not on what it had just read.
    pub is_remembered: bool,
    size_bytes: usize,
    done: watch::Sender<bool>,
}

/// A write that waits for its group to commit.
pub struct Waiting {
    pub answer: oneshot::Sender<Answer>,
    /// How many of the group's appends, in order, belong to this write.
    pub appends: usize,
}

/// The result of a group, for one of its writes.
#[derive(Debug)]
pub enum Answer {
    Committed(Vec<u64>),
    /// A value has changed since the decision: decide again.
    Again,
    /// The connection was lost and nothing was committed: decide again.
    Lost(String),
    /// A write of the group adds to a value that is not a counter. Each retries alone.
    Alone,
    Failed(Error),
}

impl Group {
    pub fn new(id: GroupId, revision: i64, is_alone: bool) -> Group {
        Group {
            id,
            revision,
            reads: BTreeMap::new(),
            segments: vec![Segment::default()],
            waiting: Vec::new(),
            after: HashSet::new(),
            is_alone,
            is_remembered: false,
            size_bytes: 0,
            done: watch::Sender::new(false),
        }
    }

    pub fn has_room(&self) -> bool {
        !self.is_alone && self.waiting.len() < WRITES_MAX && self.size_bytes < SIZE_BYTES_MAX
    }

    /// Whether the group has not seen these keys with other values.
    pub fn agrees(&self, seen: &[Seen]) -> bool {
        seen.iter().filter(|seen| seen.in_group != Some(self.id)).all(|seen| {
            let own = self.reads.get(&seen.key);
            own.is_none_or(|own| own.revision == seen.expected.revision)
        })
    }

    /// Adds a write, which must have been checked.
    pub fn join(
        &mut self,
        seen: Vec<Seen>,
        mut segments: Vec<Segment>,
        answer: oneshot::Sender<Answer>,
    ) -> Result<(), Error> {
        let appends = segments.iter().map(|segment| segment.appends.len()).sum();
        self.size_bytes += segments.iter().map(Segment::size_bytes).sum::<usize>();
        for Seen { key, expected, in_group } in seen {
            // The store can't confirm what this group itself writes.
            if in_group == Some(self.id) {
                if let Some(own) = self.reads.get_mut(&key) {
                    own.is_exclusive |= expected.is_exclusive;
                }
                continue;
            }
            let own = self.reads.entry(key).or_insert(expected);
            own.is_exclusive |= expected.is_exclusive;
        }
        match segments.len() {
            1 if segments[0].is_mergeable() => {
                self.segments[0].merge(segments.remove(0))?;
            }
            _ => self.segments = segments,
        }
        self.waiting.push(Waiting { answer, appends });
        Ok(())
    }

    pub fn done(&self) -> watch::Receiver<bool> {
        self.done.subscribe()
    }

    pub fn announce(&self) {
        self.done.send_replace(true);
    }

    pub fn appends(&self) -> usize {
        self.segments.iter().map(|segment| segment.appends.len()).sum()
    }
}
