//! Connections that are lost at COMMIT: the write reports the true outcome, and happens once.

use std::time::Duration;

use zenobe_store::conformance::entries;
use zenobe_store::{Direction, KeyRange};
use zenobe_store_postgres::Options;
use zenobe_testing::{Fault, Postgres, Proxy};

use crate::support::{Database, get, increment, number, open};

/// Increments through a proxy that breaks every other commit. None is lost, and none happens twice.
fn check(faults: &[Fault]) {
    let database = Database::new(Options::default());
    let proxy = Proxy::start(Postgres::shared().port);
    let store = open(&proxy.url(&database.url), Options::default());
    let other = database.store();
    let mut expected = 0;
    for round in 0..12 {
        let fault = faults[round % faults.len()];
        proxy.set(fault);
        let outcome = increment(&store, "k").expect("the true outcome is that it was written");
        expected += 1;
        assert!(proxy.has_struck(), "round {round}: {fault:?} met no COMMIT");
        assert_eq!(outcome.sequences, [expected as u64], "round {round}, {fault:?}");
        assert_eq!(number(get(&other, b"k").as_ref()), expected, "round {round}, {fault:?}");
        // Another node writes in between, so that the cache is stale.
        increment(&other, "k").expect("it is written");
        expected += 1;
    }
    // Delayed commits have arrived by now.
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(number(get(&other, b"k").as_ref()), expected);
    let log = entries(&other, KeyRange::prefix("log/"), Direction::Forward);
    assert_eq!(log.len() as i64, expected);
}

#[test]
fn a_commit_that_did_not_arrive_is_made_again() {
    check(&[Fault::CutBefore]);
}

#[test]
fn a_commit_whose_answer_is_lost_counts() {
    check(&[Fault::CutAfter]);
}

/// The server still has the transaction, and would commit it after the node has given up.
#[test]
fn a_commit_that_arrives_late_is_fenced_off_or_waited_for() {
    check(&[Fault::Late(Duration::from_millis(300)), Fault::CutAfter, Fault::CutBefore]);
}
