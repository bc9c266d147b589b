//! A disk that takes no more: writes fail and are refused, reads go on, the store recovers by itself.
//!
//! A limit on the size or the number of files stands for the failing disk, since it needs no privileges. A
//! child process runs under it; the parent lifts it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
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
    live_through_failure(&Options::default());
}

#[test]
fn child_meets_a_full_disk_unsynced() {
    live_through_failure(&Options { durability: Durability::Os, ..Options::default() });
}

/// Here no new file can be opened, so it is flushing and switching logs that fails.
#[test]
fn child_runs_out_of_files() {
    live_through_failure(&crate::crash::options(Durability::Sync));
}

fn live_through_failure(options: &Options) {
    let Some(directory) = process::child_directory() else { return };
    let store = EmbeddedStore::open(directory, options.clone()).unwrap();
    say("ready");
    let acknowledged = write_until_it_fails(&store);

    // Reads serve the last durable state: everything that was acknowledged, whole.
    let readable = ledger::check(&store).unwrap();
    ledger::assert_at_least(&readable, &acknowledged);
    assert_refuses_writes(&store);
    let snapshot = store.snapshot();
    say("failed");

    // Recovery waits for the snapshot, which stays what it is.
    assert_refuses_writes(&store);
    assert_eq!(ledger::check(&*snapshot).unwrap(), readable);
    drop(snapshot);
    wait_for_recovery(&store);

    // What was acknowledged is still there, and new steps go on from what is there.
    let recovered = ledger::check(&store).unwrap();
    ledger::assert_at_least(&recovered, &acknowledged);
    for writer in 0..ledger::WRITERS {
        assert_eq!(ledger::step(&store, writer).unwrap(), recovered[&writer] + 1);
    }
    assert_eq!(store.statistics().write_failure, None);
    ledger::check(&store).unwrap();
    block_on(store.close()).unwrap();
    say("recovered");
}

fn assert_refuses_writes(store: &EmbeddedStore) {
    let refused = ledger::step(store, 0);
    assert!(matches!(refused, Err(Error::WritesRefused { .. })), "{refused:?}");
    assert!(store.statistics().write_failure.is_some(), "the statistics say why");
    assert!(store.track_changes().is_err(), "nobody knows what recovery will find");
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
            Err(Error::Uncertain { .. } | Error::Io { .. } | Error::WritesRefused { .. }) => {
                return last;
            }
            Err(error) => panic!("unexpected {error}"),
        }
    }
    panic!("the limit was never met");
}

fn wait_for_recovery(store: &EmbeddedStore) {
    let begun = Instant::now();
    while store.statistics().write_failure.is_some() {
        assert!(begun.elapsed() < Duration::from_secs(60), "did not recover");
        // Reads are served all along.
        assert!(block_on(store.get(b"last/0")).unwrap().is_some());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn say(word: &str) {
    std::io::stdout().lock().write_all(format!("\n{word}\n").as_bytes()).unwrap();
}

#[test]
fn a_full_disk_stops_writes_only_while_it_is_full() {
    for name in ["child_meets_a_full_disk_synced", "child_meets_a_full_disk_unsynced"] {
        let directory = tempdir().unwrap();
        let test = format!("disk_failure::{name}");
        let blocks = FILE_SIZE_LIMIT_BLOCKS;
        let child = process::child_with_file_size_limit(&test, directory.path(), blocks);
        run(child, directory.path(), |process, word| {
            if word == "failed" {
                set_limit(process, "--fsize=unlimited:");
            }
        });
    }
}

#[test]
fn writes_stop_while_no_file_can_be_opened() {
    let directory = tempdir().unwrap();
    let child = process::child("disk_failure::child_runs_out_of_files", directory.path());
    run(child, directory.path(), |process, word| match word {
        "ready" => set_limit(process, "--nofile=3:"),
        "failed" => set_limit(process, "--nofile=1000:"),
        _ => {}
    });
}

/// Runs a child to its end, answering what it says, and checks what it leaves behind.
fn run(mut child: Command, directory: &Path, answer: impl Fn(u32, &str)) {
    let mut child = child.spawn().unwrap();
    let mut recovered = false;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        answer(child.id(), &line);
        recovered |= line == "recovered";
    }
    assert!(child.wait().unwrap().success(), "the child failed, see above");
    assert!(recovered, "the child ended early");
    let store = EmbeddedStore::open(directory, Options::default()).unwrap();
    ledger::check(&store).unwrap();
}

/// Sets the soft limit of another process.
fn set_limit(process: u32, limit: &str) {
    let status = Command::new("prlimit").args(["--pid", &process.to_string(), limit]).status();
    assert!(status.unwrap().success());
}
