//! A store that is copied while it is in use, and then handed over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use futures_util::FutureExt;
use zenobe_store::conformance::{block_on, commit};
use zenobe_store::copying::{ChangeTracker, CopyOptions, Seal, SealState, StoreCopy, seal};
use zenobe_store::memory::MemoryStore;
use zenobe_store::{
    Batch, CommitOutcome, Decision, Key, KeyRange, Reader, Store, Value, WriteSet, decode_counter,
};
use zenobe_store_embedded::{Durability, EmbeddedStore, Options};

fn open(directory: &tempfile::TempDir, durability: Durability) -> EmbeddedStore {
    EmbeddedStore::open(directory.path(), Options { durability, ..Options::default() }).unwrap()
}

fn moved() -> Seal {
    Seal { id: 1, to: "memory".into(), state: SealState::Moved }
}

#[test]
fn the_tap_names_what_changes_while_it_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory, Durability::Os);
    commit(&store, |batch| batch.put("before", "1"));
    let tracker = store.track_changes().unwrap();
    commit(&store, |batch| {
        batch.put("put", "1");
        batch.delete("delete");
        batch.add("count", 1);
        batch.append("log/", 1, "x");
        batch.append("log/", 1, "x");
        batch.delete_range(KeyRange::new("a", "b"));
        batch.drop_log("gone/");
    });
    let changed = tracker.take().unwrap();
    let entry = |sequence| zenobe_store::log_entry_key(b"log/", sequence);
    let mut keys: Vec<Key> = ["put", "delete", "count"].map(Key::from).to_vec();
    keys.extend([entry(1), entry(2)]);
    assert_eq!(changed.keys, keys.into_iter().collect());
    assert_eq!(changed.ranges.len(), 2);
    assert_eq!(changed.logs, ["log/", "gone/"].map(Key::from).into_iter().collect());
    assert!(tracker.take().unwrap().is_empty());
    drop(tracker);
    commit(&store, |batch| batch.put("after", "1"));
    assert!(store.track_changes().unwrap().take().unwrap().is_empty());
}

#[test]
fn paused_writes_wait_and_reads_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory, Durability::Sync);
    commit(&store, |batch| batch.put("row", "1"));
    let paused = block_on(store.pause_writes()).unwrap();
    let keys = [Key::from("row")];
    let mut decide = |reads: &[Option<Value>]| {
        assert_eq!(reads[0].as_deref(), Some(&b"1"[..]));
        let mut batch = Batch::new();
        batch.put("row", "2");
        Decision::Commit(batch)
    };
    let mut write = store.write(WriteSet { guards: &[], keys: &keys }, &mut decide);
    assert!((&mut write).now_or_never().is_none());
    assert_eq!(block_on(store.get(b"row")).unwrap().as_deref(), Some(&b"1"[..]));
    // The one that seals the store does not wait.
    block_on(paused.seal(&moved())).unwrap();
    assert_eq!(block_on(seal(&store)).unwrap(), Some(moved()));
    block_on(paused.unseal()).unwrap();
    assert_eq!(block_on(seal(&store)).unwrap(), None);
    drop(paused);
    block_on(write).unwrap();
    assert_eq!(block_on(store.get(b"row")).unwrap().as_deref(), Some(&b"2"[..]));
}

#[test]
fn a_successor_answers_everything() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory, Durability::Sync);
    commit(&store, |batch| batch.put("row", "old"));
    let snapshot = store.snapshot();
    let successor = Arc::new(MemoryStore::shared());
    commit(&*successor, |batch| batch.put("row", "new"));
    let paused = block_on(store.pause_writes()).unwrap();
    let keys = [Key::from("row")];
    let mut decide = |reads: &[Option<Value>]| {
        assert_eq!(reads[0].as_deref(), Some(&b"new"[..]), "it is decided where it is written");
        let mut batch = Batch::new();
        batch.append("log/", 1, "x");
        Decision::Commit(batch)
    };
    let mut waiting = store.write(WriteSet { guards: &[], keys: &keys }, &mut decide);
    assert!((&mut waiting).now_or_never().is_none());
    paused.hand_over(Arc::clone(&successor) as Arc<dyn Store>);
    assert_eq!(block_on(waiting).unwrap(), CommitOutcome { sequences: vec![1], stamp: None });
    assert!(store.is_shared() && store.is_handed_over());
    assert_eq!(block_on(snapshot.get(b"row")).unwrap().as_deref(), Some(&b"old"[..]));
    drop(snapshot);
    let many = block_on(store.get_many(&keys)).unwrap();
    assert_eq!(many[0].as_deref(), Some(&b"new"[..]));
    let read = block_on(store.snapshot().get(b"row")).unwrap();
    assert_eq!(read.as_deref(), Some(&b"new"[..]));
    assert_eq!(block_on(store.log_ends(&[], 9)).unwrap().len(), 1);
    let found = zenobe_store::conformance::entries(
        &store,
        KeyRange::all(),
        zenobe_store::Direction::Forward,
    );
    assert_eq!(found.len(), 2);
    block_on(store.close()).unwrap();
    assert!(block_on(successor.get(b"row")).is_err(), "it is closed too");
    // The old directory is what it was, and nobody has it open.
    drop(store);
    let store = open(&directory, Durability::Sync);
    assert_eq!(block_on(store.get(b"row")).unwrap().as_deref(), Some(&b"old"[..]));
}

/// Threads that count up keys all the time, on the store and on its successor: no increment is lost, none is made twice,
/// and nobody gets an error.
#[test]
fn nothing_is_lost_when_a_busy_store_is_handed_over() {
    for durability in [Durability::Os, Durability::Sync] {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory, durability);
        for row in 0..2_000 {
            commit(&store, |batch| batch.put(format!("row/{row:04}"), vec![1; 200]));
        }
        let successor: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (is_done, increments) = (AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            for thread in 0..4 {
                let (store, is_done, increments) = (&store, &is_done, &increments);
                scope.spawn(move || {
                    let mut last = 0;
                    while !is_done.load(Ordering::SeqCst) {
                        last = increment(store, thread, last);
                        increments.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            let written = |count| {
                let end = increments.load(Ordering::SeqCst) + count;
                while increments.load(Ordering::SeqCst) < end {
                    thread::yield_now();
                }
            };
            written(100);
            block_on(hand_over(&store, &successor));
            written(100);
            is_done.store(true, Ordering::SeqCst);
        });
        let increments = increments.load(Ordering::SeqCst);
        let counter = block_on(successor.get(b"total")).unwrap();
        assert_eq!(decode_counter(counter.as_deref()).unwrap(), increments as i64);
        let ends = block_on(successor.log_ends(&[], 9)).unwrap();
        assert_eq!(ends[0].1.sequence, increments);
        let log = KeyRange::prefix("log/");
        let direction = zenobe_store::Direction::Forward;
        let entries = zenobe_store::conformance::entries(&*successor, log, direction);
        assert_eq!(entries.len() as u64, increments);
        drop(store);
        let old = open(&directory, durability);
        assert_eq!(block_on(seal(&old)).unwrap(), Some(moved()));
    }
}

/// Counts up the thread's own key and the total. Returns the new number.
fn increment(store: &EmbeddedStore, thread: usize, last: u64) -> u64 {
    let keys = [Key::from(format!("row/{thread:04}/own"))];
    let number = |value: &Option<Value>| match value {
        Some(value) => u64::from_be_bytes(value[..].try_into().unwrap()),
        None => 0,
    };
    let mut decide = |reads: &[Option<Value>]| {
        assert_eq!(number(&reads[0]), last);
        let mut batch = Batch::new();
        batch.put(keys[0].clone(), (last + 1).to_be_bytes().to_vec());
        batch.add("total", 1);
        batch.append("log/", 1, "x");
        Decision::Commit(batch)
    };
    block_on(store.write(WriteSet { guards: &[], keys: &keys }, &mut decide)).unwrap();
    let read = block_on(store.get(&keys[0])).unwrap();
    assert_eq!(number(&read), last + 1, "a write is read back at once");
    last + 1
}

async fn hand_over(store: &EmbeddedStore, successor: &Arc<dyn Store>) {
    let tracker = store.track_changes().unwrap();
    let options = CopyOptions { chunk_bytes: 20_000, ..CopyOptions::default() };
    let copy =
        StoreCopy::begin(store, &**successor, Some(&tracker), (1, "here"), options, &|_| {}).await;
    let mut copy = copy.unwrap();
    copy.entries().await.unwrap();
    copy.logs().await.unwrap();
    copy.catch_up(1_000).await.unwrap();
    let paused = store.pause_writes().await.unwrap();
    copy.catch_up_at_last().await.unwrap();
    copy.finish().await.unwrap();
    paused.seal(&moved()).await.unwrap();
    paused.hand_over(Arc::clone(successor));
}
