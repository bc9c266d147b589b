//! Nodes whose clocks differ by minutes: nothing is forgotten early, and no time goes back.

use std::sync::Arc;

use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::IteratorStart;
use zenobe_engine::restore::{RestoreFrom, RestoreOverrides, RestoreTable, RestoreTime};
use zenobe_engine::{Engine, EngineOptions, StreamOptions, keyspace};
use zenobe_store::Reader;
use zenobe_store::memory::MemoryStore;

use super::{HOUR_MS, MINUTE_MS, START_MS, count, node, options};
use crate::support::block_on;
use crate::support::commands::Script;
use crate::support::streams::{description, names, records};
use crate::support::wall_clock::WallClock;

const AHEAD_MS: u64 = 5 * MINUTE_MS;

struct World {
    slow_clock: Arc<ManualClock>,
    fast_clock: Arc<ManualClock>,
    slow: Script,
    fast: Script,
}

impl World {
    async fn new() -> World {
        World::with(|_| {}).await
    }

    async fn with(change: impl Fn(&mut EngineOptions)) -> World {
        let store = Arc::new(MemoryStore::shared());
        let slow_clock = Arc::new(ManualClock::new(START_MS));
        let fast_clock = Arc::new(ManualClock::new(START_MS + AHEAD_MS));
        let options = |clock| {
            let skew_ms = EngineOptions::default().clock_skew_ms_max;
            let mut options = EngineOptions { clock_skew_ms_max: skew_ms, ..options(clock) };
            change(&mut options);
            options
        };
        let slow = node(store.clone(), options(&slow_clock), &slow_clock).await;
        let fast = node(store.clone(), options(&fast_clock), &fast_clock).await;
        World { slow, fast, slow_clock, fast_clock }
    }

    fn pass(&self, by_ms: u64) {
        self.slow_clock.advance_ms(by_ms);
        self.fast_clock.advance_ms(by_ms);
    }

    /// Background work of the node whose clock is ahead. It holds all leases.
    async fn work(&mut self) {
        self.fast.expect(&["work"], "ok").await;
    }
}

#[test]
fn times_of_records_never_descend() {
    block_on(async {
        let mut world = World::new().await;
        world.slow.expect(&["create t pk:S"], "ok").await;
        world.slow.expect(&["stream t new"], "ok").await;
        for number in 0..10 {
            let put = format!(r#"put t {{"pk": "{number}"}}"#);
            let World { slow, fast, .. } = &mut world;
            let node = if number % 2 == 0 { slow } else { fast };
            node.expect(&[&put], "new").await;
            world.pass(1_000);
        }
        let stream = names(world.slow.engine(), &world.slow.table("t")).await.unwrap().remove(0);
        let records = records(world.slow.engine(), &stream).await.unwrap();
        assert_eq!(records.len(), 10);
        assert!(records.is_sorted_by_key(|record| record.created_at_ms));
        assert!(records[1].created_at_ms >= START_MS + AHEAD_MS);
    });
}

#[test]
fn shards_stay_in_the_order_of_their_opening() {
    block_on(async {
        let full = |options: &mut EngineOptions| {
            options.lease_period = std::time::Duration::ZERO;
            options.streams = StreamOptions { shard_records_max: Some(1), ..options.streams };
        };
        let mut world = World::with(full).await;
        world.fast.expect(&["create t pk:S"], "ok").await;
        world.fast.expect(&["stream t new"], "ok").await;
        for number in 0..4 {
            let World { slow, fast, .. } = &mut world;
            let script = if number % 2 == 0 { slow } else { fast };
            script.expect(&[&format!(r#"put t {{"pk": "{number}"}}"#)], "new").await;
            script.expect(&["work"], "ok").await;
        }
        let stream = names(world.slow.engine(), &world.slow.table("t")).await.unwrap().remove(0);
        let shards = description(world.slow.engine(), &stream).await.unwrap().shards;
        assert_eq!(shards.len(), 5);
        assert!(shards.is_sorted_by_key(|shard| shard.id));
        for (parent, child) in shards.iter().zip(&shards[1..]) {
            assert_eq!(child.parent, Some(parent.id));
        }
    });
}

/// Six minutes later a retry reaches the node whose clock is ahead: it must not run again.
#[test]
fn a_token_is_not_forgotten_early() {
    block_on(async {
        let mut world = World::new().await;
        world.work().await;
        world.slow.expect(&["create t pk:S"], "ok").await;
        let once = ["transact-write", r#"update t {"pk": "a"} ADD n `1`"#, "token once"];
        world.slow.expect(&once, "consumed").await;
        for minutes in [6, 3] {
            world.pass(minutes * MINUTE_MS);
            world.work().await;
            world.fast.expect(&once, "consumed").await;
            let item = world.slow.run(&[r#"get t {"pk": "a"}"#]).await;
            assert!(item.starts_with(r#"{"n": 1,"#), "{item}");
        }
        // Once every clock agrees that it has expired, it is forgotten.
        world.pass(20 * MINUTE_MS);
        world.work().await;
        world.slow.expect(&once, "consumed").await;
        let item = world.slow.run(&[r#"get t {"pk": "a"}"#]).await;
        assert!(item.starts_with(r#"{"n": 2,"#), "{item}");
    });
}

#[test]
fn an_item_does_not_expire_early() {
    block_on(async {
        let mut world = World::new().await;
        world.slow.expect(&["create t pk:S"], "ok").await;
        world.slow.expect(&["ttl t on e"], "ok").await;
        let expires_s = (START_MS + 10 * MINUTE_MS) / 1_000;
        let put = format!(r#"put t {{"pk": "a", "e": {expires_s}}}"#);
        world.slow.expect(&[&put], "new").await;
        // Past by the clock of the working node, and by no other.
        world.pass(6 * MINUTE_MS);
        world.work().await;
        assert_eq!(count(&world.slow, "t").await, 1);
        world.pass(10 * MINUTE_MS);
        world.work().await;
        assert_eq!(count(&world.slow, "t").await, 0);
    });
}

#[test]
fn records_and_iterators_live_as_long_as_they_should() {
    block_on(async {
        let mut world = World::new().await;
        world.slow.expect(&["create t pk:S"], "ok").await;
        world.slow.expect(&["stream t new"], "ok").await;
        world.slow.expect(&[r#"put t {"pk": "a"}"#], "new").await;
        let (slow, fast) = (world.slow.engine().clone(), world.fast.engine().clone());
        let stream = names(&slow, &world.slow.table("t")).await.unwrap().remove(0);
        let shard = description(&slow, &stream).await.unwrap().shards[0].id.to_string();
        let start = IteratorStart::TrimHorizon;
        let position = slow.shard_iterator(&stream, &shard, start).await.unwrap();
        world.pass(11 * MINUTE_MS);
        assert_eq!(fast.get_records(&position, 10).await.unwrap().records.len(), 1);

        // A moment that has come for one node has come for all.
        let at_ms = START_MS + 11 * MINUTE_MS + AHEAD_MS;
        let now = IteratorStart::AtTimestamp { at_ms };
        slow.shard_iterator(&stream, &shard, now).await.unwrap();

        for _ in 0..23 {
            world.pass(HOUR_MS);
            world.work().await;
        }
        world.pass(46 * MINUTE_MS);
        world.work().await;
        assert_eq!(records(&fast, &stream).await.unwrap().len(), 1, "three minutes are left");
        for _ in 0..8 {
            world.pass(HOUR_MS);
            world.work().await;
        }
        assert_eq!(records(&fast, &stream).await.unwrap().len(), 0);
    });
}

/// The last time seen that the store remembers is the latest of all nodes.
#[test]
fn the_last_time_seen_never_goes_back() {
    block_on(async {
        let store = Arc::new(MemoryStore::shared());
        for at_ms in [START_MS + AHEAD_MS, START_MS] {
            let clock = Arc::new(WallClock::new(at_ms));
            let options = EngineOptions { clock, ..EngineOptions::default() };
            let engine = Engine::open(store.clone(), options).await.unwrap();
            engine.confirm_clock().await.unwrap();
            let row = store.get(&keyspace::last_time()).await.unwrap().expect("it is remembered");
            assert_eq!(u64::from_be_bytes(row[..].try_into().unwrap()), START_MS + AHEAD_MS);
            assert!(!engine.clock_status().is_paused);
        }
    });
}

#[test]
fn a_restore_of_the_latest_state_has_what_a_node_with_a_fast_clock_wrote() {
    block_on(async {
        let mut world = World::new().await;
        world.slow.expect(&["create t pk:S"], "ok").await;
        let name = world.slow.table("t");
        world.slow.engine().update_continuous_backups(&name, true, None).await.unwrap();
        world.fast.expect(&[r#"put t {"pk": "a"}"#], "new").await;
        let source = RestoreFrom::Table { name, time: RestoreTime::Latest };
        let (target, overrides) = (world.slow.table("u"), RestoreOverrides::default());
        let request = RestoreTable { source, target, overrides };
        world.slow.engine().restore_table(request).await.unwrap();
        world.fast.expect(&[r#"put t {"pk": "later"}"#], "new").await;
        world.slow.expect(&["work"], "ok").await;
        assert_eq!(count(&world.slow, "u").await, 1);
    });
}
