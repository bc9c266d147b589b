//! The values of writes in flight: queued, not yet published, but already what the next decision must see.
//!
//! Each mutation has its place in the commit order. `retired` is the place up to which everything has been published
//! (or lost, and never to be seen). An entry at or before it no longer counts, whether or not it has been removed
//! from here yet. That one number makes the rest free of races: an entry that would be inserted late is not inserted
//! at all, and one that is removed late is ignored.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use xxhash_rust::xxh3::xxh3_64;
use zenobe_store::key_map::KeyMap;
use zenobe_store::{Key, KeyRange, KnownEffect, Mutation, Value};

const SHARDS: usize = 64;

pub(crate) struct InFlight {
    retired: AtomicU64,
    shards: Box<[Mutex<KeyMap<Key, InFlightValue>>]>,
    deleted_ranges: RwLock<Vec<DeletedRange>>,
}

/// The newest mutation in flight on a key: its place in the commit order, and what it leaves there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InFlightValue {
    pub place: u64,
    pub value: Option<Value>,
}

struct DeletedRange {
    place: u64,
    range: KeyRange,
}

impl InFlight {
    pub fn new() -> InFlight {
        InFlight {
            retired: AtomicU64::new(0),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            deleted_ranges: RwLock::default(),
        }
    }

    /// What is in flight on a key, or `None` if its published value is the newest. Load the published snapshot after
    /// this call: it may have come to hold the key in the meantime.
    pub fn get(&self, key: &Key) -> Option<InFlightValue> {
        let deletion = self.newest_deletion(key);
        let entry = self.shard(key).lock().get(key).cloned();
        let newest = match (deletion, entry) {
            (Some(place), Some(entry)) if entry.place > place => entry,
            (Some(place), _) => InFlightValue { place, value: None },
            (None, entry) => entry?,
        };
        (newest.place > self.retired.load(Ordering::Acquire)).then_some(newest)
    }

    fn newest_deletion(&self, key: &[u8]) -> Option<u64> {
        let ranges = self.deleted_ranges.read();
        ranges
            .iter()
            .filter(|deleted| deleted.range.contains(key))
            .map(|deleted| deleted.place)
            .max()
    }

    /// Makes a write visible to later decisions. Its mutations have the places from `first_place` on.
    pub fn insert(&self, first_place: u64, mutations: &[Mutation]) {
        for (place, mutation) in (first_place..).zip(mutations) {
            match mutation.known_effect() {
                Some(KnownEffect::Key(key, value)) => self.insert_key(place, key, value.cloned()),
                Some(KnownEffect::Deleted(range)) => {
                    let mut ranges = self.deleted_ranges.write();
                    if place > self.retired.load(Ordering::Acquire) {
                        ranges.push(DeletedRange { place, range: range.clone() });
                    }
                }
                // Decisions do not read it in flight.
                None => {}
            }
        }
    }

    fn insert_key(&self, place: u64, key: &Key, value: Option<Value>) {
        let mut shard = self.shard(key).lock();
        // Loaded under the shard's lock, which removal takes after it has advanced.
        if place <= self.retired.load(Ordering::Acquire) {
            return;
        }
        // Two writes may put a key that neither has locked (one derived from their keys), and get here in another
        // order than the commit order.
        let newer = shard.get(key).is_some_and(|present| present.place > place);
        if !newer {
            shard.insert(key.clone(), InFlightValue { place, value });
        }
    }

    /// Hides everything up to `place` from decisions: it has been published or lost.
    pub fn retire(&self, place: u64) {
        // Never backwards: a group may be published while a later failure drops everything after it.
        self.retired.fetch_max(place, Ordering::AcqRel);
    }

    /// Frees the memory of retired mutations.
    pub fn free(&self, mutations: &[Mutation]) {
        let retired = self.retired.load(Ordering::Acquire);
        let mut has_ranges = false;
        for mutation in mutations {
            match mutation.known_effect() {
                Some(KnownEffect::Key(key, _)) => {
                    let mut shard = self.shard(key).lock();
                    if shard.get(key).is_some_and(|present| present.place <= retired) {
                        shard.remove(key);
                    }
                }
                Some(KnownEffect::Deleted(_)) => has_ranges = true,
                None => {}
            }
        }
        if has_ranges {
            self.deleted_ranges.write().retain(|deleted| deleted.place > retired);
        }
    }

    /// Frees the memory of everything, after the store has failed. All places given out so far must be retired, so that no
    /// queued write inserts its values afterwards.
    pub fn free_all(&self) {
        for shard in &self.shards {
            shard.lock().clear();
        }
        self.deleted_ranges.write().clear();
    }

    fn shard(&self, key: &[u8]) -> &Mutex<KeyMap<Key, InFlightValue>> {
        &self.shards[xxh3_64(key) as usize % SHARDS]
    }
}

#[cfg(test)]
mod tests {
    use super::{InFlight, InFlightValue};
    use zenobe_store::{Batch, Key, KeyRange};

    fn batch(fill: impl FnOnce(&mut Batch)) -> Batch {
        let mut batch = Batch::new();
        fill(&mut batch);
        batch
    }

    fn check(
        in_flight: &InFlight,
        key: &'static str,
        expected: Option<(u64, Option<&'static str>)>,
    ) {
        let expected =
            expected.map(|(place, value)| InFlightValue { place, value: value.map(Key::from) });
        assert_eq!(in_flight.get(&Key::from(key)), expected, "{key}");
    }

    #[test]
    fn the_newest_operation_counts() {
        let in_flight = InFlight::new();
        let first = batch(|batch| {
            batch.put("a", "1");
            batch.put("b", "1");
            batch.delete_range(KeyRange::new("a", "c"));
            batch.put("b", "2");
            batch.delete("z");
        });
        in_flight.insert(1, &first.mutations);
        check(&in_flight, "a", Some((3, None)));
        check(&in_flight, "aa", Some((3, None)));
        check(&in_flight, "b", Some((4, Some("2"))));
        check(&in_flight, "z", Some((5, None)));
        check(&in_flight, "c", None);

        // A mutation that comes in late does not replace a newer one.
        let late = batch(|batch| batch.put("z", "old"));
        in_flight.insert(2, &late.mutations);
        check(&in_flight, "z", Some((5, None)));

        in_flight.retire(4);
        check(&in_flight, "a", None);
        check(&in_flight, "b", None);
        check(&in_flight, "z", Some((5, None)));
        in_flight.free(&first.mutations);
        check(&in_flight, "z", Some((5, None)));
        in_flight.retire(5);
        in_flight.free(&first.mutations);
        assert!(in_flight.shards.iter().all(|shard| shard.lock().is_empty()));
        assert!(in_flight.deleted_ranges.read().is_empty());

        // What is retired before it is inserted would never be removed again.
        in_flight.insert(1, &first.mutations);
        assert!(in_flight.shards.iter().all(|shard| shard.lock().is_empty()));
        assert!(in_flight.deleted_ranges.read().is_empty());
    }
}
