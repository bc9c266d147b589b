use futures_util::FutureExt;
use futures_util::future::{join, join_all};

use crate::conformance::Backend;
use crate::conformance::support::{
    block_on, commit, entries, get, get_text, key, names, number, put, snapshot,
};
use crate::{Batch, Decision, Direction, Error, KeyRange, Value, WriteSet, decode_counter};

/// A write whose future is dropped is either never decided or committed as usual. Either way it
/// blocks nobody, and the counter shows how many were committed.
pub fn dropped_writes_leave_nothing_half_done(backend: &dyn Backend) {
    let store = backend.open();
    let keys = [key("k")];
    let set = WriteSet { guards: &[], keys: &keys };
    let mut decided = 0;
    for round in 0..100 {
        let mut decide = |reads: &[Option<Value>]| {
            decided += 1;
            let mut batch = Batch::new();
            batch.put("k", (number(reads[0].as_ref()) + 1).to_string());
            batch.add("count", 1);
            Decision::Commit(batch)
        };
        let mut write = store.write(set, &mut decide);
        // Dropped before the first poll, or after it.
        if round % 2 == 0 {
            let _ = (&mut write).now_or_never();
        }
        drop(write);
    }
    put(&*store, "after", "x");
    let written = number(get(&*store, b"k").as_ref());
    assert!(written <= decided, "{written} writes of {decided} decided");
    assert_eq!(decode_counter(get(&*store, b"count").as_deref()).unwrap(), written);
}

pub fn a_closed_store_refuses(backend: &dyn Backend) {
    let store = backend.open();
    put(&*store, "k", "1");
    let snapshot = snapshot(&*store);
    block_on(store.close()).expect("the store closes");
    let mut decided = false;
    let outcome = block_on(store.write(WriteSet::default(), &mut |_| {
        decided = true;
        Decision::Abort
    }));
    assert!(matches!(outcome, Err(Error::Closed)), "{outcome:?}");
    assert!(!decided, "a closed store decides nothing");
    let read = block_on(store.get(b"k"));
    assert!(matches!(read, Err(Error::Closed)), "{read:?}");
    let read = block_on(store.snapshot().get(b"k"));
    assert!(matches!(read, Err(Error::Closed)), "{read:?}");
    assert_eq!(get_text(&*snapshot, "k").as_deref(), Some("1"), "an earlier snapshot still reads");
    block_on(store.close()).expect("closing again does nothing");
}

/// Closing waits for accepted writes: each commits or reports that the store is closed.
pub fn closing_finishes_accepted_writes(backend: &dyn Backend) {
    let store = backend.open();
    let mut decisions: Vec<_> = (0..50)
        .map(|number| {
            move |_: &[Option<Value>]| {
                let mut batch = Batch::new();
                batch.put(format!("row/{number:02}"), "x");
                Decision::Commit(batch)
            }
        })
        .collect();
    let set = WriteSet::default();
    let writes = join_all(decisions.iter_mut().map(|decide| store.write(set, decide)));
    let (outcomes, closed) = block_on(async { join(writes, store.close()).await });
    closed.expect("the store closes");
    let committed = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    for outcome in outcomes {
        assert!(matches!(outcome, Ok(_) | Err(Error::Closed)), "{outcome:?}");
    }
    drop(store);
    if backend.survives_reopening() {
        let store = backend.open();
        let found = entries(&*store, KeyRange::prefix("row/"), Direction::Forward);
        assert_eq!(found.len(), committed);
    }
}

pub fn reopening_keeps_everything(backend: &dyn Backend) {
    if !backend.survives_reopening() {
        return;
    }
    for round in 1..=4 {
        let store = backend.open();
        let outcome = commit(&*store, |batch| {
            batch.put(format!("row/{round}"), round.to_string());
            batch.put("last", round.to_string());
            batch.append("log/", 0, round.to_string());
            batch.add("count", 10);
            batch.delete(format!("row/{}", round - 2));
        });
        assert_eq!(outcome.sequences, [round as u64]);
        let count = decode_counter(get(&*store, b"count").as_deref()).unwrap();
        assert_eq!(count, 10 * round);
        block_on(store.close()).expect("the store closes");
    }
    let store = backend.open();
    let rows = names(&*store, KeyRange::prefix("row/"), Direction::Forward);
    assert_eq!(rows, ["row/3", "row/4"]);
    assert_eq!(get_text(&*store, "last").as_deref(), Some("4"));
    assert_eq!(entries(&*store, KeyRange::prefix("log/"), Direction::Forward).len(), 4);
}

pub fn statistics_count_commits(backend: &dyn Backend) {
    let store = backend.open();
    let before = store.statistics();
    for round in 0..10 {
        commit(&*store, |batch| batch.put(format!("row/{round}"), vec![7; 10_000]));
    }
    let after = store.statistics();
    assert_eq!(after.committed_writes - before.committed_writes, 10);
    let groups = after.commit_groups - before.commit_groups;
    assert!((1..=10).contains(&groups), "{groups} groups");
    assert!(after.size_bytes > 0);
    assert_eq!(after.write_failure, None);
}

/// Reclaiming is a hint: it changes nothing that a reader sees, neither now nor in earlier
/// snapshots.
pub fn reclaiming_changes_nothing_visible(backend: &dyn Backend) {
    let store = backend.open();
    for round in 0..200 {
        commit(&*store, |batch| batch.put(format!("row/{round:03}"), vec![1; 500]));
    }
    let snapshot = snapshot(&*store);
    commit(&*store, |batch| batch.delete_range(KeyRange::new("row/050", "row/150")));
    block_on(store.reclaim(KeyRange::all())).expect("the hint is taken");
    block_on(store.reclaim(KeyRange::new("row/050", "row/150"))).expect("the hint is taken");
    block_on(store.reclaim(KeyRange::new("z", "a"))).expect("the hint is taken");
    assert_eq!(entries(&*store, KeyRange::all(), Direction::Forward).len(), 100);
    assert_eq!(entries(&*snapshot, KeyRange::all(), Direction::Forward).len(), 200);
    put(&*store, "row/100", "new");
    assert_eq!(get_text(&*store, "row/100").as_deref(), Some("new"));
}
