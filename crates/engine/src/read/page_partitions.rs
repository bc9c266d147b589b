//! The partitions that a page passes through. Each of them serves its part of the page.
//!
//! For a Scan of an on-demand table, AWS rounds up what a page reads in each partition, and it starts
//! such a table with four of them. So a Scan of a table with one small item costs as much as four
//! reads.

use std::sync::Arc;

use zenobe_store::{Direction, Key, KeyRange};

use crate::capacity_units::read_halves;
use crate::throughput::{Partition, PlacedPartition, position};

/// Adds up what a page reads in each partition.
#[derive(Clone)]
pub(super) struct PagePartitions {
    direction: Direction,
    prefix_length: usize,
    partitions: Arc<Vec<PlacedPartition>>,
    first: usize,
    last: usize,
    current: usize,
    /// What was read in each partition, beginning with the one at `base`.
    size_bytes: Vec<u64>,
    base: usize,
}

/// The first and the last partition of a range.
pub(super) fn span(
    prefix: &Key,
    range: &KeyRange,
    partitions: &[PlacedPartition],
) -> (usize, usize) {
    let first = position(partitions, range.start.strip_prefix(&prefix[..]).unwrap_or_default());
    let end = range.end.as_ref().and_then(|end| end.strip_prefix(&prefix[..]));
    // A range that ends where a partition begins has nothing of it.
    let last = end.map_or(partitions.len() - 1, |end| {
        let last = position(partitions, end);
        if last > 0 && partitions[last].first[..] == *end { last - 1 } else { last }
    });
    (first, last.max(first))
}

impl PagePartitions {
    /// `range` lies below `prefix`. A segment or a start key may cut it short.
    pub fn new(
        prefix: &Key,
        range: &KeyRange,
        direction: Direction,
        partitions: Arc<Vec<PlacedPartition>>,
    ) -> PagePartitions {
        let (first, last) = span(prefix, range, &partitions);
        let current = match direction {
            Direction::Forward => first,
            Direction::Reverse => last,
        };
        PagePartitions {
            direction,
            prefix_length: prefix.len(),
            partitions,
            first,
            last,
            current,
            size_bytes: vec![0; last - first + 1],
            base: first,
        }
    }

    /// Called before the item with this key is evaluated.
    pub fn enter(&mut self, key: &[u8]) {
        let suffix = &key[self.prefix_length..];
        // Items come in the order of keys, so most are where the one before them was.
        let is_before = *suffix < self.partitions[self.current].first[..];
        let next = self.partitions.get(self.current + 1);
        if is_before || next.is_some_and(|next| next.first[..] <= *suffix) {
            self.current = position(&self.partitions, suffix).clamp(self.first, self.last);
        }
    }

    pub fn add(&mut self, size_bytes: u64) {
        self.size_bytes[self.current - self.base] += size_bytes;
    }

    /// A full page has not looked past its last item.
    pub fn end_early(&mut self) {
        match self.direction {
            Direction::Forward => self.last = self.current,
            Direction::Reverse => self.first = self.current,
        }
    }

    /// What the page costs if each partition is rounded up.
    pub fn halves_of_each(&self, consistent: bool) -> impl Iterator<Item = u64> {
        self.touched_size_bytes().iter().map(move |bytes| read_halves(*bytes, consistent))
    }

    /// Each partition that was touched, with its share of what the page consumed.
    pub fn shares(&self, halves: u64) -> impl Iterator<Item = (&Arc<Partition>, u64)> {
        let sizes = self.touched_size_bytes();
        let whole: u64 = sizes.iter().sum();
        let (mut so_far, mut given) = (0_u64, 0_u64);
        let shares = sizes.iter().map(move |size_bytes| {
            so_far += size_bytes;
            let until = match whole {
                // A page without items looked for them where it began.
                0 => halves,
                _ => (u128::from(halves) * u128::from(so_far) / u128::from(whole)) as u64,
            };
            until - std::mem::replace(&mut given, until)
        });
        let touched = &self.partitions[self.first..=self.last];
        touched.iter().map(|placed| &placed.partition).zip(shares)
    }

    fn touched_size_bytes(&self) -> &[u64] {
        &self.size_bytes[self.first - self.base..=self.last - self.base]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::{self, KeyHash};
    use crate::schema::TableId;

    const QUARTER: u128 = 1 << 126;

    fn key(prefix: &Key, hash: u128) -> Key {
        keyspace::entry_key(prefix, KeyHash::from_bytes(hash.to_be_bytes()), b"key")
    }

    fn partitions_of(prefix: &Key, range: &KeyRange, count: u64) -> PagePartitions {
        PagePartitions::new(prefix, range, Direction::Forward, Partition::evenly(count))
    }

    fn halves(page: &PagePartitions, consistent: bool) -> u64 {
        page.halves_of_each(consistent).sum()
    }

    fn ended(page: &PagePartitions) -> PagePartitions {
        let mut page = page.clone();
        page.end_early();
        page
    }

    #[test]
    fn each_partition_is_rounded_up() {
        let prefix = keyspace::item_prefix(TableId(1));
        let mut whole = partitions_of(&prefix, &KeyRange::prefix(prefix.clone()), 4);
        // Nothing at all, then a little, then more than a unit in one of them.
        assert_eq!((halves(&whole, false), halves(&whole, true)), (4, 8));
        whole.enter(&key(&prefix, QUARTER + 1));
        whole.add(30);
        assert_eq!((halves(&whole, false), halves(&ended(&whole), false)), (4, 2));
        whole.add(4096);
        assert_eq!((halves(&whole, false), halves(&ended(&whole), true)), (5, 6));
        // Each further partition adds half a unit.
        let larger = partitions_of(&prefix, &KeyRange::prefix(prefix.clone()), 10);
        assert_eq!((halves(&larger, false), halves(&larger, true)), (10, 20));
    }

    #[test]
    fn a_page_passes_the_partitions_of_its_range() {
        let prefix = keyspace::item_prefix(TableId(1));
        let partitions = |first, end| {
            let page = partitions_of(&prefix, &keyspace::hash_range(&prefix, first, end), 4);
            (page.first, page.last)
        };
        assert_eq!(partitions(0, Some(QUARTER)), (0, 0));
        assert_eq!(partitions(QUARTER, Some(2 * QUARTER)), (1, 1));
        assert_eq!(partitions(QUARTER - 1, Some(QUARTER + 1)), (0, 1));
        assert_eq!(partitions(3 * QUARTER, None), (3, 3));
        let behind = key(&prefix, 2 * QUARTER + 5);
        let range = KeyRange { start: behind, end: zenobe_store::prefix_end(&prefix) };
        let rest = partitions_of(&prefix, &range, 4);
        assert_eq!((rest.first, rest.last), (2, 3));
    }

    #[test]
    fn each_partition_serves_what_was_read_there() {
        let prefix = keyspace::item_prefix(TableId(1));
        let shares = |page: &PagePartitions, halves| {
            page.shares(halves).map(|(it, share)| (it.id, share)).collect::<Vec<_>>()
        };
        let range = keyspace::hash_range(&prefix, QUARTER, None);
        for direction in [Direction::Forward, Direction::Reverse] {
            let mut page = PagePartitions::new(&prefix, &range, direction, Partition::evenly(4));
            assert_eq!(shares(&page, 1), [(1, 1), (2, 0), (3, 0)]);
            let mut read = vec![(1, 600), (1, 100), (3, 300)];
            if direction == Direction::Reverse {
                read.reverse();
            }
            for (quarter, size_bytes) in read {
                page.enter(&key(&prefix, quarter * QUARTER + 7));
                page.add(size_bytes);
            }
            assert_eq!(shares(&page, 10), [(1, 7), (2, 0), (3, 3)]);
            assert_eq!(shares(&page, 3).iter().map(|(_, share)| share).sum::<u64>(), 3);
        }
        let mut backward =
            PagePartitions::new(&prefix, &range, Direction::Reverse, Partition::evenly(4));
        backward.enter(&key(&prefix, 3 * QUARTER));
        backward.add(5_000);
        backward.end_early();
        assert_eq!(shares(&backward, 4), [(3, 4)]);
    }
}
