use zenobe_engine::EngineOptions;
use zenobe_engine::clock::{Clock, ManualClock};
use zenobe_store::Store;
use zenobe_store::failing::{FailingStore, WriteFailure};
use zenobe_store::memory::MemoryStore;

use super::*;
use crate::cost::needed_capacity::MinuteUse;
use crate::cost::observed;
use crate::traffic::{Pattern, TrafficCounts, TrafficKey};

/// The first minute of an hour.
const START: u64 = 29_000_040;

struct World {
    engine: Arc<Engine>,
    clock: Arc<ManualClock>,
    namespace: Arc<Namespace>,
}

impl World {
    async fn new() -> World {
        World::on(Arc::new(MemoryStore::new())).await
    }

    async fn on(store: Arc<dyn Store>) -> World {
        World::with(store, |clock| clock).await
    }

    async fn with(
        store: Arc<dyn Store>,
        wrap: impl FnOnce(Arc<ManualClock>) -> Arc<dyn Clock>,
    ) -> World {
        let clock = Arc::new(ManualClock::new(START * MINUTE_MS));
        let options = EngineOptions { clock: wrap(clock.clone()), ..EngineOptions::default() };
        let engine = Engine::open(store, options).await.unwrap();
        let namespace = Arc::new(Namespace { account: "1".into(), region: "us-east-1".into() });
        World { engine, clock, namespace }
    }

    fn recorder(&self) -> CostRecorder {
        CostRecorder::new(self.engine.clone(), 2)
    }

    fn row(&self, table: Option<&str>, operation: Operation, write_halves: u64) -> TrafficRow {
        let key = TrafficKey {
            namespace: self.namespace.clone(),
            table: table.map(str::to_owned),
            index: None,
            operation,
            pattern: Pattern::Write,
            verb: None,
        };
        let counts = TrafficCounts { requests: 1, write_halves, ..TrafficCounts::default() };
        TrafficRow { key, counts }
    }

    async fn minute(&self, recorder: &CostRecorder, minute: u64, rows: &[TrafficRow]) {
        self.clock.set_ms((minute + 1) * MINUTE_MS);
        recorder.store_minute(&minute_of(minute, rows)).await;
    }

    async fn written(&self, table: &str, hours: std::ops::Range<u64>) -> Vec<(u64, u64)> {
        let traffic = observed::traffic(&self.engine, &self.namespace, table, hours).await.unwrap();
        let uses = traffic.uses.get(&None).cloned().unwrap_or_default();
        uses.write.iter().map(|MinuteUse { minute, halves }| (*minute, *halves)).collect()
    }
}

fn minute_of(minute: u64, rows: &[TrafficRow]) -> TrafficMinute {
    let start_ms = minute * MINUTE_MS;
    TrafficMinute { start_ms, rows: rows.to_vec(), ..TrafficMinute::default() }
}

/// A clock that nobody moves on purpose, so that its jumps are not trusted.
struct WallClock(Arc<ManualClock>);

impl Clock for WallClock {
    fn now_ms(&self) -> u64 {
        self.0.now_ms()
    }
}

const HOUR: u64 = START / 60;

#[tokio::test]
async fn minutes_are_added_up_across_recorders_and_hours() {
    let world = World::new().await;
    let recorder = world.recorder();
    let put = world.row(Some("Orders"), Operation::PutItem, 4);
    world.minute(&recorder, START, std::slice::from_ref(&put)).await;
    world.minute(&recorder, START, std::slice::from_ref(&put)).await;
    world
        .minute(&recorder, START + 61, &[put.clone(), world.row(None, Operation::GetRecords, 0)])
        .await;
    // Another node, or the same one after a restart.
    let other = world.recorder();
    world.minute(&other, START + 61, std::slice::from_ref(&put)).await;
    let all = HOUR..HOUR + 2;
    assert_eq!(world.written("Orders", all.clone()).await, [(START, 8), (START + 61, 8)]);
    assert_eq!(world.written("Orders", HOUR..HOUR + 1).await, [(START, 8)]);
    let (engine, namespace) = (&world.engine, &world.namespace);
    assert_eq!(observed::tables(engine, namespace).await.unwrap(), ["Orders"]);
    assert_eq!(observed::stream_reads(engine, namespace, all.clone()).await.unwrap(), 1);
    let traffic = observed::traffic(engine, namespace, "Orders", all.clone()).await.unwrap();
    let counts: Vec<_> = traffic.entries.values().collect();
    assert_eq!((counts[0].requests, counts[0].write_halves, counts.len()), (4, 16, 1));
    let minutes = observed::observed_minutes(engine, all).await.unwrap();
    // The other one began in the minute after the first one's last.
    assert_eq!(minutes, vec![START..START + 63; 1]);
}

#[tokio::test]
async fn a_clock_that_was_set_back_loses_nothing() {
    let world = World::new().await;
    let recorder = world.recorder();
    let put = [world.row(Some("Orders"), Operation::PutItem, 2)];
    world.minute(&recorder, START, &put).await;
    world.minute(&recorder, START + 120, &put).await;
    world.minute(&recorder, START + 1, &put).await;
    let expected = [(START, 2), (START + 1, 2), (START + 120, 2)];
    assert_eq!(world.written("Orders", HOUR..HOUR + 3).await, expected);
}

#[tokio::test]
async fn old_hours_are_trimmed() {
    let world = World::new().await;
    let put = [world.row(Some("Orders"), Operation::PutItem, 2)];
    let first = world.recorder();
    world.minute(&first, START, &put).await;
    world.minute(&first, START, &[world.row(Some("Old"), Operation::PutItem, 2)]).await;
    // Kept for two days.
    let recorder = world.recorder();
    world.minute(&recorder, START + 48 * 60, &put).await;
    assert_eq!(world.written("Orders", 0..u64::MAX).await.len(), 2);
    world.minute(&recorder, START + 49 * 60, &put).await;
    let kept = world.written("Orders", 0..u64::MAX).await;
    assert_eq!(kept, [(START + 48 * 60, 2), (START + 49 * 60, 2)]);
    let tables = observed::tables(&world.engine, &world.namespace).await.unwrap();
    assert_eq!(tables, ["Orders"]);
    let minutes = observed::observed_minutes(&world.engine, 0..u64::MAX).await.unwrap();
    assert_eq!(minutes.len(), 1, "{minutes:?}");
    assert!(minutes[0].start > START);
}

#[tokio::test]
async fn a_clock_that_has_jumped_deletes_nothing_and_was_not_observed() {
    let store = Arc::new(MemoryStore::new());
    let world = World::with(store, |clock| Arc::new(WallClock(clock))).await;
    let observed = || observed::observed_minutes(&world.engine, 0..u64::MAX);
    let recorder = world.recorder();
    let put = [world.row(Some("Orders"), Operation::PutItem, 2)];
    world.minute(&recorder, START, &put).await;
    let jumped = START + 365 * 24 * 60;
    world.minute(&recorder, jumped, &put).await;
    assert!(world.engine.clock_status().is_paused);
    assert_eq!(world.written("Orders", 0..u64::MAX).await, [(START, 2), (jumped, 2)]);
    assert_eq!(observed().await.unwrap(), vec![START..START + 1; 1]);
    // The last minute of the jump is stored when the clock is right again.
    world.clock.set_ms((START + 2) * MINUTE_MS);
    recorder.store_minute(&minute_of(jumped + 1, &put)).await;
    assert_eq!(world.written("Orders", HOUR..HOUR + 1).await, [(START, 2)]);
    assert_eq!(observed().await.unwrap(), vec![START..START + 2; 1]);
    // This time it is real.
    world.clock.set_ms((START + 49 * 60) * MINUTE_MS);
    world.engine.confirm_clock().await.unwrap();
    world.minute(&recorder, START + 49 * 60, &[]).await;
    assert!(world.written("Orders", HOUR..HOUR + 1).await.is_empty());
}

#[tokio::test]
async fn what_can_not_be_stored_is_given_up_after_hours() {
    let store = Arc::new(FailingStore::new(Arc::new(MemoryStore::new())));
    let world = World::on(store.clone()).await;
    let recorder = world.recorder();
    let put = [world.row(Some("Orders"), Operation::PutItem, 2)];
    let away = zenobe_store::Error::Unavailable { detail: "away".into() };
    store.set(WriteFailure::Refused(away));
    for hour in 0..10 {
        world.minute(&recorder, START + 60 * hour, &put).await;
    }
    assert_eq!(recorder.state.lock().await.hours.len() as u64, UNSTORED_HOURS_MAX + 1);
    store.set(WriteFailure::None);
    world.minute(&recorder, START + 60 * 10, &put).await;
    let kept = [6, 7, 8, 9, 10].map(|hour| (START + 60 * hour, 2));
    assert_eq!(world.written("Orders", 0..u64::MAX).await, kept);
}

#[tokio::test]
async fn an_idle_server_writes_rarely_and_is_observed_all_the_same() {
    let world = World::new().await;
    let recorder = world.recorder();
    for minute in 0..25 {
        world.minute(&recorder, START + minute, &[]).await;
    }
    let minutes = observed::observed_minutes(&world.engine, 0..u64::MAX).await.unwrap();
    assert_eq!(minutes, vec![START..START + 21; 1]);
}

#[tokio::test]
async fn tables_without_room_are_added_up() {
    let world = World::new().await;
    let recorder = world.recorder();
    let name = |number: usize| format!("t{number}");
    let rows: Vec<TrafficRow> = (0..RECORDS_MAX + 50)
        .map(|number| world.row(Some(&name(number)), Operation::PutItem, 2))
        .collect();
    world.minute(&recorder, START, &rows).await;
    assert!(recorder.state.lock().await.hours.len() <= RECORDS_MAX + 1);
    assert_eq!(world.written(OTHER, HOUR..HOUR + 1).await, [(START, 100)]);
    assert_eq!(world.written("t1", HOUR..HOUR + 1).await, [(START, 2)]);
}
