//! Groups of keys that are read together: filters tell which tables and memtables hold nothing of a group.

use std::fmt;

use rocksdb::{ReadOptions, SliceTransform};
use zenobe_store::{KeyGroups, KeyRange};

/// A rule by which keys are grouped, as a value.
#[derive(Clone, Copy)]
pub struct Grouping {
    name: &'static str,
    is_grouped: fn(&[u8]) -> bool,
    group_or_key: fn(&[u8]) -> &[u8],
}

impl Grouping {
    pub fn by<G: KeyGroups>() -> Grouping {
        Grouping {
            name: G::NAME,
            is_grouped: |key| G::group_of(key).is_some(),
            group_or_key: |key| G::group_of(key).unwrap_or(key),
        }
    }

    pub(crate) fn prefix_extractor(&self) -> SliceTransform {
        SliceTransform::create(self.name, self.group_or_key, Some(self.is_grouped))
    }

    /// Says whether filters may tell a scan where not to look. Left to itself, RocksDB would ask them for the group
    /// in which it begins whatever the range, and miss entries of others.
    pub(crate) fn set_filters(
        grouping: Option<&Grouping>,
        range: &KeyRange,
        reads: &mut ReadOptions,
    ) {
        let is_filtered = grouping.is_some_and(|grouping| grouping.holds(range));
        reads.set_total_order_seek(!is_filtered);
    }

    /// Whether a range ends in the group in which it starts, so that all keys in between belong to it.
    fn holds(&self, range: &KeyRange) -> bool {
        range.end.as_ref().is_some_and(|end| {
            (self.is_grouped)(&range.start)
                && (self.is_grouped)(end)
                && (self.group_or_key)(&range.start) == (self.group_or_key)(end)
        })
    }
}

impl fmt::Debug for Grouping {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Grouping").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use rocksdb::PerfMetric::{BloomMemtableMissCount, BloomSstMissCount};
    use rocksdb::perf::{PerfContext, PerfStatsLevel, set_perf_stats};
    use zenobe_store::conformance::{block_on, commit};
    use zenobe_store::{Direction, KeyGroups, KeyRange, Store};

    use super::Grouping;
    use crate::view::Walk;
    use crate::{EmbeddedStore, Options};

    struct FirstByte;

    impl KeyGroups for FirstByte {
        const NAME: &'static str = "first-byte";

        fn group_of(key: &[u8]) -> Option<&[u8]> {
            key.get(..1)
        }
    }

    fn write(store: &EmbeddedStore, keys: &[&'static str]) {
        commit(store, |batch| keys.iter().for_each(|key| batch.put(*key, "value")));
    }

    /// The entries in a range, and the memtables and tables that a filter spared the scan.
    fn scan(store: &EmbeddedStore, range: &KeyRange, direction: Direction) -> (usize, u64, u64) {
        let view = store.shared.published().unwrap();
        let mut context = PerfContext::default();
        context.reset();
        set_perf_stats(PerfStatsLevel::EnableCount);
        let mut count = 0;
        let mut visit = |_: &[u8], _: &[u8]| {
            count += 1;
            ControlFlow::Continue(())
        };
        assert_eq!(view.walk(range, direction, &mut visit).unwrap(), Walk::Ended);
        set_perf_stats(PerfStatsLevel::Disable);
        (count, context.metric(BloomMemtableMissCount), context.metric(BloomSstMissCount))
    }

    #[test]
    fn a_scan_of_a_group_looks_only_where_the_group_is() {
        let directory = tempfile::tempdir().unwrap();
        let open = |grouping| {
            EmbeddedStore::open(directory.path(), Options { grouping, ..Options::default() })
                .unwrap()
        };
        let grouping = Some(Grouping::by::<FirstByte>());
        // Closing moves what was written into a table.
        let store = open(grouping);
        write(&store, &["a1", "a2", "c1"]);
        block_on(store.close()).unwrap();
        drop(store);
        let store = open(grouping);
        write(&store, &["b1", "b2", "b3", "d1"]);

        let group = |name: &str| KeyRange::new(format!("{name}0"), format!("{name}9"));
        assert_eq!(scan(&store, &group("a"), Direction::Forward), (2, 1, 0));
        assert_eq!(scan(&store, &group("b"), Direction::Forward), (3, 0, 1));
        assert_eq!(scan(&store, &KeyRange::new("a2", "b3"), Direction::Forward), (3, 0, 0));
        assert_eq!(scan(&store, &KeyRange::prefix("b"), Direction::Forward), (3, 0, 0));
        assert_eq!(scan(&store, &KeyRange::all(), Direction::Forward), (7, 0, 0));
        assert_eq!(scan(&store, &group("a"), Direction::Reverse), (2, 1, 0));
        assert_eq!(scan(&store, &group("b"), Direction::Reverse), (3, 0, 1));
        assert_eq!(scan(&store, &KeyRange::all(), Direction::Reverse), (7, 0, 0));
    }
}
