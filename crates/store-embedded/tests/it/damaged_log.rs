//! Damaged logs: acknowledged writes are there, or the store says that they are not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rocksdb::{DB, WriteBatch};
use tempfile::tempdir;
use zenobe_store::conformance::{Random, block_on};
use zenobe_store::{Error, Reader};
use zenobe_store_embedded::{Durability, EmbeddedStore, Options};

use crate::crash::{files, options};
use crate::damage::{copy, copy_of_open_store};
use crate::ledger::{self, Progress};

const STEPS: u64 = 150;
const ROUNDS: usize = 40;

/// What a crash leaves behind: a copy of a store that is still open, in which everything is acknowledged.
fn crashed(parent: &Path, options: &Options) -> (PathBuf, Progress) {
    let (running, crashed) = (parent.join("running"), parent.join("crashed"));
    let store = EmbeddedStore::open(&running, options.clone()).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..ledger::WRITERS {
            let store = &store;
            scope.spawn(move || {
                for _ in 0..STEPS {
                    ledger::step(store, writer).unwrap();
                }
            });
        }
    });
    // An idle store says in its log that all of it is durable.
    store.wait_until_idle();
    copy_of_open_store(&running, &crashed);
    (crashed, ledger::check(&store).unwrap())
}

fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => drop(found.insert(path.clone(), fs::read(path).unwrap())),
        }
    }
    found
}

/// Opens damaged copies. Each holds everything, or it is refused untouched and opens once that is accepted.
fn check_damage(
    name: &str,
    options: &Options,
    refused_min: usize,
    damage: impl Fn(&mut [u8], &mut Random),
) {
    let mut random = Random::announced(name);
    let parent = tempdir().unwrap();
    let (original, written) = crashed(parent.path(), options);
    let mut refused = 0;
    for round in 0..ROUNDS {
        let directory = parent.path().join("damaged");
        copy(&original, &directory);
        let logs = files(&directory.join("rocksdb"), "log");
        let log = &logs[random.below(logs.len())];
        let mut content = fs::read(log).unwrap();
        if content.is_empty() {
            continue;
        }
        damage(&mut content, &mut random);
        fs::write(log, content).unwrap();
        let before = contents(&directory);
        match EmbeddedStore::open(&directory, options.clone()) {
            Ok(store) => assert_eq!(ledger::check(&store).unwrap(), written, "{name} {round}"),
            Err(Error::Corrupt { detail }) => {
                refused += 1;
                assert!(detail.contains(&*log.to_string_lossy()), "{detail}");
                assert!(detail.contains("--accept-damaged-log"), "{detail}");
                assert!(contents(&directory) == before, "{name} {round}: nothing is changed");
                check_acceptance(&directory, options, &written);
            }
            Err(error) => panic!("{name} {round}: {error}"),
        }
        fs::remove_dir_all(&directory).unwrap();
    }
    println!("{name}: {refused} of {ROUNDS} refused");
    assert!(refused >= refused_min, "{name}: only {refused} of {ROUNDS} refused");
}

/// What is left is a state that existed, and can be written to and opened again.
fn check_acceptance(directory: &Path, options: &Options, written: &Progress) {
    let accepting = Options { accept_log_damage: true, ..options.clone() };
    let store = EmbeddedStore::open(directory, accepting).unwrap();
    let left = ledger::check(&store).unwrap();
    assert!(left.values().sum::<u64>() < written.values().sum(), "something is lost");
    ledger::step(&store, 0).unwrap();
    drop(store);
    let store = EmbeddedStore::open(directory, options.clone()).unwrap();
    assert_eq!(ledger::check(&store).unwrap()[&0], left[&0] + 1);
}

fn flip_a_bit(content: &mut [u8], random: &mut Random) {
    let position = random.below(content.len());
    content[position] ^= 1 << random.below(8);
}

/// RocksDB by itself would replay what comes after such a hole as if nothing were missing. The last pages are
/// left alone: without them, nothing says that there was more.
fn zero_a_page(content: &mut [u8], random: &mut Random) {
    let page = random.below(content.len() / 4096 - 2);
    content.chunks_mut(4096).nth(page).unwrap().fill(0);
}

#[test]
fn flipped_bits_are_reported() {
    for durability in [Durability::Sync, Durability::Os] {
        let one_log = Options { durability, ..Options::default() };
        check_damage("a bit of one log", &one_log, ROUNDS * 3 / 4, flip_a_bit);
        // Small memtables, so that log files are reused. Most of what such files hold means nothing.
        check_damage("a bit of reused logs", &options(durability), 0, flip_a_bit);
    }
}

/// An idle store writes a horizon that has no entries, so no number is missing if it is damaged. But replay
/// ends there all the same.
#[test]
fn damaged_horizons_are_reported() {
    // A write without entries, and the beginning of the horizon in it.
    const IDLE_HORIZON: [u8; 7] = [0, 0, 0, 0, 3, 17, 2];
    let parent = tempdir().unwrap();
    let directory = parent.path().join("store");
    let store = EmbeddedStore::open(&directory, Options::default()).unwrap();
    for _ in 0..4 {
        ledger::step(&store, 0).unwrap();
        store.wait_until_idle();
    }
    let damaged = parent.path().join("damaged");
    copy_of_open_store(&directory, &damaged);
    let log = files(&damaged.join("rocksdb"), "log").pop().unwrap();
    let mut content = fs::read(&log).unwrap();
    let is_horizon = |position: &usize| content[*position..].starts_with(&IDLE_HORIZON);
    let horizons: Vec<usize> = (0..content.len()).filter(is_horizon).collect();
    assert!(horizons.len() > 1, "one for each time that the store was idle");
    content[horizons[0]] = 1;
    fs::write(&log, content).unwrap();
    let refused = EmbeddedStore::open(&damaged, Options::default());
    assert!(matches!(refused, Err(Error::Corrupt { .. })));
}

#[test]
fn lost_pages_are_reported() {
    check_damage("a page", &Options::default(), ROUNDS * 3 / 4, zero_a_page);
}

const TAIL_GROUPS: u32 = 60;
const PAGE_BYTES: usize = 4096;
/// What a group of one entry takes in the log beside its value.
const GROUP_OVERHEAD_BYTES: usize = 55;

/// A crashed store with groups at the end of its log that were never synced: their horizon is older. Each fills
/// a page, so that a page which the disk did not write leaves a hole between intact groups.
struct Torn {
    directory: PathBuf,
    written: Progress,
    log: PathBuf,
}

fn nonce(store: &Path) -> [u8; 8] {
    let format = fs::read_to_string(store.join("FORMAT")).unwrap();
    let nonce = format.trim_end().rsplit_once(' ').unwrap().1;
    u64::from_str_radix(nonce, 16).unwrap().to_be_bytes()
}

fn torn(parent: &Path) -> Torn {
    let (crashed, written) = crashed(parent, &Options::default());
    let mut rocks = rocksdb::Options::default();
    rocks.set_recycle_log_file_num(4);
    rocks.set_atomic_flush(true);
    let opened = DB::open_cf(&rocks, crashed.join("rocksdb"), ["default", "sequences"]).unwrap();
    let horizon = [nonce(&crashed), opened.latest_sequence_number().to_be_bytes()].concat();
    let write = |name: &str| {
        let mut write = WriteBatch::default();
        write.put_log_data([&[2], &horizon[..]].concat());
        write.put(format!("tail/{name}"), vec![7; PAGE_BYTES - GROUP_OVERHEAD_BYTES]);
        opened.write(write).unwrap();
    };
    write("sync");
    let log = files(&crashed.join("rocksdb"), "log").pop().unwrap();
    assert_eq!(fs::metadata(&log).unwrap().len() as usize, PAGE_BYTES);
    (0..TAIL_GROUPS).for_each(|number| write(&format!("{number:04}")));
    assert_eq!(fs::metadata(&log).unwrap().len() as usize, PAGE_BYTES * (TAIL_GROUPS as usize + 1));
    let directory = parent.join("torn");
    copy_of_open_store(&crashed, &directory);
    let log = directory.join(log.strip_prefix(&crashed).unwrap());
    Torn { directory, written, log }
}

/// Tears what was not acknowledged. The store opens, with a prefix of it.
fn check_torn(name: &str, tear: impl Fn(&mut Vec<u8>, &mut Random)) {
    let mut random = Random::announced(name);
    let parent = tempdir().unwrap();
    let torn = torn(parent.path());
    let mut lost = 0;
    for round in 0..ROUNDS {
        let directory = parent.path().join("copy");
        copy(&torn.directory, &directory);
        let log = directory.join(torn.log.strip_prefix(&torn.directory).unwrap());
        let mut content = fs::read(&log).unwrap();
        tear(&mut content, &mut random);
        assert!(content.len() >= PAGE_BYTES);
        fs::write(&log, content).unwrap();
        let store = EmbeddedStore::open(&directory, Options::default())
            .unwrap_or_else(|error| panic!("{name} {round}: {error}"));
        assert_eq!(ledger::check(&store).unwrap(), torn.written);
        let is_there = |name: String| block_on(store.get(name.as_bytes())).unwrap().is_some();
        assert!(is_there("tail/sync".to_owned()));
        let mut tail = (0..TAIL_GROUPS).map(|number| is_there(format!("tail/{number:04}")));
        let found = tail.by_ref().take_while(|is_there| *is_there).count();
        assert!(tail.all(|is_there| !is_there), "{name} {round}: a hole behind {found} groups");
        lost += usize::from(found < TAIL_GROUPS as usize);
        drop(store);
        fs::remove_dir_all(&directory).unwrap();
    }
    assert!(lost > ROUNDS / 2, "{name}: only {lost} of {ROUNDS} lost anything");
}

#[test]
fn torn_ends_are_no_damage() {
    // The first page holds what was acknowledged.
    const FROM: usize = PAGE_BYTES;
    check_torn("cut", |content, random| {
        content.truncate(FROM + random.below(content.len() - FROM));
    });
    check_torn("overwritten", |content, random| {
        let kept = FROM + random.below(content.len() - FROM);
        let rubbish = random.bytes(content.len() - kept);
        content[kept..].copy_from_slice(&rubbish);
    });
    check_torn("a page is missing", |content, random| {
        let page = 1 + random.below(TAIL_GROUPS as usize);
        content[page * PAGE_BYTES..][..PAGE_BYTES].fill(0);
    });
    check_torn("a flipped bit", |content, random| flip_a_bit(&mut content[FROM..], random));
}
