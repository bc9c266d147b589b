//! What may happen at the same time, and what may not.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use futures_util::future::join_all;
use tempfile::tempdir;
use zenobe_store::conformance::block_on;
use zenobe_store::{Batch, Decision, Key, Store, Value, WriteSet};
use zenobe_store_embedded::{EmbeddedStore, Options};

/// The first decision ends only after the second has begun. `key_locks` shows which writes have to wait.
#[test]
fn writes_that_share_only_a_guard_are_decided_side_by_side() {
    let directory = tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path(), Options::default()).unwrap();
    let [a, b, guard] = ["a", "b", "guard"].map(|name| [Key::from(name)]);
    let (begun, first_has_begun) = channel();
    let (decided, second_has_decided) = channel();
    // A decision may move between threads, which a receiver alone does not allow.
    let second_has_decided = Mutex::new(second_has_decided);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut decide = |_: &[Option<Value>]| {
                begun.send(()).unwrap();
                second_has_decided.lock().unwrap().recv().unwrap();
                Decision::Commit(Batch::new())
            };
            block_on(store.write(WriteSet { guards: &guard, keys: &a }, &mut decide)).unwrap();
        });
        first_has_begun.recv().unwrap();
        let mut decide = |_: &[Option<Value>]| {
            decided.send(()).unwrap();
            Decision::Commit(Batch::new())
        };
        block_on(store.write(WriteSet { guards: &guard, keys: &b }, &mut decide)).unwrap();
    });
}

/// However many writes wait, only a bounded number are decided before the earlier ones are durable.
#[test]
fn what_is_in_flight_is_bounded() {
    const MAX: usize = 10;
    let directory = tempdir().unwrap();
    let options = Options { unanswered_writes_max: MAX, ..Options::default() };
    let store = EmbeddedStore::open(directory.path(), options).unwrap();
    let (decided, peak) = (AtomicU64::new(0), AtomicU64::new(0));
    let write = |number: usize| {
        let (store, decided, peak) = (&store, &decided, &peak);
        async move {
            let mut decide = |_: &[Option<Value>]| {
                let decided = decided.fetch_add(1, Ordering::Relaxed) + 1;
                let in_flight = decided - store.statistics().committed_writes;
                peak.fetch_max(in_flight, Ordering::Relaxed);
                let mut batch = Batch::new();
                batch.put(number.to_string(), "x");
                Decision::Commit(batch)
            };
            store.write(WriteSet::default(), &mut decide).await.unwrap();
        }
    };
    block_on(join_all((0..1000).map(write)));
    let peak = peak.into_inner();
    assert!((2..=MAX as u64).contains(&peak), "{peak} writes were in flight together");
}
