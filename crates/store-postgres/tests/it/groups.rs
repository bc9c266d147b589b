//! Writes that share transactions, and the round trips that they take.

use futures_util::future::join_all;
use zenobe_store::conformance::{block_on, commit};
use zenobe_store::{Batch, Decision, Key, Store, Value, WriteSet};
use zenobe_store_postgres::Options;

use crate::proxy::{Fault, Proxy};
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
    assert_eq!(statistics.commit_batches, 300);
    assert!(statistics.commit_groups <= 100, "{} groups", statistics.commit_groups);
}

/// A write of cached keys takes one round trip: COMMIT is sent before any response arrives.
#[test]
fn a_write_of_a_known_key_is_one_exchange() {
    let database = Database::new(Options::default());
    let proxy = Proxy::start();
    let store = open(&proxy.url(&database.url), Options::default());
    let (guards, keys) = ([Key::from("guard")], [Key::from("k")]);
    commit(&store, |batch| batch.put("guard", "1"));
    for round in 1..=5 {
        if round > 1 {
            // Responses are held back, so this would hang if it waited for one.
            proxy.set(Fault::HoldAnswers);
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
