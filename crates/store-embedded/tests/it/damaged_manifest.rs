//! A manifest with a torn end opens; a damaged one is refused, or nothing of it was needed.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::tempdir;
use zenobe_store::Error;
use zenobe_store_embedded::{EmbeddedStore, Options};

use crate::crash::{self, files};
use crate::damage::{copy, copy_of_open_store};
use crate::ledger::{self, Progress};

const STEPS: u64 = 120;

/// Options under which tables are written and logs reused all the time.
fn options() -> Options {
    crash::options(zenobe_store_embedded::Durability::Sync)
}

/// What a crash leaves behind: a copy of a store that is still open.
fn crashed(parent: &Path) -> (PathBuf, Progress) {
    let (running, crashed) = (parent.join("running"), parent.join("crashed"));
    let store = EmbeddedStore::open(&running, options()).unwrap();
    for _ in 0..STEPS {
        for writer in 0..ledger::WRITERS {
            ledger::step(&store, writer).unwrap();
        }
    }
    let progress = ledger::check(&store).unwrap();
    drop(store);
    copy(&running, &crashed);
    (crashed, progress)
}

fn start_over(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap();
    }
    copy(from, to);
}

fn manifest(directory: &Path) -> PathBuf {
    let current = fs::read_to_string(directory.join("rocksdb/CURRENT")).unwrap();
    directory.join("rocksdb").join(current.trim_end())
}

/// The power went while a record was being added: the file is longer, but not all of the record is there.
#[test]
fn a_torn_end_is_dropped() {
    let parent = tempdir().unwrap();
    let (crashed, progress) = crashed(parent.path());
    let torn = parent.path().join("torn");
    for (name, tail) in [
        // Type, length and a checksum of what never arrived.
        (
            "the beginning of a record",
            [&[1, 2, 3, 4, 200, 0, 1][..], &[7; 100], &[0; 100]].concat(),
        ),
        ("the end of a record", [&[0; 100][..], &[7; 100]].concat()),
        ("a length that is too long", [&[1, 2, 3, 4, 0xFF, 0xFF, 1][..], &[0; 10]].concat()),
        ("zeros", vec![0; 300]),
    ] {
        start_over(&crashed, &torn);
        let path = manifest(&torn);
        let content = [fs::read(&path).unwrap(), tail].concat();
        fs::write(&path, content).unwrap();
        let store = EmbeddedStore::open(&torn, options());
        let store = store.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(ledger::check(&store).unwrap(), progress, "{name}");
        assert!(!torn.join("TRIAL").exists(), "{name}");
    }
}

/// What was being added when the power went: type, length and a checksum of what never arrived.
const TORN_RECORD: &[u8] =
    &[1, 2, 3, 4, 20, 0, 1, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0, 0];

fn tear(directory: &Path) {
    let path = manifest(directory);
    fs::write(&path, [&fs::read(&path).unwrap(), TORN_RECORD].concat()).unwrap();
}

/// Until the first flush after an opening, the manifest asks for a log that never existed. The one that was created then
/// has all that the tables lack.
#[test]
fn a_torn_end_is_dropped_right_after_an_opening() {
    let parent = tempdir().unwrap();
    let (closed, _) = crashed(parent.path());
    for (name, before) in [("new", None), ("opened again", Some(&closed))] {
        let [running, torn] =
            ["store", "torn"].map(|end| parent.path().join(format!("{name} {end}")));
        if let Some(before) = before {
            copy(before, &running);
        }
        let store = EmbeddedStore::open(&running, options()).unwrap();
        ledger::step(&store, 0).unwrap();
        let progress = ledger::check(&store).unwrap();
        copy_of_open_store(&running, &torn);
        tear(&torn);
        let opened = EmbeddedStore::open(&torn, options());
        let opened = opened.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(ledger::check(&opened).unwrap(), progress, "{name}");
        drop(opened);

        // Without that log it is damage.
        fs::remove_dir_all(&torn).unwrap();
        copy_of_open_store(&running, &torn);
        tear(&torn);
        let logs = files(&torn.join("rocksdb"), "log");
        fs::remove_file(logs.last().unwrap()).unwrap();
        let refused = EmbeddedStore::open(&torn, options()).map(drop);
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{name}: {refused:?}");
    }
}

/// Wherever a byte of the manifest is damaged, nothing is lost silently.
#[test]
fn damage_loses_nothing_silently() {
    let parent = tempdir().unwrap();
    let (crashed, progress) = crashed(parent.path());
    let damaged = parent.path().join("damaged");
    let length = fs::metadata(manifest(&crashed)).unwrap().len() as usize;
    let mut refused = 0;
    for position in (0..length).step_by(length / 60) {
        start_over(&crashed, &damaged);
        let path = manifest(&damaged);
        let mut content = fs::read(&path).unwrap();
        content[position] ^= 0x55;
        fs::write(&path, &content).unwrap();
        match EmbeddedStore::open(&damaged, options()) {
            Ok(store) => {
                assert_eq!(ledger::check(&store).unwrap(), progress, "byte {position} of {length}");
            }
            Err(error @ (Error::Corrupt { .. } | Error::Open { .. })) => {
                refused += 1;
                assert!(fs::read(&path).unwrap() == content, "byte {position}: changed, {error}");
            }
            Err(error) => panic!("byte {position}: {error}"),
        }
    }
    assert!(refused > 0, "no damage was noticed");
}
