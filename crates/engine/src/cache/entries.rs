//! A map of entries that is bounded in bytes. When it is full it evicts, roughly, the least recently
//! used ones.

use std::hash::RandomState;

use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use zenobe_store::Key;

use super::CacheStatistics;

/// The bytes of one shard. It must be large enough for any item or page.
const SHARD_SIZE_BYTES_MIN: usize = 8 << 20;

const SHARDS_MAX: usize = 64;

/// An entry's approximate overhead beside its key and value: its slots in the map's tables, which
/// are half empty after they have grown, the slots of evicted keys, and what the allocator rounds up.
const ENTRY_OVERHEAD_BYTES: usize = 256;

/// Into how many shards, each with a lock of its own, a cache of this size is divided.
pub(super) fn shard_count(size_bytes_max: usize) -> usize {
    (size_bytes_max / SHARD_SIZE_BYTES_MIN).clamp(1, SHARDS_MAX)
}

/// How long an entry answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeToLive {
    /// 0 is forever.
    pub ms: u64,
}

impl TimeToLive {
    /// An entry from the future was made before the clock was set back. Nobody knows how old it is.
    fn is_over(self, since_ms: u64, now_ms: u64) -> bool {
        self.ms != 0 && now_ms.checked_sub(since_ms).is_none_or(|age_ms| age_ms >= self.ms)
    }
}

pub(super) struct Entry<V> {
    pub value: V,
    /// The value was current at this time, or later.
    pub since_ms: u64,
    /// The memory that the value takes.
    pub value_size_bytes: usize,
}

pub(super) struct Entries<V> {
    map: Cache<Key, Entry<V>, ByBytes, RandomState>,
    time_to_live: TimeToLive,
    size_bytes_max: usize,
    counts: CacheStatistics,
}

#[derive(Clone)]
struct ByBytes;

impl<V> Weighter<Key, Entry<V>> for ByBytes {
    fn weight(&self, key: &Key, entry: &Entry<V>) -> u64 {
        weight(key, entry) as u64
    }
}

fn weight<V>(key: &Key, entry: &Entry<V>) -> usize {
    key.len() + entry.value_size_bytes + ENTRY_OVERHEAD_BYTES
}

impl<V: Clone> Entries<V> {
    pub fn new(size_bytes_max: usize, time_to_live: TimeToLive) -> Entries<V> {
        // An estimate that only sizes the eviction's own books; the tables grow as they fill.
        let entries_max = size_bytes_max / 512;
        let map = Cache::with(
            entries_max,
            size_bytes_max as u64,
            ByBytes,
            RandomState::new(),
            Default::default(),
        );
        Entries { map, time_to_live, size_bytes_max, counts: CacheStatistics::default() }
    }

    /// The value of a key, unless its time is over. Counts a hit or a miss.
    pub fn get(&mut self, key: &[u8], now_ms: u64) -> Option<V> {
        let found = self.map.get(key);
        let is_over = found.is_some_and(|entry| self.time_to_live.is_over(entry.since_ms, now_ms));
        match found {
            Some(entry) if !is_over => {
                self.counts.hits += 1;
                return Some(entry.value.clone());
            }
            Some(_) => self.remove(key),
            None => {}
        }
        self.counts.misses += 1;
        None
    }

    /// Since when a key has had its entry.
    pub fn since_ms(&self, key: &[u8]) -> Option<u64> {
        self.map.peek(key).map(|entry| entry.since_ms)
    }

    /// Evicts others if necessary. A value that would evict most of them is not kept.
    pub fn insert(&mut self, key: Key, entry: Entry<V>) {
        if weight(&key, &entry) > self.size_bytes_max / 2 {
            self.remove(&key);
            return;
        }
        let added = usize::from(!self.map.contains_key(&key[..]));
        let before = self.map.len();
        self.map.insert(key, entry);
        self.counts.evictions += (before + added).saturating_sub(self.map.len()) as u64;
    }

    pub fn remove(&mut self, key: &[u8]) {
        self.map.remove(key);
    }

    pub fn statistics(&self) -> CacheStatistics {
        CacheStatistics {
            entries: self.map.len() as u64,
            size_bytes: self.map.weight(),
            ..self.counts
        }
    }
}

/// The statistics of all shards together.
pub(super) fn total(shards: impl Iterator<Item = CacheStatistics>) -> CacheStatistics {
    shards.fold(CacheStatistics::default(), |sum, shard| CacheStatistics {
        hits: sum.hits + shard.hits,
        misses: sum.misses + shard.misses,
        evictions: sum.evictions + shard.evictions,
        entries: sum.entries + shard.entries,
        size_bytes: sum.size_bytes + shard.size_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: TimeToLive = TimeToLive { ms: 100 };

    fn key(number: u32) -> Key {
        Key::copy_from_slice(&number.to_be_bytes())
    }

    fn entry(value: u32, since_ms: u64, value_size_bytes: usize) -> Entry<u32> {
        Entry { value, since_ms, value_size_bytes }
    }

    #[test]
    fn an_entry_answers_until_its_time_is_over() {
        for (ttl_ms, since_ms, now_ms, expected) in [
            (100, 1000, 1000, Some(7)),
            (100, 1000, 1099, Some(7)),
            (100, 1000, 1100, None),
            // The clock was set back.
            (100, 1000, 999, None),
            // Forever.
            (0, 1000, u64::MAX, Some(7)),
            (0, 1000, 0, Some(7)),
        ] {
            let mut entries = Entries::new(1 << 20, TimeToLive { ms: ttl_ms });
            entries.insert(key(1), entry(7, since_ms, 10));
            assert_eq!(entries.get(&key(1), now_ms), expected, "{ttl_ms} {since_ms} {now_ms}");
            let is_kept = u64::from(expected.is_some());
            let CacheStatistics { hits, misses, entries, .. } = entries.statistics();
            assert_eq!((hits, misses, entries), (is_kept, 1 - is_kept, is_kept));
        }
    }

    #[test]
    fn memory_is_bounded_and_evictions_are_counted() {
        let size_bytes_max = 1 << 20;
        let mut entries = Entries::new(size_bytes_max, TTL);
        for number in 0..10_000 {
            entries.insert(key(number), entry(number, 0, 1000));
        }
        let statistics = entries.statistics();
        assert!(statistics.size_bytes <= size_bytes_max as u64, "{statistics:?}");
        assert!(statistics.size_bytes > size_bytes_max as u64 / 2, "{statistics:?}");
        assert_eq!(statistics.entries + statistics.evictions, 10_000);
        // Replacing an entry evicts nothing.
        let last = key(9_999);
        entries.insert(last.clone(), entry(1, 0, 1000));
        assert_eq!(entries.get(&last, 0), Some(1));
        assert_eq!(entries.statistics().evictions, statistics.evictions);
    }

    #[test]
    fn a_value_that_is_too_large_is_not_kept_and_not_left_outdated() {
        let mut entries = Entries::new(1 << 20, TTL);
        entries.insert(key(1), entry(1, 0, 10));
        entries.insert(key(1), entry(2, 0, 1 << 20));
        assert_eq!(entries.get(&key(1), 0), None);
        assert_eq!(entries.statistics().evictions, 0);
    }
}
