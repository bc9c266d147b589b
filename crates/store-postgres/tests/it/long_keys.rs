//! Keys that are longer than an index entry can be, and differ only after the part that the index holds.

use zenobe_store::conformance::{Model, Random, block_on, commit, entries};
use zenobe_store::{Batch, Decision, Direction, Key, KeyRange, Reader, Value, WriteSet};
use zenobe_store_postgres::Options;

use crate::support::Database;

/// Keys of up to 8 KB, many with lengths around the limit of the head. Most share their head with others.
fn random_key(random: &mut Random) -> Key {
    let length = match random.below(6) {
        0 => random.below(10),
        1 => 2395 + random.below(10),
        2 => 2400,
        3 => 2401,
        4 => 2400 + random.below(300),
        _ => 8192 - random.below(20),
    };
    let letter = [b'a', b'm', 0xFF][random.below(3)];
    let mut key = vec![letter; length];
    for _ in 0..2 {
        // Half of them differ after the head.
        if length > 0 && random.below(2) == 0 {
            let place = length - 1 - random.below(length.min(200));
            key[place] = random.below(256) as u8;
        }
    }
    key.into()
}

#[test]
fn long_keys_are_in_order_with_all_others() {
    let store = Database::new(Options::default()).store();
    let mut random = Random::announced("long_keys");
    let mut model = Model::default();
    let mut keys: Vec<Key> = Vec::new();
    for round in 0..12 {
        let mut batch = Batch::new();
        for _ in 0..20 {
            let key = random_key(&mut random);
            match random.below(10) {
                0 if !keys.is_empty() => batch.delete(keys[random.below(keys.len())].clone()),
                1 if round % 4 == 3 && !keys.is_empty() => {
                    let (one, other) = (random.below(keys.len()), random.below(keys.len()));
                    batch.delete_range(KeyRange::new(keys[one].clone(), keys[other].clone()));
                }
                2 => batch.add([b"counter", &key[..]].concat(), 3),
                _ => batch.put(key.clone(), random.bytes(20)),
            }
            keys.push(key);
        }
        model.apply(&batch);
        commit(&store, |out| *out = batch.clone());
        check(&store, &model, &keys, &mut random);
    }
}

fn check(store: &dyn Reader, model: &Model, keys: &[Key], random: &mut Random) {
    let mut pick = || keys[random.below(keys.len())].clone();
    let some: Vec<Key> = (0..5).map(|_| pick()).collect();
    let values = block_on(store.get_many(&some)).expect("the read succeeds");
    assert_eq!(values, some.iter().map(|key| model.get(key)).collect::<Vec<_>>());
    assert_eq!(block_on(store.get(&some[0])).expect("the read succeeds"), model.get(&some[0]));
    let ranges = [
        KeyRange::all(),
        KeyRange::new(pick(), pick()),
        KeyRange { start: pick(), end: None },
        KeyRange::new(Key::new(), pick()),
        KeyRange::prefix(pick()),
    ];
    for range in ranges {
        for direction in [Direction::Forward, Direction::Reverse] {
            let found = entries(store, range.clone(), direction);
            assert!(found == model.scan(&range, direction, usize::MAX), "{direction:?}");
        }
    }
}

/// More long keys with one head than a page holds.
#[test]
fn a_long_run_takes_several_pages() {
    let store = Database::new(Options::default()).store();
    let key = |number: usize| {
        let mut key = vec![b'k'; 2500];
        key.extend_from_slice(format!("{number:04}").as_bytes());
        key
    };
    let mut model = Model::default();
    let mut batch = Batch::new();
    batch.put(vec![b'k'; 2400], "the head itself");
    for number in 0..500 {
        batch.put(key(number * 7 % 500), number.to_string());
    }
    batch.put(vec![b'k'; 2399], "shorter");
    batch.put("l", "behind");
    model.apply(&batch);
    commit(&store, |out| *out = batch.clone());
    for range in [KeyRange::all(), KeyRange::new(key(100), key(400))] {
        for direction in [Direction::Forward, Direction::Reverse] {
            let found = entries(&store, range.clone(), direction);
            assert!(found == model.scan(&range, direction, usize::MAX), "{direction:?}");
        }
    }
}

/// A decision on a long key that is absent excludes another that puts it.
#[test]
fn long_keys_are_locked() {
    let store = Database::new(Options::default()).store();
    let key = Key::from(vec![b'x'; 8000]);
    let keys = [key.clone()];
    for expected in 1..=3 {
        let mut decide = |reads: &[Option<Value>]| {
            let mut batch = Batch::new();
            let next = reads[0].as_ref().map_or(0, |value| value[0]) + 1;
            batch.put(key.clone(), vec![next]);
            Decision::Commit(batch)
        };
        let set = WriteSet { guards: &[], keys: &keys };
        block_on(zenobe_store::Store::write(&store, set, &mut decide)).expect("it commits");
        assert_eq!(crate::support::get(&store, &key), Some(Value::from(vec![expected])));
    }
}
