//! Quotas of the account.

use zenobe_engine::Limits;
use zenobe_engine::command::*;
use zenobe_engine::error::{Error, LimitError, UpdateTableError};
use zenobe_engine::schema::{BillingMode, Namespace, ScalarType};

use super::harness::*;

#[test]
fn the_defaults_are_those_of_dynamodb() {
    let limits = Limits::default();
    assert_eq!((limits.tables_max, limits.table_capacity_units_max), (2_500, 40_000));
    assert_eq!(limits.account_capacity_units_max, 80_000);
    assert_eq!((limits.global_indexes_max, limits.tags_max), (20, 50));
}

#[tokio::test]
async fn tables_are_limited_per_namespace() {
    let harness = Harness::with_limits(Limits { tables_max: 2, ..Limits::default() }).await;
    harness.create(create("a")).await;
    harness.create(create("b")).await;
    let third = harness.engine.create_table(create("c")).await;
    assert!(matches!(third, Err(Error::Limit(LimitError::Tables))));
    // A taken name is reported before the limit.
    let again = harness.engine.create_table(create("a")).await;
    assert!(matches!(again, Err(Error::TableExists { .. })));
    harness.engine.delete_table(&name("a")).await.unwrap();
    harness.create(create("c")).await;
}

#[tokio::test]
async fn capacity_is_limited_per_table_and_index() {
    let harness = Harness::new().await;
    let check = async |request: CreateTable, expected: LimitError| match harness
        .engine
        .create_table(request)
        .await
    {
        Err(Error::Limit(error)) => assert_eq!(error, expected),
        other => panic!("{other:?}"),
    };
    let capacity = |write| LimitError::TableCapacity { write, requested: 40_001, maximum: 40_000 };
    check(create_provisioned(40_001, 40_001), capacity(false)).await;
    check(create_provisioned(1, 40_001), capacity(true)).await;
    let on_index = CreateTable {
        global_indexes: vec![index("i", "owner", units(40_001, 1))],
        ..create_provisioned(1, 1)
    };
    check(on_index, capacity(false)).await;
    let maximum = ThroughputSettings {
        on_demand_max_write_units: Some(OnDemandMaximum::Units(40_001)),
        ..ThroughputSettings::default()
    };
    let on_demand = CreateTable { throughput: maximum, ..create("t") };
    check(on_demand, LimitError::OnDemandMaximum { write: true, index: None }).await;

    harness.create(create_provisioned(40_000, 40_000)).await;
    let raised = harness.update(|request| request.throughput = units(40_001, 1)).await;
    assert!(matches!(raised, Err(Error::Limit(error)) if error == capacity(false)));
}

/// A table `name` of this many read units and one write unit.
fn sized(table: &str, read: u64) -> CreateTable {
    CreateTable { table: name(table), ..create_provisioned(read, 1) }
}

#[track_caller]
fn check_account<T: std::fmt::Debug>(
    result: Result<T, Error>,
    write: bool,
    [current, maximum, requested]: [u64; 3],
) {
    let expected = LimitError::AccountCapacity { write, current, maximum, requested };
    match result {
        Err(Error::Limit(error)) => assert_eq!(error, expected),
        other => panic!("{other:?}"),
    }
}

async fn with_account_units(units: u64) -> Harness {
    let limits = Limits { account_capacity_units_max: units, ..Limits::default() };
    Harness::with_limits(limits).await
}

#[tokio::test]
async fn the_tables_of_an_account_share_its_capacity() {
    let harness = with_account_units(100).await;
    let engine = &harness.engine;
    let with_index = CreateTable {
        global_indexes: vec![index("i", "owner", units(30, 99))],
        attribute_types: [("id", ScalarType::S), ("owner", ScalarType::S)]
            .map(|(name, scalar_type)| (name.to_owned(), scalar_type))
            .into(),
        ..sized("t", 40)
    };
    harness.create(with_index).await;
    // The units of the index count, and so do those of both modes; reads are checked first.
    check_account(engine.create_table(sized("a", 31)).await, false, [70, 100, 31]);
    check_account(engine.create_table(sized("a", 30)).await, true, [100, 100, 1]);
    harness.create(create("on-demand")).await;
    let to_provisioned = UpdateTable {
        billing_mode: Some(BillingMode::Provisioned),
        throughput: units(31, 1),
        ..UpdateTable::of(name("on-demand"))
    };
    check_account(engine.update_table(to_provisioned).await, false, [70, 100, 31]);

    check_account(harness.update(|it| it.throughput = units(71, 1)).await, false, [70, 100, 31]);
    harness.update(|it| update_index(it, "i", units(30, 9))).await.unwrap();
    harness.update(|it| it.throughput = units(70, 1)).await.unwrap();
    check_account(harness.update(|it| it.throughput = units(71, 1)).await, false, [100, 100, 1]);
    // Another namespace has a quota of its own, and what is deleted makes room.
    let mut elsewhere = sized("a", 100);
    elsewhere.table.namespace =
        std::sync::Arc::new(Namespace { region: "eu-west-2".into(), ..(*namespace()).clone() });
    harness.create(elsewhere).await;
    engine.delete_table(&name("t")).await.unwrap();
    harness.create(sized("a", 100)).await;
}

/// An operator may lower the limit below what an account has.
#[tokio::test]
async fn an_account_above_its_limit_can_only_get_smaller() {
    let harness = with_account_units(100).await;
    harness.create(sized("t", 60)).await;
    let limits = Limits { account_capacity_units_max: 50, ..Limits::default() };
    let harness = Harness::with(harness.store.clone(), limits).await;
    check_account(harness.update(|it| it.throughput = units(61, 1)).await, false, [60, 50, 1]);
    // More writes are within their limit.
    harness.update(|it| it.throughput = units(55, 2)).await.unwrap();
    harness.create(create("on-demand")).await;
    check_account(harness.engine.create_table(sized("b", 1)).await, false, [55, 50, 1]);
}

/// The limits of a table and the name come first, the number of tables last.
#[tokio::test]
async fn the_capacity_of_the_account_has_its_place_among_the_limits() {
    let limits = Limits { account_capacity_units_max: 50_000, tables_max: 1, ..Limits::default() };
    let harness = Harness::with_limits(limits).await;
    harness.create(sized("t", 40_000)).await;
    let again = harness.engine.create_table(sized("t", 20_000)).await;
    assert!(matches!(again, Err(Error::TableExists { .. })));
    let large = harness.engine.create_table(sized("a", 40_001)).await;
    assert!(matches!(large, Err(Error::Limit(LimitError::TableCapacity { .. }))));
    let both = harness.engine.create_table(sized("a", 10_001)).await;
    check_account(both, false, [40_000, 50_000, 10_001]);
    let second = harness.engine.create_table(sized("a", 10_000)).await;
    assert!(matches!(second, Err(Error::Limit(LimitError::Tables))));
}

#[tokio::test]
async fn a_table_has_twenty_global_indexes_at_most() {
    let harness = Harness::new().await;
    let names: Vec<String> = (0..20).map(|number| format!("i{number}")).collect();
    let indexes = names.iter().map(|name| index(name, "owner", ThroughputSettings::default()));
    harness.create(CreateTable { global_indexes: indexes.collect(), ..create("t") }).await;
    let refused = harness.update(|request| add_index(request, "one-more", "owner")).await;
    assert!(matches!(refused, Err(Error::UpdateTable(UpdateTableError::TooManyGlobalIndexes))));
}

#[tokio::test]
async fn fifty_tags_after_merging() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    let tags = |range: std::ops::Range<usize>| {
        range.map(|number| (format!("key{number}"), format!("value{number}"))).collect()
    };
    let engine = &harness.engine;
    engine.tag_resource(&name("t"), tags(0..30)).await.unwrap();
    engine.tag_resource(&name("t"), tags(20..50)).await.unwrap();
    let refused = engine.tag_resource(&name("t"), tags(49..51)).await;
    assert!(matches!(refused, Err(Error::TooManyTags)));
    // All or nothing.
    assert_eq!(engine.list_tags(&name("t")).await.unwrap(), tags(0..50));
    let keys: Vec<String> = (10..60).map(|number| format!("key{number}")).collect();
    engine.untag_resource(&name("t"), &keys).await.unwrap();
    assert_eq!(engine.list_tags(&name("t")).await.unwrap(), tags(0..10));
}
