//! Flipped bytes: reported, and never taken for missing data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

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

/// Copies the directory of a store that is closed.
pub fn copy(from: &Path, to: &Path) {
    try_copy(from, to).unwrap();
}

fn try_copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => try_copy(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

/// What a crash would leave of a store that is open, and to which nobody writes. RocksDB may still flush and compact: it
/// adds, renames and deletes files, and says so in the manifest. So the copy counts only if nothing of that happened
/// meanwhile.
pub fn copy_of_open_store(from: &Path, to: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let before = lengths(from);
        if before.is_ok() && try_copy(from, to).is_ok() && before.ok() == lengths(from).ok() {
            return;
        }
        assert!(Instant::now() < deadline, "{} never rests", from.display());
        // What there is of it.
        let _ = fs::remove_dir_all(to);
    }
}

fn lengths(directory: &Path) -> io::Result<BTreeMap<PathBuf, u64>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(lengths(&path)?),
            false => drop(found.insert(path.clone(), fs::metadata(path)?.len())),
        }
    }
    Ok(found)
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
    drop(store);
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

/// An operator must learn which file to replace, also where RocksDB blames another.
#[test]
fn damage_at_the_end_of_a_table_names_the_table() {
    const END_BYTES: usize = 2_000;
    let directory = tempdir().unwrap();
    let [original, damaged] = ["original", "damaged"].map(|name| directory.path().join(name));
    let (store, _) = fill(&original, Durability::Os);
    block_on(store.close()).unwrap();
    drop(store);
    // Removes tables that compactions have left behind, which nobody opens.
    let store = EmbeddedStore::open(&original, options(Durability::Os)).unwrap();
    block_on(store.close()).unwrap();
    drop(store);
    let tables = files(&original.join("rocksdb"), "sst");
    let table = tables.iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    let name = table.file_name().unwrap().to_str().unwrap();
    let content = fs::read(table).unwrap();
    let mut refused = 0;
    for position in (content.len() - END_BYTES..content.len()).step_by(29) {
        copy(&original, &damaged);
        let mut bytes = content.clone();
        bytes[position] ^= 0x55;
        fs::write(damaged.join("rocksdb").join(name), bytes).unwrap();
        match EmbeddedStore::open(&damaged, options(Durability::Os)).map(drop) {
            // Nothing reads these bytes when the store opens.
            Ok(()) => {}
            Err(Error::Corrupt { detail }) => {
                refused += 1;
                assert!(detail.contains(name), "byte {position} of {name}: {detail}");
            }
            Err(error) => panic!("byte {position} of {name}: {error}"),
        }
        fs::remove_dir_all(&damaged).unwrap();
    }
    assert!(refused > 30, "only {refused} were refused");
}
