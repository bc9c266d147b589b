//! Several nodes on one store.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::json;
use zenobe_engine::clock::ManualClock;
use zenobe_engine::error::Error;
use zenobe_engine::{EngineOptions, keyspace};
use zenobe_store::Store;
use zenobe_store::intercepting::InterceptingStore;
use zenobe_store::memory::MemoryStore;

use crate::world::{MINUTE_MS, START_MS, World, target};

/// Each node consumes less than the target; together they exceed it.
#[tokio::test]
async fn the_consumption_of_all_nodes_counts() {
    let clock = Arc::new(ManualClock::new(START_MS));
    let store = Arc::new(MemoryStore::shared());
    let nodes = [
        World::on(store.clone(), clock.clone(), 1).await,
        World::on(store, clock.clone(), 2).await,
    ];
    nodes[0].create_table(20).await;
    nodes[0].register(json!({"MinCapacity": 5, "MaxCapacity": 100})).await;
    nodes[1].track(json!({})).await;
    for _ in 0..2 {
        for node in &nodes {
            node.write(8 * 60).await;
        }
        clock.advance_ms(MINUTE_MS);
        // Every node stores its own part, and the holder of the lease waits for the others.
        for node in [&nodes[0], &nodes[1]] {
            node.scaling.run_due().await.unwrap();
        }
        assert_eq!(nodes[0].units().await, (20, 20));
        clock.advance_ms(15_000);
        for node in [&nodes[0], &nodes[1]] {
            node.scaling.run_due().await.unwrap();
        }
        clock.advance_ms(MINUTE_MS - 15_000);
        for node in [&nodes[0], &nodes[1]] {
            node.scaling.run_due().await.unwrap();
        }
    }
    // Minutes with load and without take turns, so nothing has happened: two in a row are needed.
    assert_eq!(nodes[0].units().await, (20, 20));
    for _ in 0..2 {
        for node in &nodes {
            node.write(8 * 60).await;
        }
        clock.advance_ms(MINUTE_MS);
        for node in &nodes {
            node.scaling.run_due().await.unwrap();
        }
    }
    clock.advance_ms(15_000);
    for node in &nodes {
        node.scaling.run_due().await.unwrap();
    }
    // 16 units per second need 32; both nodes together have recorded one activity.
    assert_eq!(nodes[1].units().await, (20, 32));
    assert_eq!(nodes[1].activities().await.len(), 1);
}

/// Everything is in the store: another process continues where this one stopped.
#[tokio::test]
async fn a_restart_keeps_targets_and_the_last_minutes() {
    let clock = Arc::new(ManualClock::new(START_MS));
    let store = Arc::new(MemoryStore::new());
    let before = World::on(store.clone(), clock.clone(), 1).await;
    before.create_table(5).await;
    before.register(json!({"MinCapacity": 5, "MaxCapacity": 100})).await;
    before.track(json!({})).await;
    before.write(600).await;
    before.pass_minutes(1).await;
    drop(before);
    let after = World::on(store, clock, 2).await;
    after.write(600).await;
    after.pass_minutes(1).await;
    assert_eq!(after.units().await, (5, 20));
}

/// Nodes whose leases anybody may take at any time.
async fn robbed(store: Arc<dyn Store>, clock: &Arc<ManualClock>, seed: u64) -> World {
    let options = EngineOptions {
        clock: clock.clone(),
        lease_period: Duration::ZERO,
        ..EngineOptions::default()
    };
    World::with(options, "000000000000", store, clock.clone(), seed).await
}

/// Has `thief` take the lease right before each write to the table, as if the node had been paused
/// there for longer than the lease lasts.
fn steal_before_changes_of_the_table(store: &InterceptingStore, thief: &Arc<World>) {
    let row = keyspace::table_row(&thief.namespace, "Orders");
    let thief = Arc::clone(thief);
    store.intercept(move |set| {
        let thief = Arc::clone(&thief);
        let steal = async move {
            let lease = thief.engine.lease("scaling").await.expect("the row can be read");
            assert!(lease.is_some(), "nothing keeps anybody from taking it");
        };
        set.keys.contains(&row).then(|| steal.boxed())
    });
}

#[tokio::test]
async fn a_node_whose_lease_was_stolen_changes_no_table() {
    for is_scheduled in [true, false] {
        let clock = Arc::new(ManualClock::new(START_MS));
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::shared());
        let store = Arc::new(InterceptingStore::new(Arc::clone(&memory)));
        let victim = robbed(store.clone(), &clock, 1).await;
        let thief = Arc::new(robbed(memory, &clock, 2).await);
        victim.create_table(5).await;
        victim.register(json!({"MinCapacity": 5, "MaxCapacity": 100})).await;
        if is_scheduled {
            let up = json!({
                "ScheduledActionName": "up",
                "Schedule": "rate(1 minute)",
                "ScalableTargetAction": {"MinCapacity": 20},
            });
            victim.done("PutScheduledAction", target(up)).await;
        } else {
            victim.track(json!({})).await;
        }
        steal_before_changes_of_the_table(&store, &thief);
        let mut outcome = Ok(());
        // A minute is worked on once all nodes have had the time to store their parts of it.
        for advance_ms in [MINUTE_MS, MINUTE_MS, 15_000] {
            if !is_scheduled {
                victim.write(600).await;
            }
            clock.advance_ms(advance_ms);
            outcome = outcome.and(victim.scaling.run_due().await);
        }
        assert!(matches!(outcome, Err(Error::LeaseLost { .. })), "{is_scheduled}: {outcome:?}");
        assert_eq!(thief.units().await, (5, 5), "scheduled: {is_scheduled}");
        assert_eq!(thief.activities().await.len(), 0, "scheduled: {is_scheduled}");
    }
}
