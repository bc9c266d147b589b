//! A lease that is stolen between the reads of a step and its write: the step must write nothing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::FutureExt;
use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::{ThroughputSettings, UpdateTable};
use zenobe_engine::error::Error;
use zenobe_engine::restore::{RestoreFrom, RestoreOverrides, RestoreTable};
use zenobe_engine::{Engine, EngineOptions, keyspace};
use zenobe_store::intercepting::InterceptingStore;
use zenobe_store::memory::MemoryStore;

use super::{HOUR_MS, START_MS, contents, count, node, options};
use crate::support::block_on;
use crate::support::commands::Script;

const WORKS: [&str; 8] =
    ["expiry", "expiry-indexes", "garbage", "indexes", "jobs", "partitions", "streams", "tokens"];

/// Longer than the rows of jobs that have ended are kept.
const JOB_AGE_MS: u64 = 91 * 24 * HOUR_MS;

/// Before each write guarded by a lease, the thief takes that lease. Returns what has been stolen.
fn steal_before_writes(
    store: &InterceptingStore,
    thief: Arc<Engine>,
) -> Arc<Mutex<BTreeSet<&'static str>>> {
    let stolen: Arc<Mutex<BTreeSet<&'static str>>> = Arc::default();
    let loot = Arc::clone(&stolen);
    store.intercept(move |set| {
        let is_guard = |work: &&str| set.guards.contains(&keyspace::lease_row(work));
        let works: Vec<&'static str> = WORKS.into_iter().filter(is_guard).collect();
        let (thief, loot) = (Arc::clone(&thief), Arc::clone(&loot));
        let steal = async move {
            for work in works {
                let lease = thief.lease(work).await.expect("the row can be read");
                assert!(lease.is_some(), "{work}: nothing keeps anybody from taking it");
                loot.lock().unwrap().insert(work);
            }
        };
        Some(steal.boxed())
    });
    stolen
}

/// Pending work of every kind.
async fn unfinished(script: &mut Script, clock: &ManualClock) {
    let second = START_MS / 1_000;
    script.expect(&["create saved pk:S"], "ok").await;
    let saved = script.table("saved");
    let id = script.engine().create_backup(&saved, "b").await.unwrap().id;
    let (source, target) = (RestoreFrom::Backup { table: saved, id }, script.table("restored"));
    let restore = RestoreTable { source, target, overrides: RestoreOverrides::default() };
    script.engine().restore_table(restore).await.unwrap();
    // The second round is for the garbage of the first.
    script.expect(&["work"], "ok").await;
    script.expect(&["work"], "ok").await;
    clock.advance_ms(JOB_AGE_MS);

    // A partition map that the definition alone does not tell: it has grown.
    script.expect(&["create grown pk:S"], "ok").await;
    script.expect(&[r#"put grown {"pk": "a"}"#], "new").await;
    let throughput =
        ThroughputSettings { warm_write_units: Some(20_000), ..ThroughputSettings::default() };
    let growth = UpdateTable { throughput, ..UpdateTable::of(script.table("grown")) };
    script.engine().update_table(growth).await.unwrap();
    script.expect(&[r#"put grown {"pk": "b"}"#], "new").await;

    script.expect(&["create expiring pk:S"], "ok").await;
    script.expect(&["ttl expiring on e"], "ok").await;
    let put = format!(r#"repeat 0..100 put expiring {{"pk": "$i", "e": {second}}}"#);
    script.run(&[&put]).await;

    for table in ["indexed", "late", "dropped"] {
        script.expect(&[&format!("create {table} pk:S")], "ok").await;
        let put = format!(r#"repeat 0..20 put {table} {{"pk": "$i", "g": "G", "e": 1}}"#);
        script.run(&[&put]).await;
    }
    script.expect(&["add-index indexed by_g g:S - keys"], "ok").await;
    script.expect(&["ttl late on e"], "ok").await;
    script.expect(&["drop dropped"], "ok").await;

    script.expect(&["create streamed pk:S"], "ok").await;
    script.expect(&["stream streamed new"], "ok").await;
    script.expect(&[r#"put streamed {"pk": "a"}"#], "new").await;
    let transaction = ["transact-write", r#"put streamed {"pk": "b"}"#, "token t"];
    script.expect(&transaction, "consumed").await;
    clock.advance_ms(5 * HOUR_MS);
}

#[test]
fn a_step_whose_lease_was_stolen_writes_nothing() {
    block_on(async {
        let clock = Arc::new(ManualClock::new(START_MS));
        let options = EngineOptions { lease_period: Duration::ZERO, ..options(&clock) };
        let memory = Arc::new(MemoryStore::shared());
        let store = Arc::new(InterceptingStore::new(memory.clone()));
        let mut victim = node(store.clone(), options.clone(), &clock).await;
        let mut thief = node(memory.clone(), options, &clock).await;
        unfinished(&mut victim, &clock).await;
        let before = contents(&memory).await;

        let stolen = steal_before_writes(&store, Arc::clone(thief.engine()));
        let outcome = victim.engine().run_pending_work().await;
        assert!(matches!(outcome, Err(Error::LeaseLost { .. })), "{outcome:?}");
        assert_eq!(*stolen.lock().unwrap(), BTreeSet::from(WORKS));
        assert_eq!(contents(&memory).await, before);
        assert_eq!(victim.engine().expired_items(), 0);

        // The engine that took the leases can do the work.
        thief.expect(&["work"], "ok").await;
        assert_eq!(count(&victim, "expiring").await, 0);
        assert_eq!(thief.engine().expired_items(), 100);
        let found = victim.run(&["query indexed/by_g g = `\"G\"`", "select count"]).await;
        assert!(found.starts_with("count 20 of 20"), "{found}");
        for (table, left) in [("late", 20), ("indexed", 20), ("streamed", 2)] {
            let table = victim.table(table);
            assert_eq!(victim.engine().check_consistency(&table).await.unwrap(), []);
            assert_eq!(count(&victim, &table.name).await, left);
        }
        let after = contents(&memory).await;
        let left = |kind: u8| after.keys().filter(|key| key[0] == kind).count();
        assert_eq!((left(b'J'), left(b'K'), left(b'X')), (0, 0, 0), "garbage and tokens are gone");
        assert_eq!(left(b'W'), 0, "the job is forgotten");
        let streams = victim.run(&["streams streamed"]).await;
        assert!(streams.contains("closed at"), "{streams}");
    });
}
