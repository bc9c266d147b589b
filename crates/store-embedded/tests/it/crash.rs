//! Killing the process under load: acknowledged writes survive, others are there wholly or not at all.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc;

use tempfile::tempdir;
use zenobe_store::Store;
use zenobe_store::conformance::Random;
use zenobe_store_embedded::{Durability, EmbeddedStore, Options};

use crate::damage::copy_of_open_store;
use crate::ledger::{self, Progress};
use crate::process;

const ROUNDS: usize = 15;

/// Memtables so small that the crash also meets flushes, compactions and reused log files.
pub fn options(durability: Durability) -> Options {
    Options { durability, write_buffer_bytes: 128 << 10, ..Options::default() }
}

/// Says how durable the child shall be, by its presence.
const OS_DURABILITY_MARKER: &str = "os-durability";

fn data(directory: &Path) -> PathBuf {
    directory.join("data")
}

fn durability(directory: &Path) -> Durability {
    match directory.join(OS_DURABILITY_MARKER).exists() {
        true => Durability::Os,
        false => Durability::Sync,
    }
}

/// The child: writes until it is killed, and reports each acknowledgement.
#[test]
fn child_writes_until_killed() {
    let Some(directory) = process::child_directory() else { return };
    let store = EmbeddedStore::open(data(&directory), options(durability(&directory))).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..ledger::WRITERS {
            let store = &store;
            scope.spawn(move || {
                loop {
                    let number = ledger::step(store, writer).unwrap();
                    // One call, so that lines of several threads do not mix.
                    let line = format!("ack {writer} {number}\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

/// Runs the child for a random number of steps, kills it, and yields what it had acknowledged.
fn run_and_kill(directory: &Path, random: &mut Random) -> Progress {
    let mut child = process::child("crash::child_writes_until_killed", directory).spawn().unwrap();
    let life = random.below(300);
    let output = BufReader::new(child.stdout.take().unwrap());
    let (told, counted) = mpsc::channel();
    let reader = std::thread::spawn(move || acknowledged(output, &told));
    // Fewer come only if the child has ended by itself, which the kill will show.
    counted.iter().take(life).for_each(drop);
    kill(&mut child);
    reader.join().unwrap()
}

fn kill(child: &mut Child) {
    // SIGKILL: the process gets no chance to finish anything.
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "the child ended by itself: {status}");
}

/// What the child acknowledges until its end, each told to `told` as well.
fn acknowledged(output: impl BufRead, told: &mpsc::Sender<()>) -> Progress {
    let mut progress = Progress::new();
    for line in output.lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        // The last line may be cut off by the kill; the test harness prints others.
        if let ["ack", writer, number] = words[..]
            && let (Ok(writer), Ok(number)) = (writer.parse(), number.parse())
        {
            progress.insert(writer, number);
            // Nobody counts any more once the child has been killed.
            let _ = told.send(());
        }
    }
    progress
}

#[test]
fn acknowledged_writes_survive_kills() {
    let mut random = Random::announced("acknowledged_writes_survive_kills");
    for durability in [Durability::Sync, Durability::Os] {
        let directory = tempdir().unwrap();
        if durability == Durability::Os {
            fs::write(directory.path().join(OS_DURABILITY_MARKER), "").unwrap();
        }
        let mut total = 0;
        for round in 0..ROUNDS {
            let acknowledged = run_and_kill(directory.path(), &mut random);
            let store = EmbeddedStore::open(data(directory.path()), options(durability)).unwrap();
            let found = ledger::check(&store).unwrap();
            for (writer, number) in acknowledged {
                let last = found[&writer];
                assert!(
                    last >= number,
                    "round {round}: {number} was acknowledged, {last} is there"
                );
            }
            total = found.values().sum();
            drop(store);
        }
        println!("{durability:?}: {total} steps");
        assert!(total > 0, "no round lasted long enough to write anything");
    }
}

/// A log that ends anywhere, or in rubbish, still opens, on a state that existed.
#[test]
fn torn_log_tails_are_dropped() {
    let mut random = Random::announced("torn_log_tails_are_dropped");
    let directory = tempdir().unwrap();
    for round in 0..10 {
        run_and_kill(directory.path(), &mut random);
        tear_newest_log(&data(directory.path()), &mut random);
        let store = EmbeddedStore::open(data(directory.path()), options(Durability::Sync))
            .unwrap_or_else(|error| panic!("round {round}: {error}"));
        ledger::check(&store).unwrap();
        // It is a working store.
        for writer in 0..ledger::WRITERS {
            ledger::step(&store, writer).unwrap();
        }
        ledger::check(&store).unwrap();
        assert_eq!(store.statistics().write_failure, None);
    }
}

/// A store that has recovered from a torn log is as good as any other: it survives the next crash, too.
#[test]
fn a_recovered_store_survives_another_crash() {
    let mut random = Random::announced("a_recovered_store_survives_another_crash");
    for round in 0..8 {
        let directory = tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let store = EmbeddedStore::open(path("first"), options(Durability::Sync)).unwrap();
        write_some(&store, 20);
        copy_of_open_store(&path("first"), &path("second"));
        tear_newest_log(&path("second"), &mut random);
        let store = EmbeddedStore::open(path("second"), options(Durability::Sync)).unwrap();
        let acknowledged = write_some(&store, 20);
        copy_of_open_store(&path("second"), &path("third"));
        let store = EmbeddedStore::open(path("third"), options(Durability::Sync))
            .unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(ledger::check(&store).unwrap(), acknowledged, "round {round}");
    }
}

fn write_some(store: &EmbeddedStore, steps: u64) -> Progress {
    for _ in 0..steps {
        for writer in 0..ledger::WRITERS {
            ledger::step(store, writer).unwrap();
        }
    }
    ledger::check(store).unwrap()
}

fn tear_newest_log(data: &Path, random: &mut Random) {
    let rocksdb = data.join("rocksdb");
    // On a busy machine, the process may be killed before it has created anything.
    if !rocksdb.exists() {
        return;
    }
    let logs = files(&rocksdb, "log");
    let Some(path) = logs.last() else { return };
    let mut content = fs::read(path).unwrap();
    let cut = random.below(content.len().min(20_000) + 1);
    let keep = content.len() - cut;
    if random.below(2) == 0 {
        content.truncate(keep);
    } else {
        content.truncate(keep);
        content.extend(random.bytes(cut));
    }
    fs::write(path, content).unwrap();
}

/// The files with an extension, in the order of their numbers.
pub fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    paths.sort();
    paths
}
