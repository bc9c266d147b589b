use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};

use crate::conformance::Backend;
use crate::conformance::support::{
    AtEnd, Random, Turns, block_on, commit_locking, entries, get, key, number, on_threads, put,
};
use crate::{Batch, Decision, Direction, Key, KeyRange, Store, Value, WriteSet, write_with};

/// Many writers of one key lose no increment, although their writes overlap.
pub fn increments_are_not_lost(backend: &dyn Backend) {
    let store = backend.open();
    on_threads(8, |_| {
        for _ in 0..50 {
            increment(&*store, &key("counter"));
        }
    });
    assert_eq!(number(get(&*store, b"counter").as_ref()), 400);
}

fn increment(store: &dyn Store, name: &Key) {
    let keys = [name.clone()];
    let mut decide = |reads: &[Option<Value>]| put_number(name, number(reads[0].as_ref()) + 1);
    block_on(store.write(WriteSet { guards: &[], keys: &keys }, &mut decide)).expect("it commits");
}

fn put_number(name: &Key, value: i64) -> Decision {
    let mut batch = Batch::new();
    batch.put(name.clone(), value.to_string());
    Decision::Commit(batch)
}

/// Of writes issued together from one task, each decision sees the writes before it, before any is
/// acknowledged.
pub fn decisions_see_writes_in_flight(backend: &dyn Backend) {
    let store = backend.open();
    let keys = [key("k")];
    let mut decisions: Vec<_> = (0..100)
        .map(|_| |reads: &[Option<Value>]| put_number(&keys[0], number(reads[0].as_ref()) + 1))
        .collect();
    let set = WriteSet { guards: &[], keys: &keys };
    let writes = decisions.iter_mut().map(|decide| store.write(set, decide));
    for outcome in block_on(join_all(writes)) {
        outcome.expect("the write commits");
    }
    assert_eq!(number(get(&*store, b"k").as_ref()), 100);
}

/// A write that declares hundreds of keys sees each at its place: some from writes in flight, some from the store, some absent.
pub fn decisions_on_many_keys_see_writes_in_flight(backend: &dyn Backend) {
    const KEYS: usize = 400;
    let store = backend.open();
    let keys: Vec<Key> = (0..KEYS).rev().map(|number| key(&format!("k{number:03}"))).collect();
    let put = |at: &dyn Fn(usize) -> bool, text: &str| {
        let mut batch = Batch::new();
        for (number, key) in keys.iter().enumerate().filter(|(number, _)| at(*number)) {
            batch.put(key.clone(), format!("{text}{number}"));
        }
        Decision::Commit(batch)
    };
    let set = WriteSet { guards: &[], keys: &keys };
    // Every fourth key is absent.
    block_on(store.write(set, &mut |_| put(&|number| number % 4 > 0, "old"))).expect("it commits");
    for round in 0..3 {
        let (third, new) = (|number: usize| number % 3 == round, format!("new{round}-"));
        let before: Vec<Option<Value>> = keys.iter().map(|key| get(&*store, key)).collect();
        let mut first = |_: &[Option<Value>]| put(&third, &new);
        let mut seen: Vec<Option<Value>> = Vec::new();
        let mut second = |reads: &[Option<Value>]| {
            seen = reads.to_vec();
            // In another order than declared, and a key that was not.
            let mut batch = Batch::new();
            batch.put("derived", "x");
            for number in (0..KEYS).rev().step_by(7) {
                batch.put(keys[number].clone(), format!("back{number}"));
            }
            Decision::Commit(batch)
        };
        let (one, two) =
            block_on(join(store.write(set, &mut first), store.write(set, &mut second)));
        one.and(two).expect("both commit");
        // Where a decision takes a round trip, the second write may have been the first to decide.
        let after: Vec<Option<Value>> = (0..KEYS)
            .map(|number| match third(number) {
                true => Some(Value::from(format!("{new}{number}"))),
                false => before[number].clone(),
            })
            .collect();
        assert!(seen == after || seen == before, "round {round}: {seen:?}");
        let back = KEYS - 1;
        let last = get(&*store, &keys[back]);
        let may_be_later = third(back).then(|| Value::from(format!("{new}{back}")));
        assert!(last == Some(Value::from(format!("back{back}"))) || last == may_be_later);
    }
    assert_eq!(get(&*store, b"derived"), Some(Value::from_static(b"x")));
}

/// An abort decided on a value still in flight resolves only when that value is durable.
pub fn aborts_wait_for_what_they_read(backend: &dyn Backend) {
    let store = backend.open();
    let keys = [key("k")];
    let set = WriteSet { guards: &[], keys: &keys };
    for round in 1..=50 {
        let turns = Turns::default();
        let mut write = |_: &[Option<Value>]| {
            turns.begin(1);
            put_number(&keys[0], round)
        };
        let mut seen = 0;
        let mut abort = |reads: &[Option<Value>]| {
            seen = number(reads[0].as_ref());
            Decision::Abort
        };
        let abort = async {
            turns.wait(1).await;
            store.write(set, &mut abort).await.expect("the abort resolves");
            number(store.get(b"k").await.expect("the read succeeds").as_ref())
        };
        let (written, visible) = block_on(join(store.write(set, &mut write), abort));
        written.expect("the write commits");
        assert_eq!((seen, visible), (round, round));
    }
}

pub fn transfers_keep_the_total(backend: &dyn Backend) {
    const ACCOUNTS: usize = 8;
    let store = backend.open();
    for account in 0..ACCOUNTS {
        put(&*store, &account.to_string(), "100");
    }
    let seed = Random::announced("transfers_keep_the_total").next_u64();
    let finished = AtomicUsize::new(0);
    on_threads(5, |thread| match thread {
        0 => {
            while finished.load(Ordering::Acquire) < 4 {
                let all = entries(&*store, KeyRange::all(), Direction::Forward);
                let total: i64 =
                    all.into_iter().map(|(_, value)| number(Some(&Value::from(value)))).sum();
                assert_eq!(total, 100 * ACCOUNTS as i64);
            }
        }
        _ => {
            let _finished = AtEnd(|| _ = finished.fetch_add(1, Ordering::Release));
            let mut random = Random::new(seed ^ thread as u64);
            for _ in 0..50 {
                let from = random.below(ACCOUNTS);
                let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
                transfer(&*store, from, to, 1 + random.below(20) as i64);
            }
        }
    });
}

fn transfer(store: &dyn Store, from: usize, to: usize, amount: i64) {
    let keys = [key(&from.to_string()), key(&to.to_string())];
    let set = WriteSet { guards: &[], keys: &keys };
    let outcome = block_on(write_with(store, set, |reads| {
        let (from, to) = (number(reads[0].as_ref()), number(reads[1].as_ref()));
        if from < amount {
            return Err("insufficient funds");
        }
        let mut batch = Batch::new();
        batch.put(keys[0].clone(), (from - amount).to_string());
        batch.put(keys[1].clone(), (to + amount).to_string());
        Ok((batch, ()))
    }));
    // Rejecting a transfer is as valid as making it.
    let _ = outcome.expect("the write resolves");
}

/// Writers that declare the same keys in different orders, and some keys twice, never deadlock.
pub fn overlapping_write_sets_do_not_deadlock(backend: &dyn Backend) {
    let store = backend.open();
    let all: Vec<Key> = (0..6).map(|number| key(&number.to_string())).collect();
    let seed = Random::announced("overlapping_write_sets_do_not_deadlock").next_u64();
    on_threads(6, |thread| {
        let mut random = Random::new(seed ^ thread as u64);
        for _ in 0..40 {
            let mut pick =
                || -> Vec<Key> { (0..3).map(|_| all[random.below(all.len())].clone()).collect() };
            let (guards, keys) = (pick(), pick());
            let set = WriteSet { guards: &guards, keys: &keys };
            let mut decide = |reads: &[Option<Value>]| {
                assert_eq!(reads.len(), 6);
                put_number(&keys[0], number(reads[3].as_ref()) + 1)
            };
            block_on(store.write(set, &mut decide)).expect("the write commits");
        }
    });
    let found = entries(&*store, KeyRange::all(), Direction::Forward);
    let total: i64 = found.into_iter().map(|(_, value)| number(Some(&Value::from(value)))).sum();
    assert_eq!(total, 240);
}

/// Once a guard has changed, no write decided on its old value lands any more.
pub fn guard_changes_exclude_guarded_writes(backend: &dyn Backend) {
    let store = backend.open();
    put(&*store, "guard", "0");
    let seed = Random::announced("guard_changes_exclude_guarded_writes").next_u64();
    let stop = AtomicBool::new(false);
    let (writers, progress): (Vec<_>, Vec<_>) = (0..3).map(|_| mpsc::channel()).unzip();
    thread::scope(|scope| {
        for (writer, written) in (0..).zip(writers) {
            let (store, stop) = (&*store, &stop);
            scope.spawn(move || {
                let mut random = Random::new(seed ^ writer);
                while !stop.load(Ordering::Acquire) {
                    let pause = Duration::from_micros(random.below(8000) as u64);
                    guarded_write(store, &format!("row/{writer}"), pause);
                    let _ = written.send(());
                }
            });
        }
        let _stop = AtEnd(|| stop.store(true, Ordering::Release));
        for version in 1..=20 {
            commit_locking(&*store, &[key("guard")], |batch| {
                batch.put("guard", version.to_string());
            });
            // Rows of an older version may exist, but no new one may appear.
            commit_locking(&*store, &[], |batch| batch.delete_range(KeyRange::prefix("row/")));
            // Wait until each writer has finished the write that it may have decided on the older version.
            for written in &progress {
                written.try_iter().for_each(drop);
                written.recv().expect("the writer goes on");
            }
            let rows = entries(&*store, KeyRange::prefix("row/"), Direction::Forward);
            for (_, value) in rows {
                assert_eq!(number(Some(&Value::from(value))), version);
            }
        }
    });
}

/// Writes the guard's value to a row. During the pause the guard must not change. The pause only
/// makes it likelier that another write comes in between: nothing depends on its length, so it can
/// hide a fault but not fail a correct store.
fn guarded_write(store: &dyn Store, row: &str, pause: Duration) {
    let (guards, keys) = ([key("guard")], [key(row)]);
    let set = WriteSet { guards: &guards, keys: &keys };
    let mut decide = |reads: &[Option<Value>]| {
        thread::sleep(pause);
        put_number(&keys[0], number(reads[0].as_ref()))
    };
    block_on(store.write(set, &mut decide)).expect("the write commits");
}

/// Writes that share only guards can be awaited together from one task. If a backend held a shared
/// guard until the commit and made the next write wait for it, this would never end.
pub fn guards_are_shared(backend: &dyn Backend) {
    let store = backend.open();
    let guards = [key("guard")];
    let keys: Vec<[Key; 1]> = (0..64).map(|number| [key(&format!("row/{number}"))]).collect();
    let mut decisions: Vec<_> = keys.iter().map(|keys| |_: &[_]| put_number(&keys[0], 1)).collect();
    let writes = keys
        .iter()
        .zip(&mut decisions)
        .map(|(keys, decide)| store.write(WriteSet { guards: &guards, keys }, decide));
    let begun = Instant::now();
    for outcome in block_on(join_all(writes)) {
        outcome.expect("the write commits");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "guarded writes wait for each other");
    assert_eq!(entries(&*store, KeyRange::prefix("row/"), Direction::Forward).len(), 64);
}
