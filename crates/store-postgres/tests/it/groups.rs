//! Writes that share transactions, and the round trips that they take.

use futures_util::future::join_all;
use zenobe_store::conformance::{block_on, commit};
use zenobe_store::{Batch, Decision, Key, Store, Value, WriteSet};
use zenobe_store_postgres::Options;
use zenobe_testing::{NetworkFault, Postgres, Proxy};

use crate::support::{Database, get, number, open};

/// Writes that wait together are committed together.
#[test]
fn concurrent_writes_share_transactions() {
    let store = Database::new(Options { writers: 2, ..Options::default() }).store();
    let keys: Vec<[Key; 1]> = (0..300).map(|row| [Key::from(format!("row/{row}"))]).collect();
    let mut decisions: Vec<_> = keys
        .iter()
        .map(|keys| {
            |_: &[Option<Value>]| {
                let mut batch = Batch::new();
                batch.put(keys[0].clone(), "x");
                batch.add("count", 1);
                Decision::Commit(batch)
            }
        })
        .collect();
    let writes = keys
        .iter()
        .zip(&mut decisions)
        .map(|(keys, decide)| store.write(WriteSet { guards: &[], keys }, decide));
    for outcome in block_on(join_all(writes)) {
        outcome.expect("the write commits");
    }
    let statistics = store.statistics();
    assert_eq!(statistics.committed_writes, 300);
    assert!(statistics.commit_groups <= 100, "{} groups", statistics.commit_groups);
}

/// A write of cached keys takes one round trip: COMMIT is sent before any response arrives.
#[test]
fn a_write_of_a_known_key_is_one_exchange() {
    let database = Database::new(Options::default());
    let proxy = Proxy::start(Postgres::shared().port);
    let store = open(&proxy.url(&database.url), Options::default());
    let (guards, keys) = ([Key::from("guard")], [Key::from("k")]);
    commit(&store, |batch| batch.put("guard", "1"));
    for round in 1..=5 {
        if round > 1 {
            // Responses are held back, so this would hang if it waited for one.
            proxy.set(NetworkFault::HoldAnswers);
        }
        let mut decide = |reads: &[Option<Value>]| {
            let mut batch = Batch::new();
            batch.put("k", (number(reads[1].as_ref()) + 1).to_string());
            batch.add("count", 1);
            Decision::Commit(batch)
        };
        block_on(store.write(WriteSet { guards: &guards, keys: &keys }, &mut decide))
            .expect("the write commits");
        assert!(proxy.has_struck());
        assert_eq!(number(get(&store, b"k").as_ref()), round);
    }
}

/// Two nodes that keep changing the same keys soon read them before they decide, instead of deciding in vain each time.
#[test]
fn memory_that_others_refute_is_not_decided_on() {
    const ROUNDS: usize = 40;
    const KEYS: usize = 10;
    let database = Database::new(Options::default());
    let stores = [database.store(), database.store()];
    let mut decisions = 0;
    for _ in 0..ROUNDS {
        for store in &stores {
            for key in 0..KEYS {
                let keys = [Key::from(format!("k{key}"))];
                let mut decide = |reads: &[Option<Value>]| {
                    decisions += 1;
                    let mut batch = Batch::new();
                    batch.put(keys[0].clone(), (number(reads[0].as_ref()) + 1).to_string());
                    Decision::Commit(batch)
                };
                block_on(store.write(WriteSet { guards: &[], keys: &keys }, &mut decide))
                    .expect("the write commits");
            }
        }
    }
    for key in 0..KEYS {
        let value = get(&stores[0], format!("k{key}").as_bytes());
        assert_eq!(number(value.as_ref()), 2 * ROUNDS as i64);
    }
    let writes = 2 * ROUNDS * KEYS;
    assert!(decisions * 2 < writes * 3, "{decisions} decisions for {writes} writes");
}

/// A write of known rows and counters: guarded, like the engine's. Returns how often it was decided.
fn put_and_count(store: &dyn Store, key: &str) -> usize {
    let (guards, keys) = ([Key::from("guard")], [Key::copy_from_slice(key.as_bytes())]);
    let mut decisions = 0;
    let mut decide = |reads: &[Option<Value>]| {
        decisions += 1;
        let mut batch = Batch::new();
        batch.put(keys[0].clone(), (number(reads[1].as_ref()) + 1).to_string());
        batch.add("count", 1);
        Decision::Commit(batch)
    };
    let set = WriteSet { guards: &guards, keys: &keys };
    block_on(store.write(set, &mut decide)).expect("the write commits");
    decisions
}

fn counted(store: &dyn Store) -> u64 {
    let count = get(store, b"count").expect("it was added to");
    u64::from_be_bytes(count[..].try_into().expect("a counter"))
}

/// BEGIN; the guard, the row, the counter, and the commit's id; COMMIT. The counter's own row is known to exist.
#[test]
fn a_write_of_known_rows_has_a_statement_for_each_step() {
    let database = Database::new(Options::default());
    let proxy = Proxy::start(Postgres::shared().port);
    let store = open(&proxy.url(&database.url), Options::default());
    commit(&store, |batch| batch.put("guard", "1"));
    (0..3).for_each(|_| _ = put_and_count(&store, "k"));
    // The store's upkeep may send a statement of its own at any time, but hardly in each of these.
    let sent = (0..5).map(|_| {
        let before = proxy.statements();
        put_and_count(&store, "k");
        proxy.statements() - before
    });
    assert_eq!(sent.min(), Some(6));
    assert_eq!(counted(&store), 8);
}

/// Another node deletes or replaces a counter that this node has added to. No later addition is lost, and only the next one conflicts.
#[test]
fn additions_count_after_another_node_has_begun_the_counter_again() {
    let database = Database::new(Options::default());
    let [store, other] = [database.store(), database.store()];
    commit(&other, |batch| batch.put("guard", "1"));
    let replaced = 10_u64.to_be_bytes();
    for begun in [None, Some(Value::copy_from_slice(&replaced)), None] {
        (0..6).for_each(|_| _ = put_and_count(&store, "k"));
        commit(&other, |batch| match &begun {
            None => batch.delete("count"),
            Some(value) => batch.put("count", value.clone()),
        });
        let decisions: usize = (0..12).map(|_| put_and_count(&store, "k")).sum();
        assert!(
            decisions <= 12 + 2,
            "{decisions} decisions: one conflict begins the counter again"
        );
        let before = begun.map_or(0, |_| 10);
        assert_eq!([counted(&store), counted(&other)], [before + 12; 2]);
    }
    assert_eq!(number(get(&other, b"k").as_ref()), 54);
}
