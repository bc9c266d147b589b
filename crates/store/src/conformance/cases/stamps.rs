//! Commit stamps: see [`crate::stamp`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::conformance::Backend;
use crate::conformance::support::{AtEnd, block_on, commit, entries, key, number, on_threads};
use crate::stamp::parts_of_stamped_key;
use crate::{Decision, Direction, Key, KeyRange, Mutation, Reader, Stamp, Store, Value, WriteSet};

/// What is stored under a name, with its stamps, in the order of the stamps.
fn stamped(reader: &dyn Reader, name: &str) -> Vec<(Stamp, String)> {
    let found = entries(reader, KeyRange::prefix(name.to_owned()), Direction::Forward);
    let parts = |(key, value): (Vec<u8>, Vec<u8>)| {
        let (before, stamp) = parts_of_stamped_key(&key).expect("a key with a stamp");
        assert_eq!(before, name.as_bytes());
        (stamp, String::from_utf8(value).expect("a text"))
    };
    found.into_iter().map(parts).collect()
}

/// Increments a key, and stores its new value under a stamp. `at_ms` is what the writer's clock shows.
fn count_up(store: &dyn Store, at_ms: u64) {
    let keys = [key("last")];
    let mut decide = |reads: &[Option<Value>]| {
        let next = number(reads[0].as_ref()) + 1;
        let mut batch = crate::Batch::new();
        batch.put("last", next.to_string());
        batch.put_stamped("clock", at_ms, "stamped/", next.to_string());
        Decision::Commit(batch)
    };
    let set = WriteSet { guards: &[], keys: &keys };
    block_on(store.write(set, &mut decide)).expect("the write commits");
}

/// Writers on several threads and stores, with clocks that disagree. The stamps have the order in
/// which the writes were decided, without gaps or repetitions.
pub fn stamps_of_a_clock_rise_with_the_commit_order(backend: &dyn Backend) {
    let one = backend.open();
    let other = backend.open_beside().unwrap_or_else(|| Arc::clone(&one));
    let stores = [&one, &other];
    on_threads(6, |thread| {
        for round in 0..20 {
            count_up(&**stores[thread % 2], (round * 7 + thread as u64 * 5) % 40);
        }
    });
    let found = stamped(&*one, "stamped/");
    let values: Vec<String> = found.iter().map(|(_, value)| value.clone()).collect();
    assert_eq!(values, (1..=120).map(|number| number.to_string()).collect::<Vec<_>>());
    assert!(found.is_sorted_by(|left, right| left.0 < right.0), "{found:?}");
    let first = found[0].0;
    let last = found[119].0;
    assert!(first < Stamp::first_of_ms(40) && last >= Stamp::first_of_ms(39), "{found:?}");
}

/// All stamped puts of a batch have the same stamp, after all its clocks. Each clock then shows it.
pub fn a_batch_has_one_stamp(backend: &dyn Backend) {
    let store = backend.open();
    commit(&*store, |batch| batch.put_stamped("clock/a", 9, "a/", "1"));
    commit(&*store, |batch| {
        batch.put_stamped("clock/a", 5, "a/", "2");
        batch.put_stamped("clock/b", 3, "b/", "1");
        batch.put_stamped("clock/b", 3, "c/", "1");
        batch.put("plain", "1");
    });
    commit(&*store, |batch| batch.put_stamped("clock/b", 4, "b/", "2"));
    let at = |at_ms, nth| (0..nth).fold(Stamp::first_of_ms(at_ms), |stamp: Stamp, _| stamp.next());
    let text = |text: &str| text.to_owned();
    assert_eq!(stamped(&*store, "a/"), [(at(9, 0), text("1")), (at(9, 1), text("2"))]);
    assert_eq!(stamped(&*store, "b/"), [(at(9, 1), text("1")), (at(9, 2), text("2"))]);
    assert_eq!(stamped(&*store, "c/"), [(at(9, 1), text("1"))]);
}

/// A clock continues where it was, even if the rows that it stamped are gone.
pub fn clocks_survive_reopening(backend: &dyn Backend) {
    let mut store = backend.open();
    commit(&*store, |batch| batch.put_stamped("clock", 100, "a/", "1"));
    commit(&*store, |batch| batch.advance("other", Stamp::last_of_ms(200)));
    commit(&*store, |batch| batch.delete_range(KeyRange::all()));
    if backend.survives_reopening() {
        block_on(store.close()).expect("the store closes");
        drop(store);
        store = backend.open();
    }
    commit(&*store, |batch| batch.put_stamped("clock", 1, "a/", "2"));
    commit(&*store, |batch| batch.put_stamped("other", 1, "b/", "2"));
    commit(&*store, |batch| batch.put_stamped("other", 300, "b/", "3"));
    let stamps = |name| stamped(&*store, name).into_iter().map(|(stamp, _)| stamp);
    assert_eq!(stamps("a/").collect::<Vec<_>>(), [Stamp::first_of_ms(100).next()]);
    assert_eq!(
        stamps("b/").collect::<Vec<_>>(),
        [Stamp::first_of_ms(201), Stamp::first_of_ms(300)]
    );
}

/// Once a clock has been advanced, a reader sees everything up to that stamp: nothing that is
/// committed later, by anybody, has a stamp before it.
pub fn an_advanced_clock_divides_commits(backend: &dyn Backend) {
    let one = backend.open();
    let other = backend.open_beside().unwrap_or_else(|| Arc::clone(&one));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for store in [&one, &other, &one] {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Acquire) {
                    count_up(&**store, 0);
                }
            });
        }
        let _end = AtEnd(|| is_over.store(true, Ordering::Release));
        let mut divided: Vec<(Stamp, Vec<(Stamp, String)>)> = Vec::new();
        for round in 1..=10 {
            let store = if round % 2 == 0 { &one } else { &other };
            let at = Stamp::last_of_ms(round * 1_000);
            commit(&**store, |batch| batch.advance("clock", at));
            let mut seen = stamped(&**store, "stamped/");
            seen.retain(|(stamp, _)| *stamp <= at);
            divided.push((at, seen));
        }
        is_over.store(true, Ordering::Release);
        for (at, seen) in divided {
            let mut now = stamped(&*one, "stamped/");
            now.retain(|(stamp, _)| *stamp <= at);
            assert_eq!(now, seen, "as of {at:?}");
        }
    });
}

/// A forgotten clock shows nothing.
pub fn forgotten_clocks_start_anew(backend: &dyn Backend) {
    let store = backend.open();
    let forget = Mutation::ForgetLog { log: Key::from("clock") };
    commit(&*store, |batch| batch.put_stamped("clock", 9, "a/", "1"));
    commit(&*store, |batch| batch.mutations.push(forget.clone()));
    commit(&*store, |batch| batch.put_stamped("clock", 2, "a/", "2"));
    let stamps = stamped(&*store, "a/").into_iter().map(|(stamp, _)| stamp);
    assert_eq!(stamps.collect::<Vec<_>>(), [Stamp::first_of_ms(2), Stamp::first_of_ms(9)]);
}
