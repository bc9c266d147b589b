//! A cache of values for decisions. The store confirms every value that a decision used, so entries may be stale.

use zenobe_store::{Key, Value};

use zenobe_store::key_map::KeyMap;

/// The value of a key at a revision. A key without a revision has no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub value: Option<Value>,
    pub revision: Option<i64>,
}

/// Two generations. Entries move to the young one when they are used. Once that takes half of the memory, the old one is dropped.
pub struct Cache {
    young: KeyMap<Key, Known>,
    old: KeyMap<Key, Known>,
    young_bytes: usize,
    bytes_max: usize,
}

/// An entry's approximate overhead beside its key and value.
const ENTRY_BYTES: usize = 120;

impl Cache {
    pub fn new(bytes_max: usize) -> Cache {
        Cache { young: KeyMap::default(), old: KeyMap::default(), young_bytes: 0, bytes_max }
    }

    pub fn get(&mut self, key: &Key) -> Option<Known> {
        if let Some(known) = self.young.get(key) {
            return Some(known.clone());
        }
        let known = self.old.remove(key)?;
        self.insert(key.clone(), known.clone());
        Some(known)
    }

    /// The revision of a known key.
    pub fn revision(&self, key: &Key) -> Option<Option<i64>> {
        let known = self.young.get(key).or_else(|| self.old.get(key))?;
        Some(known.revision)
    }

    pub fn put(&mut self, key: &Key, known: Known) {
        let room = self.bytes_max / 2;
        // What is in the young generation is not in the old one.
        if let Some(earlier) = self.young.get_mut(key) {
            let rest_bytes = self.young_bytes.saturating_sub(size_bytes(key, earlier));
            let young_bytes = rest_bytes + size_bytes(key, &known);
            if young_bytes <= room {
                *earlier = known;
                self.young_bytes = young_bytes;
                return;
            }
        }
        self.remove(key);
        self.insert(key.clone(), known);
    }

    /// Adds a key that neither generation holds.
    fn insert(&mut self, key: Key, known: Known) {
        let size_bytes = size_bytes(&key, &known);
        if self.young_bytes + size_bytes > self.bytes_max / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if size_bytes <= self.bytes_max / 2 {
            self.young_bytes += size_bytes;
            self.young.insert(key, known);
        }
    }

    pub fn remove(&mut self, key: &Key) {
        self.old.remove(key);
        if let Some(known) = self.young.remove(key) {
            self.young_bytes -= size_bytes(key, &known).min(self.young_bytes);
        }
    }

    pub fn remove_if(&mut self, gone: impl Fn(&Key) -> bool) {
        self.old.retain(|key, _| !gone(key));
        self.young.retain(|key, _| !gone(key));
    }
}

fn size_bytes(key: &Key, known: &Known) -> usize {
    ENTRY_BYTES + key.len() + known.value.as_ref().map_or(0, Value::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_room_is_bounded() {
        let mut cache = Cache::new(20_000);
        let key = |number: usize| Key::from(number.to_string());
        let known = Known { value: Some(Value::from(vec![0; 100])), revision: Some(1) };
        for number in 0..1000 {
            cache.put(&key(number), known.clone());
            assert_eq!(cache.get(&key(0)), Some(known.clone()), "used all the time");
        }
        assert!(cache.young.len() + cache.old.len() < 100);
        assert_eq!(cache.get(&key(1)), None);
        cache.remove(&key(0));
        assert_eq!(cache.get(&key(0)), None);
        cache.put(&key(5), Known { value: Some(Value::from(vec![0; 30_000])), revision: None });
        assert_eq!(cache.get(&key(5)), None, "too large");
    }
    #[test]
    fn a_new_value_replaces_the_one_before_wherever_that_was() {
        let key = |number: u8| Key::from(vec![number; 10]);
        let known = |length: usize, revision| Known {
            value: Some(Value::from(vec![0; length])),
            revision: Some(revision),
        };
        let held = |cache: &Cache| -> usize {
            cache.young.iter().map(|(key, known)| size_bytes(key, known)).sum()
        };
        let mut cache = Cache::new(2_000);
        // Up to seven fit into a generation.
        (0..7).for_each(|number| cache.put(&key(number), known(10, 1)));
        cache.put(&key(1), known(20, 2));
        assert_eq!((cache.young.len(), cache.old.len(), held(&cache)), (7, 0, cache.young_bytes));
        cache.put(&key(7), known(10, 1));
        assert_eq!((cache.young.len(), cache.old.len()), (1, 7), "the next generation");
        cache.put(&key(2), known(30, 2));
        assert_eq!((cache.young.len(), cache.old.len(), held(&cache)), (2, 6, cache.young_bytes));
        assert_eq!(cache.revision(&key(1)), Some(Some(2)));
        assert_eq!(cache.get(&key(2)), Some(known(30, 2)));
        // It would fit, but not beside the others.
        cache.put(&key(2), known(800, 3));
        assert_eq!((cache.young.len(), held(&cache)), (1, cache.young_bytes));
        cache.put(&key(2), known(2_000, 4));
        assert_eq!((cache.revision(&key(2)), cache.young_bytes), (None, 0), "too large");
        assert_eq!(cache.revision(&key(9)), None);
    }
}
