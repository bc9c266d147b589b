//! What may happen at the same time, and what may not.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use futures_util::future::join_all;
use tempfile::tempdir;
use zenobe_store::conformance::block_on;
use zenobe_store::{Batch, Decision, Key, Store, Value, WriteSet};
use zenobe_store_embedded::{EmbeddedStore, Options};

/// Whether a second write can be decided while the decision of a first one is still running.
fn overlaps(first: (&[Key], &[Key]), second: (&[Key], &[Key])) -> bool {
    let directory = tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path(), Options::default()).unwrap();
    let (begun, first_has_begun) = channel();
    let (decided, second_has_decided) = channel();
    // A decision may move between threads, which a receiver alone does not allow.
    let second_has_decided = Mutex::new(second_has_decided);
    std::thread::scope(|scope| {
        let store = &store;
        let running = scope.spawn(move || {
            let mut waited = None;
            let mut decide = |_: &[Option<Value>]| {
                begun.send(()).unwrap();
                let receiver = second_has_decided.lock().unwrap();
                waited = Some(receiver.recv_timeout(Duration::from_millis(400)));
                Decision::Commit(Batch::new())
            };
            let set = WriteSet { guards: first.0, keys: first.1 };
            block_on(store.write(set, &mut decide)).unwrap();
            waited.unwrap() != Err(RecvTimeoutError::Timeout)
        });
        first_has_begun.recv().unwrap();
        write_and_tell(store, second, &decided);
        running.join().unwrap()
    })
}

fn write_and_tell(store: &EmbeddedStore, set: (&[Key], &[Key]), decided: &Sender<()>) {
    let mut decide = |_: &[Option<Value>]| {
        // The first write may have given up waiting.
        let _ = decided.send(());
        Decision::Commit(Batch::new())
    };
    block_on(store.write(WriteSet { guards: set.0, keys: set.1 }, &mut decide)).unwrap();
}

#[test]
fn only_writes_that_cannot_meet_are_decided_side_by_side() {
    let [a, b, guard] = ["a", "b", "guard"].map(Key::from);
    let (a, b, guard) = (&[a][..], &[b][..], &[guard][..]);
    let none: &[Key] = &[];
    let cases = [
        ("other keys", (none, a), (none, b), true),
        ("a shared guard", (guard, a), (guard, b), true),
        ("only a guard", (guard, none), (guard, none), true),
        ("the same key", (none, a), (none, a), false),
        ("a guard that the other writes", (guard, a), (none, guard), false),
        ("a key that guards the other", (none, guard), (guard, b), false),
    ];
    for (name, first, second, expected) in cases {
        assert_eq!(overlaps(first, second), expected, "{name}");
    }
}

/// However many writes wait, only so many are decided before the earlier ones are durable.
#[test]
fn what_is_in_flight_is_bounded() {
    const MAX: usize = 10;
    let directory = tempdir().unwrap();
    let options = Options { in_flight_batches_max: MAX, ..Options::default() };
    let store = EmbeddedStore::open(directory.path(), options).unwrap();
    let (decided, peak) = (AtomicU64::new(0), AtomicU64::new(0));
    let write = |number: usize| {
        let (store, decided, peak) = (&store, &decided, &peak);
        async move {
            let mut decide = |_: &[Option<Value>]| {
                let decided = decided.fetch_add(1, Ordering::Relaxed) + 1;
                let in_flight = decided - store.statistics().commit_batches;
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
