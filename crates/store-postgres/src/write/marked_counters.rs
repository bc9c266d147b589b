//! Counters that this node may add to without creating their row or locking it.
//!
//! A counter's first addition creates its row. Additions go to a slot, which carries the revision of the row that it adds to. Once this
//! node has added to the present row in a slot, later additions in that slot need one statement and no lock. If another node has
//! deleted or replaced the row meanwhile, such an addition finds that out and its transaction fails as a conflict; the next attempt
//! locks the row and begins the slot again.

use zenobe_store::Key;

use super::effects::{Effect, WritePhase};
use zenobe_store::key_map::{KeyMap, KeySet};

/// Most tables have two counters, and some have one for each of their item collections.
const COUNT_MAX: usize = 10_000;

/// The number of slots that additions to a counter are spread over. They are counted from 1.
pub const SLOTS: i16 = 64;

#[derive(Default)]
pub struct MarkedCounters {
    /// The slots that add to the counter's present row, as bits.
    slots: KeyMap<Key, u64>,
}

impl MarkedCounters {
    /// The counters among these that the slot may have to begin with. A batch that deletes ranges, too, may delete a counter before
    /// it adds to it.
    pub fn unmarked(&self, segments: &[WritePhase], slot: i16) -> KeySet<Key> {
        let may_be_gone = segments.iter().any(|segment| !segment.ranges.is_empty());
        let is_marked = |key: &Key| {
            let marked = self.slots.get(key).is_some_and(|slots| slots & bit(slot) != 0);
            marked && !may_be_gone && segments.len() == 1
        };
        counters(segments).filter(|key| !is_marked(key)).cloned().collect()
    }

    /// These were committed, with additions in this slot.
    pub fn record(&mut self, segments: &[WritePhase], slot: i16) {
        for segment in segments {
            for range in &segment.ranges {
                self.slots.retain(|key, _| !range.contains(key));
            }
            for (key, effect) in &segment.entries {
                match effect {
                    // Slots that add to the row as it was must begin again.
                    Effect::Delete | Effect::Put(_) => _ = self.slots.remove(key),
                    // An addition of nothing is not written.
                    Effect::Add(0) => {}
                    Effect::Add(_) => self.mark(key, slot),
                }
            }
        }
    }

    /// These failed, perhaps because a counter's row is gone or another one.
    pub fn forget(&mut self, segments: &[WritePhase]) {
        counters(segments).for_each(|key| _ = self.slots.remove(key));
    }

    fn mark(&mut self, key: &Key, slot: i16) {
        if let Some(slots) = self.slots.get_mut(key) {
            *slots |= bit(slot);
            return;
        }
        if self.slots.len() >= COUNT_MAX
            && let Some(any) = self.slots.keys().next().cloned()
        {
            self.slots.remove(&any);
        }
        self.slots.insert(key.clone(), bit(slot));
    }
}

fn bit(slot: i16) -> u64 {
    1 << (slot - 1)
}

fn counters(segments: &[WritePhase]) -> impl Iterator<Item = &Key> {
    let entries = segments.iter().flat_map(|segment| &segment.entries);
    let adds = |effect: &Effect| matches!(effect, Effect::Add(delta) if *delta != 0);
    entries.filter(move |(_, effect)| adds(effect)).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use zenobe_store::{Batch, KeyRange};

    use super::super::effects::segments;
    use super::*;

    fn of(fill: impl Fn(&mut Batch)) -> Vec<WritePhase> {
        let mut batch = Batch::new();
        fill(&mut batch);
        segments(batch).unwrap()
    }

    #[test]
    fn a_counter_is_marked_from_its_first_addition_until_it_may_be_gone() {
        let add = of(|batch| batch.add("a", 1));
        let mut marked = MarkedCounters::default();
        let is_marked = |marked: &MarkedCounters, slot| marked.unmarked(&add, slot).is_empty();
        assert!(!is_marked(&marked, 1));
        marked.record(&of(|batch| batch.add("a", 0)), 1);
        assert!(!is_marked(&marked, 1), "nothing was written");
        for gone in [
            of(|batch| batch.delete("a")),
            of(|batch| batch.put("a", "12345678")),
            of(|batch| batch.delete_range(KeyRange::all())),
        ] {
            for slot in [1, SLOTS] {
                marked.record(&add, slot);
            }
            assert!([1, SLOTS].iter().all(|slot| is_marked(&marked, *slot)));
            assert!(!is_marked(&marked, 2), "another slot may add to an earlier row");
            marked.record(&gone, 1);
            assert!(![1, 2, SLOTS].iter().any(|slot| is_marked(&marked, *slot)));
        }
        marked.record(&add, 1);
        marked.forget(&add);
        assert!(!is_marked(&marked, 1));
    }

    #[test]
    fn only_new_counters_are_unmarked() {
        let mut marked = MarkedCounters::default();
        marked.record(&of(|batch| batch.add("hot", 1)), 3);
        let both = of(|batch| {
            batch.add("hot", 1);
            batch.add("new", 1);
        });
        let unmarked: Vec<Key> = marked.unmarked(&both, 3).into_iter().collect();
        assert_eq!(unmarked, ["new"]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut marked = MarkedCounters::default();
        for number in 0..COUNT_MAX + 10 {
            marked.record(&of(|batch| batch.add(number.to_string(), 1)), 1);
        }
        assert_eq!(marked.slots.len(), COUNT_MAX);
    }
}
