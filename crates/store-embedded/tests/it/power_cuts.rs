//! Cutting the power: what was acknowledged is there, whatever else the disk kept or lost.
//!
//! A child process works on a store while every change of its files and every sync is recorded. Then the power is cut
//! at hundreds of moments: a directory is made of what was synced by then and some of the rest, and opened.
//!
//! `ZENOBE_POWER_CUTS` says how many cuts, `ZENOBE_SEED` which. A failure keeps the recording;
//! `ZENOBE_POWER_CUT_TRACE` names one to be cut again.

use std::fs;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use tempfile::{TempDir, tempdir};
use zenobe_disk_recorder::{Cut, Disk, Event, Image, Recorder, Survival, Trace};
use zenobe_store::Store;
use zenobe_store::conformance::{Random, block_on};
use zenobe_store_embedded::{Durability, EmbeddedStore, Options};

use crate::ledger::{self, Progress};
use crate::process;

const CUTS_DEFAULT: usize = 400;
/// For one cut in this many, the recovery after it is recorded and cut, too.
const RECOVERY_EVERY: usize = 25;
const CUTS_OF_A_RECOVERY: usize = 6;

/// Steps of each writer between opening and closing the store.
const STEPS: u64 = 600;
const STEPS_AFTER_RECOVERY: u64 = 15;

const CHECKPOINT: &str = "checkpoint";

/// Memtables so small that there are flushes, compactions and reused log files.
fn options() -> Options {
    let (write_buffer_bytes, cache_bytes) = (256 << 10, 8 << 20);
    Options { durability: Durability::Sync, write_buffer_bytes, cache_bytes, ..Options::default() }
}

#[test]
fn child_works_on_a_new_store() {
    let Some(directory) = process::child_directory() else { return };
    live(&directory, STEPS);
    let store = open(&directory);
    block_on(store.checkpoint(&directory.join(CHECKPOINT))).unwrap();
    process::say("ack checkpoint");
    drop(store);
    live(&directory, STEPS);
}

#[test]
fn child_recovers() {
    let Some(directory) = process::child_directory() else { return };
    live(&directory, STEPS_AFTER_RECOVERY);
}

fn open(directory: &Path) -> EmbeddedStore {
    EmbeddedStore::open(directory.join("data"), options()).unwrap()
}

/// All writers at once, each acknowledging its steps.
fn live(directory: &Path, steps: u64) {
    let store = open(directory);
    process::say("");
    std::thread::scope(|scope| {
        for writer in 0..ledger::WRITERS {
            let store = &store;
            scope.spawn(move || {
                for _ in 0..steps {
                    let number = ledger::step(store, writer).unwrap();
                    process::say(&format!("ack {writer} {number}"));
                }
            });
        }
    });
    block_on(store.close()).unwrap();
}

/// Runs a child on a directory, recorded.
fn record(test: &str, directory: &Path, recorder: &Recorder, trace: &Path) -> Trace {
    let before = Image::read(directory).unwrap();
    let recorder = recorder.clone().trace(trace).marks("ack ");
    let mut child = process::child(&format!("power_cuts::{test}"), directory);
    let mut child = child.envs(recorder.variables()).spawn().unwrap();
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert!(child.wait().unwrap().success(), "the child failed: {output}");

    // What the recorder missed would be missing from the replay.
    let trace = Trace::read(trace).unwrap();
    let mut disk = Disk::new(&before);
    trace.events.iter().for_each(|event| disk.apply(event));
    let (replayed, real) = (disk.after_power_cut(&Survival::ALL), Image::read(directory).unwrap());
    assert_eq!(replayed.differences(&real), Vec::<String>::new(), "the recorder missed something");
    trace
}

/// A store's whole life, recorded.
fn record_life(scratch: &Path, swallows_syncs: bool) -> Trace {
    let directory = scratch.join("recorded");
    fs::create_dir(&directory).unwrap();
    let recorder = Recorder::new(&directory);
    let recorder = if swallows_syncs { recorder.swallowing_syncs() } else { recorder };
    record("child_works_on_a_new_store", &directory, &recorder, &scratch.join("trace"))
}

/// What had been acknowledged before a cut, on top of what was before.
#[derive(Debug, Clone, Default)]
struct Acknowledged {
    steps: Progress,
    has_checkpoint: bool,
}

impl Acknowledged {
    fn before(&self, trace: &Trace, cut: &Cut) -> Acknowledged {
        let mut acknowledged = self.clone();
        for mark in trace.marks(cut.before) {
            let text = String::from_utf8_lossy(mark);
            match text.split_whitespace().collect::<Vec<_>>()[..] {
                ["ack", writer, number] => {
                    acknowledged.steps.insert(writer.parse().unwrap(), number.parse().unwrap());
                }
                ["ack", "checkpoint"] => acknowledged.has_checkpoint = true,
                _ => panic!("an unknown acknowledgement: {text}"),
            }
        }
        acknowledged
    }
}

/// Opens what a cut has left and checks it. `pending` steps of a writer may be there unacknowledged.
fn verify(directory: &Path, acknowledged: &Acknowledged, pending: u64) -> Result<(), String> {
    let checked = catch_unwind(AssertUnwindSafe(|| {
        let store = EmbeddedStore::open(directory.join("data"), options())?;
        let found = ledger::check(&store)?;
        if acknowledged.has_checkpoint {
            ledger::check(&EmbeddedStore::open(directory.join(CHECKPOINT), options())?)?;
        }
        // It is a working store.
        let next = ledger::step(&store, 0)?;
        assert_eq!(next, found[&0] + 1);
        Ok::<_, zenobe_store::Error>(found)
    }));
    let found = match checked {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return Err(error.to_string()),
        Err(panic) => return Err(text_of(&*panic)),
    };
    for (writer, last) in found {
        let least = acknowledged.steps.get(&writer).copied().unwrap_or(0);
        if last < least {
            return Err(format!("writer {writer}: {least} was acknowledged, {last} is there"));
        }
        if last > least + pending {
            return Err(format!(
                "writer {writer}: {last} is there, but only {least} was acknowledged"
            ));
        }
    }
    Ok(())
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}

/// A directory in memory if there is one: the images need no real disk.
fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let created = if memory.is_dir() { TempDir::new_in(memory) } else { tempdir() };
    created.unwrap()
}

/// Cuts a trace on all processors, and yields what went wrong.
fn cut_and_verify(
    trace: &Trace,
    disk: impl Fn() -> Disk + Sync,
    cuts: &[Cut],
    visit: impl Fn(&Cut, &Path) -> Result<(), String> + Sync,
) -> Vec<(Cut, String)> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    let mut parts = vec![Vec::new(); threads];
    for (number, cut) in cuts.iter().enumerate() {
        parts[number % threads].push(*cut);
    }
    let (disk, visit) = (&disk, &visit);
    std::thread::scope(|scope| {
        let part = |part: Vec<Cut>| {
            scope.spawn(move || {
                let scratch = scratch();
                let directory = scratch.path().join("image");
                let mut faults = Vec::new();
                trace.cut(disk(), &part, |cut, image| {
                    image.write(&directory).unwrap();
                    if let Err(fault) = visit(cut, &directory) {
                        faults.push((*cut, fault));
                    }
                });
                faults
            })
        };
        let parts: Vec<_> = parts.into_iter().map(part).collect();
        parts.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn new_disk() -> Disk {
    Disk::new(&Image::default())
}

fn cut_count() -> usize {
    std::env::var("ZENOBE_POWER_CUTS").map_or(CUTS_DEFAULT, |text| text.parse().unwrap())
}

#[test]
fn acknowledged_writes_survive_power_cuts() {
    let mut random = Random::announced("acknowledged_writes_survive_power_cuts");
    let scratch = tempdir().unwrap();
    let trace = match std::env::var_os("ZENOBE_POWER_CUT_TRACE") {
        Some(file) => Trace::read(Path::new(&file)).unwrap(),
        None => record_life(scratch.path(), false),
    };
    assert_workload_is_worth_it(&trace);
    let cuts = trace.cuts(cut_count(), random.next_u64());
    let seed = random.next_u64();
    let faults = cut_and_verify(&trace, new_disk, &cuts, |cut, directory| {
        let acknowledged = Acknowledged::default().before(&trace, cut);
        let is_chosen = cuts.iter().position(|other| other == cut).unwrap() % RECOVERY_EVERY == 0;
        if is_chosen {
            cut_the_recovery(directory, &acknowledged, seed ^ cut.before as u64)?;
        }
        verify(directory, &acknowledged, 1)
    });
    let recoveries = cuts.len().div_ceil(RECOVERY_EVERY);
    println!(
        "{} power cuts in {} records, {} cuts of {recoveries} recoveries",
        cuts.len(),
        trace.events.len(),
        recoveries * CUTS_OF_A_RECOVERY
    );
    if !faults.is_empty() {
        let kept = keep(&scratch.path().join("trace"));
        panic!(
            "{} of {} cuts fail; the trace is {}; {faults:#?}",
            faults.len(),
            cuts.len(),
            kept.display()
        );
    }
}

/// Records how a store recovers from an image, on a copy of it, and cuts the power again.
fn cut_the_recovery(image: &Path, acknowledged: &Acknowledged, seed: u64) -> Result<(), String> {
    let scratch = scratch();
    let directory = scratch.path().join("recovered");
    let before = Image::read(image).unwrap();
    before.write(&directory).unwrap();
    let trace = record(
        "child_recovers",
        &directory,
        &Recorder::new(&directory),
        &scratch.path().join("trace"),
    );
    let cuts = trace.cuts(CUTS_OF_A_RECOVERY, seed);
    let again = scratch.path().join("again");
    let mut outcome = Ok(());
    trace.cut(Disk::new(&before), &cuts, |cut, image| {
        image.write(&again).unwrap();
        // One step that was on its way at the first cut, and one at this.
        let found = verify(&again, &acknowledged.before(&trace, cut), 2);
        if let (Ok(()), Err(fault)) = (&outcome, found) {
            outcome = Err(format!("in the recovery, {cut:?}: {fault}"));
        }
    });
    outcome
}

/// The traps must have been there: logs reused, files deleted, tables written while others write.
fn assert_workload_is_worth_it(trace: &Trace) {
    let count =
        |fits: &dyn Fn(&Event) -> bool| trace.events.iter().filter(|event| fits(event)).count();
    let is_log = |path: &str| path.ends_with(".log");
    let reused =
        count(&|event| matches!(event, Event::Rename { from, to } if is_log(from) && is_log(to)));
    let tables = count(
        &|event| matches!(event, Event::Open { path, is_created: true, .. } if path.ends_with(".sst")),
    );
    let unlinked = count(&|event| matches!(event, Event::Unlink { .. }));
    let marks = trace.marks(trace.events.len()).count();
    println!(
        "{marks} acknowledgements, {reused} reused logs, {tables} tables, {unlinked} deletions"
    );
    assert!(reused > 2 && tables > 10 && unlinked > 5);
    assert_eq!(marks as u64, 2 * STEPS * ledger::WRITERS + 1);
}

fn keep(trace: &Path) -> PathBuf {
    let kept = std::env::temp_dir().join(format!("zenobe-power-cut-{}.trace", std::process::id()));
    fs::copy(trace, &kept).unwrap();
    kept
}

/// The test must be able to fail: a store whose syncs do nothing does not survive it.
#[test]
fn a_store_that_does_not_sync_dies() {
    let scratch = tempdir().unwrap();
    let trace = record_life(scratch.path(), true);
    let cuts = trace.cuts(40, 1);
    let faults = cut_and_verify(&trace, new_disk, &cuts, |cut, directory| {
        verify(directory, &Acknowledged::default().before(&trace, cut), 1)
    });
    println!("without syncs, {} of {} cuts lose something", faults.len(), cuts.len());
    assert!(faults.len() > cuts.len() / 4, "the mutant lives: {faults:#?}");
}

/// Whether a mutant forgets to sync the file with this path.
type Forgets = fn(&str) -> bool;

/// So must every single kind of sync be missed: of logs, tables, manifests and directories.
#[test]
fn a_store_that_forgets_one_kind_of_sync_dies() {
    let scratch = tempdir().unwrap();
    let trace = record_life(scratch.path(), false);
    let cuts = trace.cuts(60, 2);
    let mutants: [(&str, Forgets); 5] = [
        ("logs", |path| path.ends_with(".log")),
        ("tables", |path| path.ends_with(".sst")),
        ("manifests", |path| path.contains("MANIFEST")),
        ("the database's directory", |path| path == "data/rocksdb"),
        ("the directories above", |path| path == "data" || path.is_empty()),
    ];
    for (name, forgets) in mutants {
        let disk = || new_disk().ignoring_syncs(forgets);
        let faults = cut_and_verify(&trace, disk, &cuts, |cut, directory| {
            verify(directory, &Acknowledged::default().before(&trace, cut), 1)
        });
        println!("without syncs of {name}, {} of {} cuts lose something", faults.len(), cuts.len());
        assert!(!faults.is_empty(), "the mutant that forgets {name} lives");
    }
}
