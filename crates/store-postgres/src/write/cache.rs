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

    pub fn insert(&mut self, key: Key, known: Known) {
        self.old.remove(&key);
        let size_bytes = size_bytes(&key, &known);
        if self.young_bytes + size_bytes > self.bytes_max / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if size_bytes <= self.bytes_max / 2 {
            self.young_bytes += size_bytes;
            if let Some(replaced) = self.young.insert(key, known) {
                self.young_bytes -=
                    replaced.value.map_or(0, |value| value.len()).min(self.young_bytes);
            }
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
            cache.insert(key(number), known.clone());
            assert_eq!(cache.get(&key(0)), Some(known.clone()), "used all the time");
        }
        assert!(cache.young.len() + cache.old.len() < 100);
        assert_eq!(cache.get(&key(1)), None);
        cache.remove(&key(0));
        assert_eq!(cache.get(&key(0)), None);
        cache.insert(key(5), Known { value: Some(Value::from(vec![0; 30_000])), revision: None });
        assert_eq!(cache.get(&key(5)), None, "too large");
    }
}
