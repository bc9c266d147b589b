//! Faults of the disk at every single call: nothing acknowledged is lost, reads go on, and the store recovers by itself.
//!
//! A child process does a little of everything: it creates a store, writes, flushes, reuses logs, closes and opens it
//! again. Its calls are counted once. Then it runs anew for each of them, and that call fails.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::tempdir;
use zenobe_disk_recorder::{Calls, Control, Disk, DiskFault, Image, Recorder, Trace};
use zenobe_store::conformance::block_on;
use zenobe_store::{Error, Reader, Store};
use zenobe_store_embedded::{Durability, EmbeddedStore, Options};

use crate::ledger::{self, Progress};
use crate::process;

const EIO: u64 = 5;
const ENOSPC: u64 = 28;
const EROFS: u64 = 30;

const STEPS: u64 = 3;
/// What waits for a recovery hardly computes, so many children run side by side.
const CHILDREN_MAX: usize = 16;
const RECOVERY_TIME_MAX: Duration = Duration::from_secs(60);

const CONTROL_VARIABLE: &str = "ZENOBE_TEST_CONTROL";

fn options() -> Options {
    let (write_buffer_bytes, cache_bytes) = (128 << 10, 8 << 20);
    Options { durability: Durability::Sync, write_buffer_bytes, cache_bytes, ..Options::default() }
}

/// The child. It prints how far each writer came, by what was acknowledged.
#[test]
fn child_works_on_a_faulty_disk() {
    let Some(directory) = process::child_directory() else { return };
    let control =
        std::env::var_os(CONTROL_VARIABLE).expect("the parent says where the control file is");
    let control = Control::open(Path::new(&control)).unwrap();
    let mut acknowledged = Progress::new();
    process::say("");
    for _ in 0..2 {
        let store = open(&directory, &control);
        ledger::assert_at_least(&ledger::check(&store).unwrap(), &acknowledged);
        for _ in 0..STEPS {
            for writer in 0..ledger::WRITERS {
                work(&store, &control, writer, &mut acknowledged);
            }
        }
        block_on(store.close()).unwrap();
    }
    let progress = acknowledged.iter().map(|(writer, number)| format!(" {writer}:{number}"));
    process::say(&format!("done{}", progress.collect::<String>()));
}

/// A store that cannot be opened says so, and opens when the fault is gone.
fn open(directory: &Path, control: &Control) -> EmbeddedStore {
    match EmbeddedStore::open(directory, options()) {
        Ok(store) => store,
        Err(error) => {
            assert!(control.failed() > 0, "no call has failed, but: {error}");
            control.lift();
            EmbeddedStore::open(directory, options()).expect("the disk works again")
        }
    }
}

/// One step, again if it fails: then reads go on, and the store recovers when the fault is gone.
fn work(store: &EmbeddedStore, control: &Control, writer: u64, acknowledged: &mut Progress) {
    let failed = match ledger::step(store, writer) {
        Ok(number) => return acknowledge(acknowledged, writer, number),
        Err(error) => error,
    };
    let is_expected =
        matches!(failed, Error::Uncertain { .. } | Error::Io { .. } | Error::WritesRefused { .. });
    assert!(is_expected, "{failed:?}");
    assert!(control.failed() > 0, "no call has failed, but: {failed}");
    ledger::assert_at_least(&ledger::check(store).unwrap(), acknowledged);
    control.lift();
    let deadline = Instant::now() + RECOVERY_TIME_MAX;
    while store.statistics().write_failure.is_some() {
        assert!(Instant::now() < deadline, "the store does not recover from {failed}");
        block_on(store.get(b"last/0")).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    let number = ledger::step(store, writer).expect("the store has recovered");
    acknowledge(acknowledged, writer, number);
    ledger::assert_at_least(&ledger::check(store).unwrap(), acknowledged);
}

fn acknowledge(acknowledged: &mut Progress, writer: u64, number: u64) {
    process::say(&format!("ack {writer} {number}"));
    acknowledged.insert(writer, number);
}

/// Runs the child with a fault. Yields how many calls of its kinds there were, and what the child acknowledged.
fn run(fault: DiskFault, scratch: &Path) -> (Control, Progress) {
    let directory = scratch.join("store");
    std::fs::create_dir(&directory).unwrap();
    let control = Control::create(&scratch.join("control")).unwrap();
    control.set(fault);
    let recorder =
        Recorder::new(&directory).control(&control).trace(&scratch.join("trace")).marks("ack ");
    let mut child = process::child("faults::child_works_on_a_faulty_disk", &directory);
    child.envs(recorder.variables()).env(CONTROL_VARIABLE, control.path());
    let mut child = child.spawn().unwrap();
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert!(child.wait().unwrap().success(), "{fault:?}: the child failed: {output}");
    let done = output.lines().find_map(|line| line.strip_prefix("done"));
    let done = done.unwrap_or_else(|| panic!("{fault:?}: the child ended early: {output}"));
    let progress = done.split_whitespace().map(|word| {
        let (writer, number) = word.split_once(':').unwrap();
        (writer.parse().unwrap(), number.parse().unwrap())
    });
    (control, progress.collect())
}

/// Runs the child with a fault and looks at what it leaves behind, also if the power is cut.
fn check(fault: DiskFault) {
    let scratch = tempdir().unwrap();
    let (_, acknowledged) = run(fault, scratch.path());
    let store = EmbeddedStore::open(scratch.path().join("store"), options()).unwrap();
    ledger::assert_at_least(&ledger::check(&store).unwrap(), &acknowledged);
    drop(store);
    cut_power(fault, scratch.path());
}

/// What a failed sync left in the system's memory may be given up there, though it can still be read. Nothing that was
/// acknowledged may hang on it.
fn cut_power(fault: DiskFault, scratch: &Path) {
    const CUTS: usize = 4;
    let trace = Trace::read(&scratch.join("trace")).unwrap();
    let again: PathBuf = scratch.join("again");
    let disk = Disk::new(&Image::default());
    trace.cut(disk, &trace.cuts(CUTS, fault.first), |cut, image| {
        image.write(&again).unwrap();
        let mut acknowledged = Progress::new();
        for mark in trace.marks(cut.before) {
            let text = String::from_utf8_lossy(mark);
            let [_, writer, number] = text.split_whitespace().collect::<Vec<_>>()[..] else {
                panic!("an unknown acknowledgement: {text}")
            };
            acknowledged.insert(writer.parse().unwrap(), number.parse().unwrap());
        }
        let store = EmbeddedStore::open(&again, options());
        let store = store.unwrap_or_else(|error| panic!("{fault:?}, {cut:?}: {error}"));
        let found = ledger::check(&store).unwrap();
        let is_there = acknowledged.iter().all(|(writer, number)| found[writer] >= *number);
        assert!(is_there, "{fault:?}, {cut:?}: {found:?}, acknowledged {acknowledged:?}");
    });
}

/// Checks faults side by side. A panic of one ends the test.
fn check_all(faults: &[DiskFault]) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CHILDREN_MAX {
            scope.spawn(|| {
                while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check(*fault);
                }
            });
        }
    });
}

/// How many calls of these kinds the child makes if none fails.
fn count(calls: Calls) -> u64 {
    let scratch = tempdir().unwrap();
    let (control, acknowledged) =
        run(DiskFault { calls, first: 0, count: 0, error: 0 }, scratch.path());
    assert_eq!(acknowledged.values().sum::<u64>(), 2 * STEPS * ledger::WRITERS);
    let counted = control.calls();
    assert!(counted > 10, "{calls:?}: {counted} calls");
    counted
}

/// A fault at each call. It is lifted by the child when it has seen it, unless it ends by itself.
fn check_every(name: &str, calls: Calls, error: u64, count_of_failures: u64) {
    let counted = count(calls);
    let faults: Vec<DiskFault> = (1..=counted)
        .map(|first| DiskFault { calls, first, count: count_of_failures, error })
        .collect();
    check_all(&faults);
    println!("{name} at each of {counted} calls");
}

#[test]
fn no_room_at_any_write() {
    check_every("ENOSPC", Calls::WRITE | Calls::ALLOCATE | Calls::CREATE, ENOSPC, u64::MAX);
}

#[test]
fn an_error_at_any_write() {
    check_every("EIO", Calls::WRITE, EIO, 1);
}

#[test]
fn an_error_at_any_sync() {
    check_every("a failed sync", Calls::SYNC, EIO, 1);
}

#[test]
fn a_file_system_that_becomes_read_only_at_any_change() {
    check_every("EROFS", Calls::CHANGES, EROFS, u64::MAX);
}

/// A write may take less than it was given, which is no error.
#[test]
fn writes_that_are_cut_short() {
    let scratch = tempdir().unwrap();
    let fault = DiskFault { calls: Calls::WRITE, first: 1, count: u64::MAX, error: 0 };
    let (control, acknowledged) = run(fault, scratch.path());
    assert!(control.failed() > 50, "{} writes were cut short", control.failed());
    assert_eq!(acknowledged.values().sum::<u64>(), 2 * STEPS * ledger::WRITERS);
    cut_power(fault, scratch.path());
}

/// The child on a slow disk: a sync takes as long as the parent wants.
#[test]
fn child_meets_a_slow_disk() {
    let Some(directory) = process::child_directory() else { return };
    let control =
        std::env::var_os(CONTROL_VARIABLE).expect("the parent says where the control file is");
    let control = Control::open(Path::new(&control)).unwrap();
    let store = EmbeddedStore::open(directory, options()).unwrap();
    ledger::step(&store, 0).unwrap();
    control.hold_syncs(true);
    let shared = &store;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..ledger::WRITERS)
            .map(|writer| scope.spawn(move || ledger::step(shared, writer)))
            .collect();
        while !control.holds_a_sync() {
            std::thread::yield_now();
        }
        // Reads go on, and see nothing that could still be lost; nobody is told that it is safe.
        for _ in 0..100 {
            let found = ledger::check(&store).unwrap();
            assert_eq!(found.values().sum::<u64>(), 1, "{found:?}");
        }
        assert!(writers.iter().all(|writer| !writer.is_finished()), "acknowledged before the sync");
        control.hold_syncs(false);
        for writer in writers {
            writer.join().unwrap().unwrap();
        }
    });
    let found = ledger::check(&store).unwrap();
    assert_eq!(found.values().sum::<u64>(), 1 + ledger::WRITERS);
    process::say("\ndone");
}

#[test]
fn a_slow_disk_delays_acknowledgements_and_no_reads() {
    let scratch = tempdir().unwrap();
    let control = Control::create(&scratch.path().join("control")).unwrap();
    let directory = scratch.path().join("store");
    std::fs::create_dir(&directory).unwrap();
    let mut child = process::child("faults::child_meets_a_slow_disk", &directory);
    child.envs(Recorder::new(&directory).control(&control).variables());
    let output = child.env(CONTROL_VARIABLE, control.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("\ndone"), "the child failed: {text}");
}
