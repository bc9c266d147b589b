//! Keys in groups: what filters leave out must not be missed.

use std::collections::BTreeMap;

use tempfile::tempdir;
use zenobe_store::conformance::{Random, block_on};
use zenobe_store::{Batch, Decision, Direction, Key, KeyGroups, KeyRange, Reader, Store, WriteSet};
use zenobe_store_embedded::{Durability, EmbeddedStore, Grouping, Options};

const GROUPS: usize = 400;
const GROUP_ENTRIES: usize = 30;
const ROUNDS: usize = 60;

/// `g`, the group's number, and the rest.
struct Numbered;

impl KeyGroups for Numbered {
    const NAME: &'static str = "numbered";

    fn group_of(key: &[u8]) -> Option<&[u8]> {
        key.strip_prefix(b"g").and(key.get(..4))
    }
}

/// Another rule, under another name.
struct Coarse;

impl KeyGroups for Coarse {
    const NAME: &'static str = "coarse";

    fn group_of(key: &[u8]) -> Option<&[u8]> {
        key.get(..3)
    }
}

fn options(grouping: Option<Grouping>) -> Options {
    // So little that there are many tables in several levels.
    let (write_buffer_bytes, cache_bytes) = (64 << 10, 1 << 20);
    Options {
        durability: Durability::Os,
        write_buffer_bytes,
        cache_bytes,
        grouping,
        ..Options::default()
    }
}

fn group_start(group: usize) -> Key {
    format!("g{group:03}").into()
}

fn key(group: usize, entry: usize) -> Key {
    format!("g{group:03}/{entry:02}").into()
}

/// Every scan finds what a sorted map holds, while tables with one rule, with another and with none lie side by side.
#[test]
fn scans_find_everything_under_any_grouping() {
    let directory = tempdir().unwrap();
    let mut random = Random::announced("scans_find_everything_under_any_grouping");
    let mut model: BTreeMap<Key, Vec<u8>> = BTreeMap::new();
    let groupings = [
        None,
        Some(Grouping::by::<Numbered>()),
        Some(Grouping::by::<Coarse>()),
        Some(Grouping::by::<Numbered>()),
        None,
    ];
    for grouping in groupings {
        let store = EmbeddedStore::open(directory.path(), options(grouping)).unwrap();
        for _ in 0..ROUNDS {
            write_some(&store, &mut model, &mut random);
            for _ in 0..20 {
                let range = random_range(&mut random);
                for direction in [Direction::Forward, Direction::Reverse] {
                    check(&store, &model, &range, direction);
                }
            }
        }
        check(&store, &model, &KeyRange::all(), Direction::Forward);
        check(&store, &model, &KeyRange::all(), Direction::Reverse);
        block_on(store.close()).unwrap();
    }
}

fn write_some(store: &EmbeddedStore, model: &mut BTreeMap<Key, Vec<u8>>, random: &mut Random) {
    let mut batch = Batch::new();
    for _ in 0..100 {
        let group = random.below(GROUPS);
        let key = key(group, random.below(GROUP_ENTRIES));
        match random.below(100) {
            // Over several groups, as when a table is deleted.
            0 => {
                let range = KeyRange::new(key, group_start(group + 1 + random.below(5)));
                model.retain(|key, _| !range.contains(key));
                batch.delete_range(range);
            }
            1..=25 => {
                model.remove(&key);
                batch.delete(key);
            }
            _ => {
                let value = random.bytes(120);
                model.insert(key.clone(), value.clone());
                batch.put(key, value);
            }
        }
    }
    let mut decide = |_: &[_]| Decision::Commit(batch.clone());
    block_on(store.write(WriteSet { guards: &[], keys: &[] }, &mut decide)).unwrap();
}

fn random_range(random: &mut Random) -> KeyRange {
    let group = random.below(GROUPS);
    let [first, second] = [0; 2].map(|_| random.below(GROUP_ENTRIES));
    match random.below(6) {
        // One group: all of it, from an entry on, and between two.
        0 => KeyRange::prefix(format!("g{group:03}/")),
        1 => KeyRange::new(key(group, first), format!("g{group:03}0")),
        2 => KeyRange::new(key(group, first.min(second)), key(group, first.max(second))),
        // One that begins or ends outside of every group, or where a group does.
        3 => KeyRange::prefix(group_start(group)),
        4 => KeyRange::new("g", key(group, first)),
        // Several.
        _ => KeyRange::new(key(group, first), key(group + 1 + random.below(5), second)),
    }
}

fn check(
    store: &EmbeddedStore,
    model: &BTreeMap<Key, Vec<u8>>,
    range: &KeyRange,
    direction: Direction,
) {
    let mut found = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        found.push((Key::copy_from_slice(key), value.to_vec()));
        std::ops::ControlFlow::Continue(())
    };
    block_on(store.scan(range.clone(), direction, &mut visit)).unwrap();
    let mut expected: Vec<_> = model
        .iter()
        .filter(|(key, _)| range.contains(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if direction == Direction::Reverse {
        expected.reverse();
    }
    let keys =
        |entries: &[(Key, Vec<u8>)]| entries.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    assert_eq!(keys(&found), keys(&expected), "{range:?} {direction:?}");
    assert!(found == expected, "other values: {range:?} {direction:?}");
}
