//! What the tables of an account may consume together.

use zenobe_engine::Limits;
use zenobe_engine::ThroughputMode::{Enforce, Observe, Off};
use zenobe_engine::schema::Namespace;
use zenobe_engine::throughput::cause::ThrottleCause;
use zenobe_store::Store;

use super::*;

fn options(throughput: ThroughputMode, reads: Option<u64>, writes: Option<u64>) -> EngineOptions {
    let limits = Limits {
        account_read_units_per_second: reads,
        account_write_units_per_second: writes,
        ..Limits::default()
    };
    EngineOptions { throughput, limits, ..EngineOptions::default() }
}

async fn with_budget(
    throughput: ThroughputMode,
    reads: Option<u64>,
    writes: Option<u64>,
) -> Harness {
    let options = options(throughput, reads, writes);
    Harness::with_options(Arc::new(MemoryStore::new()), options).await
}

fn in_region(region: &str, account: &str, table: &str) -> TableName {
    let namespace = Namespace { account: account.into(), region: region.into() };
    TableName { namespace: Arc::new(namespace), name: table.into() }
}

async fn put_to(harness: &Harness, table: &TableName) -> Result<WriteOutcome> {
    let command = PutItem { table: table.clone(), item: item("a", &[]), condition: None };
    harness.engine.put_item(command).await
}

/// More tables don't help, and neither do more regions; another account has a budget of its own.
#[tokio::test]
async fn the_tables_of_an_account_share_its_budget() {
    let harness = with_budget(Enforce, None, Some(10)).await;
    let account = name("t").namespace.account.clone();
    let names = [
        name("t"),
        name("other"),
        in_region("elsewhere", &account, "t"),
        in_region("elsewhere", "111111111111", "t"),
    ];
    for table in &names {
        harness.create(CreateTable { table: table.clone(), ..create("t") }).await;
    }
    harness.clock.advance_ms(60_000);
    let own = |number: usize| put_to(&harness, &names[number % 3]);
    assert_eq!(passing(100, own).await, (10, vec!["TableWriteAccountLimitExceeded"]));
    assert_eq!(passing(10, |_| put_to(&harness, &names[3])).await.0, 10);
    assert_eq!(passing(100, |_| harness.get_id("a", true)).await.0, 100, "reads have no limit");
    harness.clock.advance_ms(1_000);
    assert_eq!(passing(100, own).await.0, 10);
}

/// A new table does not pay the debts of a deleted one.
#[tokio::test]
async fn a_new_table_has_the_debts_of_its_account() {
    let harness = with_budget(Enforce, None, Some(1)).await;
    harness.create(create("t")).await;
    let large = Attributes::from([("id".into(), text("a")), ("pad".into(), long(10_000))]);
    harness.put(large).await.unwrap();
    harness.engine.delete_table(&name("t")).await.unwrap();
    harness.create(create("t")).await;
    harness.clock.advance_ms(8_000);
    assert!(matches!(harness.put_id("a").await, Err(Error::Throttled(_))));
    harness.clock.advance_ms(2_000);
    harness.put_id("a").await.unwrap();
}

/// Entries of indexes are paid for by the account, but don't refuse a write that it has admitted.
#[tokio::test]
async fn index_entries_are_charged_to_the_account() {
    let harness = with_budget(Enforce, None, Some(4)).await;
    let mut request = create("t");
    request.global_indexes = vec![index("by-owner", "owner", ThroughputSettings::default())];
    request.attribute_types.insert("owner".into(), zenobe_engine::schema::ScalarType::S);
    harness.create(request).await;
    let owned =
        async |number: usize| harness.put(item(&format!("{number}"), &[("owner", "o")])).await;
    // Two units each.
    assert_eq!(passing(100, owned).await, (2, vec!["TableWriteAccountLimitExceeded"]));
    harness.clock.advance_ms(1_000);
    let keyless = async |number: usize| harness.put_id(&format!("n{number}")).await;
    assert_eq!(passing(100, keyless).await.0, 4);
}

#[tokio::test]
async fn pages_are_charged_to_the_account() {
    let harness = with_budget(Enforce, Some(2), None).await;
    harness.create(create("t")).await;
    for number in 0..4 {
        let id = ("id".to_owned(), text(&format!("{number}")));
        harness.put(Attributes::from([id, ("pad".to_owned(), long(30_000))])).await.unwrap();
    }
    // 120 KB are 15 units or a few more: the account owes the rest.
    assert_eq!(harness.scan(None).await.unwrap().len(), 4);
    harness.clock.advance_ms(5_000);
    assert!(matches!(harness.get_id("0", false).await, Err(Error::Throttled(_))));
    harness.clock.advance_ms(5_000);
    harness.get_id("0", false).await.unwrap();
}

/// What a request does not consume goes back to the account.
#[tokio::test]
async fn a_refused_request_costs_the_account_nothing() {
    let harness = with_budget(Enforce, None, Some(10)).await;
    harness.create(CreateTable { table: name("small"), ..create_provisioned(1, 1) }).await;
    harness.create(create("t")).await;
    let small = name("small");
    assert_eq!(passing(100, |_| put_to(&harness, &small)).await.0, 1);
    for _ in 0..20 {
        match put_to(&harness, &small).await {
            Err(Error::Throttled(throttled)) => {
                assert_eq!(throttled.reasons.len(), 1);
                assert_eq!(throttled.reasons[0].cause, ThrottleCause::Provisioned);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(passing(100, |_| harness.put_id("a")).await.0, 9);
}

#[tokio::test]
async fn observing_counts_what_exceeds_the_budget() {
    let harness = with_budget(Observe, None, Some(3)).await;
    harness.create(create("t")).await;
    assert_eq!(passing(10, |_| harness.put_id("a")).await.0, 10);
    let (_, writes, events) = harness.consumed(None);
    assert_eq!((writes, events), (10.0, vec![("TableWriteAccountLimitExceeded", 7)]));
    let harness = with_budget(Off, None, Some(3)).await;
    harness.create(create("t")).await;
    assert_eq!(passing(10, |_| harness.put_id("a")).await.0, 10);
}

/// Each of two nodes has half of the budget.
#[tokio::test(start_paused = true)]
async fn nodes_share_the_budget() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::shared());
    let one = Harness::with_options(store.clone(), options(Enforce, None, Some(10))).await;
    let seeded = EngineOptions {
        clock: one.clock.clone(),
        random_seed: Some(2),
        ..options(Enforce, None, Some(10))
    };
    let other = zenobe_engine::Engine::open(store, seeded).await.unwrap();
    one.create(create("t")).await;
    assert_eq!(passing(100, |_| one.put_id("a")).await.0, 10, "it knows of no other node");
    for node in [&one.engine, &other, &one.engine] {
        node.run_pending_work().await.unwrap();
    }
    one.clock.advance_ms(2_000);
    assert_eq!(passing(100, |_| one.put_id("a")).await.0, 5);
}
