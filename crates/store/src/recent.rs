//! A layer that remembers the recent states of the store below, so that a test can read what was there
//! a moment ago.
//!
//! Before the first write of each millisecond, the layer keeps a snapshot of the state that the write is
//! about to replace. So every remembered state did exist, and reading as of a time needs no search in
//! the data. The next write drops states that nobody can ask for any more.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use crate::layer::Layer;
use crate::{
    CommitOutcome, Decide, Direction, Key, KeyRange, Reader, Replica, Result, Store, Value,
    Visitor, WriteSet,
};

/// The most states to remember. A read that asks for an earlier one gets the earliest of these.
const STATES_MAX: usize = 4_096;

/// What the layer asks its owner.
pub trait Retention: Send + Sync + 'static {
    fn now_ms(&self) -> u64;

    /// How far back somebody may read; 0 if nobody does, and then nothing is remembered.
    fn window_ms(&self) -> u64;
}

pub struct RecentStates {
    below: Arc<dyn Store>,
    retention: Box<dyn Retention>,
    /// In the order of time.
    past: Mutex<VecDeque<PastState>>,
}

struct PastState {
    /// When the state was replaced. It was current from the time when the previous state was replaced
    /// until then.
    until_ms: u64,
    state: Arc<dyn Reader>,
}

impl RecentStates {
    pub fn new(below: Arc<dyn Store>, retention: impl Retention) -> RecentStates {
        RecentStates { below, retention: Box::new(retention), past: Mutex::default() }
    }

    /// The state at a time, or `None` if it is the present one.
    pub fn as_of(&self, at_ms: u64) -> Option<Arc<dyn Replica>> {
        let past = self.past.lock();
        let position = past.partition_point(|past| past.until_ms <= at_ms);
        let found = past.get(position)?;
        Some(Arc::new(FrozenReplica(found.state.clone())))
    }

    /// How many states are remembered.
    pub fn len(&self) -> usize {
        self.past.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn remember(&self) {
        let window_ms = self.retention.window_ms();
        let mut past = self.past.lock();
        if window_ms == 0 {
            past.clear();
            return;
        }
        let now_ms = self.retention.now_ms();
        let oldest_ms = now_ms.saturating_sub(window_ms);
        while past.front().is_some_and(|first| first.until_ms <= oldest_ms) {
            past.pop_front();
        }
        // One state per millisecond. A clock that went back adds none until it has caught up.
        if past.back().is_some_and(|last| last.until_ms >= now_ms) {
            return;
        }
        if past.len() == STATES_MAX {
            past.pop_front();
        }
        past.push_back(PastState { until_ms: now_ms, state: self.below.snapshot() });
    }
}

impl Layer for RecentStates {
    fn below(&self) -> &Arc<dyn Store> {
        &self.below
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<CommitOutcome>> {
        self.remember();
        self.below.write(set, decide)
    }
}

/// A replica that shows one state.
pub struct FrozenReplica(pub Arc<dyn Reader>);

impl Replica for FrozenReplica {
    fn snapshot(&self) -> Arc<dyn Reader> {
        self.0.clone()
    }
}

impl Reader for FrozenReplica {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        self.0.get(key)
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        self.0.get_many(keys)
    }

    fn scan_then_get<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        entries_max: Option<usize>,
        visit: &'a mut Visitor<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        self.0.scan_then_get(range, direction, entries_max, visit, keys)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::FutureExt;

    use super::*;
    use crate::memory::MemoryStore;
    use crate::put_or_delete;

    #[derive(Clone, Default)]
    struct Times {
        now_ms: Arc<AtomicU64>,
        window_ms: Arc<AtomicU64>,
    }

    impl Retention for Times {
        fn now_ms(&self) -> u64 {
            self.now_ms.load(Ordering::Relaxed)
        }

        fn window_ms(&self) -> u64 {
            self.window_ms.load(Ordering::Relaxed)
        }
    }

    struct Subject {
        store: RecentStates,
        times: Times,
    }

    impl Subject {
        fn new(window_ms: u64) -> Subject {
            let times = Times::default();
            times.window_ms.store(window_ms, Ordering::Relaxed);
            let store = RecentStates::new(Arc::new(MemoryStore::new()), times.clone());
            Subject { store, times }
        }

        fn put(&self, at_ms: u64, value: &'static str) {
            self.times.now_ms.store(at_ms, Ordering::Relaxed);
            let put = put_or_delete(&self.store, Key::from("k"), Some(Value::from(value)));
            put.now_or_never().expect("memory never waits").unwrap();
        }

        /// What a reader sees; `-` is nothing, and `now` the present.
        fn as_of(&self, at_ms: u64) -> String {
            let Some(state) = self.store.as_of(at_ms) else { return "now".to_owned() };
            let value = state.get(b"k").now_or_never().expect("memory never waits").unwrap();
            value.map_or("-".to_owned(), |value| String::from_utf8(value.to_vec()).unwrap())
        }
    }

    #[test]
    fn every_millisecond_has_its_last_state() {
        let subject = Subject::new(1_000);
        subject.put(10, "a");
        subject.put(10, "b");
        subject.put(20, "c");
        for (at_ms, expected) in [(9, "-"), (10, "b"), (19, "b"), (20, "now"), (99, "now")] {
            assert_eq!(subject.as_of(at_ms), expected, "{at_ms}");
        }
    }

    #[test]
    fn what_nobody_can_ask_for_is_dropped() {
        let subject = Subject::new(100);
        for at_ms in [0, 50, 100, 150, 200] {
            subject.put(at_ms, "x");
        }
        // Until 150 and until 200; reads go back to 100.
        assert_eq!(subject.store.len(), 2);
        subject.times.window_ms.store(0, Ordering::Relaxed);
        subject.put(210, "y");
        assert!(subject.store.is_empty());
        assert_eq!(subject.as_of(0), "now");
    }

    #[test]
    fn the_states_are_bounded_and_the_earliest_one_answers_for_those_before() {
        let subject = Subject::new(u64::MAX);
        for at_ms in 1..=STATES_MAX as u64 + 10 {
            subject.put(at_ms, if at_ms <= 10 { "early" } else { "late" });
        }
        assert_eq!(subject.store.len(), STATES_MAX);
        assert_eq!(subject.as_of(0), "early");
    }

    /// Against a plain list of what was written when.
    #[test]
    fn random_histories_are_remembered_exactly() {
        const VALUES: [&str; 4] = ["a", "b", "c", "d"];
        const WINDOW_MS: u64 = 50;
        let subject = Subject::new(WINDOW_MS);
        let (mut written, mut now_ms) = (vec![(0, "-")], 1);
        for step in 0_u64..2_000 {
            let random = xxhash_rust::xxh3::xxh3_64(&step.to_be_bytes());
            now_ms += random % 4;
            let value = VALUES[(random >> 8) as usize % VALUES.len()];
            subject.put(now_ms, value);
            written.push((now_ms, value));
            let at_ms = now_ms.saturating_sub((random >> 16) % WINDOW_MS);
            let end = written.partition_point(|(written_ms, _)| *written_ms <= at_ms);
            let expected = written[end - 1].1;
            let present = end == written.len();
            assert_eq!(subject.as_of(at_ms), if present { "now" } else { expected }, "{step}");
        }
    }

    #[test]
    fn a_clock_that_goes_back_invents_no_state() {
        let subject = Subject::new(1_000);
        subject.put(10, "a");
        subject.put(5, "b");
        assert_eq!(subject.store.len(), 1);
        assert_eq!((subject.as_of(9), subject.as_of(10)), ("-".into(), "now".into()));
    }
}
