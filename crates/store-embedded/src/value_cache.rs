//! A cache of single values in front of memtables and files.
//!
//! A reader cannot tell the cache from the snapshot that it reads. Snapshots carry *versions*, numbers in the order
//! in which they are published. An entry says since which version its value holds, and is replaced or removed before
//! a snapshot with another value is published. So an entry that is not newer than a reader's snapshot is what the
//! reader would find there; any other is ignored.
//!
//! A reader may leave a value here, unless the key has changed since its snapshot. Keys are divided into stripes, and
//! for each stripe the cache knows the last version that changed one of its keys, whether the key had an entry or
//! not.
//!
//! Only values that exist are kept. A key that gets its first value therefore has no entry that could be wrong.
//!
//! A key gets its entry when it is used for the second time within a while. Otherwise loading a table would copy every
//! item into the cache, which costs a tenth more processor time and all of the cache's memory (`docs/performance.md`).

use std::hash::RandomState;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use xxhash_rust::xxh3::xxh3_64;
use zenobe_store::{Key, KeyRange, Mutation, Value};

const SHARDS: usize = 64;
const STRIPES_PER_SHARD: usize = 256;

/// An entry's approximate overhead beside its key and value: its slots in the cache's tables, which are half empty
/// after they have grown, the slots of evicted keys, and what the allocator rounds up.
const ENTRY_OVERHEAD_BYTES: usize = 256;

/// Enough to remember the uses of a few times as many keys as the cache holds.
const USED_BITS_PER_ENTRY: usize = 4;

/// Larger values are not worth caching: copying them costs more than finding them.
const VALUE_BYTES_MAX: usize = 16 << 10;

pub(crate) struct ValueCache {
    shards: Box<[Mutex<CacheShard>]>,
    last_version: AtomicU64,
    /// The last version that deleted a range of keys, or after which nothing is known. What was read before it must
    /// not be left here.
    last_range_deletion: AtomicU64,
}

struct CacheShard {
    entries: Cache<Key, Entry, ByBytes, RandomState>,
    used: UsedOnce,
    /// The last version that changed a key of each stripe.
    changed: Box<[u64; STRIPES_PER_SHARD]>,
}

#[derive(Clone)]
struct Entry {
    /// The first version in which the key has this value, as far as is known.
    since: u64,
    value: Value,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<Key, Entry> for ByBytes {
    fn weight(&self, key: &Key, entry: &Entry) -> u64 {
        (key.len() + entry.value.len() + ENTRY_OVERHEAD_BYTES) as u64
    }
}

impl ValueCache {
    pub fn new(capacity_bytes: usize) -> Arc<ValueCache> {
        let shard = |_| Mutex::new(CacheShard::new(capacity_bytes / SHARDS));
        Arc::new(ValueCache {
            shards: (0..SHARDS).map(shard).collect(),
            last_version: AtomicU64::new(0),
            last_range_deletion: AtomicU64::new(0),
        })
    }

    /// The number of a version that will be published after all versions before it.
    pub fn next_version(&self) -> u64 {
        self.last_version.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The value of a key in a version, if it is known.
    pub fn get(&self, key: &[u8], version: u64) -> Option<Value> {
        let shard = self.shard(xxh3_64(key)).lock();
        let entry = shard.entries.get(key)?;
        (entry.since <= version).then(|| entry.value.clone())
    }

    /// Keeps a value that was read from a state.
    pub fn keep(&self, key: &[u8], version: u64, value: &Value) {
        if value.len() > VALUE_BYTES_MAX {
            return;
        }
        let hash = xxh3_64(key);
        let mut shard = self.shard(hash).lock();
        if self.is_unchanged(&shard, hash, version)
            && shard.used.again(hash)
            && !shard.entries.contains_key(key)
        {
            let entry = Entry { since: version, value: value.clone() };
            shard.entries.insert(Key::copy_from_slice(key), entry);
        }
    }

    /// Whether no key of a stripe has changed since a version, in all versions that are published by now.
    fn is_unchanged(&self, shard: &CacheShard, hash: u64, version: u64) -> bool {
        shard.changed[stripe(hash)] <= version
            && self.last_range_deletion.load(Ordering::Acquire) <= version
    }

    /// Records what a version changes, before that version is published. Each mutation comes with whether it
    /// puts a declared key: such a key is likely to be read, or to be written again. Others, like entries of indexes,
    /// are scanned and not read one by one.
    pub fn change<'a>(
        &self,
        version: u64,
        mutations: impl IntoIterator<Item = (&'a Mutation, bool)>,
    ) {
        let mut mutations = mutations.into_iter().peekable();
        while let Some((mutation, is_declared)) = mutations.next() {
            match mutation {
                Mutation::Put { key, value } => {
                    self.change_key(version, key, Some(value), is_declared);
                }
                Mutation::Delete { key } => self.change_key(version, key, None, false),
                Mutation::DeleteRange { range } => {
                    // Ranges come in rows, as when a table is deleted, and each look at all entries takes time.
                    let mut ranges = vec![range];
                    while let Some((Mutation::DeleteRange { range }, _)) = mutations.peek() {
                        ranges.push(range);
                        mutations.next();
                    }
                    self.delete_ranges(version, &ranges);
                }
                // Counters are summed, and recorded, when they are committed. A log's entries and stamped keys are new.
                Mutation::Add { .. }
                | Mutation::SetLogEnd { .. }
                | Mutation::Append { .. }
                | Mutation::ForgetLog { .. }
                | Mutation::PutStamped(_)
                | Mutation::Advance { .. } => {}
            }
        }
    }

    /// Records a change to an unknown value.
    pub fn forget(&self, version: u64, key: &Key) {
        self.change_key(version, key, None, false);
    }

    fn change_key(&self, version: u64, key: &Key, value: Option<&Value>, is_used: bool) {
        let hash = xxh3_64(key);
        let mut shard = self.shard(hash).lock();
        shard.changed[stripe(hash)] = version;
        let is_new_kept = is_used && shard.used.again(hash);
        if !is_new_kept && !shard.entries.contains_key(key) {
            return;
        }
        match value.filter(|value| value.len() <= VALUE_BYTES_MAX) {
            Some(value) => {
                // Copied, since the writer's buffers may be much larger than what they hold.
                let entry = Entry { since: version, value: Value::copy_from_slice(value) };
                shard.entries.insert(Key::copy_from_slice(key), entry);
            }
            None => {
                shard.entries.remove(key);
            }
        }
    }

    fn delete_ranges(&self, version: u64, ranges: &[&KeyRange]) {
        self.last_range_deletion.store(version, Ordering::Release);
        for shard in &self.shards {
            shard.lock().entries.retain(|key, _| !ranges.iter().any(|range| range.contains(key)));
        }
    }

    /// Forgets everything. No reader may use an earlier version any more, and nothing that was read from one is known to
    /// be unchanged: later versions may hold changes that were never recorded here.
    pub fn clear(&self) {
        self.last_range_deletion.fetch_max(self.next_version(), Ordering::AcqRel);
        self.shards.iter().for_each(|shard| shard.lock().entries.clear());
    }

    fn shard(&self, hash: u64) -> &Mutex<CacheShard> {
        &self.shards[hash as usize % SHARDS]
    }
}

fn stripe(hash: u64) -> usize {
    (hash >> 32) as usize % STRIPES_PER_SHARD
}

/// Remembers which keys have been used, with false positives.
struct UsedOnce {
    /// Empty until the first use: an idle store is small.
    bits: Vec<u64>,
    words: usize,
    count: usize,
}

impl UsedOnce {
    fn new(entries_max: usize) -> UsedOnce {
        let words = (entries_max * USED_BITS_PER_ENTRY).div_ceil(64).max(1);
        UsedOnce { bits: Vec::new(), words, count: 0 }
    }

    /// Records a use, and returns whether there was one before.
    fn again(&mut self, hash: u64) -> bool {
        if self.bits.is_empty() {
            self.bits.resize(self.words, 0);
        }
        let bit = (hash >> 16) as usize % (self.words * 64);
        let (word, mask) = (bit / 64, 1 << (bit % 64));
        if self.bits[word] & mask != 0 {
            return true;
        }
        // With half of the bits set, half of all new keys would look used.
        if self.count >= self.words * 32 {
            self.bits.fill(0);
            self.count = 0;
        }
        self.bits[word] |= mask;
        self.count += 1;
        false
    }
}

impl CacheShard {
    fn new(capacity_bytes: usize) -> CacheShard {
        // An estimate that only sizes the eviction's own books; the tables grow as they fill.
        let entries_max = capacity_bytes / 512;
        CacheShard {
            used: UsedOnce::new(entries_max),
            entries: Cache::with(
                entries_max,
                capacity_bytes as u64,
                ByBytes,
                RandomState::new(),
                Default::default(),
            ),
            changed: Box::new([0; STRIPES_PER_SHARD]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SHARDS, ValueCache};
    use zenobe_store::{Batch, Key, KeyRange, Value};

    const KEY: &[u8] = b"k";

    fn value(text: &'static str) -> Value {
        Value::from_static(text.as_bytes())
    }

    fn change(cache: &ValueCache, version: u64, fill: impl FnOnce(&mut Batch)) {
        let mut batch = Batch::new();
        fill(&mut batch);
        cache.change(version, batch.mutations.iter().map(|mutation| (mutation, true)));
    }

    /// Leaves a value in the cache as two reads do.
    fn keep(cache: &ValueCache, key: &[u8], version: u64, value: &Value) {
        cache.keep(key, version, value);
        cache.keep(key, version, value);
    }

    fn check(cache: &ValueCache, version: u64, expected: Option<&'static str>) {
        assert_eq!(cache.get(KEY, version), expected.map(value), "in version {version}");
    }

    #[test]
    fn a_change_counts_from_its_state_on() {
        let cache = ValueCache::new(1 << 20);
        keep(&cache, KEY, 3, &value("old"));
        check(&cache, 2, None);
        check(&cache, 3, Some("old"));
        change(&cache, 5, |batch| batch.put("k", "new"));
        check(&cache, 4, None);
        check(&cache, 5, Some("new"));
        change(&cache, 6, |batch| batch.delete("k"));
        check(&cache, 6, None);
        keep(&cache, KEY, 6, &value("read in 6"));
        cache.forget(7, &Key::from_static(KEY));
        check(&cache, 7, None);
    }

    #[test]
    fn what_has_changed_since_it_was_read_is_not_kept() {
        let changes: [fn(&mut Batch); 3] = [
            |batch| batch.put("k", "new"),
            |batch| batch.delete("k"),
            |batch| batch.delete_range(KeyRange::new("a", "z")),
        ];
        for fill in changes {
            let cache = ValueCache::new(1 << 20);
            // The key has no entry that the change could find, and loses the one that it may get.
            change(&cache, 5, fill);
            cache.clear();
            keep(&cache, KEY, 4, &value("stale"));
            check(&cache, 5, None);
            keep(&cache, KEY, 5, &value("current"));
            check(&cache, 5, Some("current"));
        }
    }

    #[test]
    fn derived_keys_are_kept_only_if_they_were_read() {
        let cache = ValueCache::new(1 << 20);
        let mut batch = Batch::new();
        batch.put("k", "new");
        let derived = || batch.mutations.iter().map(|mutation| (mutation, false));
        cache.change(2, derived());
        check(&cache, 2, None);
        keep(&cache, KEY, 2, &value("read"));
        cache.change(3, derived());
        check(&cache, 3, Some("new"));
    }

    #[test]
    fn a_deleted_range_leaves_with_its_entries() {
        let cache = ValueCache::new(1 << 20);
        keep(&cache, KEY, 1, &value("v"));
        keep(&cache, b"outside", 1, &value("v"));
        change(&cache, 2, |batch| batch.delete_range(KeyRange::new("k", "l")));
        check(&cache, 2, None);
        assert_eq!(cache.get(b"outside", 2), Some(value("v")));
    }

    /// Reopening may reveal writes that were never recorded.
    #[test]
    fn nothing_read_before_a_clearing_is_known_afterwards() {
        let cache = ValueCache::new(1 << 20);
        let before = cache.next_version();
        cache.clear();
        keep(&cache, KEY, before, &value("old"));
        let after = cache.next_version();
        check(&cache, after, None);
        keep(&cache, KEY, after, &value("new"));
        check(&cache, after, Some("new"));
    }

    #[test]
    fn a_key_is_kept_from_its_second_use_on() {
        let cache = ValueCache::new(1 << 20);
        cache.keep(KEY, 1, &value("v"));
        check(&cache, 1, None);
        change(&cache, 2, |batch| batch.put("k", "new"));
        check(&cache, 2, Some("new"));

        let keys = || (0..1_000_u32).map(u32::to_be_bytes);
        keys().for_each(|key| cache.keep(&key, 2, &value("v")));
        let kept = keys().filter(|key| cache.get(key, 2).is_some()).count();
        assert!(kept < 200, "{kept} of 1,000 looked used");
    }

    #[test]
    fn memory_is_bounded() {
        let capacity_bytes = 1 << 20;
        let cache = ValueCache::new(capacity_bytes);
        let large = Value::from(vec![0; 4000]);
        for number in 0..10_000_u32 {
            keep(&cache, &number.to_be_bytes(), 1, &large);
        }
        let weight: u64 = cache.shards.iter().map(|shard| shard.lock().entries.weight()).sum();
        assert!(weight <= capacity_bytes as u64, "{weight}");
        assert!(weight > capacity_bytes as u64 / 2, "{weight} in {SHARDS} shards");
        keep(&cache, KEY, 1, &Value::from(vec![0; super::VALUE_BYTES_MAX + 1]));
        check(&cache, 1, None);
    }
}
