//! The simplest thing that behaves as a store should: a sorted map and the end of each log.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::stamp::{stamp_of, stamped_key, stamped_puts};
use crate::{Batch, Direction, Key, KeyRange, LogEnd, Mutation, Stamp, Value, log_entry_key};

#[derive(Debug, Clone, Default)]
pub struct Model {
    entries: BTreeMap<Key, Value>,
    log_ends: BTreeMap<Key, LogEnd>,
}

impl Model {
    pub fn apply(&mut self, batch: &Batch) -> Vec<u64> {
        let shown = |clock: &Key| {
            let end = self.log_ends.get(clock).copied().unwrap_or_default();
            Ok::<_, ()>(end.clock())
        };
        let stamp = stamp_of(stamped_puts(&batch.mutations), shown).expect("a clock of the model");
        let mutations = batch.mutations.iter();
        mutations.filter_map(|mutation| self.apply_mutation(mutation, stamp)).collect()
    }

    fn apply_mutation(&mut self, mutation: &Mutation, stamp: Stamp) -> Option<u64> {
        match mutation {
            Mutation::Put { key, value } => {
                self.entries.insert(key.clone(), value.clone());
            }
            Mutation::Delete { key } => {
                self.entries.remove(key);
            }
            Mutation::DeleteRange { range } => self.entries.retain(|key, _| !range.contains(key)),
            Mutation::Append { log, stamp, value } => {
                let end = self.log_ends.entry(log.clone()).or_default();
                *end = LogEnd { sequence: end.sequence + 1, stamp: end.stamp.max(*stamp) };
                let entry = [&end.stamp.to_be_bytes()[..], value].concat();
                self.entries.insert(log_entry_key(log, end.sequence), entry.into());
                return Some(end.sequence);
            }
            Mutation::ForgetLog { log } => {
                self.log_ends.remove(log);
            }
            Mutation::SetLogEnd { log, end } => {
                self.log_ends.insert(log.clone(), *end);
            }
            Mutation::Add { key, delta } => {
                let old = self.entries.get(key).map_or(0, |value| {
                    i64::from_be_bytes(value[..].try_into().expect("the model holds a counter"))
                });
                match old.wrapping_add(*delta) {
                    0 => self.entries.remove(key),
                    sum => {
                        let sum = Value::copy_from_slice(&sum.to_be_bytes());
                        self.entries.insert(key.clone(), sum)
                    }
                };
            }
            Mutation::PutStamped(put) => {
                self.entries.insert(stamped_key(&put.key, stamp), put.value.clone());
                self.advance(&put.clock, stamp);
            }
            Mutation::Advance { clock, to } => self.advance(clock, *to),
        }
        None
    }

    fn advance(&mut self, clock: &Key, to: Stamp) {
        let end = self.log_ends.entry(clock.clone()).or_default();
        *end = end.advance(to);
    }

    pub fn log_ends(&self) -> Vec<(Key, LogEnd)> {
        self.log_ends.iter().map(|(log, end)| (log.clone(), *end)).collect()
    }

    pub fn get(&self, key: &[u8]) -> Option<Value> {
        self.entries.get(key).cloned()
    }

    pub fn scan(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        if range.is_empty() {
            return Vec::new();
        }
        let end = range.end.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let found = self.entries.range::<Key, _>((Bound::Included(&range.start), end));
        let owned = |(key, value): (&Key, &Value)| (key.to_vec(), value.to_vec());
        match direction {
            Direction::Forward => found.map(owned).take(limit).collect(),
            Direction::Reverse => found.rev().map(owned).take(limit).collect(),
        }
    }
}
