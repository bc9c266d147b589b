//! Which keys are read together: filters tell which tables and memtables hold no key with a given prefix.

use std::fmt;

use rocksdb::{ReadOptions, SliceTransform};
use zenobe_store::{KeyPrefixes, KeyRange};

/// A caller's [`KeyPrefixes`], as a value.
#[derive(Clone, Copy)]
pub struct PrefixExtractor {
    name: &'static str,
    has_prefix: fn(&[u8]) -> bool,
    prefix_or_key: fn(&[u8]) -> &[u8],
}

impl PrefixExtractor {
    pub fn of<P: KeyPrefixes>() -> PrefixExtractor {
        PrefixExtractor {
            name: P::NAME,
            has_prefix: |key| P::prefix_of(key).is_some(),
            prefix_or_key: |key| P::prefix_of(key).unwrap_or(key),
        }
    }

    pub(crate) fn slice_transform(&self) -> SliceTransform {
        SliceTransform::create(self.name, self.prefix_or_key, Some(self.has_prefix))
    }

    /// Sets whether a scan may use filters. By default RocksDB would use them for the prefix of the first key, whatever
    /// the range, and miss entries with other prefixes.
    pub(crate) fn set_filters(
        prefixes: Option<&PrefixExtractor>,
        range: &KeyRange,
        reads: &mut ReadOptions,
    ) {
        let is_filtered = prefixes.is_some_and(|prefixes| prefixes.have_in_common(range));
        reads.set_total_order_seek(!is_filtered);
    }

    /// Whether both ends of a range have the same prefix, so that all keys in between have it too.
    fn have_in_common(&self, range: &KeyRange) -> bool {
        range.end.as_ref().is_some_and(|end| {
            (self.has_prefix)(&range.start)
                && (self.has_prefix)(end)
                && (self.prefix_or_key)(&range.start) == (self.prefix_or_key)(end)
        })
    }
}

impl fmt::Debug for PrefixExtractor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("PrefixExtractor").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use rocksdb::PerfMetric::{BloomMemtableMissCount, BloomSstMissCount};
    use rocksdb::perf::{PerfContext, PerfStatsLevel, set_perf_stats};
    use zenobe_store::conformance::{block_on, commit};
    use zenobe_store::{Direction, KeyPrefixes, KeyRange, Store};

    use super::PrefixExtractor;
    use crate::snapshot::WalkEnd;
    use crate::{EmbeddedStore, Options};

    struct FirstByte;

    impl KeyPrefixes for FirstByte {
        const NAME: &'static str = "first-byte";

        fn prefix_of(key: &[u8]) -> Option<&[u8]> {
            key.get(..1)
        }
    }

    fn write(store: &EmbeddedStore, keys: &[&'static str]) {
        commit(store, |batch| keys.iter().for_each(|key| batch.put(*key, "value")));
    }

    /// The entries in a range, and the memtables and tables that a filter spared the scan.
    fn scan(store: &EmbeddedStore, range: &KeyRange, direction: Direction) -> (usize, u64, u64) {
        let snapshot = store.inner.published.get().unwrap();
        let mut context = PerfContext::default();
        context.reset();
        set_perf_stats(PerfStatsLevel::EnableCount);
        let mut count = 0;
        let mut visit = |_: &[u8], _: &[u8]| {
            count += 1;
            ControlFlow::Continue(())
        };
        assert_eq!(snapshot.walk(range, direction, &mut visit).unwrap(), WalkEnd::Ended);
        set_perf_stats(PerfStatsLevel::Disable);
        (count, context.metric(BloomMemtableMissCount), context.metric(BloomSstMissCount))
    }

    #[test]
    fn a_scan_of_one_prefix_looks_only_where_the_prefix_is() {
        let directory = tempfile::tempdir().unwrap();
        let open = |prefixes| {
            EmbeddedStore::open(directory.path(), Options { prefixes, ..Options::default() })
                .unwrap()
        };
        let prefixes = Some(PrefixExtractor::of::<FirstByte>());
        // Closing moves what was written into a table.
        let store = open(prefixes);
        write(&store, &["a1", "a2", "c1"]);
        block_on(store.close()).unwrap();
        drop(store);
        let store = open(prefixes);
        write(&store, &["b1", "b2", "b3", "d1"]);

        let within = |name: &str| KeyRange::new(format!("{name}0"), format!("{name}9"));
        assert_eq!(scan(&store, &within("a"), Direction::Forward), (2, 1, 0));
        assert_eq!(scan(&store, &within("b"), Direction::Forward), (3, 0, 1));
        assert_eq!(scan(&store, &KeyRange::new("a2", "b3"), Direction::Forward), (3, 0, 0));
        assert_eq!(scan(&store, &KeyRange::prefix("b"), Direction::Forward), (3, 0, 0));
        assert_eq!(scan(&store, &KeyRange::all(), Direction::Forward), (7, 0, 0));
        assert_eq!(scan(&store, &within("a"), Direction::Reverse), (2, 1, 0));
        assert_eq!(scan(&store, &within("b"), Direction::Reverse), (3, 0, 1));
        assert_eq!(scan(&store, &KeyRange::all(), Direction::Reverse), (7, 0, 0));
    }
}
