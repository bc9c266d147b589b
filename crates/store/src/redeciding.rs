//! A store that decides more often than it commits, like a backend with optimistic transactions.
//!
//! It first decides each write on old values of its keys, then on no values at all, and discards
//! both decisions; only then does it run the write for real. This exposes decisions that keep state
//! between calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{BoxFuture, FutureExt};

use crate::layer::Layer;
use crate::{CommitOutcome, Decide, Key, Result, Store, Value, WriteSet};

/// How many keys have a remembered value. No further keys are added.
const REMEMBERED_MAX: usize = 10_000;

pub struct RedecidingStore {
    below: Arc<dyn Store>,
    /// What each key held when a write last declared it. The current value may be newer.
    seen: Mutex<HashMap<Key, Option<Value>>>,
}

impl RedecidingStore {
    pub fn new(below: Arc<dyn Store>) -> RedecidingStore {
        RedecidingStore { below, seen: Mutex::new(HashMap::new()) }
    }

    /// Old values of the declared keys.
    fn stale(&self, set: WriteSet<'_>) -> Vec<Option<Value>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let declared = set.guards.iter().chain(set.keys);
        declared.map(|key| seen.get(key).cloned().flatten()).collect()
    }

    fn remember(&self, set: WriteSet<'_>, values: &[Option<Value>]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in set.guards.iter().chain(set.keys).zip(values) {
            if seen.len() < REMEMBERED_MAX || seen.contains_key(key) {
                seen.insert(key.clone(), value.clone());
            }
        }
    }
}

impl Layer for RedecidingStore {
    fn below(&self) -> &Arc<dyn Store> {
        &self.below
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<CommitOutcome>> {
        async move {
            drop(decide(&self.stale(set)));
            drop(decide(&vec![None; set.guards.len() + set.keys.len()]));
            let mut deciding = |values: &[Option<Value>]| {
                self.remember(set, values);
                decide(values)
            };
            self.below.write(set, &mut deciding).await
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;
    use crate::{Batch, Decision, Reader};

    #[test]
    fn each_write_is_decided_on_old_values_and_on_none_before_it_counts() {
        let store = RedecidingStore::new(Arc::new(MemoryStore::new()));
        let key = Key::from_static(b"k");
        let mut calls = Vec::new();
        for round in 0..3_u8 {
            let mut decide = |values: &[Option<Value>]| {
                calls.push(values[0].clone());
                let mut batch = Batch::new();
                batch.put(key.clone(), vec![round]);
                Decision::Commit(batch)
            };
            let set = WriteSet { guards: &[], keys: std::slice::from_ref(&key) };
            FutureExt::now_or_never(Store::write(&store, set, &mut decide))
                .expect("a memory store does not wait")
                .expect("the write succeeds");
        }
        let value = |byte: u8| Some(Value::from(vec![byte]));
        assert_eq!(
            calls,
            [None, None, None, None, None, value(0), value(0), None, value(1)],
            "stale, empty, and true values, round by round"
        );
        let read = FutureExt::now_or_never(Reader::get(&store, b"k"));
        assert_eq!(read.unwrap().unwrap(), value(2));
    }
}
