//! Helpers for the cases.

use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use futures_util::future::join_all;

use crate::{
    Batch, CommitOutcome, Decision, Direction, Key, KeyRange, Reader, Store, Value, WriteSet,
};

/// Runs a future on the calling thread. The suite has its own executor, to prove that a backend
/// needs no particular one.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A small reproducible random source (SplitMix64).
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// A source seeded by `ZENOBE_SEED`, or differently in each run. Prints the seed; a
    /// failing test shows it in its captured output.
    pub fn announced(name: &str) -> Random {
        let given = std::env::var("ZENOBE_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(0, |elapsed| elapsed.as_nanos() as u64)
        });
        println!("{name}: replay with ZENOBE_SEED={seed}");
        Random::new(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound as u64) as usize
    }

    pub fn bytes(&mut self, size_bytes: usize) -> Vec<u8> {
        (0..size_bytes).map(|_| self.next_u64() as u8).collect()
    }
}

pub(super) fn key(text: &str) -> Key {
    Key::copy_from_slice(text.as_bytes())
}

/// Commits what `fill` puts into a batch, without reading anything.
pub fn commit(store: &dyn Store, fill: impl Fn(&mut Batch) + Sync) -> CommitOutcome {
    commit_locking(store, &[], fill)
}

/// Commits what `fill` puts into a batch, with `keys` locked exclusively.
pub(super) fn commit_locking(
    store: &dyn Store,
    keys: &[Key],
    fill: impl Fn(&mut Batch) + Sync,
) -> CommitOutcome {
    let set = WriteSet { guards: &[], keys };
    let mut decide = |_: &[Option<Value>]| {
        let mut batch = Batch::new();
        fill(&mut batch);
        Decision::Commit(batch)
    };
    block_on(store.write(set, &mut decide)).expect("the write commits")
}

pub(super) fn put(store: &dyn Store, name: &str, value: &str) {
    commit_locking(store, &[key(name)], |batch| {
        batch.put(key(name), Value::from(value.to_owned()));
    });
}

pub(super) fn get(reader: &dyn Reader, key: &[u8]) -> Option<Value> {
    block_on(reader.get(key)).expect("the read succeeds")
}

/// A snapshot of the current state. A snapshot may start at its first read, so this makes one.
pub(super) fn snapshot(store: &dyn Store) -> Arc<dyn Reader> {
    let snapshot = store.snapshot();
    get(&*snapshot, b"");
    snapshot
}

pub(super) fn get_text(reader: &dyn Reader, name: &str) -> Option<String> {
    get(reader, name.as_bytes()).map(|value| String::from_utf8_lossy(&value).into_owned())
}

/// The number stored as text; a missing value is zero.
pub(super) fn number(value: Option<&Value>) -> i64 {
    value.map_or(0, |value| {
        let text = std::str::from_utf8(value).expect("a number in text");
        text.parse().expect("a number in text")
    })
}

/// All entries of a range.
pub fn entries(
    reader: &dyn Reader,
    range: KeyRange,
    direction: Direction,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    entries_up_to(reader, range, direction, usize::MAX)
}

pub(super) fn entries_up_to(
    reader: &dyn Reader,
    range: KeyRange,
    direction: Direction,
    limit: usize,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        match found.len() < limit {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    };
    block_on(reader.scan(range, direction, &mut visit)).expect("the scan succeeds");
    found
}

pub(super) fn names(reader: &dyn Reader, range: KeyRange, direction: Direction) -> Vec<String> {
    entries(reader, range, direction)
        .into_iter()
        .map(|(key, _)| String::from_utf8_lossy(&key).into_owned())
        .collect()
}

/// Orders futures that run together: each waits until the one before it begins the next turn.
#[derive(Default)]
pub(super) struct Turns {
    current: AtomicUsize,
}

impl Turns {
    /// Begins the turn with this number. A decision that runs again begins it again.
    pub fn begin(&self, turn: usize) {
        self.current.fetch_max(turn, Ordering::AcqRel);
    }

    pub async fn wait(&self, turn: usize) {
        poll_fn(|context| {
            if self.current.load(Ordering::Acquire) >= turn {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

/// Commits batches that are all in flight together, in order: each is decided after the one before
/// it, and before that one is acknowledged. All of them lock the key `lock`, so they commit in the
/// order of their decisions.
pub(super) fn commit_together(
    store: &dyn Store,
    lock: &Key,
    batches: &[Batch],
) -> Vec<CommitOutcome> {
    let turns = Turns::default();
    let writes = batches.iter().enumerate().map(|(turn, batch)| {
        let turns = &turns;
        async move {
            turns.wait(turn).await;
            let keys = [lock.clone()];
            let mut decide = |_: &[Option<Value>]| {
                turns.begin(turn + 1);
                Decision::Commit(batch.clone())
            };
            store.write(WriteSet { guards: &[], keys: &keys }, &mut decide).await
        }
    });
    let outcomes = block_on(join_all(writes));
    outcomes.into_iter().map(|outcome| outcome.expect("the write commits")).collect()
}

/// Runs a closure when dropped, so that a panicking thread does not leave others waiting.
pub(super) struct AtEnd<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Runs `work` on `count` threads at once, each with its number.
pub(super) fn on_threads(count: usize, work: impl Fn(usize) + Sync) {
    thread::scope(|scope| {
        for number in 0..count {
            let work = &work;
            scope.spawn(move || work(number));
        }
    });
}
