//! Which node does background work: one at a time, and another once that one is silent.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::FutureExt;
use tokio::sync::Semaphore;
use zenobe_engine::clock::ManualClock;
use zenobe_engine::error::Error;
use zenobe_engine::keyspace;
use zenobe_store::intercepting::InterceptingStore;
use zenobe_store::memory::MemoryStore;

use super::{PERIOD, START_MS, count, node, options, two_nodes};
use crate::support::commands::Script;

/// An item that has expired, in a table with time to live.
async fn expired_item(script: &mut Script, clock: &ManualClock) {
    script.expect(&["create t pk:S"], "ok").await;
    script.expect(&["ttl t on e"], "ok").await;
    script.expect(&[&format!(r#"put t {{"pk": "a", "e": {}}}"#, START_MS / 1_000)], "new").await;
    clock.advance_ms(10_000);
}

async fn holder(script: &Script, work: &str) -> Option<String> {
    let leases = script.engine().leases().await.unwrap();
    leases.into_iter().find(|lease| lease.work == work).map(|lease| lease.node)
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_taken_over_once_it_has_not_changed_for_its_period() {
    let (_store, _clock, here, there) = two_nodes().await;
    let (here, there) = (here.engine(), there.engine());
    let lease = here.lease("w").await.unwrap().expect("nobody has it");
    assert!(there.lease("w").await.unwrap().is_none());
    tokio::time::advance(PERIOD - Duration::from_millis(1)).await;
    assert!(here.is_fresh(&lease) && there.lease("w").await.unwrap().is_none());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(!here.is_fresh(&lease), "from now on it may be gone");
    assert!(there.lease("w").await.unwrap().is_some());
    assert!(here.lease("w").await.unwrap().is_none());
}

/// An engine that had its store for itself begins to share it.
#[tokio::test(start_paused = true)]
async fn a_lease_of_an_engine_alone_ends_when_others_come() {
    let (_store, _clock, here, there) = two_nodes().await;
    let engine = here.engine();
    engine.set_shared(false);
    let lease = engine.lease("w").await.unwrap().expect("there is nobody else");
    assert!(engine.is_fresh(&lease));
    assert_eq!(engine.leases().await.unwrap(), [], "it costs nothing");
    engine.set_shared(true);
    assert!(!engine.is_fresh(&lease));
    assert!(engine.lease("w").await.unwrap().is_some());
    assert!(there.engine().lease("w").await.unwrap().is_none());
}

/// What counts is how long the observer has seen no change, not what any clock shows.
#[tokio::test(start_paused = true)]
async fn an_observer_that_comes_late_waits_for_a_whole_period() {
    let (_store, _clock, here, there) = two_nodes().await;
    here.engine().lease("w").await.unwrap().expect("nobody has it");
    tokio::time::advance(PERIOD * 5).await;
    assert!(there.engine().lease("w").await.unwrap().is_none());
    tokio::time::advance(PERIOD).await;
    assert!(there.engine().lease("w").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_free_at_once() {
    let (_store, _clock, here, there) = two_nodes().await;
    let stale = here.engine().lease("w").await.unwrap().expect("nobody has it");
    for other in ["x", "w-2", "w/1"] {
        here.engine().lease(other).await.unwrap().expect("nobody has it");
    }
    here.engine().release_leases("w").await.unwrap();
    assert!(there.engine().lease("w").await.unwrap().is_some());
    for other in ["x", "w-2", "w/1"] {
        assert!(there.engine().lease(other).await.unwrap().is_none(), "{other}");
    }
    here.engine().release_leases("w/").await.unwrap();
    assert!(there.engine().lease("w/1").await.unwrap().is_some());
    assert!(there.engine().lease("w-2").await.unwrap().is_none());
    assert!(!here.engine().is_fresh(&stale));
    // Releasing does not affect a lease that another node holds by now.
    here.engine().release_leases("").await.unwrap();
    assert_eq!(holder(&here, "w").await.as_deref(), Some(there.engine().node_id()));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_paused_past_its_lease_writes_nothing() {
    let clock = Arc::new(ManualClock::new(START_MS));
    let memory = Arc::new(MemoryStore::shared());
    let store = Arc::new(InterceptingStore::new(memory.clone()));
    let [arrived, gate] = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
    store.intercept({
        let (arrived, gate) = (arrived.clone(), gate.clone());
        move |set| {
            let is_guarded = set.guards.contains(&keyspace::lease_row("expiry"));
            let (arrived, gate) = (arrived.clone(), gate.clone());
            let block = async move {
                arrived.add_permits(1);
                gate.acquire().await.expect("the gate stays").forget();
            };
            is_guarded.then(|| block.boxed())
        }
    });
    let mut paused = node(store.clone(), options(&clock), &clock).await;
    let mut other = node(memory.clone(), options(&clock), &clock).await;
    expired_item(&mut paused, &clock).await;

    let engine = Arc::clone(paused.engine());
    let work = tokio::spawn(async move { engine.run_pending_work().await });
    arrived.acquire().await.unwrap().forget();
    // Its step has read everything and is about to write. The other node watches, waits, and takes
    // over.
    other.expect(&["work"], "ok").await;
    assert_eq!(count(&other, "t").await, 1, "not while the lease may hold");
    tokio::time::advance(PERIOD).await;
    other.expect(&["work"], "ok").await;
    assert_eq!(other.engine().expired_items(), 1);
    // The expired item is written again, and expires again: the paused node must not be the one
    // that deletes it.
    let put = format!(r#"put t {{"pk": "a", "e": {}}}"#, START_MS / 1_000);
    other.expect(&[&put], "new").await;

    gate.add_permits(1_000);
    let outcome = work.await.unwrap();
    assert!(matches!(outcome, Err(Error::LeaseLost { .. })), "{outcome:?}");
    assert_eq!(paused.engine().expired_items(), 0);
    assert_eq!(count(&paused, "t").await, 1);
    paused.expect(&["work"], "ok").await;
    assert_eq!(count(&paused, "t").await, 1, "the other node still has the lease");
}

#[tokio::test(start_paused = true)]
async fn when_one_node_stops_the_other_goes_on() {
    let (_store, clock, mut here, there) = two_nodes().await;
    let first = tokio::spawn(Arc::clone(here.engine()).run_background());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let second = tokio::spawn(Arc::clone(there.engine()).run_background());
    // Both live for an hour: no lease changes hands.
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    for work in ["expiry", "indexes", "streams", "tokens", "garbage", "expiry-indexes"] {
        let holder = holder(&here, work).await;
        assert_eq!(holder.as_deref(), Some(here.engine().node_id()), "{work}");
    }
    let nodes = there.engine().nodes().await.unwrap();
    assert!(nodes.len() == 2 && nodes.iter().all(|node| node.is_alive), "{nodes:?}");

    first.abort();
    expired_item(&mut here, &clock).await;
    // One period until the silence counts, plus the time between two checks.
    tokio::time::sleep(PERIOD * 2).await;
    assert_eq!(count(&here, "t").await, 0);
    assert_eq!((here.engine().expired_items(), there.engine().expired_items()), (0, 1));
    let nodes = there.engine().nodes().await.unwrap();
    let alive: Vec<_> = nodes.iter().filter(|node| node.is_alive).map(|node| &node.id).collect();
    assert_eq!(alive, [there.engine().node_id()]);

    // In the end it is forgotten.
    tokio::time::sleep(PERIOD * 25).await;
    assert_eq!(there.engine().nodes().await.unwrap().len(), 1);
    second.abort();
}

/// A store that is not shared has no leases, and no other nodes to exclude.
#[tokio::test]
async fn an_engine_alone_needs_no_leases() {
    let clock = Arc::new(ManualClock::new(START_MS));
    let store = Arc::new(MemoryStore::new());
    let mut alone = node(store, options(&clock), &clock).await;
    expired_item(&mut alone, &clock).await;
    alone.expect(&["work"], "ok").await;
    assert_eq!(count(&alone, "t").await, 0);
    assert_eq!(alone.engine().leases().await.unwrap(), []);
    assert_eq!(alone.engine().nodes().await.unwrap(), []);
}
