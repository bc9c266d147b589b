//! Quotas of the account.

use zenobe_engine::Limits;
use zenobe_engine::command::*;
use zenobe_engine::error::{Error, LimitError, UpdateTableError};

use super::harness::*;

#[test]
fn the_defaults_are_those_of_dynamodb() {
    let limits = Limits::default();
    assert_eq!((limits.tables_max, limits.table_capacity_units_max), (2_500, 40_000));
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
