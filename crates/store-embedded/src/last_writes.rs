//! What mutations that are not in the database yet leave at each key: the last one counts.

use zenobe_store::key_map::KeyMap;
use zenobe_store::{Key, KeyRange, KnownEffect, Mutation, Value};

#[derive(Default)]
pub(crate) struct LastWrites<'a> {
    /// The last mutation on each key: its place, and what it leaves there.
    keys: KeyMap<&'a Key, (usize, Option<&'a Value>)>,
    /// With their places, ascending.
    deleted_ranges: Vec<(usize, &'a KeyRange)>,
    count: usize,
}

impl<'a> LastWrites<'a> {
    pub fn record(&mut self, mutation: &'a Mutation) {
        match mutation.known_effect() {
            Some(KnownEffect::Key(key, value)) => {
                self.keys.insert(key, (self.count, value));
            }
            Some(KnownEffect::Deleted(range)) => self.deleted_ranges.push((self.count, range)),
            None => {}
        }
        self.count += 1;
    }

    /// How many mutations have been recorded.
    pub fn count(&self) -> usize {
        self.count
    }

    /// What is at a key after all that has been recorded, or `None` if nothing of it touched the key.
    /// Additions are left out.
    pub fn get(&self, key: &Key) -> Option<Option<&'a Value>> {
        let found = self.keys.get(key).copied();
        let after = found.map_or(0, |(place, _)| place);
        let newer = self.deleted_ranges.iter().rev().take_while(|(place, _)| *place >= after);
        let is_deleted = newer.into_iter().any(|(_, range)| range.contains(key));
        match is_deleted {
            true => Some(None),
            false => found.map(|(_, value)| value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LastWrites;
    use zenobe_store::{Batch, Key, KeyRange};

    #[test]
    fn the_last_operation_counts() {
        let mut batch = Batch::new();
        batch.delete_range(KeyRange::new("a", "c"));
        batch.put("b", "1");
        batch.put("c", "1");
        batch.delete_range(KeyRange::new("c", "e"));
        batch.put("d", "1");
        batch.put("d", "2");
        batch.put("x", "1");
        batch.delete("x");
        batch.add("y", 1);
        let mut last_writes = LastWrites::default();
        batch.mutations.iter().for_each(|mutation| last_writes.record(mutation));
        assert_eq!(last_writes.count(), batch.mutations.len());
        let expected = [
            ("a", Some(None)),
            ("b", Some(Some("1"))),
            ("c", Some(None)),
            ("d", Some(Some("2"))),
            ("e", None),
            ("x", Some(None)),
            ("y", None),
        ];
        for (key, expected) in expected {
            let found = last_writes.get(&Key::from(key));
            let found = found.map(|value| value.map(|value| &value[..]));
            let expected = expected.map(|value| value.map(str::as_bytes));
            assert_eq!(found, expected, "{key}");
        }
    }
}
