//! Counters that are known to have a row, which additions need.
//!
//! A counter's first addition creates its row. Later ones save that statement. If another node has deleted the row meanwhile, the
//! addition finds none and its transaction fails as a conflict; the next attempt creates the row again.

use rustc_hash::FxHashSet;
use zenobe_store::Key;

use super::effects::{Effect, Segment};

/// Beyond this many all are forgotten. Most tables have two counters, and some have one for each of their partitions.
const COUNT_MAX: usize = 10_000;

#[derive(Default)]
pub struct MarkedCounters {
    keys: FxHashSet<Key>,
}

impl MarkedCounters {
    /// Whether all counters that these add to are known. A batch that also deletes ranges may delete a counter before it adds to it.
    pub fn contain_all(&self, segments: &[Segment]) -> bool {
        let [segment] = segments else { return false };
        segment.ranges.is_empty() && counters(segments).all(|key| self.keys.contains(key))
    }

    /// These were committed.
    pub fn record(&mut self, segments: &[Segment]) {
        for segment in segments {
            for range in &segment.ranges {
                self.keys.retain(|key| !range.contains(key));
            }
            for (key, effect) in &segment.entries {
                match effect {
                    // A slot that adds to the row as it was must begin again.
                    Effect::Delete | Effect::Put(_) => _ = self.keys.remove(key),
                    // An addition of nothing is not written.
                    Effect::Add(0) => {}
                    Effect::Add(_) if self.keys.contains(key) => {}
                    Effect::Add(_) => {
                        if self.keys.len() >= COUNT_MAX {
                            self.keys.clear();
                        }
                        self.keys.insert(key.clone());
                    }
                }
            }
        }
    }

    /// These failed, perhaps because a counter has no row any more.
    pub fn forget(&mut self, segments: &[Segment]) {
        counters(segments).for_each(|key| _ = self.keys.remove(key));
    }
}

fn counters(segments: &[Segment]) -> impl Iterator<Item = &Key> {
    let entries = segments.iter().flat_map(|segment| &segment.entries);
    entries.filter(|(_, effect)| matches!(effect, Effect::Add(_))).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use zenobe_store::{Batch, KeyRange};

    use super::super::effects::segments;
    use super::*;

    fn of(fill: impl Fn(&mut Batch)) -> Vec<Segment> {
        let mut batch = Batch::new();
        fill(&mut batch);
        segments(batch).unwrap()
    }

    #[test]
    fn a_counter_is_known_from_its_first_addition_until_it_may_be_gone() {
        let add = of(|batch| batch.add("a", 1));
        let mut known = MarkedCounters::default();
        assert!(!known.contain_all(&add));
        known.record(&of(|batch| batch.add("a", 0)));
        assert!(!known.contain_all(&add), "nothing was written");
        for gone in [
            of(|batch| batch.delete("a")),
            of(|batch| batch.put("a", "12345678")),
            of(|batch| batch.delete_range(KeyRange::all())),
        ] {
            known.record(&add);
            assert!(known.contain_all(&add));
            known.record(&gone);
            assert!(!known.contain_all(&add));
        }
        known.record(&add);
        known.forget(&add);
        assert!(!known.contain_all(&add));
    }
}
