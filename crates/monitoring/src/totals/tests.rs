use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use zenobe_api::observer::{ObservedRequest, RequestObserver};
use zenobe_api::{Api, ApiOptions};
use zenobe_engine::EngineOptions;
use zenobe_engine::request_facts::{KeyScope, Part, RequestFacts};
use zenobe_engine::schema::KeySchema;
use zenobe_engine::throughput::cause::{Access, CauseSet, Resource, ThrottleCause, ThrottleReason};
use zenobe_store::memory::MemoryStore;

use super::*;

async fn engine() -> Arc<Engine> {
    Engine::open(Arc::new(MemoryStore::new()), EngineOptions::default()).await.unwrap()
}

fn namespace(account: &str) -> Arc<Namespace> {
    Arc::new(Namespace { account: account.into(), region: "r".into() })
}

fn name(account: &str, table: &str) -> TableName {
    TableName { namespace: namespace(account), name: table.to_owned() }
}

fn resource(table: TableName, id: u64, index: Option<&str>) -> Arc<Resource> {
    let keys = KeySchema { partition: Vec::new(), sort: Vec::new() };
    let index = index.map(|name| (name.to_owned(), IndexId(1)));
    Arc::new(Resource { table, table_id: TableId(id), index, keys })
}

/// A PutItem that took 100 microseconds.
fn put(traffic: &Traffic, resource: &Arc<Resource>, error: Option<&'static str>) {
    let part = Part {
        resource: Arc::clone(resource),
        access: Access::Write,
        halves: 2,
        key: bytes::Bytes::new(),
        scope: KeyScope::Item,
        partition: 0,
        causes: CauseSet::default(),
    };
    traffic.observe(ObservedRequest {
        request_id: "1",
        operation: Operation::PutItem,
        namespace: Some(&resource.table.namespace),
        error,
        status: if error.is_some() { 400 } else { 200 },
        elapsed: Duration::from_micros(100),
        facts: &RequestFacts { parts: vec![part], ..RequestFacts::default() },
        headers: &(),
    });
}

fn puts(sums: &Sums, table: &TableName) -> Option<RequestSums> {
    sums.tables.get(table).map(|sums| sums.requests[&Operation::PutItem])
}

#[tokio::test]
async fn what_is_pending_is_counted_and_stays_when_it_is_taken() {
    let (engine, traffic, totals) = (engine().await, Traffic::default(), Totals::default());
    let (mine, yours) = (name("1", "T"), name("2", "T"));
    put(&traffic, &resource(mine.clone(), 1, None), None);
    put(&traffic, &resource(mine.clone(), 1, None), Some("ConditionalCheckFailedException"));
    put(&traffic, &resource(yours.clone(), 2, None), Some("ValidationException"));
    let pending = totals.read(&engine, Some(&traffic));
    let expected = RequestSums {
        requests: 2,
        succeeded: 1,
        latency_us: 100,
        conditional_check_failures: 1,
        ..RequestSums::default()
    };
    assert_eq!(puts(&pending, &mine), Some(expected));
    assert_eq!(pending.user_errors, [(namespace("1"), 0), (namespace("2"), 1)].into());

    let minute = totals.take(&engine, &traffic, 60_000);
    assert_eq!((minute.start_ms, minute.rows.len()), (60_000, 2));
    assert_eq!(totals.read(&engine, Some(&traffic)), pending);
    put(&traffic, &resource(yours.clone(), 2, None), None);
    let sums = totals.read(&engine, Some(&traffic));
    assert_eq!(puts(&sums, &mine), Some(expected));
    assert_eq!(puts(&sums, &yours).unwrap().requests, 2);
}

#[tokio::test]
async fn injected_errors_are_requests_that_failed() {
    let (engine, traffic, totals) = (engine().await, Traffic::default(), Totals::default());
    let table = name("1", "T");
    for _ in 0..2 {
        traffic.note_injected_error(table.clone(), Operation::PutItem);
    }
    let pending = totals.read(&engine, Some(&traffic));
    let expected =
        RequestSums { requests: 2, system_errors: 2, injected_errors: 2, ..RequestSums::default() };
    assert_eq!(puts(&pending, &table), Some(expected));
    let minute = totals.take(&engine, &traffic, 0);
    assert_eq!(minute.injected_errors[0].count, 2);
    assert_eq!(totals.read(&engine, Some(&traffic)), pending);
}

/// Readers never see less than before, while requests are counted and minutes are taken.
#[tokio::test]
async fn counters_never_go_down() {
    const THREADS: u64 = 3;
    const REQUESTS: u64 = 20_000;
    let (engine, traffic, totals) = (engine().await, Traffic::default(), Totals::default());
    let table = name("1", "T");
    let is_over = AtomicBool::new(false);
    let requests = || {
        let sums = totals.read(&engine, Some(&traffic));
        puts(&sums, &table).map_or(0, |sums| sums.requests)
    };
    std::thread::scope(|scope| {
        let count = || {
            let resource = resource(table.clone(), 1, None);
            (0..REQUESTS).for_each(|_| put(&traffic, &resource, None));
        };
        let counting: Vec<_> = (0..THREADS).map(|_| scope.spawn(count)).collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                totals.take(&engine, &traffic, 0);
            }
        });
        scope.spawn(|| {
            let mut before = 0;
            while !is_over.load(Ordering::Relaxed) {
                let now = requests();
                assert!(now >= before, "{now} after {before}");
                before = now;
            }
        });
        counting.into_iter().for_each(|thread| thread.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(requests(), THREADS * REQUESTS);
}

#[tokio::test]
async fn tables_beyond_the_limit_are_summed_until_deleted_ones_make_room() {
    let (engine, traffic, totals) = (engine().await, Traffic::default(), Totals::default());
    let api = Api::new(Arc::clone(&engine), ApiOptions::default());
    let kept = name("1", "Kept");
    let create = json!({
        "TableName": kept.name,
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    });
    let body = create.to_string();
    let created = api.handle(Operation::CreateTable, &kept.namespace, body.as_bytes()).await;
    assert_eq!(created.status, 200);
    put(&traffic, &resource(kept.clone(), 1, None), None);
    totals.take(&engine, &traffic, 0);
    // No table of these names exists.
    let deleted = |number: usize| name("1", &format!("t{number:04}"));
    for number in 0..TABLES_MAX + 10 {
        put(&traffic, &resource(deleted(number), 10 + number as u64, None), None);
    }
    let pending = totals.read(&engine, Some(&traffic));
    assert_eq!(pending.tables.len(), TABLES_MAX);
    let others = |sums: &Sums| sums.other_tables.requests[&Operation::PutItem].requests;
    assert_eq!(others(&pending), 11);
    totals.take(&engine, &traffic, 0);
    let sums = totals.read(&engine, Some(&traffic));
    assert_eq!(sums.tables.keys().collect::<Vec<_>>(), [&kept]);
    assert_eq!(others(&sums), 11, "they stay counted where they were");
    put(&traffic, &resource(deleted(209), 219, None), None);
    let sums = totals.read(&engine, Some(&traffic));
    assert_eq!(puts(&sums, &deleted(209)).unwrap().requests, 1);
    assert_eq!(others(&sums), 11);
}

#[tokio::test]
async fn accounts_beyond_the_limit_are_summed() {
    let (engine, traffic, totals) = (engine().await, Traffic::default(), Totals::default());
    for number in 0..ACCOUNTS_MAX as u64 + 5 {
        let table = name(&format!("{number:012}"), "T");
        put(&traffic, &resource(table, number, None), Some("ValidationException"));
    }
    let sums = totals.read(&engine, Some(&traffic));
    assert_eq!((sums.user_errors.len(), sums.other_user_errors), (ACCOUNTS_MAX, 5));
    totals.take(&engine, &traffic, 0);
    assert_eq!(totals.read(&engine, Some(&traffic)).other_user_errors, 5);
}

fn consumption(id: u64, index: Option<&str>, read_units: f64, events: u64) -> Consumption {
    let resource = resource(name("1", &format!("t{id:04}")), id, index);
    let (access, cause) = (Access::Read, ThrottleCause::KeyRange);
    let reason = ThrottleReason { resource: Arc::clone(&resource), access, cause };
    Consumption { resource, read_units, write_units: 2.0, throttle_events: vec![(reason, events)] }
}

#[test]
fn consumption_goes_on_after_a_table_is_created_anew() {
    let mut state = State::default();
    let consumed = |state: &mut State, consumption: Consumption| {
        state.add_consumption(&[consumption]);
        let of_table = &state.sums.tables[&name("1", "t0001")];
        let Consumed { read_units, throttle_events, .. } = &of_table.consumed["i"];
        (*read_units, throttle_events.values().sum::<u64>())
    };
    assert_eq!(consumed(&mut state, consumption(1, Some("i"), 5.0, 2)), (5.0, 2));
    assert_eq!(consumed(&mut state, consumption(1, Some("i"), 7.5, 2)), (7.5, 2));
    // Its counters begin anew, as in a database that replaces another.
    assert_eq!(consumed(&mut state, consumption(1, Some("i"), 1.0, 1)), (8.5, 3));
    state.add_consumption(&[]);
    assert_eq!(consumed(&mut state, consumption(1, Some("i"), 9.0, 1)), (17.5, 4));
}

#[test]
fn the_oldest_tables_have_their_own_consumption() {
    let mut state = State::default();
    let all: Vec<_> = (1..=TABLES_MAX as u64 + 10)
        .flat_map(|id| [consumption(id, None, 0.5, 3), consumption(id, Some("i"), 0.5, 3)])
        .collect();
    state.add_consumption(&all);
    state.add_consumption(&all);
    let sums = &state.sums;
    assert_eq!(sums.tables.len(), TABLES_MAX);
    assert_eq!(sums.tables[&name("1", "t0200")].consumed["i"].read_units, 0.5);
    let others = &sums.other_tables.consumed;
    assert_eq!(others.keys().collect::<Vec<_>>(), [""]);
    assert_eq!(others[""].read_units, 10.0);
    let events = &others[""].throttle_events;
    assert_eq!(events["TableReadKeyRangeThroughputExceeded"], 30);
    assert_eq!(events["IndexReadKeyRangeThroughputExceeded"], 30);
}
