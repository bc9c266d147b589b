//! The net effect of a batch: per key the last put or delete, or the sum of the additions.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use zenobe_store::{
    Batch, Error, Key, KeyRange, LogEnd, Mutation, Result, Stamp, StampedPut, Value, decode_counter,
};

use zenobe_store::key_map::KeyMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Put(Value),
    Delete,
    Add(i64),
}

impl Effect {
    /// Combines this effect with a later one on the same key.
    fn then(&self, next: &Effect) -> Result<Effect> {
        let Effect::Add(delta) = next else {
            return Ok(next.clone());
        };
        let sum = match self {
            Effect::Add(earlier) => return Ok(Effect::Add(earlier.wrapping_add(*delta))),
            Effect::Put(value) => decode_counter(Some(value))?.wrapping_add(*delta),
            Effect::Delete => *delta,
        };
        Ok(match sum {
            0 => Effect::Delete,
            sum => Effect::Put(Value::copy_from_slice(&sum.to_be_bytes())),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    pub log: Key,
    pub stamp: u64,
    pub value: Value,
}

/// What one batch does with clocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ticks {
    /// All with the same stamp.
    Puts(Vec<StampedPut>),
    Advance {
        clock: Key,
        to: Stamp,
    },
}

impl Ticks {
    pub fn clocks(&self) -> impl Iterator<Item = &Key> {
        let (puts, advanced) = match self {
            Ticks::Puts(puts) => (&puts[..], None),
            Ticks::Advance { clock, .. } => (&[][..], Some(clock)),
        };
        puts.iter().map(|put| &put.clock).chain(advanced)
    }

    fn size_bytes(&self) -> usize {
        match self {
            Ticks::Puts(puts) => puts.iter().map(|put| put.key.len() + put.value.len()).sum(),
            Ticks::Advance { clock, .. } => clock.len(),
        }
    }
}

/// Mutations that can be applied together: first the deletions of ranges and logs, then the ends of logs that are set, then
/// everything else.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WritePhase {
    pub ranges: Vec<KeyRange>,
    pub forgotten: Vec<Key>,
    pub log_ends: BTreeMap<Key, LogEnd>,
    pub entries: KeyMap<Key, Effect>,
    pub appends: Vec<Append>,
    /// In the order of their batches.
    pub ticks: Vec<Ticks>,
}

impl WritePhase {
    fn has_begun(&self) -> bool {
        !self.entries.is_empty() || !self.appends.is_empty() || !self.ticks.is_empty()
    }

    /// Adds to the stamped puts of the batch that makes this segment.
    fn put_stamped(&mut self, put: StampedPut) {
        match self.ticks.last_mut() {
            Some(Ticks::Puts(puts)) => puts.push(put),
            _ => self.ticks.push(Ticks::Puts(vec![put])),
        }
    }

    /// Whether it can share a segment with another write.
    pub fn is_mergeable(&self) -> bool {
        self.ranges.is_empty() && self.forgotten.is_empty() && self.log_ends.is_empty()
    }

    fn apply(&mut self, key: Key, effect: Effect) -> Result<()> {
        match self.entries.entry(key) {
            Entry::Occupied(mut earlier) => _ = earlier.insert(earlier.get().then(&effect)?),
            Entry::Vacant(free) => _ = free.insert(effect),
        }
        Ok(())
    }

    /// Fails if the next segment adds to a value that is not a counter.
    pub fn check(&self, next: &WritePhase) -> Result<()> {
        for (key, effect) in &next.entries {
            if let Some(earlier) = self.entries.get(key) {
                earlier.then(effect)?;
            }
        }
        Ok(())
    }

    /// Appends the next segment, which must have been checked.
    pub fn merge(&mut self, next: WritePhase) -> Result<()> {
        for (key, effect) in next.entries {
            self.apply(key, effect)?;
        }
        self.appends.extend(next.appends);
        self.ticks.extend(next.ticks);
        Ok(())
    }

    pub fn size_bytes(&self) -> usize {
        let entries = self.entries.iter().map(|(key, effect)| {
            key.len() + if let Effect::Put(value) = effect { value.len() } else { 0 }
        });
        let appends = self.appends.iter().map(|append| append.log.len() + append.value.len());
        let ticks = self.ticks.iter().map(Ticks::size_bytes);
        entries.sum::<usize>() + appends.sum::<usize>() + ticks.sum::<usize>()
    }
}

/// The segments of a batch, in order. Most have one.
pub fn segments(batch: Batch) -> Result<Vec<WritePhase>> {
    let mut done = Vec::new();
    let mut current = WritePhase::default();
    for mutation in batch.mutations {
        match mutation {
            Mutation::Put { key, value } => current.apply(key, Effect::Put(value))?,
            Mutation::Delete { key } => current.apply(key, Effect::Delete)?,
            Mutation::Add { key, delta } => current.apply(key, Effect::Add(delta))?,
            Mutation::Append { log, stamp, value } => {
                check_log_key(&log)?;
                current.appends.push(Append { log, stamp, value });
            }
            Mutation::PutStamped(put) => {
                check_log_key(&put.clock)?;
                current.put_stamped(*put);
            }
            Mutation::Advance { clock, to } => {
                check_log_key(&clock)?;
                current.ticks.push(Ticks::Advance { clock, to });
            }
            Mutation::DeleteRange { .. }
            | Mutation::ForgetLog { .. }
            | Mutation::SetLogEnd { .. }
                if !current.ticks.is_empty() =>
            {
                let detail = "a removal after what a clock stamps, in one batch".to_owned();
                return Err(Error::Unsupported { detail });
            }
            Mutation::DeleteRange { range } => {
                if current.has_begun() {
                    done.push(std::mem::take(&mut current));
                }
                current.ranges.push(range);
            }
            Mutation::ForgetLog { log } => {
                if current.has_begun() {
                    done.push(std::mem::take(&mut current));
                }
                current.log_ends.remove(&log);
                current.forgotten.push(log);
            }
            Mutation::SetLogEnd { log, end } => {
                check_log_key(&log)?;
                if current.has_begun() {
                    done.push(std::mem::take(&mut current));
                }
                current.log_ends.insert(log, end);
            }
        }
    }
    done.push(current);
    Ok(done)
}

/// The key of a log or a clock must fit into an index.
fn check_log_key(log: &Key) -> Result<()> {
    match log.len() > crate::keys::HEAD_BYTES {
        true => Err(Error::Unsupported { detail: format!("a log's key of {} bytes", log.len()) }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fill: impl Fn(&mut Batch)) -> Result<Vec<WritePhase>> {
        let mut batch = Batch::new();
        fill(&mut batch);
        segments(batch)
    }

    #[test]
    fn the_last_word_on_a_key_counts_and_additions_add_up() {
        let ten = Value::from_static(&[0, 0, 0, 0, 0, 0, 0, 10]);
        let segment = of(|batch| {
            batch.put("p", "1");
            batch.put("p", "2");
            batch.delete("d");
            batch.add("a", 3);
            batch.add("a", -1);
            batch.put("c", ten.clone());
            batch.add("c", -10);
        });
        let [segment] = &segment.unwrap()[..] else { panic!("one segment") };
        let expected = [
            ("a", Effect::Add(2)),
            ("c", Effect::Delete),
            ("d", Effect::Delete),
            ("p", Effect::Put("2".into())),
        ];
        let expected = expected.map(|(key, effect)| (Key::from(key), effect));
        assert_eq!(segment.entries, KeyMap::from_iter(expected));
        assert!(
            of(|batch| {
                batch.put("x", "text");
                batch.add("x", 1);
            })
            .is_err()
        );
    }

    #[test]
    fn a_range_deletes_what_came_before_it_only() {
        let found = of(|batch| {
            batch.put("a", "1");
            batch.delete_range(KeyRange::all());
            batch.drop_log("log");
            batch.put("b", "1");
            batch.delete_range(KeyRange::prefix("x"));
        });
        let found = found.unwrap();
        let counts: Vec<_> = found
            .iter()
            .map(|segment| (segment.ranges.len(), segment.forgotten.len(), segment.entries.len()))
            .collect();
        assert_eq!(counts, [(0, 0, 1), (2, 1, 1), (1, 0, 0)]);
    }
}
