//! Several stores on the same data, as in several processes. A backend that allows only one store
//! runs the cases that make sense on one.

use std::sync::{Arc, Barrier};
use std::thread;

use crate::conformance::Backend;
use crate::conformance::support::{
    block_on, commit_locking, entries, get, get_text, key, number, on_threads, put, snapshot,
};
use crate::redeciding::RedecidingStore;
use crate::{
    Batch, Decision, Direction, Key, KeyRange, Store, Value, WriteSet, decode_counter, write_with,
};

/// Two writes that each require the other's key to be absent: one of them finds it. It makes no
/// difference whether the key is declared as a key or as a guard.
pub fn absence_is_not_skewed(backend: &dyn Backend) {
    let one = backend.open();
    let other = backend.open_beside().unwrap_or_else(|| Arc::clone(&one));
    for round in 0..40 {
        let mine = [key(&format!("{round}/left")), key(&format!("{round}/right"))];
        let theirs = [mine[1].clone(), mine[0].clone()];
        let as_guard = round % 2 == 0;
        let start = Barrier::new(2);
        thread::scope(|scope| {
            for (store, names) in [(&one, &mine), (&other, &theirs)] {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    put_if_absent(&**store, &names[0], &names[1], as_guard);
                });
            }
        });
        let found = entries(&*one, KeyRange::prefix(format!("{round}/")), Direction::Forward);
        assert_eq!(found.len(), 1, "round {round}: {found:?}");
    }
}

/// Puts `name` if `rival` is absent.
fn put_if_absent(store: &dyn Store, name: &Key, rival: &Key, as_guard: bool) {
    let both = [name.clone(), rival.clone()];
    let set = match as_guard {
        true => WriteSet { guards: &both[1..], keys: &both[..1] },
        false => WriteSet { guards: &[], keys: &both },
    };
    let mut decide = |reads: &[Option<Value>]| {
        let rival = if as_guard { &reads[0] } else { &reads[1] };
        let mut batch = Batch::new();
        match rival {
            Some(_) => return Decision::Abort,
            None => batch.put(name.clone(), "here"),
        }
        Decision::Commit(batch)
    };
    block_on(store.write(set, &mut decide)).expect("the write answers");
}

/// A decision that runs again forgets what it decided before.
pub fn decisions_made_again_start_afresh(backend: &dyn Backend) {
    let store = RedecidingStore::new(backend.open());
    on_threads(4, |_| {
        for _ in 0..20 {
            let keys = [key("k")];
            let set = WriteSet { guards: &[], keys: &keys };
            let answer = block_on(write_with(&store, set, |reads| {
                let next = number(reads[0].as_ref()) + 1;
                let mut batch = Batch::new();
                batch.put("k", next.to_string());
                batch.append("log/", 0, next.to_string());
                batch.add("count", 1);
                Ok::<_, ()>((batch, next))
            }));
            let (next, outcome) = answer.expect("the write commits").expect("it is decided");
            assert_eq!(outcome.sequences, [next as u64]);
        }
    });
    assert_eq!(number(get(&store, b"k").as_ref()), 80);
    assert_eq!(decode_counter(get(&store, b"count").as_deref()).unwrap(), 80);
}

/// Writers of both stores increment the same keys, append to the same log and add to the same
/// counter.
pub fn stores_on_the_same_data_lose_no_update(backend: &dyn Backend) {
    let one = backend.open();
    let Some(other) = backend.open_beside() else { return };
    let stores = [&one, &other];
    on_threads(6, |thread| {
        let store = stores[thread % 2];
        for round in 0..20 {
            let keys = [key(&format!("k/{}", round % 3)), key("all")];
            let mut decide = |reads: &[Option<Value>]| {
                let mut batch = Batch::new();
                for (name, read) in keys.iter().zip(reads) {
                    batch.put(name.clone(), (number(read.as_ref()) + 1).to_string());
                }
                let all = number(reads[1].as_ref()) + 1;
                batch.append("log/", all as u64 % 7, all.to_string());
                batch.add("count", 1);
                Decision::Commit(batch)
            };
            let set = WriteSet { guards: &[], keys: &keys };
            let outcome = block_on(store.write(set, &mut decide)).expect("the write commits");
            assert_eq!(outcome.sequences.len(), 1);
        }
    });
    for store in stores {
        let counted = entries(&**store, KeyRange::prefix("k/"), Direction::Forward);
        let sum: i64 = counted.into_iter().map(|(_, value)| number(Some(&value.into()))).sum();
        assert_eq!((sum, number(get(&**store, b"all").as_ref())), (120, 120));
        assert_eq!(decode_counter(get(&**store, b"count").as_deref()).unwrap(), 120);
        let log = entries(&**store, KeyRange::prefix("log/"), Direction::Forward);
        // After its stamp, each entry holds the number that was current when it was appended.
        let values: Vec<i64> =
            log.iter().map(|(_, entry)| number(Some(&entry[8..].to_vec().into()))).collect();
        assert_eq!(values, (1..=120).collect::<Vec<_>>());
        assert!(log.is_sorted_by_key(|(_, entry)| entry[..8].to_vec()), "stamps descend");
    }
}

/// When one store acknowledges a write, the other reads it and decides on it at once, whatever it
/// has cached.
pub fn stores_on_the_same_data_see_each_other(backend: &dyn Backend) {
    let one = backend.open();
    let Some(other) = backend.open_beside() else { return };
    for round in 0..20 {
        let (writer, reader) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        put(&**writer, "k", &round.to_string());
        assert_eq!(number(get(&**reader, b"k").as_ref()), round);
        assert_eq!(number(get(&*snapshot(&**reader), b"k").as_ref()), round);
        let keys = [key("k"), key("gone")];
        let mut seen = Vec::new();
        let mut decide = |reads: &[Option<Value>]| {
            seen = reads.iter().map(|read| number(read.as_ref())).collect();
            Decision::Abort
        };
        let set = WriteSet { guards: &[], keys: &keys };
        block_on(reader.write(set, &mut decide)).expect("the write answers");
        assert_eq!(seen, [round, 0], "an abort is decided on what is there");
        commit_locking(&**reader, &keys, |batch| batch.put("gone", "1"));
        commit_locking(&**writer, &keys, |batch| batch.delete_range(KeyRange::prefix("gone")));
        assert_eq!(get_text(&**reader, "gone"), None);
    }
}
