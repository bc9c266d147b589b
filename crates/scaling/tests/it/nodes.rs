//! Several nodes on one store.

use std::sync::Arc;

use serde_json::json;
use zenobe_engine::clock::ManualClock;
use zenobe_store::memory::MemoryStore;

use crate::world::{MINUTE_MS, START_MS, World};

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
