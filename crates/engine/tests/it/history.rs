//! Undo rows: when they are written, trimmed and removed. What they are good for is in the model tests.

use std::sync::Arc;

use futures_util::future::FutureExt;
use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::*;
use zenobe_engine::error::{Error, HistoryError};
use zenobe_engine::history::AsOf;
use zenobe_engine::restore::{RestoreFrom, RestoreOverrides, RestoreTable, RestoreTime};
use zenobe_engine::{Engine, EngineOptions};
use zenobe_store::intercepting::InterceptingStore;
use zenobe_store::memory::MemoryStore;

use crate::support::commands::Script;
use crate::support::world::{DAY_MS, START_MS, World};
use crate::support::{Fixture, block_on, on_each_store, open};

impl World {
    /// Table `t` with recovery for this many days.
    async fn with_recovery(store: MemoryStore, days: u32) -> World {
        let mut world = World::new(store).await;
        world.script.run(&["create t pk:S"]).await;
        world.recover(true, Some(days)).await;
        world
    }

    async fn value_as_of(&self, second: u64) -> Result<Option<String>, Error> {
        let key = [("pk".to_owned(), zenobe_value::AttributeValue::S("a".into()))].into();
        let get =
            GetItem { table: self.script.table("t"), key, projection: None, consistent: false };
        let reads = self.script.engine().reads(Some(AsOf::second(second)));
        let item = reads.get_item(&get).await?.item;
        Ok(item.map(|item| format!("{:?}", item.as_item().decode()["v"])))
    }
}

#[test]
fn only_changes_are_kept_and_only_while_recovery_is_on() {
    on_each_store(async |store| {
        let mut world = World::new(store()).await;
        world.script.run(&["create t pk:S", "gsi g v:N - keys"]).await;
        world.script.run(&[r#"put t {"pk": "a", "v": 1}"#]).await;
        assert_eq!(world.count(b'U').await, 0);
        world.recover(true, None).await;
        world.script.run(&[r#"put t {"pk": "a", "v": 1}"#]).await;
        assert_eq!(world.count(b'U').await, 0, "nothing has changed");
        world.script.run(&[r#"put t {"pk": "a", "v": 2}"#]).await;
        world.script.run(&[r#"put t {"pk": "b", "v": 2}"#]).await;
        world.script.run(&[r#"delete t {"pk": "b"}"#]).await;
        assert_eq!(world.count(b'U').await, 3);
        world.script.check_consistency().await;
        let sizes = world.script.engine().history_sizes().await.unwrap();
        assert_eq!((sizes.len(), sizes[0].versions, sizes[0].period_days), (1, 3, Some(35)));
        world.recover(false, None).await;
        world.script.run(&["work"]).await;
        world.script.run(&[r#"put t {"pk": "a", "v": 3}"#]).await;
        assert_eq!(world.count(b'U').await, 0);
        assert_eq!(world.script.engine().history_sizes().await.unwrap(), []);
        world.script.check_consistency().await;
    });
}

#[test]
fn what_is_older_than_the_period_goes_and_the_rest_stays() {
    on_each_store(async |store| {
        let mut world = World::with_recovery(store(), 1).await;
        for day in 0..4 {
            world.script.run(&[&format!(r#"put t {{"pk": "a", "v": {day}}}"#)[..]]).await;
            world.script.run(&[&format!(r#"put t {{"pk": "b{day}"}}"#)[..]]).await;
            world.clock.advance_ms(DAY_MS / 2);
        }
        assert_eq!(world.count(b'U').await, 8);
        world.script.run(&["work"]).await;
        // Two days have passed. The changes of the last day are kept.
        assert_eq!(world.count(b'U').await, 4);
        world.script.check_consistency().await;
        let now_s = (START_MS + 2 * DAY_MS) / 1_000;
        let (half_s, day_s) = (DAY_MS / 2_000, DAY_MS / 1_000);
        assert_eq!(world.value_as_of(now_s - day_s).await.unwrap().unwrap(), "N(2)");
        assert_eq!(world.value_as_of(now_s - half_s).await.unwrap().unwrap(), "N(3)");
        let too_early = world.value_as_of(now_s - day_s - 1).await;
        assert!(
            matches!(too_early, Err(Error::History(HistoryError::OutsideWindow { .. }))),
            "{too_early:?}"
        );
        // A shorter period trims at once, and a longer one brings nothing back.
        world.clock.advance_ms(DAY_MS + 1);
        world.script.run(&["work"]).await;
        assert_eq!(world.count(b'U').await, 0);
        world.recover(true, Some(35)).await;
        let gone = world.value_as_of(now_s - day_s).await;
        assert!(matches!(gone, Err(Error::History(HistoryError::OutsideWindow { .. }))));
    });
}

#[test]
fn long_histories_are_trimmed_in_steps_that_another_engine_can_finish() {
    on_each_store(async |store| {
        let mut world = World::with_recovery(store(), 1).await;
        world.script.run(&[r#"repeat 0..5000 put t {"pk": "a", "v": $i}"#]).await;
        world.clock.advance_ms(2 * DAY_MS);
        world.script.run(&[r#"repeat 0..100 put t {"pk": "a", "v": $i, "w": 1}"#]).await;
        world.script.run(&[r#"repeat 0..100 put t {"pk": "$i"}"#]).await;
        assert_eq!(world.count(b'U').await, 5_200);
        let mut other = open(world.store.clone(), &world.clock).await;
        other.run(&["work"]).await;
        assert_eq!(world.count(b'U').await, 200);
        other.check_consistency().await;
    });
}

#[test]
fn a_deleted_table_is_kept_until_its_backup_expires() {
    on_each_store(async |store| {
        let mut world = World::with_recovery(store(), 1).await;
        world.script.run(&[r#"put t {"pk": "a", "v": 1}"#]).await;
        world.script.run(&["drop t"]).await;
        world.script.run(&["work"]).await;
        assert_eq!(
            (world.count(b'T').await, world.count(b'U').await, world.count(b'P').await),
            (1, 1, 1)
        );
        assert_eq!((world.count(b'N').await, world.store.logs()), (0, 0));
        world.clock.advance_ms(35 * DAY_MS + 1);
        // On a shared store, the rows are garbage first.
        world.script.run(&["work"]).await;
        world.script.run(&["work"]).await;
        assert_eq!(
            (world.count(b'T').await, world.count(b'U').await, world.count(b'P').await),
            (0, 0, 0)
        );
    });
}

/// Two writers on different items may take their times in one order and commit in another. Whoever has read a second sees
/// the same later.
#[test]
fn a_second_that_was_read_does_not_change() {
    on_each_store(async |store| {
        let mut world = World::with_recovery(store(), 1).await;
        let second = START_MS / 1_000;
        world.script.run(&[r#"put t {"pk": "a", "v": 1}"#]).await;
        assert_eq!(world.value_as_of(second).await.unwrap().unwrap(), "N(1)");
        // This writer's clock still shows the same second.
        world.script.run(&[r#"put t {"pk": "a", "v": 2}"#]).await;
        assert_eq!(world.value_as_of(second).await.unwrap().unwrap(), "N(1)");
        world.clock.advance_ms(1_000);
        assert_eq!(world.value_as_of(second + 1).await.unwrap().unwrap(), "N(2)");
    });
}

/// Table `t` with recovery, on two engines. The writes of the first can be interrupted.
struct Race {
    store: Arc<InterceptingStore>,
    memory: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
    script: Script,
    other: Arc<Engine>,
    table: TableName,
}

impl Race {
    async fn new() -> Race {
        let memory = Arc::new(MemoryStore::shared());
        let store = Arc::new(InterceptingStore::new(memory.clone()));
        let clock = Arc::new(ManualClock::new(START_MS));
        let options = EngineOptions { clock: clock.clone(), ..EngineOptions::default() };
        let engine = Engine::open(store.clone(), options).await.unwrap();
        let mut script = Script::with_fixture(Fixture::with_engine(engine, clock.clone()));
        script.run(&["create t pk:S"]).await;
        let table = script.table("t");
        let other = open(memory.clone(), &clock).await.engine().clone();
        Race { store, memory, clock, script, other, table }
    }

    /// Has something happen right before a write. So many writes come before that one.
    fn interrupt(
        &self,
        writes_before: usize,
        interruption: impl Future<Output = ()> + Send + 'static,
    ) {
        let mut left = writes_before;
        let mut interruption = Some(interruption.boxed());
        self.store.intercept(move |_| match left {
            0 => interruption.take(),
            _ => {
                left -= 1;
                None
            }
        });
    }

    async fn recover(&self, days: u32) {
        let engine = self.script.engine();
        engine.update_continuous_backups(&self.table, true, Some(days)).await.unwrap();
    }
}

fn is_outside<T: std::fmt::Debug>(outcome: &Result<T, Error>) {
    assert!(
        matches!(outcome, Err(Error::History(HistoryError::OutsideWindow { .. }))),
        "{outcome:?}"
    );
}

/// Between the check of the time and the write of the job, nothing keeps the history that the restore needs.
#[test]
fn a_period_shortened_while_a_restore_begins_refuses_it() {
    block_on(async {
        let race = Race::new().await;
        race.recover(35).await;
        race.clock.advance_ms(10 * DAY_MS);
        let (other, table) = (race.other.clone(), race.table.clone());
        let shorten = async move {
            other.update_continuous_backups(&table, true, Some(1)).await.unwrap();
        };
        let time = RestoreTime::Second((START_MS + 5 * DAY_MS) / 1_000);
        let source = RestoreFrom::Table { name: race.table.clone(), time };
        let (target, overrides) = (race.script.table("u"), RestoreOverrides::default());
        // The first write advances the table's clock, the second creates the job and the table.
        race.interrupt(1, shorten);
        let request = RestoreTable { source, target, overrides };
        is_outside(&race.script.engine().restore_table(request).await);
        assert_eq!(race.script.engine().open_jobs().await.unwrap(), []);
    });
}

/// What was written before recovery was on left no undo rows, so that time can't be read.
#[test]
fn history_begins_when_recovery_is_switched_on_and_not_when_it_is_asked_for() {
    block_on(async {
        let race = Race::new().await;
        let clock = race.clock.clone();
        race.interrupt(0, async move {
            clock.advance_ms(700);
        });
        race.recover(1).await;
        let get = GetItem {
            table: race.table.clone(),
            key: [("pk".to_owned(), zenobe_value::AttributeValue::S("a".into()))].into(),
            projection: None,
            consistent: false,
        };
        let read = async |as_of: AsOf| race.script.engine().reads(Some(as_of)).get_item(&get).await;
        is_outside(&read(AsOf::ms(START_MS + 699)).await);
        read(AsOf::ms(START_MS + 700)).await.unwrap();
        read(AsOf::second(START_MS / 1_000)).await.unwrap();
    });
}

#[test]
fn a_read_that_races_with_the_deletion_of_its_table_leaves_no_clock() {
    block_on(async {
        let race = Race::new().await;
        race.recover(1).await;
        let (other, table) = (race.other.clone(), race.table.clone());
        race.interrupt(0, async move {
            other.delete_table(&table).await.unwrap();
        });
        let scan = Scan {
            table: race.table.clone(),
            index: None,
            segment: None,
            page: PageRequest::default(),
        };
        let reads = race.script.engine().reads(Some(AsOf::second(START_MS / 1_000)));
        let read = reads.scan(RuleSet::Expressions, &scan).await;
        assert!(matches!(read, Err(Error::TableNotFound { .. })), "{read:?}");
        assert_eq!(race.memory.logs(), 0);
    });
}
