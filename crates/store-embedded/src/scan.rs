//! Scans that yield their thread every millisecond, whatever the range holds.
//!
//! RocksDB steps over dead entries (tombstones, overwritten versions) inside one call: a million of them take tenths
//! of a second, and all other tasks on that thread wait. A drained queue looks like that. So a walk stops at a run of
//! dead entries, and another thread ([`DeadRuns`]) finds the end of the run while the task waits.

use std::sync::Arc;

use zenobe_store::{Direction, Key, KeyRange, Result, Visitor, yield_now};

use crate::dead_runs::DeadRuns;
use crate::snapshot::{Snapshot, WalkEnd};

/// Visits the entries of a range in one snapshot, in as many walks as it takes.
pub(crate) async fn scan(
    snapshot: &Arc<Snapshot>,
    dead_runs: &DeadRuns,
    mut range: KeyRange,
    direction: Direction,
    visit: &mut Visitor<'_>,
) -> Result<()> {
    loop {
        match snapshot.walk(&range, direction, visit)? {
            WalkEnd::Ended => return Ok(()),
            WalkEnd::TimeOver { last } => {
                range = after(&last, range, direction);
                yield_now().await;
            }
            WalkEnd::DeadRun { last } => {
                if let Some(last) = last {
                    range = after(&last, range, direction);
                }
                let found = dead_runs.end(Arc::clone(snapshot), range.clone(), direction).await?;
                let Some(next) = found else { return Ok(()) };
                range = from(next, range, direction);
            }
        }
    }
}

/// What is left of a range after an entry.
fn after(key: &[u8], range: KeyRange, direction: Direction) -> KeyRange {
    match direction {
        Direction::Forward => KeyRange { start: successor(key), ..range },
        Direction::Reverse => KeyRange { end: Some(Key::copy_from_slice(key)), ..range },
    }
}

/// What is left of a range, an entry and all after it.
fn from(key: Key, range: KeyRange, direction: Direction) -> KeyRange {
    match direction {
        Direction::Forward => KeyRange { start: key, ..range },
        Direction::Reverse => KeyRange { end: Some(successor(&key)), ..range },
    }
}

fn successor(key: &[u8]) -> Key {
    [key, &[0]].concat().into()
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};
    use std::thread::{self, Thread};

    use rocksdb::PerfMetric::InternalDeleteSkippedCount;
    use rocksdb::perf::{PerfContext, PerfStatsLevel, set_perf_stats};
    use zenobe_store::conformance::{block_on, commit};
    use zenobe_store::{Direction, Key, KeyRange, Reader, Store};

    use super::{from, successor};
    use crate::snapshot::DEAD_ENTRIES_MAX;
    use crate::{Durability, EmbeddedStore, Options};

    const DELETED: u32 = 200_000;

    fn key(number: u32) -> Key {
        format!("queue/{number:08}").into()
    }

    /// A store in which only one entry in this many is left alive.
    fn drained(directory: &std::path::Path, alive_every: u32) -> EmbeddedStore {
        let options = Options { durability: Durability::Os, ..Options::default() };
        let store = EmbeddedStore::open(directory, options).unwrap();
        let is_alive = |number: u32| number % alive_every == alive_every - 1;
        for first in (0..DELETED).step_by(2_000) {
            let numbers = || first..first + 2_000;
            commit(&store, |batch| numbers().for_each(|number| batch.put(key(number), "message")));
            commit(&store, |batch| {
                let dead = numbers().filter(|number| !is_alive(*number));
                dead.for_each(|number| batch.delete(key(number)));
            });
        }
        store
    }

    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    /// The keys that a scan finds, and the most tombstones that it stepped over on this thread between two chances
    /// for others.
    fn scan(
        reader: &dyn Reader,
        range: KeyRange,
        direction: Direction,
        count_max: usize,
    ) -> (Vec<Key>, u64) {
        let (mut keys, mut most) = (Vec::new(), 0);
        let mut visit = |key: &[u8], _: &[u8]| {
            keys.push(Key::copy_from_slice(key));
            if keys.len() < count_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        {
            let mut scan = pin!(reader.scan(range, direction, &mut visit));
            let waker = Waker::from(Arc::new(Unpark(thread::current())));
            let mut context = Context::from_waker(&waker);
            let mut counts = PerfContext::default();
            set_perf_stats(PerfStatsLevel::EnableCount);
            loop {
                counts.reset();
                let polled = scan.as_mut().poll(&mut context);
                most = most.max(counts.metric(InternalDeleteSkippedCount));
                match polled {
                    Poll::Ready(outcome) => break outcome.unwrap(),
                    Poll::Pending => thread::park(),
                }
            }
            set_perf_stats(PerfStatsLevel::Disable);
        }
        (keys, most)
    }

    /// As a consumer does that asks an empty queue for the next message.
    #[test]
    fn a_drained_queue_keeps_no_thread() {
        let directory = tempfile::tempdir().unwrap();
        let store = drained(directory.path(), DELETED);
        let last = key(DELETED - 1);
        for direction in [Direction::Forward, Direction::Reverse] {
            for reader in [&*store.snapshot(), &store as &dyn Reader] {
                let all = KeyRange::prefix("queue/");
                let (keys, most) = scan(reader, all, direction, usize::MAX);
                assert_eq!(keys, std::slice::from_ref(&last), "{direction:?}");
                assert!(most <= DEAD_ENTRIES_MAX + 1, "{direction:?} {most}");
                let empty = KeyRange::new("queue/", last.clone());
                let (keys, most) = scan(reader, empty, direction, 1);
                assert_eq!(keys, Vec::<Key>::new(), "{direction:?}");
                assert!(most <= DEAD_ENTRIES_MAX + 1, "{direction:?} {most}");
            }
        }
    }

    /// Runs that are short enough by themselves add up.
    #[test]
    fn many_short_runs_are_walked_in_several_polls() {
        const ALIVE_EVERY: u32 = 500;
        let directory = tempfile::tempdir().unwrap();
        let store = drained(directory.path(), ALIVE_EVERY);
        let mut expected: Vec<Key> =
            (1..=DELETED / ALIVE_EVERY).map(|number| key(number * ALIVE_EVERY - 1)).collect();
        for direction in [Direction::Forward, Direction::Reverse] {
            let (keys, most) = scan(&store, KeyRange::all(), direction, usize::MAX);
            assert_eq!(keys, expected, "{direction:?}");
            assert!(most < u64::from(DELETED) / 2, "{direction:?}: {most} in one poll");
            expected.reverse();
        }
    }

    /// What was stepped over is asked to be compacted, so that the next scan does not meet it.
    #[test]
    fn long_runs_are_tidied_up() {
        let directory = tempfile::tempdir().unwrap();
        let store = drained(directory.path(), DELETED);
        let range = || KeyRange::new("queue/", key(DELETED - 1));
        assert_eq!(scan(&store, range(), Direction::Forward, 1).0, Vec::<Key>::new());
        // Closing would cut it short.
        let begun = std::time::Instant::now();
        while store.inner.is_reclaiming() {
            assert!(begun.elapsed() < std::time::Duration::from_secs(60), "it never ends");
            thread::sleep(std::time::Duration::from_millis(5));
        }
        // What is read from now on is read from a state after the compaction.
        commit(&store, |batch| batch.put("other", "x"));
        let snapshot = store.inner.published.get().unwrap();
        let mut counts = PerfContext::default();
        counts.reset();
        set_perf_stats(PerfStatsLevel::EnableCount);
        assert_eq!(snapshot.first_key(&range(), Direction::Forward).unwrap(), None);
        set_perf_stats(PerfStatsLevel::Disable);
        assert!(counts.metric(InternalDeleteSkippedCount) < DEAD_ENTRIES_MAX);
        block_on(store.close()).unwrap();
    }

    #[test]
    fn a_range_goes_on_from_an_entry() {
        let range = KeyRange::new("a", "z");
        assert!(from(Key::from("k"), range.clone(), Direction::Forward).contains(b"k"));
        let rest = from(Key::from("k"), range, Direction::Reverse);
        assert!(rest.contains(b"k") && !rest.contains(&successor(b"k")));
    }
}
