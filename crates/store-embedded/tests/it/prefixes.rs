//! Keys with prefixes: what filters leave out must not be missed.

use std::path::Path;

use tempfile::tempdir;
use zenobe_store::conformance::{Model, Random, block_on, commit, entries};
use zenobe_store::{Batch, Direction, Key, KeyPrefixes, KeyRange, Reader, Store};
use zenobe_store_embedded::{Durability, EmbeddedStore, Options, PrefixExtractor};

const COLLECTIONS: usize = 400;
const COLLECTION_ENTRIES: usize = 30;
const ROUNDS: usize = 30;

/// How much is written, and into tables of which size.
struct Scale {
    write_buffer_bytes: usize,
    value_bytes: usize,
    batch_entries: usize,
}

/// Many tables, in several levels.
const SMALL_TABLES: Scale =
    Scale { write_buffer_bytes: 64 << 10, value_bytes: 120, batch_entries: 100 };

/// Few tables, whose filters have several parts each.
const LARGE_TABLES: Scale =
    Scale { write_buffer_bytes: 4 << 20, value_bytes: 4, batch_entries: 600 };

/// `g`, the collection's number, and the rest.
struct Numbered;

impl KeyPrefixes for Numbered {
    const NAME: &'static str = "numbered";

    fn prefix_of(key: &[u8]) -> Option<&[u8]> {
        key.strip_prefix(b"g").and(key.get(..4))
    }
}

/// Another rule, under another name.
struct Coarse;

impl KeyPrefixes for Coarse {
    const NAME: &'static str = "coarse";

    fn prefix_of(key: &[u8]) -> Option<&[u8]> {
        key.get(..3)
    }
}

fn open(directory: &Path, scale: &Scale, prefixes: Option<PrefixExtractor>) -> EmbeddedStore {
    let options = Options {
        durability: Durability::Os,
        write_buffer_bytes: scale.write_buffer_bytes,
        cache_bytes: 1 << 20,
        prefixes,
        ..Options::default()
    };
    EmbeddedStore::open(directory, options).unwrap()
}

fn collection_start(collection: usize) -> Key {
    format!("g{collection:03}").into()
}

fn key(collection: usize, entry: usize) -> Key {
    format!("g{collection:03}/{entry:02}").into()
}

/// Every scan finds what a sorted map holds, while tables with one rule, with another and with none lie side by side.
#[test]
fn scans_find_everything_under_any_rule() {
    let mut random = Random::announced("scans_find_everything_under_any_rule");
    for scale in [SMALL_TABLES, LARGE_TABLES] {
        let directory = tempdir().unwrap();
        let mut model = Model::default();
        let rules = [
            None,
            Some(PrefixExtractor::of::<Numbered>()),
            Some(PrefixExtractor::of::<Coarse>()),
            Some(PrefixExtractor::of::<Numbered>()),
            None,
        ];
        for prefixes in rules {
            let store = open(directory.path(), &scale, prefixes);
            // A reader of this state meets more and more that is newer.
            let (old_state, old_model) = (store.snapshot(), model.clone());
            for _ in 0..ROUNDS {
                write_some(&store, &mut model, &scale, &mut random);
                for _ in 0..15 {
                    let range = random_range(&mut random);
                    for direction in [Direction::Forward, Direction::Reverse] {
                        check(&store, &model, &range, direction);
                        check(&*old_state, &old_model, &range, direction);
                    }
                }
            }
            for direction in [Direction::Forward, Direction::Reverse] {
                check(&store, &model, &KeyRange::all(), direction);
                check(&*old_state, &old_model, &KeyRange::all(), direction);
            }
            drop(old_state);
            block_on(store.close()).unwrap();
        }
    }
}

fn write_some(store: &EmbeddedStore, model: &mut Model, scale: &Scale, random: &mut Random) {
    let mut batch = Batch::new();
    for _ in 0..scale.batch_entries {
        let collection = random_collection(random);
        let key = key(collection, random.below(COLLECTION_ENTRIES));
        match random.below(300) {
            // Over several collections, as when a table is deleted.
            0 => {
                batch.delete_range(KeyRange::new(
                    key,
                    collection_start(collection + 1 + random.below(5)),
                ));
            }
            1..=75 => batch.delete(key),
            _ => batch.put(key, random.bytes(scale.value_bytes)),
        }
    }
    model.apply(&batch);
    commit(store, |committed| *committed = batch.clone());
}

/// Some come so often that a scan steps over many versions of their entries.
fn random_collection(random: &mut Random) -> usize {
    const OFTEN: usize = 3;
    match random.below(4) {
        0 => random.below(OFTEN) * (COLLECTIONS / OFTEN),
        _ => random.below(COLLECTIONS),
    }
}

fn random_range(random: &mut Random) -> KeyRange {
    let collection = random_collection(random);
    let [first, second] = [0; 2].map(|_| random.below(COLLECTION_ENTRIES));
    match random.below(6) {
        // One collection: all of it, from an entry on, and between two.
        0 => KeyRange::prefix(format!("g{collection:03}/")),
        1 => KeyRange::new(key(collection, first), format!("g{collection:03}0")),
        2 => KeyRange::new(key(collection, first.min(second)), key(collection, first.max(second))),
        // One that begins or ends outside of every collection, or where a collection does.
        3 => KeyRange::prefix(collection_start(collection)),
        4 => KeyRange::new("g", key(collection, first)),
        // Several.
        _ => KeyRange::new(key(collection, first), key(collection + 1 + random.below(5), second)),
    }
}

fn check(reader: &dyn Reader, model: &Model, range: &KeyRange, direction: Direction) {
    let found = entries(reader, range.clone(), direction);
    let expected = model.scan(range, direction, usize::MAX);
    let keys = |entries: &[(Vec<u8>, Vec<u8>)]| {
        entries.iter().map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&found), keys(&expected), "{range:?} {direction:?}");
    assert!(found == expected, "other values: {range:?} {direction:?}");
}
