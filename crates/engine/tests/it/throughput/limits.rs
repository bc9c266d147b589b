//! What passes and what is throttled.

use zenobe_engine::ThroughputMode::Enforce;
use zenobe_engine::command::*;
use zenobe_engine::error::Error;
use zenobe_expression::{Binder, ExpressionKind};

use super::*;

const SECOND_MS: u64 = 1_000;

#[tokio::test]
async fn unused_capacity_of_five_minutes_can_be_used_at_once() {
    for (idle_s, expected) in [(0, 1), (9, 10), (300, 300), (600, 300)] {
        let harness = harness(Enforce).await;
        harness.create(create_provisioned(1, 1)).await;
        harness.clock.advance_ms(idle_s * SECOND_MS);
        let (passed, reasons) = passing(1_000, |_| harness.put_id("a")).await;
        assert_eq!(passed, expected, "after {idle_s} s");
        assert_eq!(reasons, ["TableWriteProvisionedThroughputExceeded"]);
        harness.clock.advance_ms(SECOND_MS);
        assert_eq!(passing(1_000, |_| harness.put_id("a")).await.0, 1);
    }
}

#[tokio::test]
async fn reads_are_counted_by_their_consistency() {
    let harness = harness(Enforce).await;
    harness.create(create_provisioned(10, 10)).await;
    assert_eq!(passing(100, |_| harness.get_id("a", true)).await.0, 10);
    harness.clock.advance_ms(SECOND_MS);
    let (passed, reasons) = passing(100, |_| harness.get_id("a", false)).await;
    assert_eq!((passed, reasons), (20, vec!["TableReadProvisionedThroughputExceeded"]));
    let (read, write, events) = harness.consumed(None);
    assert_eq!((read, write), (20.0, 0.0), "throttled requests consume nothing");
    assert_eq!(events, [("TableReadProvisionedThroughputExceeded", 2)]);
}

/// One key gets what one partition serves, although its table has more.
#[tokio::test]
async fn a_hot_key_is_throttled_and_a_sharded_one_is_not() {
    let harness = harness(Enforce).await;
    harness.create(create_provisioned(3_000, 5_000)).await;
    assert_eq!(harness.partitions().await.partitions.len(), 6);
    let (passed, reasons) = passing(2_000, |_| harness.put_id("hot")).await;
    assert_eq!(passed, 1_000);
    assert_eq!(reasons, ["TableWriteKeyRangeThroughputExceeded"]);
    harness.clock.advance_ms(SECOND_MS);
    let sharded = async |number: usize| harness.put_id(&format!("hot#{}", number % 100)).await;
    assert_eq!(passing(2_000, sharded).await, (2_000, Vec::new()));
    let (passed, reasons) = passing(7_000, |_| harness.get_id("hot", false)).await;
    assert_eq!(passed, 6_000);
    assert_eq!(reasons, ["TableReadKeyRangeThroughputExceeded"]);
}

/// Each of two partitions has half of the units, and may use all of them.
#[tokio::test]
async fn capacity_adapts_to_where_it_is_used() {
    let harness = harness(Enforce).await;
    harness.create(create_provisioned(1_000, 1_000)).await;
    assert_eq!(harness.partitions().await.partitions.len(), 2);
    assert_eq!(passing(1_000, |_| harness.put_id("one")).await.0, 1_000);
}

#[tokio::test]
async fn an_index_that_cannot_keep_up_holds_back_its_table() {
    let harness = harness(Enforce).await;
    let mut request = create_provisioned(100, 100);
    request.global_indexes = vec![index("by-owner", "owner", units(1, 2))];
    request.attribute_types.insert("owner".into(), zenobe_engine::schema::ScalarType::S);
    harness.create(request).await;
    let owned =
        async |number: usize| harness.put(item(&format!("{number}"), &[("owner", "o")])).await;
    let (passed, reasons) = passing(100, owned).await;
    assert_eq!((passed, reasons), (2, vec!["IndexWriteProvisionedThroughputExceeded"]));
    // The throttled write is not there, and items without an entry pass.
    assert_eq!(harness.describe().await.statistics.item_count, 2);
    assert_eq!(
        passing(50, |number| {
            let harness = &harness;
            async move { harness.put_id(&format!("plain-{number}")).await }
        })
        .await
        .0,
        50
    );
    let (_, write, events) = harness.consumed(Some("by-owner"));
    assert_eq!(write, 2.0);
    assert_eq!(events, [("IndexWriteProvisionedThroughputExceeded", 1)]);
    assert_eq!(harness.consumed(None).1, 52.0);
}

#[tokio::test]
async fn an_on_demand_maximum_is_a_limit_of_its_own() {
    let harness = harness(Enforce).await;
    let mut request = create("t");
    request.throughput.on_demand_max_write_units = Some(OnDemandMaximum::Units(3));
    harness.create(request).await;
    let (passed, reasons) = passing(100, |_| harness.put_id("a")).await;
    assert_eq!((passed, reasons), (3, vec!["TableWriteMaxOnDemandThroughputExceeded"]));
    // Nothing is saved.
    harness.clock.advance_ms(60 * SECOND_MS);
    assert_eq!(passing(100, |_| harness.put_id("a")).await.0, 3);
}

#[tokio::test]
async fn an_on_demand_table_serves_four_partitions_from_the_start() {
    let harness = harness(Enforce).await;
    harness.create(create("t")).await;
    let (passed, reasons) = passing(2_000, |_| harness.put_id("hot")).await;
    assert_eq!((passed, reasons), (1_000, vec!["TableWriteKeyRangeThroughputExceeded"]));
    // Other partitions still have what they serve.
    let mut passed = 0;
    for number in 0..100 {
        passed += usize::from(harness.put_id(&format!("{number}")).await.is_ok());
    }
    assert!((50..100).contains(&passed), "{passed} of 100, of which a quarter is there");
}

#[tokio::test]
async fn a_failed_condition_consumes_a_write() {
    let harness = harness(Enforce).await;
    harness.create(create_provisioned(1, 2)).await;
    harness.put_id("a").await.unwrap();
    let mut binder = Binder::new(None, None);
    let condition =
        binder.condition(ExpressionKind::Condition, "attribute_not_exists(id)").unwrap();
    let command = PutItem { table: name("t"), item: item("a", &[]), condition: Some(condition) };
    let refused = harness.engine.put_item(command).await;
    assert!(matches!(refused, Err(Error::ConditionFailed { .. })));
    assert_eq!(harness.consumed(None).1, 2.0);
    assert!(matches!(harness.put_id("a").await, Err(Error::Throttled(_))));
}

/// Of each kind of request, the one that does not pass leaves the capacity to others.
#[tokio::test]
async fn invalid_requests_consume_nothing() {
    let harness = harness(Enforce).await;
    harness.create(create_provisioned(1, 1)).await;
    for _ in 0..10 {
        assert!(matches!(harness.put(Default::default()).await, Err(Error::Key(_))));
    }
    assert_eq!(passing(10, |_| harness.put_id("a")).await.0, 1);
}

#[tokio::test]
async fn expiry_consumes_nothing() {
    let harness = harness(Enforce).await;
    harness.create(create_provisioned(100, 10)).await;
    let enable = UpdateTimeToLive { table: name("t"), enabled: true, attribute: "expires".into() };
    harness.engine.update_time_to_live(enable).await.unwrap();
    for id in ["a", "b", "c"] {
        let mut item = item(id, &[]);
        item.insert("expires".into(), number(START_MS / 1_000 + 1));
        harness.put(item).await.unwrap();
    }
    let before = harness.consumed(None);
    harness.clock.advance_ms(HOUR_MS);
    harness.engine.run_pending_work().await.unwrap();
    assert_eq!(harness.describe().await.statistics.item_count, 0);
    assert_eq!(harness.consumed(None), before);
}
