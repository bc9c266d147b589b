//! Values that look like parts of the log. Only who has the store's nonce can make a record that counts.

use std::fs;
use std::path::Path;

use tempfile::tempdir;
use zenobe_store::conformance::{block_on, commit};
use zenobe_store::{Error, Reader};
use zenobe_store_embedded::{EmbeddedStore, Options};

use crate::crash::files;
use crate::damage::copy_of_open_store;

const FULL_IN_REUSABLE_LOG: u8 = 5;

/// A fragment of RocksDB's log as a client could store it, which knows everything but the nonce.
fn fragment(log_number: u32, data: &[u8]) -> Vec<u8> {
    let covered = [&[FULL_IN_REUSABLE_LOG], &log_number.to_le_bytes()[..], data].concat();
    let checksum = crc32c::crc32c(&covered).rotate_right(15).wrapping_add(0xA282_EAD8);
    let length = u16::try_from(data.len()).unwrap();
    [&checksum.to_le_bytes()[..], &length.to_le_bytes(), &covered].concat()
}

/// A write that claims that everything up to its own sequence number is durable.
fn claim(sequence: u64, horizon: &[u8]) -> Vec<u8> {
    let length = u8::try_from(horizon.len()).unwrap();
    [&sequence.to_le_bytes()[..], &1_u32.to_le_bytes(), &[3, length], horizon].concat()
}

fn forged(log_number: u32) -> Vec<u8> {
    let sequence: u64 = 1 << 40;
    let plain = [&[1], &sequence.to_be_bytes()[..]].concat();
    let guessed = [&[2][..], &[0; 8], &sequence.to_be_bytes()].concat();
    let claims = [claim(sequence, &plain), claim(sequence, &guessed)];
    let mut forged: Vec<u8> = claims.iter().flat_map(|claim| fragment(log_number, claim)).collect();
    // The end of the log, if it counted.
    forged.extend(fragment(log_number + 1, b"what is left of another log"));
    forged
}

fn put(store: &EmbeddedStore, key: &'static str, value: &[u8]) {
    commit(store, |batch| batch.put(key, value.to_vec()));
}

/// A store that crashed after a client had stored forged parts of its log, with the header of that very write damaged.
/// What follows is acknowledged, or nothing follows.
fn crashed(parent: &Path, is_followed: bool) -> std::path::PathBuf {
    let (running, crashed) = (parent.join("running"), parent.join("crashed"));
    let store = EmbeddedStore::open(&running, Options::default()).unwrap();
    put(&store, "before", b"value");
    store.wait_until_idle();
    let name = files(&running.join("rocksdb"), "log").pop().unwrap();
    let number = name.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let forged = forged(number);
    put(&store, "forged", &forged);
    if is_followed {
        put(&store, "after", b"value");
        store.wait_until_idle();
    }
    copy_of_open_store(&running, &crashed);
    let log = crashed.join("rocksdb").join(name.file_name().unwrap());
    let mut content = fs::read(&log).unwrap();
    let value = content.windows(forged.len()).position(|window| window == forged).unwrap();
    // The key before it belongs to the same write.
    content[value - 3] ^= 1;
    if !is_followed {
        // As if the machine had stopped while the group was on its way to the disk.
        content.truncate(value + forged.len());
    }
    fs::write(&log, content).unwrap();
    crashed
}

#[test]
fn a_torn_end_is_no_damage_whatever_it_holds() {
    let parent = tempdir().unwrap();
    let directory = crashed(parent.path(), false);
    let store = EmbeddedStore::open(&directory, Options::default()).unwrap();
    assert!(block_on(store.get(b"before")).unwrap().is_some());
    assert!(block_on(store.get(b"forged")).unwrap().is_none());
}

#[test]
fn damage_is_found_whatever_it_holds() {
    let parent = tempdir().unwrap();
    let directory = crashed(parent.path(), true);
    let refused = EmbeddedStore::open(&directory, Options::default()).map(drop);
    assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
}
