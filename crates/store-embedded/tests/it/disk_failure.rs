//! A disk that takes no more: writes fail and are refused, reads go on, and the store recovers by itself.
//!
//! A limit on the size of files stands for the full disk, since it needs no privileges. A child process runs
//! under it; the parent lifts it.

use std::io::{BufRead, BufReader, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::tempdir;
use zenobe_store::conformance::block_on;
use zenobe_store::{Error, Reader, Store};
use zenobe_store_embedded::{Durability, EmbeddedStore, Options};

use crate::ledger::{self, Progress};
use crate::process;

/// In blocks of 512 bytes, as `ulimit -f` counts.
const FILE_SIZE_LIMIT_BLOCKS: u32 = 2_000;

#[test]
fn child_meets_a_full_disk_synced() {
    live_through_a_full_disk(&Options::default());
}

#[test]
fn child_meets_a_full_disk_unsynced() {
    live_through_a_full_disk(&Options { durability: Durability::Os, ..Options::default() });
}

fn live_through_a_full_disk(options: &Options) {
    let Some(directory) = process::child_directory() else { return };
    let store = EmbeddedStore::open(directory, options.clone()).unwrap();
    let acknowledged = write_until_it_fails(&store);

    // Reads serve the last durable state: everything that was acknowledged, whole.
    let readable = ledger::check(&store).unwrap();
    assert_at_least(&readable, &acknowledged);
    let refused = ledger::step(&store, 0);
    assert!(matches!(refused, Err(Error::WritesDisabled { .. })), "{refused:?}");
    let failure = store.statistics().write_failure;
    assert!(failure.is_some(), "the statistics say why");

    // The disk still fails, so nothing changes by waiting.
    std::thread::sleep(Duration::from_millis(1500));
    let refused = ledger::step(&store, 0);
    assert!(matches!(refused, Err(Error::WritesDisabled { .. })), "{refused:?}");
    assert_eq!(ledger::check(&store).unwrap(), readable);

    say("failed");
    wait_for_recovery(&store);
    // What was acknowledged is still there, and new steps go on from what is there.
    let recovered = ledger::check(&store).unwrap();
    assert_at_least(&recovered, &acknowledged);
    for writer in 0..ledger::WRITERS {
        assert_eq!(ledger::step(&store, writer).unwrap(), recovered[&writer] + 1);
    }
    assert_eq!(store.statistics().write_failure, None);
    ledger::check(&store).unwrap();
    block_on(store.close()).unwrap();
    say("recovered");
}

/// All writers at once, each until its first error.
fn write_until_it_fails(store: &EmbeddedStore) -> Progress {
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..ledger::WRITERS)
            .map(|writer| scope.spawn(move || (writer, write_one_until_it_fails(store, writer))))
            .collect();
        writers.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn write_one_until_it_fails(store: &EmbeddedStore, writer: u64) -> u64 {
    let mut last = 0;
    for _ in 0..100_000 {
        match ledger::step(store, writer) {
            Ok(number) => last = number,
            Err(Error::Io { .. } | Error::WritesDisabled { .. }) => return last,
            Err(error) => panic!("unexpected {error}"),
        }
    }
    panic!("the limit was never met");
}

fn wait_for_recovery(store: &EmbeddedStore) {
    let begun = Instant::now();
    while store.statistics().write_failure.is_some() {
        assert!(begun.elapsed() < Duration::from_secs(20), "did not recover");
        // Reads are served all along.
        assert!(block_on(store.get(b"last/0")).unwrap().is_some());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn assert_at_least(found: &Progress, acknowledged: &Progress) {
    for (writer, number) in acknowledged {
        assert!(found[writer] >= *number, "{found:?}, acknowledged {acknowledged:?}");
    }
}

fn say(word: &str) {
    std::io::stdout().lock().write_all(format!("\n{word}\n").as_bytes()).unwrap();
}

#[test]
fn a_full_disk_stops_writes_only_while_it_is_full() {
    for child in ["child_meets_a_full_disk_synced", "child_meets_a_full_disk_unsynced"] {
        let directory = tempdir().unwrap();
        let test = format!("disk_failure::{child}");
        let limit = FILE_SIZE_LIMIT_BLOCKS;
        let mut child =
            process::child_with_file_size_limit(&test, directory.path(), limit).spawn().unwrap();
        let mut recovered = false;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            match line.unwrap().as_str() {
                "failed" => lift_limit(child.id()),
                "recovered" => recovered = true,
                _ => {}
            }
        }
        assert!(child.wait().unwrap().success(), "{test} failed, see above");
        assert!(recovered, "{test} ended early");
        let store = EmbeddedStore::open(directory.path(), Options::default()).unwrap();
        ledger::check(&store).unwrap();
    }
}

fn lift_limit(process: u32) {
    let status = Command::new("prlimit")
        .args(["--pid", &process.to_string(), "--fsize=unlimited:"])
        .status()
        .unwrap();
    assert!(status.success());
}
