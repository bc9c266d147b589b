use futures_util::future::join;

use crate::conformance::Backend;
use crate::conformance::support::{
    Turns, block_on, commit, commit_locking, entries, get_text, key, names, on_threads, put,
};
use crate::{
    Batch, CommitOutcome, Decision, Direction, KeyRange, Store, Value, WriteSet, write_with,
};

const FORWARD: Direction = Direction::Forward;

pub fn applies_a_batch_in_order(backend: &dyn Backend) {
    let store = backend.open();
    put(&*store, "b", "old");
    commit_locking(&*store, &[key("a"), key("b"), key("c")], |batch| {
        batch.put("a", "1");
        batch.put("a", "2");
        batch.delete("b");
        batch.put("c", "1");
        batch.delete("c");
    });
    assert_eq!(names(&*store, KeyRange::all(), FORWARD), ["a"]);
    assert_eq!(get_text(&*store, "a").as_deref(), Some("2"));
    commit(&*store, |batch| {
        batch.delete_range(KeyRange::all());
        batch.put("kept", "1");
    });
    assert_eq!(names(&*store, KeyRange::all(), FORWARD), ["kept"]);
}

pub fn hands_guards_then_keys_to_the_decision(backend: &dyn Backend) {
    let store = backend.open();
    for name in ["g1", "k1", "k2"] {
        put(&*store, name, name);
    }
    let set = WriteSet {
        guards: &[key("g2"), key("g1")],
        keys: &[key("k2"), key("missing"), key("k1"), key("k2")],
    };
    let mut seen = Vec::new();
    let mut decide = |reads: &[Option<Value>]| {
        seen = reads.to_vec();
        Decision::Commit(Batch::new())
    };
    let outcome = block_on(store.write(set, &mut decide)).expect("the write commits");
    assert_eq!(outcome, CommitOutcome::default());
    let expected = [None, Some("g1"), Some("k2"), None, Some("k1"), Some("k2")];
    assert_eq!(seen, expected.map(|text| text.map(Value::from)));
}

pub fn abort_writes_nothing(backend: &dyn Backend) {
    let store = backend.open();
    put(&*store, "k", "before");
    let keys = [key("k")];
    let set = WriteSet { guards: &[], keys: &keys };
    let outcome = block_on(store.write(set, &mut |_| Decision::Abort)).expect("the write resolves");
    assert_eq!(outcome, CommitOutcome::default());
    assert_eq!(get_text(&*store, "k").as_deref(), Some("before"));

    let typed: Result<_, &str> =
        block_on(write_with(&*store, set, |_| Err::<(Batch, ()), _>("condition failed")))
            .expect("the write resolves");
    assert_eq!(typed.unwrap_err(), "condition failed");
    // The keys are unlocked again.
    put(&*store, "k", "after");
    assert_eq!(get_text(&*store, "k").as_deref(), Some("after"));
}

pub fn typed_outcomes_come_back(backend: &dyn Backend) {
    let store = backend.open();
    put(&*store, "k", "41");
    let keys = [key("k")];
    let set = WriteSet { guards: &[], keys: &keys };
    let answer = block_on(write_with(&*store, set, |reads| {
        let mut batch = Batch::new();
        batch.put("k", "42");
        batch.append("log", 0, "entry");
        Ok::<_, ()>((batch, reads[0].clone()))
    }));
    let (old, outcome) = answer.expect("the write resolves").expect("the decision commits");
    assert_eq!(old, Some(Value::from("41")));
    assert_eq!(outcome.sequences, [1]);
}

pub fn delete_range_deletes_its_range_only(backend: &dyn Backend) {
    let store = backend.open();
    for name in ["a", "b", "bb", "c", "d"] {
        put(&*store, name, name);
    }
    commit(&*store, |batch| batch.delete_range(KeyRange::new("b", "d")));
    assert_eq!(names(&*store, KeyRange::all(), FORWARD), ["a", "d"]);
    // Empty and inverted ranges contain no keys.
    commit(&*store, |batch| {
        batch.delete_range(KeyRange::new("a", "a"));
        batch.delete_range(KeyRange::new("z", "a"));
    });
    assert_eq!(names(&*store, KeyRange::all(), FORWARD), ["a", "d"]);
    put(&*store, "c", "again");
    assert_eq!(names(&*store, KeyRange::all(), FORWARD), ["a", "c", "d"]);
    commit(&*store, |batch| batch.put(vec![0xFF; 40], "last"));
    commit(&*store, |batch| batch.delete_range(KeyRange { start: key("c"), end: None }));
    assert_eq!(names(&*store, KeyRange::all(), FORWARD), ["a"]);
}

/// Writes queued behind a range delete already see it, before any of them is acknowledged.
pub fn delete_range_is_seen_by_later_decisions(backend: &dyn Backend) {
    let store = backend.open();
    for round in 0..30 {
        let keys = [key("range/a"), key("range/b")];
        commit_locking(&*store, &keys, |batch| {
            batch.put("range/a", "old");
            batch.put("range/b", "old");
        });
        let seen = decisions_behind_a_range_delete(&*store, &keys);
        assert_eq!(seen, [None, None], "round {round}");
        assert_eq!(get_text(&*store, "range/a").as_deref(), Some("new"), "round {round}");
        assert_eq!(get_text(&*store, "range/b"), None, "round {round}");
    }
}

/// A declared key that was absent, put after a range around it has been deleted.
pub fn a_put_behind_a_deleted_range_stays(backend: &dyn Backend) {
    let store = backend.open();
    put(&*store, "range/a", "old");
    commit_locking(&*store, &[key("range/a"), key("range/b")], |batch| {
        batch.delete_range(KeyRange::prefix("range/"));
        batch.put("range/b", "new");
    });
    assert_eq!(names(&*store, KeyRange::all(), FORWARD), ["range/b"]);
    assert_eq!(get_text(&*store, "range/b").as_deref(), Some("new"));
}

fn decisions_behind_a_range_delete(
    store: &dyn Store,
    keys: &[crate::Key; 2],
) -> Vec<Option<Value>> {
    let turns = Turns::default();
    let mut seen = Vec::new();
    let mut delete = |_: &[Option<Value>]| {
        turns.begin(1);
        let mut batch = Batch::new();
        batch.delete_range(KeyRange::prefix("range/"));
        Decision::Commit(batch)
    };
    let mut decide = |reads: &[Option<Value>]| {
        seen = reads.to_vec();
        let mut batch = Batch::new();
        batch.put("range/a", "new");
        Decision::Commit(batch)
    };
    let set = WriteSet { guards: &[], keys };
    let second = async {
        turns.wait(1).await;
        store.write(set, &mut decide).await
    };
    let (first, second) = block_on(join(store.write(set, &mut delete), second));
    first.expect("the range delete commits");
    second.expect("the write behind it commits");
    seen
}

/// No reader sees part of a batch of several keys, whatever else is being written.
pub fn batches_are_atomic_under_load(backend: &dyn Backend) {
    let store = backend.open();
    on_threads(4, |thread| {
        for round in 0..25 {
            let keys: Vec<_> = (0..5).map(|part| key(&format!("{thread}/{part}"))).collect();
            commit_locking(&*store, &keys, |batch| {
                for name in &keys {
                    batch.put(name.clone(), round.to_string());
                }
            });
            for other in 0..4 {
                let range = KeyRange::prefix(format!("{other}/"));
                let found = entries(&*store, range, FORWARD);
                assert!(found.is_empty() || found.len() == 5, "{found:?}");
                assert!(found.iter().all(|(_, value)| *value == found[0].1), "{found:?}");
            }
        }
    });
}
