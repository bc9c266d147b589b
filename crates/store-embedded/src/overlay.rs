//! The values of writes in flight: enqueued, not yet durable, but already what the next decision must see.
//!
//! Each operation has its place in the commit order. `settled` is the place up to which everything is
//! durable and published to readers (or lost, and never to be seen); what lies at or before it is no longer in
//! flight, whether or not it has been removed from here yet. That one number makes the rest free of races:
//! an entry inserted late is not inserted at all, and one removed late is ignored.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use xxhash_rust::xxh3::xxh3_64;
use zenobe_store::{Key, KeyRange, Operation, Value};

const SHARDS: usize = 64;

pub(crate) struct Overlay {
    settled: AtomicU64,
    shards: Box<[Mutex<HashMap<Key, InFlight>>]>,
    deleted_ranges: RwLock<Vec<DeletedRange>>,
}

/// The newest operation in flight on a key: its place in the commit order, and what it leaves there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InFlight {
    pub order: u64,
    pub value: Option<Value>,
}

struct DeletedRange {
    order: u64,
    range: KeyRange,
}

impl Overlay {
    pub fn new() -> Overlay {
        Overlay {
            settled: AtomicU64::new(0),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            deleted_ranges: RwLock::default(),
        }
    }

    /// What is in flight on a key, or `None` if its published value is the newest. The published state must
    /// be taken after this call, since it may have come to hold the key in the meantime.
    pub fn get(&self, key: &Key) -> Option<InFlight> {
        let deletion = self.newest_deletion(key);
        let entry = self.shard(key).lock().get(key).cloned();
        let newest = match (deletion, entry) {
            (Some(order), Some(entry)) if entry.order > order => entry,
            (Some(order), _) => InFlight { order, value: None },
            (None, entry) => entry?,
        };
        (newest.order > self.settled.load(Ordering::Acquire)).then_some(newest)
    }

    fn newest_deletion(&self, key: &[u8]) -> Option<u64> {
        let ranges = self.deleted_ranges.read();
        ranges
            .iter()
            .filter(|deleted| deleted.range.contains(key))
            .map(|deleted| deleted.order)
            .max()
    }

    /// Makes a batch visible to later decisions. Its operations have the places from `first_order` on.
    pub fn insert(&self, first_order: u64, operations: &[Operation]) {
        for (order, operation) in (first_order..).zip(operations) {
            match operation {
                Operation::Put { key, value } => self.insert_key(order, key, Some(value.clone())),
                Operation::Delete { key } => self.insert_key(order, key, None),
                Operation::DeleteRange { range } => {
                    let mut ranges = self.deleted_ranges.write();
                    if order > self.settled.load(Ordering::Acquire) {
                        ranges.push(DeletedRange { order, range: range.clone() });
                    }
                }
                // Numbered and summed when they are committed; decisions do not read them in flight.
                Operation::Append { .. } | Operation::ForgetLog { .. } | Operation::Add { .. } => {}
            }
        }
    }

    fn insert_key(&self, order: u64, key: &Key, value: Option<Value>) {
        let mut shard = self.shard(key).lock();
        // Looked at under the shard's lock, which removal takes after advancing it.
        if order <= self.settled.load(Ordering::Acquire) {
            return;
        }
        // Two batches may write a key that neither has locked (one derived from their keys), and get here
        // in another order than the commit order.
        let newer = shard.get(key).is_some_and(|present| present.order > order);
        if !newer {
            shard.insert(key.clone(), InFlight { order, value });
        }
    }

    /// Says that everything up to `order` has been published, or is lost.
    pub fn settle(&self, order: u64) {
        // Never backwards: a group may be published while a failure behind it gives up all the rest.
        self.settled.fetch_max(order, Ordering::AcqRel);
    }

    /// Frees the memory of settled operations.
    pub fn remove(&self, operations: &[Operation]) {
        let settled = self.settled.load(Ordering::Acquire);
        let mut has_ranges = false;
        for operation in operations {
            match operation {
                Operation::Put { key, .. } | Operation::Delete { key } => {
                    let mut shard = self.shard(key).lock();
                    if shard.get(key).is_some_and(|present| present.order <= settled) {
                        shard.remove(key);
                    }
                }
                Operation::DeleteRange { .. } => has_ranges = true,
                Operation::Append { .. } | Operation::ForgetLog { .. } | Operation::Add { .. } => {}
            }
        }
        if has_ranges {
            self.deleted_ranges.write().retain(|deleted| deleted.order > settled);
        }
    }

    /// Forgets everything, after the store has failed: see [`crate::failure`].
    pub fn clear(&self) {
        for shard in &self.shards {
            shard.lock().clear();
        }
        self.deleted_ranges.write().clear();
    }

    fn shard(&self, key: &[u8]) -> &Mutex<HashMap<Key, InFlight>> {
        &self.shards[xxh3_64(key) as usize % SHARDS]
    }
}

#[cfg(test)]
mod tests {
    use super::{InFlight, Overlay};
    use zenobe_store::{Batch, Key, KeyRange};

    fn batch(fill: impl FnOnce(&mut Batch)) -> Batch {
        let mut batch = Batch::new();
        fill(&mut batch);
        batch
    }

    fn check(overlay: &Overlay, key: &'static str, expected: Option<(u64, Option<&'static str>)>) {
        let expected =
            expected.map(|(order, value)| InFlight { order, value: value.map(Key::from) });
        assert_eq!(overlay.get(&Key::from(key)), expected, "{key}");
    }

    #[test]
    fn the_newest_operation_counts() {
        let overlay = Overlay::new();
        let first = batch(|batch| {
            batch.put("a", "1");
            batch.put("b", "1");
            batch.delete_range(KeyRange::new("a", "c"));
            batch.put("b", "2");
            batch.delete("z");
        });
        overlay.insert(1, &first.operations);
        check(&overlay, "a", Some((3, None)));
        check(&overlay, "aa", Some((3, None)));
        check(&overlay, "b", Some((4, Some("2"))));
        check(&overlay, "z", Some((5, None)));
        check(&overlay, "c", None);

        // An operation that comes in late does not replace a newer one.
        let late = batch(|batch| batch.put("z", "old"));
        overlay.insert(2, &late.operations);
        check(&overlay, "z", Some((5, None)));

        overlay.settle(4);
        check(&overlay, "a", None);
        check(&overlay, "b", None);
        check(&overlay, "z", Some((5, None)));
        overlay.remove(&first.operations);
        check(&overlay, "z", Some((5, None)));
        overlay.settle(5);
        overlay.remove(&first.operations);
        assert!(overlay.shards.iter().all(|shard| shard.lock().is_empty()));
        assert!(overlay.deleted_ranges.read().is_empty());

        // What is settled before it is inserted would never be removed again.
        overlay.insert(1, &first.operations);
        assert!(overlay.shards.iter().all(|shard| shard.lock().is_empty()));
        assert!(overlay.deleted_ranges.read().is_empty());
    }
}
