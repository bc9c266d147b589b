use std::sync::Arc;

use crate::conformance::Backend;
use crate::conformance::model::Model;
use crate::conformance::support::{
    Random, block_on, commit_together, entries_up_to, get, key, snapshot,
};
use crate::{
    Batch, Decision, Direction, Key, KeyRange, LogEnd, Mutation, Reader, Stamp, Store, Value,
    WriteSet,
};

const STEPS: usize = 600;
/// Few enough keys that operations collide all the time.
const KEYS: usize = 24;

/// Random operations, snapshots and reopenings behave as on a sorted map.
pub fn random_operations_match_the_model(backend: &dyn Backend) {
    let mut random = Random::announced("random_operations_match_the_model");
    let mut store = backend.open();
    let mut model = Model::default();
    let mut snapshots: Vec<(Arc<dyn Reader>, Model)> = Vec::new();
    for step in 0..STEPS {
        match random.below(20) {
            0..=9 => write_once(&*store, &mut model, &mut random),
            10..=12 => write_together(&*store, &mut model, &mut random),
            13..=16 => check_reads(&*store, &model, &mut random),
            17 => snapshots.push((snapshot(&*store), model.clone())),
            18 if !snapshots.is_empty() => {
                let (snapshot, model) = snapshots.swap_remove(random.below(snapshots.len()));
                check_reads(&*snapshot, &model, &mut random);
            }
            _ if step % 7 == 0 && backend.survives_reopening() => {
                snapshots.clear();
                block_on(store.close()).expect("the store closes");
                drop(store);
                store = backend.open();
            }
            _ => {}
        }
    }
    for (snapshot, model) in &snapshots {
        check_everything(&**snapshot, model);
    }
    check_everything(&*store, &model);
    let ends = block_on(store.log_ends(&[], usize::MAX >> 1)).expect("they can be read");
    assert_eq!(ends, model.log_ends());
}

fn write_once(store: &dyn Store, model: &mut Model, random: &mut Random) {
    let keys = random_keys(random);
    let batch = random_batch(random);
    let mut reads = Vec::new();
    let mut decide = |seen: &[Option<Value>]| {
        reads = seen.to_vec();
        Decision::Commit(batch.clone())
    };
    let set = WriteSet { guards: &[], keys: &keys };
    let outcome = block_on(store.write(set, &mut decide)).expect("the write commits");
    let expected: Vec<_> = keys.iter().map(|key| model.get(key)).collect();
    assert_eq!(reads, expected);
    assert_eq!(outcome.sequences, model.apply(&batch));
}

/// Commits several writes in flight together.
fn write_together(store: &dyn Store, model: &mut Model, random: &mut Random) {
    let batches: Vec<Batch> = (0..1 + random.below(6)).map(|_| random_batch(random)).collect();
    let outcomes = commit_together(store, &key("order"), &batches);
    for (outcome, batch) in outcomes.into_iter().zip(&batches) {
        assert_eq!(outcome.sequences, model.apply(batch));
    }
}

fn check_reads(reader: &dyn Reader, model: &Model, random: &mut Random) {
    let key = random_key(random);
    assert_eq!(get(reader, &key), model.get(&key), "{key:?}");
    let keys = random_keys(random);
    let many = block_on(reader.get_many(&keys)).expect("the read succeeds");
    assert_eq!(many, keys.iter().map(|key| model.get(key)).collect::<Vec<_>>());
    let range = random_range(random);
    let limit = 1 + random.below(10);
    for direction in [Direction::Forward, Direction::Reverse] {
        let found = entries_up_to(reader, range.clone(), direction, limit);
        assert_eq!(found, model.scan(&range, direction, limit), "{range:?} {direction:?} {limit}");
    }
}

fn check_everything(reader: &dyn Reader, model: &Model) {
    for direction in [Direction::Forward, Direction::Reverse] {
        let found = entries_up_to(reader, KeyRange::all(), direction, usize::MAX);
        assert_eq!(found, model.scan(&KeyRange::all(), direction, usize::MAX));
    }
}

pub(crate) fn random_batch(random: &mut Random) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..random.below(6) {
        match random.below(12) {
            0..=4 => {
                let size_bytes = random.below(40);
                batch.put(random_key(random), random.bytes(size_bytes));
            }
            5 | 6 => batch.delete(random_key(random)),
            7 => {
                let log = format!("log/{}/", random.below(3));
                batch.append(log, random.below(50) as u64, random.bytes(5));
            }
            8 => {
                // Counters have their own keys, because adding to other values is an error.
                let delta = random.next_u64() as i64;
                batch.add(format!("count/{}", random.below(3)), delta);
            }
            9 => {
                let (sequence, stamp) = (1 + random.below(90) as u64, random.below(50) as u64);
                let log = format!("log/{}/", random.below(3));
                batch.set_log_end(log, LogEnd { sequence, stamp });
            }
            10 => {
                let log = format!("log/{}/", random.below(3));
                batch.mutations.push(Mutation::ForgetLog { log: log.into() });
            }
            _ => batch.delete_range(random_range(random)),
        }
    }
    match random.below(4) {
        0 => {
            for _ in 0..1 + random.below(3) {
                let (clock, at_ms) = (random_clock(random), random.below(50) as u64);
                let name = format!("stamped/{}/", random.below(3));
                batch.put_stamped(clock, at_ms, name, random.bytes(3));
            }
        }
        1 => batch.advance(random_clock(random), Stamp::last_of_ms(random.below(50) as u64)),
        _ => {}
    }
    batch
}

fn random_key(random: &mut Random) -> Key {
    const BYTES: [u8; 4] = [0x00, 0x01, 0x6D, 0xFF];
    let mut number = random.below(KEYS);
    let mut key = Vec::new();
    while number > 0 {
        key.push(BYTES[number % BYTES.len()]);
        number /= BYTES.len();
    }
    key.into()
}

fn random_keys(random: &mut Random) -> Vec<Key> {
    (0..random.below(5)).map(|_| random_key(random)).collect()
}

fn random_range(random: &mut Random) -> KeyRange {
    match random.below(8) {
        0 => KeyRange { start: random_key(random), end: None },
        1 | 2 => KeyRange::prefix(random_key(random)),
        3 => KeyRange::prefix(format!("log/{}/", random.below(3))),
        4 => KeyRange::new("count/1", "log/1/"),
        // Half of these end before they start and are empty.
        _ => KeyRange::new(random_key(random), random_key(random)),
    }
}

fn random_clock(random: &mut Random) -> String {
    format!("clock/{}", random.below(2))
}
