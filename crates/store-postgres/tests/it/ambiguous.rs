//! Connections that are lost at COMMIT: the write reports the true outcome, and happens once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use zenobe_store::conformance::{block_on, entries};
use zenobe_store::copying::{Seal, SealState};
use zenobe_store::{Direction, KeyRange};
use zenobe_store_postgres::Options;
use zenobe_testing::{NetworkFault, Postgres, Proxy, wait_until};

use crate::support::{Database, get, increment, number, open};

/// Increments through a proxy that breaks every other commit. None is lost, and none happens twice.
fn check(faults: &[NetworkFault]) {
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
    // Delayed commits have arrived once their connections have ended, and are executed once no
    // session is in a transaction.
    proxy.reset();
    let name = name_of(&database);
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND state <> 'idle' \
         AND pid <> pg_backend_pid()"
    );
    wait_until(|| Postgres::shared().execute(name, &sql).trim() == "0");
    assert_eq!(number(get(&other, b"k").as_ref()), expected);
    let log = entries(&other, KeyRange::prefix("log/"), Direction::Forward);
    assert_eq!(log.len() as i64, expected);
}

fn name_of(database: &Database) -> &str {
    let path = database.url.split('?').next();
    path.and_then(|path| path.rsplit('/').next()).expect("a URL with a database")
}

#[test]
fn a_commit_that_did_not_arrive_is_made_again() {
    check(&[NetworkFault::CutBefore]);
}

#[test]
fn a_commit_whose_answer_is_lost_counts() {
    check(&[NetworkFault::CutAfter]);
}

/// The server still has the transaction, and would commit it after the node has given up.
#[test]
fn a_commit_that_arrives_late_is_fenced_off_or_waited_for() {
    check(&[
        NetworkFault::Late(Duration::from_millis(300)),
        NetworkFault::CutAfter,
        NetworkFault::CutBefore,
    ]);
}

/// The store is sealed after the transaction has committed, and before the node learns of that.
#[test]
fn a_commit_before_the_seal_counts() {
    let database = Database::new(Options::default());
    let proxy = Proxy::start(Postgres::shared().port);
    let store = open(&proxy.url(&database.url), Options::default());
    let other = database.store();
    increment(&store, "k").expect("the write commits");
    let name = name_of(&database);
    let has_waiter = |query: &str| {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND wait_event_type = 'Lock' \
             AND query LIKE '{query}%'"
        );
        Postgres::shared().execute(name, &sql).trim() != "0"
    };
    // The node asks for the outcome, and waits for the transaction. The seal waits behind both, and before the node's next
    // question.
    proxy.set(NetworkFault::Late(Duration::from_secs(3)));
    thread::scope(|scope| {
        let writing = scope.spawn(|| increment(&store, "k"));
        wait_until(|| has_waiter("INSERT INTO zenobe_commit") || writing.is_finished());
        let seal = Seal { id: 1, to: "elsewhere".into(), state: SealState::Moved };
        block_on(seal.put(&other)).expect("it is sealed");
        writing.join().expect("it ends well").expect("the true outcome is that it was written");
    });
    assert_eq!(number(get(&other, b"k").as_ref()), 2);
    increment(&store, "k").expect_err("it is sealed");
}

/// A commit that waits for a standby shows on the primary as soon as its session is ended. It is not
/// acknowledged before a standby has it: the standby may be the primary next.
#[test]
fn a_commit_that_no_standby_has_is_not_acknowledged() {
    let server = Postgres::start(&[]);
    let sql = |sql: &str| server.execute("postgres", sql);
    let store = open(&server.url("postgres"), Options::default());
    increment(&store, "k").expect("the write commits");
    sql("ALTER SYSTEM SET synchronous_standby_names = 'absent'");
    sql("SELECT pg_reload_conf()");
    wait_until(|| sql("SHOW synchronous_standby_names").trim() == "absent");

    let waiting = |query: &str| {
        let found = sql(&format!(
            "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '{query}%'"
        ));
        found.trim().to_owned()
    };
    let is_answered = AtomicBool::new(false);
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let written = increment(&store, "k");
            is_answered.store(true, Ordering::Release);
            written
        });
        wait_until(|| !waiting("COMMIT").is_empty());
        sql(&format!("SELECT pg_terminate_backend({})", waiting("COMMIT")));
        let is_answered = || is_answered.load(Ordering::Acquire);
        wait_until(|| is_answered() || !waiting("INSERT INTO zenobe_commit").is_empty());
        assert!(!is_answered(), "no standby has it");
        sql("ALTER SYSTEM RESET synchronous_standby_names");
        sql("SELECT pg_reload_conf()");
        writing.join().expect("it ends well").expect("the true outcome is that it was written");
    });
    assert_eq!(number(get(&store, b"k").as_ref()), 2);
}
