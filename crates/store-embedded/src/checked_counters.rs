//! Refuses an addition to something that is not a counter before the write is queued.
//!
//! Once a write is queued, later decisions build on it, so its commit could only fail all of them. The check costs a
//! read per counter, so counters that are known to be sound are remembered.

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;
use zenobe_store::key_map::KeySet;
use zenobe_store::{Key, Mutation, Result, Value, decode_counter};

use crate::in_flight::InFlight;
use crate::last_writes::LastWrites;

const SHARDS: usize = 64;

const COUNTER_SIZE_BYTES: usize = size_of::<i64>();

/// Beyond this many, a shard is emptied. Its counters are checked again at their next use.
const SHARD_KEYS_MAX: usize = 1024;

pub(crate) struct CheckedCounters {
    shards: Box<[Mutex<KeySet<Key>>]>,
}

impl CheckedCounters {
    pub fn new() -> CheckedCounters {
        CheckedCounters { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    /// Fails if a write adds to something that is not a counter. `read_published` reads the published snapshot,
    /// which must not be older than this call.
    pub fn check_additions(
        &self,
        mutations: &[Mutation],
        in_flight: &InFlight,
        read_published: impl Fn(&Key) -> Result<Option<Value>>,
    ) -> Result<()> {
        let is_addition = |mutation: &Mutation| matches!(mutation, Mutation::Add { .. });
        let Some(last) = mutations.iter().rposition(is_addition) else { return Ok(()) };
        let mut earlier = LastWrites::default();
        for mutation in &mutations[..=last] {
            if let Mutation::Add { key, .. } = mutation {
                match earlier.get(key) {
                    Some(value) => decode_counter(value.map(|value| &value[..])).map(drop)?,
                    None => self.check_counter(key, in_flight, &read_published)?,
                }
            }
            earlier.record(mutation);
        }
        Ok(())
    }

    fn check_counter(
        &self,
        key: &Key,
        in_flight: &InFlight,
        read_published: impl Fn(&Key) -> Result<Option<Value>>,
    ) -> Result<()> {
        // Locked until it is remembered, so that a value that replaces this one meanwhile is not missed.
        let mut shard = self.shard(key).lock();
        if shard.contains(key) {
            return Ok(());
        }
        let value = match in_flight.get(key) {
            Some(newest) => newest.value,
            None => read_published(key)?,
        };
        decode_counter(value.as_deref())?;
        if shard.len() >= SHARD_KEYS_MAX {
            shard.clear();
        }
        shard.insert(key.clone());
        Ok(())
    }

    /// Forgets the counters that a write has replaced. Call this after the write has become visible as in flight.
    pub fn forget_replaced(&self, mutations: &[Mutation]) {
        for mutation in mutations {
            // A deleted counter is zero, which is as sound as any.
            if let Mutation::Put { key, value } = mutation
                && value.len() != COUNTER_SIZE_BYTES
            {
                self.shard(key).lock().remove(key);
            }
        }
    }

    /// Forgets everything, after values in flight have been lost.
    pub fn clear(&self) {
        self.shards.iter().for_each(|shard| shard.lock().clear());
    }

    fn shard(&self, key: &[u8]) -> &Mutex<KeySet<Key>> {
        &self.shards[xxh3_64(key) as usize % SHARDS]
    }
}
