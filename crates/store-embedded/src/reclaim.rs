//! Reclaims the space of deleted entries in the background.
//!
//! It only compacts the range. RocksDB could also drop files that lie inside the range without reading them, but
//! snapshots may still see their entries, and the range may not be entirely deleted.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use rocksdb::{BottommostLevelCompaction, CompactOptions};
use zenobe_store::{KeyRange, Result};

use crate::rocks_database::RocksDatabase;

/// Hints beyond this many are dropped. Ordinary compaction reclaims that space eventually.
const PENDING_MAX: usize = 256;

/// After a compaction the thread rests this many times as long, so that hints cannot keep a processor or the disk
/// busy.
const REST_FACTOR: u32 = 2;

#[derive(Default)]
pub(crate) struct Reclaimer {
    shared: Arc<SharedWork>,
}

#[derive(Default)]
struct SharedWork {
    work: Mutex<PendingWork>,
    /// Notified by `stop`, so that a rest ends at once.
    stopped: Condvar,
}

#[derive(Default)]
struct PendingWork {
    /// No two of them overlap or touch.
    pending: Vec<KeyRange>,
    rest_until: Option<Instant>,
    /// Present while a thread works through what is pending.
    thread: Option<JoinHandle<()>>,
    is_working: bool,
}

impl Reclaimer {
    pub fn request(&self, database: Arc<RocksDatabase>, range: KeyRange) -> Result<()> {
        let mut work = self.shared.work.lock();
        if range.is_empty() {
            return Ok(());
        }
        coalesce(&mut work.pending, range);
        work.pending.truncate(PENDING_MAX);
        if !work.is_working {
            let shared = Arc::clone(&self.shared);
            work.thread = Some(crate::spawn("zenobe-reclaim", move || run(&shared, &database))?);
            work.is_working = true;
        }
        Ok(())
    }

    #[cfg(test)]
    pub fn is_working(&self) -> bool {
        self.shared.work.lock().is_working
    }

    /// Forgets what is pending and waits for what is running, which `cancel` should cut short.
    pub fn stop(&self, cancel: impl FnOnce()) {
        let mut work = self.shared.work.lock();
        work.pending.clear();
        let thread = work.thread.take();
        drop(work);
        self.shared.stopped.notify_all();
        cancel();
        if let Some(thread) = thread {
            // A compaction that panicked has lost nothing: reclaiming is only a hint.
            if thread.join().is_err() {
                self.shared.work.lock().is_working = false;
            }
        }
    }
}

fn run(shared: &SharedWork, database: &RocksDatabase) {
    while let Some(range) = next(shared) {
        let begin = Instant::now();
        compact(database, &range);
        shared.work.lock().rest_until = Some(Instant::now() + begin.elapsed() * REST_FACTOR);
    }
}

/// The next range, after the rest that the last compaction requires. `None` if nothing is pending.
fn next(shared: &SharedWork) -> Option<KeyRange> {
    let mut work = shared.work.lock();
    while let Some(rest_until) = work.rest_until
        && !work.pending.is_empty()
        && rest_until > Instant::now()
    {
        shared.stopped.wait_until(&mut work, rest_until);
    }
    let range = work.pending.pop();
    work.is_working = range.is_some();
    range
}

fn compact(database: &RocksDatabase, range: &KeyRange) {
    let mut options = CompactOptions::default();
    // Ordinary compactions continue in parallel.
    options.set_exclusive_manual_compaction(false);
    // Otherwise RocksDB moves files with nothing below them down a level as they are, with their tombstones.
    options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
    database.rocks().compact_range_opt(Some(&range.start), range.end.as_ref(), &options);
}

/// Adds a range, merged with those that it overlaps or touches, so that nothing is compacted twice.
fn coalesce(pending: &mut Vec<KeyRange>, mut range: KeyRange) {
    let reaches =
        |one: &KeyRange, other: &KeyRange| one.end.as_ref().is_none_or(|end| *end >= other.start);
    // The union with one that touches the range touches no other: those were apart from each other before.
    pending.retain(|other| {
        let is_apart = !(reaches(other, &range) && reaches(&range, other));
        if !is_apart {
            range.start = other.start.clone().min(range.start.clone());
            range.end = match (&other.end, &range.end) {
                (Some(one), Some(other)) => Some(one.max(other).clone()),
                _ => None,
            };
        }
        is_apart
    });
    pending.push(range);
}

#[cfg(test)]
mod tests {
    use super::{PENDING_MAX, Reclaimer, coalesce};
    use crate::inner::Inner;
    use crate::options::Options;
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    use zenobe_store::{Key, KeyRange};

    #[test]
    fn ranges_that_overlap_or_touch_are_compacted_as_one() {
        let check = |ranges: &[(&'static str, &'static str)], expected: &[(&str, &str)]| {
            let mut pending = Vec::new();
            for (start, end) in ranges {
                coalesce(&mut pending, KeyRange::new(*start, *end));
            }
            pending.sort_by(|one: &KeyRange, other| one.start.cmp(&other.start));
            let found: Vec<_> =
                pending.iter().map(|range| (&range.start[..], range.end.as_deref())).collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(start, end)| (start.as_bytes(), Some(end.as_bytes())))
                .collect();
            assert_eq!(found, expected, "{ranges:?}");
        };
        check(&[("a", "c"), ("d", "f")], &[("a", "c"), ("d", "f")]);
        check(&[("a", "c"), ("c", "f")], &[("a", "f")]);
        check(&[("c", "f"), ("a", "c")], &[("a", "f")]);
        check(&[("a", "d"), ("c", "f")], &[("a", "f")]);
        check(&[("a", "z"), ("c", "f")], &[("a", "z")]);
        check(&[("c", "f"), ("a", "z")], &[("a", "z")]);
        // One in the middle joins those on both sides, and leaves others alone.
        check(&[("a", "c"), ("d", "f"), ("x", "z"), ("b", "e")], &[("a", "f"), ("x", "z")]);

        let mut pending = vec![KeyRange::new("a", "c"), KeyRange::new("x", "z")];
        coalesce(&mut pending, KeyRange { start: Key::from("b"), end: None });
        assert_eq!(pending, [KeyRange { start: Key::from("a"), end: None }]);
    }

    /// Closing the store waits neither for the thread's rest nor for what is pending.
    #[test]
    fn stopping_ends_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let store = Inner::open(directory.path(), Options::default()).unwrap();
        let database = Arc::clone(store.published.get().unwrap().database());
        let reclaimer = Reclaimer::default();
        reclaimer.shared.work.lock().rest_until = Some(Instant::now() + Duration::from_secs(3600));
        for number in 0..2 * PENDING_MAX {
            let [start, end] = [0, 1].map(|last| format!("{number:05}{last}"));
            reclaimer.request(Arc::clone(&database), KeyRange::new(start, end)).unwrap();
        }
        assert_eq!(reclaimer.shared.work.lock().pending.len(), PENDING_MAX, "it is bounded");
        // Would wait for an hour.
        reclaimer.stop(|| {});
        assert!(!reclaimer.is_working());
    }
}
