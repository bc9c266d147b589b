//! Opening, locking, checkpoints and sizes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tempfile::tempdir;
use zenobe_store::conformance::block_on;
use zenobe_store::{
    Batch, Decision, Direction, Error, KeyRange, Reader, Store, Value, WriteSet, decode_counter,
};
use zenobe_store_embedded::{EmbeddedStore, Options};

fn open(path: &Path) -> EmbeddedStore {
    EmbeddedStore::open(path, Options::default()).expect("the store opens")
}

fn commit(store: &dyn Store, fill: impl Fn(&mut Batch) + Sync) {
    let mut decide = |_: &[Option<Value>]| {
        let mut batch = Batch::new();
        fill(&mut batch);
        Decision::Commit(batch)
    };
    block_on(store.write(WriteSet::default(), &mut decide)).expect("the write commits");
}

fn count(reader: &dyn Reader, range: KeyRange) -> u64 {
    let mut count = 0;
    let mut visit = |_: &[u8], _: &[u8]| {
        count += 1;
        std::ops::ControlFlow::Continue(())
    };
    block_on(reader.scan(range, Direction::Forward, &mut visit)).expect("the scan succeeds");
    count
}

#[test]
fn an_open_directory_cannot_be_opened_again() {
    let directory = tempdir().unwrap();
    let store = open(directory.path());
    let Err(Error::Open { detail }) = EmbeddedStore::open(directory.path(), Options::default())
    else {
        panic!("opened twice");
    };
    assert_eq!(detail, "this process has it open already, or a process in another container does");
    block_on(store.close()).unwrap();
    // Closing frees the directory, although the closed store is still there.
    drop(open(directory.path()));
    drop(store);
}

#[test]
fn dropping_a_store_finishes_its_writes() {
    let directory = tempdir().unwrap();
    for expected in 0..5 {
        let store = open(directory.path());
        assert_eq!(count(&store, KeyRange::all()), expected);
        let mut decide = |_: &[Option<Value>]| {
            let mut batch = Batch::new();
            batch.put(expected.to_string(), "x");
            Decision::Commit(batch)
        };
        let write = store.write(WriteSet::default(), &mut decide);
        // Polled once, so that it is decided, and not awaited.
        assert!(futures_util::FutureExt::now_or_never(write).is_none());
        drop(store);
    }
}

#[test]
fn a_lost_current_file_is_an_error() {
    let directory = tempdir().unwrap();
    let store = open(directory.path());
    commit(&store, |batch| batch.put("k", "v"));
    drop(store);
    std::fs::remove_file(directory.path().join("rocksdb/CURRENT")).unwrap();
    let opened = EmbeddedStore::open(directory.path(), Options::default());
    assert!(matches!(opened, Err(Error::Open { .. } | Error::Corrupt { .. })));
    let files = std::fs::read_dir(directory.path().join("rocksdb")).unwrap().count();
    assert!(files > 1, "nothing was deleted");
}

/// A store that was closed in good order needs none of its log files, so damage to them costs nothing.
#[test]
fn closing_leaves_nothing_in_the_log() {
    let directory = tempdir().unwrap();
    for round in 0..3 {
        let store = open(directory.path());
        assert_eq!(count(&store, KeyRange::prefix("row/")), round);
        assert_eq!(count(&store, KeyRange::prefix("log/")), round);
        commit(&store, |batch| batch.put(format!("row/{round}"), vec![1; 100_000]));
        commit(&store, |batch| batch.append("log/", 0, "x"));
        block_on(store.close()).unwrap();
        drop(store);
        for log in crate::crash::files(&directory.path().join("rocksdb"), "log") {
            std::fs::write(log, vec![0xAB; 50_000]).unwrap();
        }
    }
}

/// A checkpoint taken under load is a state that existed: log, counter and rows agree.
#[test]
fn checkpoints_are_consistent_under_load() {
    let directory = tempdir().unwrap();
    let store = open(&directory.path().join("data"));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (store, stop) = (&store, &stop);
            scope.spawn(move || {
                let mut round = 0;
                while !stop.load(Ordering::Acquire) {
                    commit(store, |batch| {
                        batch.put(format!("row/{thread}/{round:08}"), vec![b'x'; 300]);
                        batch.append("log/", 0, "entry");
                        batch.add("count", 1);
                    });
                    round += 1;
                }
            });
        }
        for number in 0..4 {
            let rows = || count(&store, KeyRange::prefix("row/"));
            let enough = rows() + 20;
            while rows() < enough {
                std::thread::yield_now();
            }
            let acknowledged = rows();
            let target = directory.path().join(format!("checkpoints/{number}"));
            block_on(store.checkpoint(&target)).expect("the checkpoint is written");
            check_checkpoint(&target, acknowledged);
        }
        stop.store(true, Ordering::Release);
    });
    let taken = directory.path().join("checkpoints/0");
    let again = block_on(store.checkpoint(&taken));
    assert!(matches!(again, Err(Error::Io { .. })), "{again:?}");
    assert!(taken.join("FORMAT").exists(), "the earlier checkpoint is untouched");
}

fn check_checkpoint(target: &Path, acknowledged: u64) {
    let copy = open(target);
    let rows = count(&copy, KeyRange::prefix("row/"));
    assert!(rows >= acknowledged, "{rows} rows, {acknowledged} were acknowledged before");
    assert_eq!(count(&copy, KeyRange::prefix("log/")), rows);
    let counter = block_on(copy.get(b"count")).unwrap();
    assert_eq!(decode_counter(counter.as_deref()).unwrap() as u64, rows);
    // It goes on by itself, with its own numbering.
    let mut decide = |_: &[Option<Value>]| {
        let mut batch = Batch::new();
        batch.append("log/", 0, "entry");
        Decision::Commit(batch)
    };
    let outcome = block_on(copy.write(WriteSet::default(), &mut decide)).unwrap();
    assert_eq!(outcome.sequences, [rows + 1]);
}

#[test]
fn reclaiming_gives_space_back() {
    let directory = tempdir().unwrap();
    let options = Options { write_buffer_bytes: 1 << 20, ..Options::default() };
    let store = EmbeddedStore::open(directory.path(), options).unwrap();
    let mut random = zenobe_store::conformance::Random::new(7);
    for round in 0..300 {
        let value = random.bytes(50_000);
        commit(&store, |batch| batch.put(format!("row/{round:08}"), value.clone()));
    }
    let full = store.statistics().size_bytes;
    commit(&store, |batch| batch.delete_range(KeyRange::prefix("row/")));
    block_on(store.reclaim(KeyRange::prefix("row/"))).unwrap();
    let begun = Instant::now();
    // What remains are log files, which are kept for reuse.
    while store.statistics().size_bytes > full * 2 / 3 {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{full} bytes before, {} after",
            store.statistics().size_bytes
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
