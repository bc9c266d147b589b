//! Flipped bytes: reported, and never taken for missing data.

use std::fs;
use std::path::Path;

use tempfile::tempdir;
use zenobe_store::conformance::{Random, block_on};
use zenobe_store::{Error, Store};
use zenobe_store_embedded::{Durability, EmbeddedStore};

use crate::crash::{files, options};
use crate::ledger::{self, Progress};

const STEPS: u64 = 300;
const FLIPS: usize = 40;

/// Opens a store and writes to it. What it was like in a crash can be copied before it is closed.
fn fill(directory: &Path, durability: Durability) -> (EmbeddedStore, Progress) {
    let store = EmbeddedStore::open(directory, options(durability)).unwrap();
    for _ in 0..STEPS {
        for writer in 0..ledger::WRITERS {
            ledger::step(&store, writer).unwrap();
        }
    }
    let progress = ledger::check(&store).unwrap();
    (store, progress)
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

fn flip_a_bit(path: &Path, random: &mut Random) -> usize {
    let mut content = fs::read(path).unwrap();
    let position = random.below(content.len());
    content[position] ^= 1 << random.below(8);
    fs::write(path, content).unwrap();
    position
}

#[test]
fn damaged_tables_are_reported() {
    let mut random = Random::announced("damaged_tables_are_reported");
    let directory = tempdir().unwrap();
    let original = directory.path().join("original");
    let (store, written) = fill(&original, Durability::Os);
    // Closing moves what is in the log into tables. Opening once more removes tables that compactions have left behind:
    // nothing reads those, so damage in them goes unnoticed.
    block_on(store.close()).unwrap();
    drop(store);
    let store = EmbeddedStore::open(&original, options(Durability::Os)).unwrap();
    block_on(store.close()).unwrap();
    let mut reported = 0;
    for flip in 0..FLIPS {
        let damaged = directory.path().join("damaged");
        copy(&original, &damaged);
        let tables = files(&damaged.join("rocksdb"), "sst");
        let table = &tables[random.below(tables.len())];
        let position = flip_a_bit(table, &mut random);
        let found = EmbeddedStore::open(&damaged, options(Durability::Os))
            .and_then(|store| ledger::check(&store));
        match found {
            // The flipped bit lies where nothing was read, or nothing depends on it.
            Ok(found) => assert_eq!(found, written, "flip {flip}: byte {position} of {table:?}"),
            Err(Error::Corrupt { .. }) => reported += 1,
            Err(error) => panic!("flip {flip}: byte {position} of {table:?}: {error}"),
        }
        fs::remove_dir_all(&damaged).unwrap();
    }
    println!("{reported} of {FLIPS} flips were reported");
    assert!(reported > FLIPS / 4, "only {reported} of {FLIPS} flips were noticed");
}
