//! What a Scan of an on-demand table is charged. AWS starts such a table with four partitions and
//! rounds up what a page reads in each of them, so a Scan of a table with one small item costs as
//! much as four reads.

use zenobe_store::{Key, KeyRange};

use crate::capacity::read_halves;
use crate::keyspace;

const PARTITION_BITS: u32 = 2;
const PARTITIONS: usize = 1 << PARTITION_BITS;

/// Adds up what a page reads in each partition that it passes through. Partitions are equal parts
/// of the hash space.
pub(super) struct ScanCharge {
    prefix_length: usize,
    first: usize,
    last: usize,
    current: usize,
    size_bytes: [u64; PARTITIONS],
}

impl ScanCharge {
    /// `range` lies below `prefix`. A segment or a start key may cut its first and last hashes
    /// short.
    pub fn new(prefix: &Key, range: &KeyRange) -> ScanCharge {
        let hash = |key: &[u8]| {
            let (hash, _) = keyspace::parts_of_suffix(key.strip_prefix(&prefix[..])?)?;
            Some(u128::from_be_bytes(*hash.as_bytes()))
        };
        let first = hash(&range.start).map_or(0, partition_of);
        let end = range.end.as_ref().and_then(|end| hash(end));
        let last = end.map_or(PARTITIONS - 1, |end| partition_of(end.saturating_sub(1)));
        let size_bytes = [0; PARTITIONS];
        ScanCharge { prefix_length: prefix.len(), first, last, current: first, size_bytes }
    }

    /// Called before the item with this key is evaluated.
    pub fn enter(&mut self, key: &[u8]) {
        let hash = keyspace::hash_of_key(&key[..self.prefix_length], key);
        self.current = partition_of(u128::from_be_bytes(*hash.as_bytes()));
    }

    pub fn add(&mut self, size_bytes: u64) {
        self.size_bytes[self.current] += size_bytes;
    }

    /// A full page has not looked past its last item.
    pub fn halves(&self, is_full: bool, consistent: bool) -> u64 {
        let last = if is_full { self.current } else { self.last.max(self.first) };
        let touched = &self.size_bytes[self.first..=last];
        touched.iter().map(|size_bytes| read_halves(*size_bytes, consistent)).sum()
    }
}

fn partition_of(hash: u128) -> usize {
    (hash >> (u128::BITS - PARTITION_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::KeyHash;
    use crate::schema::TableId;

    const QUARTER: u128 = 1 << 126;

    fn key(prefix: &Key, hash: u128) -> Key {
        keyspace::entry_key(prefix, KeyHash::from_bytes(hash.to_be_bytes()), b"key")
    }

    #[test]
    fn each_partition_is_rounded_up() {
        let prefix = keyspace::item_prefix(TableId(1));
        let mut whole = ScanCharge::new(&prefix, &KeyRange::prefix(prefix.clone()));
        // Nothing at all, then a little, then more than a unit in one of them.
        assert_eq!((whole.halves(false, false), whole.halves(false, true)), (4, 8));
        whole.enter(&key(&prefix, QUARTER + 1));
        whole.add(30);
        assert_eq!((whole.halves(false, false), whole.halves(true, false)), (4, 2));
        whole.add(4096);
        assert_eq!((whole.halves(false, false), whole.halves(true, true)), (5, 6));
    }

    #[test]
    fn a_page_is_charged_for_the_partitions_it_passed() {
        let prefix = keyspace::item_prefix(TableId(1));
        let partitions = |first, end| {
            let charge = ScanCharge::new(&prefix, &keyspace::hash_range(&prefix, first, end));
            (charge.first, charge.last)
        };
        assert_eq!(partitions(0, Some(QUARTER)), (0, 0));
        assert_eq!(partitions(QUARTER, Some(2 * QUARTER)), (1, 1));
        assert_eq!(partitions(QUARTER - 1, Some(QUARTER + 1)), (0, 1));
        assert_eq!(partitions(3 * QUARTER, None), (3, 3));
        let behind = key(&prefix, 2 * QUARTER + 5);
        let range = KeyRange { start: behind, end: zenobe_store::prefix_end(&prefix) };
        let rest = ScanCharge::new(&prefix, &range);
        assert_eq!((rest.first, rest.last), (2, 3));
    }
}
