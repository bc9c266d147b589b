//! Wrong clocks: they lose nothing.

use std::sync::Arc;

use zenobe_engine::clock::{Clock, ManualClock};
use zenobe_engine::command::GetItem;
use zenobe_engine::error::{Error, HistoryError};
use zenobe_engine::history::AsOf;
use zenobe_engine::restore::{RestoreFrom, RestoreOverrides, RestoreTable, RestoreTime};
use zenobe_engine::{Engine, EngineOptions, StreamOptions};
use zenobe_store::Store;
use zenobe_store::memory::MemoryStore;

use crate::support::commands::Script;
use crate::support::notation::parse_item;
use crate::support::streams::{names, records};
use crate::support::wall_clock::WallClock;
use crate::support::{Fixture, block_on};

const START_MS: u64 = 1_700_000_000_000;
const HOUR_MS: u64 = 60 * 60 * 1_000;
const DAY_MS: u64 = 24 * HOUR_MS;

struct World {
    store: Arc<MemoryStore>,
    clock: Arc<WallClock>,
}

impl World {
    fn new() -> World {
        let clock = Arc::new(WallClock::new(START_MS));
        World { store: Arc::new(MemoryStore::new()), clock }
    }

    async fn open(&self) -> Script {
        let streams = StreamOptions { shards: 1, ..StreamOptions::default() };
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let options = EngineOptions { clock, streams, ..EngineOptions::default() };
        let store = Arc::clone(&self.store) as Arc<dyn Store>;
        let engine = Engine::open(store, options).await.unwrap();
        Script::with_fixture(Fixture::with_engine(engine, Arc::new(ManualClock::new(0))))
    }

    /// A table with a stream and an item that expires in two days.
    async fn filled(&self) -> Script {
        let mut script = self.open().await;
        let expires_s = (START_MS + 2 * DAY_MS) / 1_000;
        script.run(&["create t pk:S"]).await;
        script.run(&["stream t new"]).await;
        script.run(&["ttl t on e"]).await;
        script.run(&[&format!(r#"put t {{"pk": "a", "e": {expires_s}}}"#)]).await;
        work(&script).await;
        script
    }
}

async fn work(script: &Script) {
    script.engine().run_pending_work().await.unwrap();
}

/// The times of the records that a reader from the trim horizon sees.
async fn times(script: &Script) -> Vec<u64> {
    let engine = script.engine();
    let mut times = Vec::new();
    for stream in names(engine, &script.table("t")).await.unwrap() {
        let records = records(engine, &stream).await.unwrap();
        times.extend(records.iter().map(|record| record.created_at_ms));
    }
    times
}

async fn items(script: &Script) -> u64 {
    let described = script.engine().describe_table(&script.table("t")).await.unwrap();
    described.statistics.item_count
}

#[test]
fn a_jump_forward_deletes_nothing_until_it_is_confirmed() {
    block_on(async {
        let world = World::new();
        let mut script = world.filled().await;
        world.clock.set(START_MS + 365 * DAY_MS);
        work(&script).await;
        assert!(script.engine().clock_status().is_paused);
        assert_eq!(items(&script).await, 1);
        assert_eq!(times(&script).await, [START_MS], "readers see what is there");

        // The clock is set right again, as if nothing had happened.
        world.clock.set(START_MS + HOUR_MS);
        work(&script).await;
        assert!(!script.engine().clock_status().is_paused);
        assert_eq!((items(&script).await, times(&script).await.len()), (1, 1));

        // This time the jump is real.
        world.clock.set(START_MS + 3 * DAY_MS);
        script.run(&["stream t off"]).await;
        work(&script).await;
        let status = script.engine().clock_status();
        assert!(status.is_paused);
        assert_eq!(status.now_ms, START_MS + 3 * DAY_MS);
        assert!((START_MS + HOUR_MS..START_MS + 2 * HOUR_MS).contains(&status.expected_ms));
        script.engine().confirm_clock().await.unwrap();
        assert!(!script.engine().clock_status().is_paused);
        work(&script).await;
        assert_eq!(items(&script).await, 0);
    });
}

#[test]
fn the_last_time_seen_survives_a_restart() {
    block_on(async {
        let world = World::new();
        drop(world.filled().await);
        // Less than a day is no surprise.
        world.clock.set(START_MS + 23 * HOUR_MS);
        let script = world.open().await;
        assert!(!script.engine().clock_status().is_paused);
        work(&script).await;
        drop(script);

        world.clock.set(START_MS + 4 * DAY_MS);
        for _ in 0..2 {
            let script = world.open().await;
            work(&script).await;
            assert!(script.engine().clock_status().is_paused);
            assert_eq!(items(&script).await, 1);
        }
        let script = world.open().await;
        script.engine().confirm_clock().await.unwrap();
        drop(script);
        let script = world.open().await;
        assert!(!script.engine().clock_status().is_paused);
        work(&script).await;
        assert_eq!(items(&script).await, 0);
    });
}

#[test]
fn a_clock_without_a_limit_is_trusted() {
    block_on(async {
        let world = World::new();
        drop(world.filled().await);
        world.clock.set(START_MS + 4 * DAY_MS);
        let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
        let options = EngineOptions { clock, clock_jump_ms_max: None, ..EngineOptions::default() };
        let store = Arc::clone(&world.store) as Arc<dyn Store>;
        let engine = Engine::open(store, options).await.unwrap();
        engine.run_pending_work().await.unwrap();
        assert_eq!(engine.expired_items(), 1);
    });
}

/// Records written while the clock was two days behind are not two days old.
#[test]
fn a_step_back_and_forth_hides_no_record() {
    block_on(async {
        let world = World::new();
        let mut script = world.filled().await;
        for (number, at_ms) in
            [(1, START_MS - 2 * DAY_MS), (2, START_MS - 2 * DAY_MS + 1_000), (3, START_MS + 5_000)]
        {
            world.clock.set(at_ms);
            script.run(&[&format!(r#"put t {{"pk": "{number}"}}"#)]).await;
            work(&script).await;
        }
        let expected = [START_MS, START_MS, START_MS, START_MS + 5_000];
        assert_eq!(times(&script).await, expected);
        assert!(!script.engine().clock_status().is_paused, "it was there before");

        // Neither is a stream that was disabled in the meantime.
        world.clock.set(START_MS - 2 * DAY_MS);
        script.run(&["stream t off"]).await;
        world.clock.set(START_MS + 6_000);
        work(&script).await;
        assert_eq!(times(&script).await, expected);
        assert!(world.store.logs() > 0);

        // Once their time has passed, the store keeps nothing of them.
        for hours in 1..30 {
            world.clock.set(START_MS + hours * HOUR_MS);
            work(&script).await;
        }
        assert_eq!(times(&script).await, Vec::<u64>::new());
        assert_eq!(world.store.logs(), 0);
    });
}

/// This also holds for shards that close and are removed while the stream itself stays.
#[test]
fn shards_that_are_trimmed_leave_nothing_behind() {
    block_on(async {
        let world = World::new();
        let mut script = world.filled().await;
        for hours in 1..100 {
            world.clock.set(START_MS + hours * HOUR_MS);
            script.run(&[&format!(r#"put t {{"pk": "{hours}"}}"#)]).await;
            work(&script).await;
        }
        // A day has a shard for every four hours, and the open one.
        assert!((6..=8).contains(&world.store.logs()), "{}", world.store.logs());
    });
}

/// Stamps never go back. A stamp of next year would hide all changes of this year from reads as of their time.
#[test]
fn a_jump_does_not_get_into_the_history() {
    block_on(async {
        let world = World::new();
        let mut script = world.open().await;
        script.run(&["create t pk:S"]).await;
        let name = script.table("t");
        script.engine().update_continuous_backups(&name, true, None).await.unwrap();
        script.run(&[r#"put t {"pk": "a", "v": 1}"#]).await;
        let jumped_ms = START_MS + 400 * DAY_MS;
        world.clock.set(jumped_ms);
        script.run(&[r#"put t {"pk": "a", "v": 2}"#]).await;
        let future = version_as_of(&script, AsOf::ms(jumped_ms)).await;
        assert!(matches!(future, Err(Error::History(HistoryError::OutsideWindow { .. }))));
        world.clock.set(START_MS + HOUR_MS);
        script.run(&[r#"put t {"pk": "a", "v": 3}"#]).await;
        let now = AsOf::ms(START_MS + HOUR_MS);
        assert_eq!(version_as_of(&script, now).await.unwrap(), "N(3)");
        let before = AsOf::ms(START_MS + HOUR_MS - 1);
        assert_eq!(version_as_of(&script, before).await.unwrap(), "N(2)");
        let source = RestoreFrom::Table { name, time: RestoreTime::Latest };
        let (target, overrides) = (script.table("u"), RestoreOverrides::default());
        script.engine().restore_table(RestoreTable { source, target, overrides }).await.unwrap();
        work(&script).await;
        let restored = script.run(&[r#"get u {"pk": "a"}"#]).await;
        assert!(restored.contains(r#""v": 3"#), "{restored}");
    });
}

/// The attribute `v` of item `a`.
async fn version_as_of(script: &Script, as_of: AsOf) -> Result<String, Error> {
    let key = parse_item(r#"{"pk": "a"}"#);
    let get = GetItem { table: script.table("t"), key, projection: None, consistent: false };
    let item = script.engine().reads(Some(as_of)).get_item(&get).await?.item.expect("an item");
    Ok(format!("{:?}", item.as_item().decode()["v"]))
}
