//! How a table or a global index is split into partitions.
//!
//! A partition is a range of keys: it begins where its map says and ends where the next one begins.
//! Boundaries are what follows the prefix in a key (`hash(pk) pk sk`), so a boundary between two
//! partition keys is a hash, and one inside an item collection also has its keys. Partitions are
//! split when they need more capacity or space, and never merged.

use zenobe_store::Key;

use crate::keyspace::{KeyHash, part_start};

/// What one partition serves and holds.
pub const PARTITION_READ_UNITS: u64 = 3_000;
pub const PARTITION_WRITE_UNITS: u64 = 1_000;
pub const PARTITION_SIZE_BYTES: u64 = 10 * 1_024 * 1_024 * 1_024;
/// How many partitions a new on-demand table has.
pub const ON_DEMAND_PARTITIONS: u64 = 4;
/// A map is one row, and is kept in memory.
pub(crate) const PARTITIONS_MAX: usize = 4_096;

/// How many partitions provisioned units need: each serves a mix of reads and writes.
pub fn partitions_for_provisioned(read_units: u64, write_units: u64) -> u64 {
    let per_write = PARTITION_READ_UNITS / PARTITION_WRITE_UNITS;
    read_units.saturating_add(per_write.saturating_mul(write_units)).div_ceil(PARTITION_READ_UNITS)
}

/// How many partitions it takes to serve this many reads, or this many writes.
pub fn partitions_for_peaks(read_units: u64, write_units: u64) -> u64 {
    read_units.div_ceil(PARTITION_READ_UNITS).max(write_units.div_ceil(PARTITION_WRITE_UNITS))
}

pub fn partitions_for_size(size_bytes: u64) -> u64 {
    size_bytes.div_ceil(PARTITION_SIZE_BYTES)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartitionMap {
    partitions: Vec<PartitionStart>,
    next_id: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartitionStart {
    /// Never reused within the map.
    pub id: u32,
    /// The first key, after the prefix. That of the first partition is empty.
    pub first: Key,
}

impl PartitionMap {
    /// Equal parts of the hash space.
    pub fn even(count: u64) -> PartitionMap {
        let count = count.clamp(1, PARTITIONS_MAX as u64) as u32;
        let start = |id| {
            let first = part_start(id, count).filter(|hash| *hash > 0);
            PartitionStart { id, first: first.map_or_else(Key::new, hash_key) }
        };
        PartitionMap { partitions: (0..count).map(start).collect(), next_id: count }
    }

    /// A map as it was stored. `None` unless it covers everything, in order.
    pub fn from_parts(partitions: Vec<PartitionStart>, next_id: u32) -> Option<PartitionMap> {
        let is_whole = partitions.first().is_some_and(|partition| partition.first.is_empty());
        let is_ordered = partitions.is_sorted_by(|one, other| one.first < other.first);
        let is_numbered = partitions.iter().all(|partition| partition.id < next_id);
        (is_whole && is_ordered && is_numbered && partitions.len() <= PARTITIONS_MAX)
            .then_some(PartitionMap { partitions, next_id })
    }

    pub fn partitions(&self) -> &[PartitionStart] {
        &self.partitions
    }

    pub fn next_id(&self) -> u32 {
        self.next_id
    }

    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    /// Splits the widest partitions until there are `count`.
    pub fn grow_to(&mut self, count: u64) {
        while (self.len() as u64) < count.min(PARTITIONS_MAX as u64) {
            let widest = (0..self.len()).max_by_key(|position| {
                // The first of several.
                (self.width(*position), usize::MAX - position)
            });
            let position = widest.expect("a map has partitions");
            let middle = self.first_hash(position) + self.width(position) / 2;
            if self.width(position) < 2 || !self.split(&hash_key(middle)) {
                return;
            }
        }
    }

    /// Begins a partition at `boundary`. Returns whether that split one.
    pub fn split(&mut self, boundary: &Key) -> bool {
        let position = self.position(boundary);
        if self.partitions[position].first == *boundary || self.len() >= PARTITIONS_MAX {
            return false;
        }
        // Both halves are new partitions, with new buckets.
        self.partitions[position].id = self.next_id;
        let upper = PartitionStart { id: self.next_id + 1, first: boundary.clone() };
        self.partitions.insert(position + 1, upper);
        self.next_id += 2;
        true
    }

    /// The partition of a key, given without its prefix.
    pub fn position(&self, suffix: &[u8]) -> usize {
        self.partitions.partition_point(|partition| partition.first[..] <= *suffix) - 1
    }

    /// The hashes that a partition covers.
    fn width(&self, position: usize) -> u128 {
        let end = match self.partitions.get(position + 1) {
            Some(_) => self.first_hash(position + 1),
            None => u128::MAX,
        };
        end - self.first_hash(position)
    }

    fn first_hash(&self, position: usize) -> u128 {
        hash_of(&self.partitions[position].first)
    }
}

/// The hash in a key without its prefix; 0 for the empty key.
pub(crate) fn hash_of(suffix: &[u8]) -> u128 {
    let hash = suffix.first_chunk::<{ KeyHash::LENGTH }>();
    hash.map_or(0, |hash| u128::from_be_bytes(*hash))
}

pub(crate) fn hash_key(hash: u128) -> Key {
    Key::copy_from_slice(&hash.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_024 * 1_024 * 1_024;

    fn firsts(map: &PartitionMap) -> Vec<String> {
        let hex = |partition: &PartitionStart| {
            partition.first.iter().take(2).map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        map.partitions().iter().map(hex).collect()
    }

    /// ⌈reads/3,000 + writes/1,000⌉ or ⌈GB/10⌉, whichever is more.
    #[test]
    fn partitions_follow_from_capacity_and_size() {
        for (read, write, size_gb, expected) in [
            (500, 500, 0, 1),
            (1_000, 1_000, 0, 2),
            (500, 500, 25, 3),
            (0, 10_000, 0, 10),
            (3_000, 0, 0, 1),
            (3_001, 0, 0, 2),
        ] {
            let by_size = partitions_for_size(size_gb * GB);
            let count = partitions_for_provisioned(read, write).max(by_size);
            assert_eq!(count, expected, "{read} {write} {size_gb}");
        }
        // A key served by one partition at a time needs this many shards.
        assert_eq!(partitions_for_peaks(0, 4_500), 5);
        assert_eq!(partitions_for_peaks(12_000, 4_000), ON_DEMAND_PARTITIONS);
    }

    #[test]
    fn an_even_map_has_equal_parts() {
        assert_eq!(firsts(&PartitionMap::even(4)), ["", "4000", "8000", "c000"]);
        assert_eq!(firsts(&PartitionMap::even(3)), ["", "5555", "aaaa"]);
        assert_eq!(PartitionMap::even(0).len(), 1);
    }

    #[test]
    fn the_widest_partitions_are_divided_and_none_is_merged() {
        let mut map = PartitionMap::even(1);
        map.grow_to(2);
        assert_eq!(firsts(&map), ["", "7fff"]);
        map.grow_to(4);
        assert_eq!(firsts(&map), ["", "3fff", "7fff", "bfff"]);
        map.grow_to(1);
        assert_eq!(map.len(), 4);
        let mut ids: Vec<u32> = map.partitions().iter().map(|partition| partition.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 4);
    }

    #[test]
    fn every_key_has_one_partition() {
        let mut map = PartitionMap::even(2);
        let inside = Key::from([&(1_u128 << 127).to_be_bytes()[..], b"key"].concat());
        assert!(map.split(&inside));
        assert!(!map.split(&inside), "it begins there already");
        for (suffix, expected) in [
            (hash_key(0), 0),
            (hash_key((1 << 127) - 1), 0),
            (hash_key(1 << 127), 1),
            (inside.clone(), 2),
            (hash_key(u128::MAX), 2),
        ] {
            assert_eq!(map.position(&suffix), expected, "{suffix:?}");
        }
        assert_eq!(map.position(b""), 0);
    }

    #[test]
    fn a_stored_map_must_cover_everything_in_order() {
        let map = PartitionMap::even(3);
        let parts = |order: &[usize]| {
            order.iter().map(|position| map.partitions()[*position].clone()).collect::<Vec<_>>()
        };
        assert_eq!(PartitionMap::from_parts(parts(&[0, 1, 2]), 3), Some(map.clone()));
        for (order, next_id) in
            [(&[][..], 3), (&[1, 2], 3), (&[0, 2, 1], 3), (&[0, 1, 1], 3), (&[0, 1, 2], 2)]
        {
            assert_eq!(PartitionMap::from_parts(parts(order), next_id), None, "{order:?}");
        }
    }
}
