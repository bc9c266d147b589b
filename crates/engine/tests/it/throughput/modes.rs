//! What is enforced, counted, or left alone.

use zenobe_engine::EngineOptions;
use zenobe_engine::ThroughputMode::{Enforce, Observe, Off};
use zenobe_engine::command::CreateTable;
use zenobe_engine::error::Error;
use zenobe_engine::request_facts::gather;
use zenobe_engine::throughput::cause::{Access, ThrottleCause};
use zenobe_engine::throughput::{MODE_TAG, ModeTagError};

use super::*;

#[tokio::test]
async fn observing_counts_what_enforcing_refuses() {
    let harness = harness(Observe).await;
    let mut request = create_provisioned(1, 5);
    request.global_indexes = vec![index("by-owner", "owner", units(1, 2))];
    request.attribute_types.insert("owner".into(), zenobe_engine::schema::ScalarType::S);
    harness.create(request).await;
    let owned = async |_| harness.put(item("a", &[("owner", "o")])).await;
    assert_eq!(passing(1, owned).await.0, 1);
    for number in 0..9 {
        harness.put(item(&format!("{number}"), &[("owner", "o")])).await.unwrap();
    }
    let (_, write, events) = harness.consumed(None);
    assert_eq!(write, 10.0, "everything was written");
    assert_eq!(events, [("TableWriteProvisionedThroughputExceeded", 5)]);
    let (_, write, events) = harness.consumed(Some("by-owner"));
    assert_eq!(write, 10.0);
    assert_eq!(events, [("IndexWriteProvisionedThroughputExceeded", 8)]);
    // What was only counted is no debt: the next second has its capacity.
    harness.clock.advance_ms(1_000);
    harness.put_id("x").await.unwrap();
    assert_eq!(harness.consumed(None).2[0].1, 5);
}

#[tokio::test]
async fn off_counts_nothing() {
    let harness = harness(Off).await;
    harness.create(create_provisioned(1, 1)).await;
    assert_eq!(passing(20, |_| harness.put_id("a")).await.0, 20);
    assert!(harness.engine.consumption().is_empty());
}

#[tokio::test]
async fn a_tag_overrides_the_mode() {
    let harness = harness(Off).await;
    harness.create(create_provisioned(1, 1)).await;
    let tag = async |mode: &str| {
        let tags = [(MODE_TAG.to_owned(), mode.to_owned())].into();
        harness.engine.tag_resource(&name("t"), tags).await.unwrap();
    };
    assert_eq!(passing(5, |_| harness.put_id("a")).await.0, 5);
    tag("enforce").await;
    assert_eq!(passing(5, |_| harness.put_id("a")).await.0, 1);
    tag("observe").await;
    assert_eq!(passing(5, |_| harness.put_id("a")).await.0, 5);
    assert_eq!(harness.consumed(None).1, 6.0);
    let tags = [(MODE_TAG.to_owned(), "sometimes".to_owned())].into();
    let refused = harness.engine.tag_resource(&name("t"), tags).await;
    let unknown = ModeTagError::Unknown { value: "sometimes".to_owned() };
    assert!(matches!(refused, Err(Error::ModeTag(error)) if error == unknown));
}

/// What an operator enforces on everybody, no tag loosens: no new one, and none from before.
#[tokio::test]
async fn a_tag_can_not_loosen_what_the_operator_has_ruled_out() {
    let harness = harness(Observe).await;
    let lax = [(MODE_TAG.to_owned(), "off".to_owned())];
    harness.create(CreateTable { tags: lax.clone().into(), ..create_provisioned(1, 1) }).await;
    let options = || EngineOptions {
        throughput: Enforce,
        throughput_min: Enforce,
        ..EngineOptions::default()
    };
    let harness = Harness::with_options(harness.store.clone(), options()).await;
    let modes = async || harness.engine.throughput_modes(&name("t")).await.unwrap();
    assert_eq!(modes().await, (Some(Off), Enforce));
    assert_eq!(passing(5, |_| harness.put_id("a")).await.0, 1);
    let check = |result: Result<(), Error>, mode| {
        let expected = ModeTagError::TooLax { mode, min: Enforce };
        assert!(matches!(result, Err(Error::ModeTag(error)) if error == expected));
    };
    let engine = &harness.engine;
    check(engine.set_throughput_mode(&name("t"), Some(Observe)).await, Observe);
    check(engine.tag_resource(&name("t"), lax.clone().into()).await, Off);
    let tagged = CreateTable { tags: lax.into(), ..create("other") };
    check(engine.create_table(tagged).await.map(drop), Off);
    engine.set_throughput_mode(&name("t"), Some(Enforce)).await.unwrap();
    engine.set_throughput_mode(&name("t"), None).await.unwrap();
    assert_eq!(modes().await, (None, Enforce));
}

/// As an operator sets it: the mode lasts, and can be taken back.
#[tokio::test]
async fn a_mode_can_be_set() {
    let harness = harness(Observe).await;
    harness.create(create_provisioned(1, 1)).await;
    let modes =
        async |harness: &Harness| harness.engine.throughput_modes(&name("t")).await.unwrap();
    assert_eq!(modes(&harness).await, (None, Observe));
    harness.engine.set_throughput_mode(&name("t"), Some(Enforce)).await.unwrap();
    assert_eq!(modes(&harness).await, (Some(Enforce), Enforce));
    assert_eq!(passing(5, |_| harness.put_id("a")).await.0, 1);
    let restarted = harness.another().await;
    assert_eq!(modes(&restarted).await, (Some(Enforce), Enforce));
    harness.engine.set_throughput_mode(&name("t"), None).await.unwrap();
    assert_eq!(modes(&harness).await, (None, Observe));
    assert!(harness.engine.list_tags(&name("t")).await.unwrap().is_empty());
    let absent = harness.engine.set_throughput_mode(&name("absent"), Some(Enforce)).await;
    assert!(matches!(absent, Err(Error::ResourceNotFound { .. })));
}

/// Capacity belongs to the table, not to a version of its definition.
#[tokio::test]
async fn changing_a_table_refills_nothing() {
    let harness = harness(Enforce).await;
    harness.create(create_provisioned(1, 10)).await;
    assert_eq!(passing(100, |_| harness.put_id("a")).await.0, 10);
    harness
        .engine
        .tag_resource(&name("t"), [("a".to_owned(), "b".to_owned())].into())
        .await
        .unwrap();
    assert_eq!(passing(100, |_| harness.put_id("a")).await.0, 0);
    harness.update(|request| request.throughput = units(1, 20)).await.unwrap();
    harness.clock.advance_ms(1_000);
    assert_eq!(passing(100, |_| harness.put_id("a")).await.0, 20);
}

#[tokio::test]
async fn facts_tell_what_a_request_did() {
    let harness = harness(Enforce).await;
    let mut request = create_provisioned(1, 3);
    request.global_indexes = vec![index("by-owner", "owner", units(1, 10))];
    request.attribute_types.insert("owner".into(), zenobe_engine::schema::ScalarType::S);
    harness.create(request).await;
    let mut item = item("a", &[("owner", "o")]);
    item.insert("data".into(), long(2_000));
    let (outcome, facts) = gather(Box::pin(harness.put(item.clone()))).await;
    outcome.unwrap();
    let parts: Vec<_> =
        facts.parts.iter().map(|part| (part.resource.index_name(), part.halves)).collect();
    assert_eq!(parts, [(None, 4), (Some("by-owner"), 4)]);
    assert_eq!((facts.halves(Access::Write), facts.halves(Access::Read)), (8, 0));
    assert!(facts.throttled.is_empty());
    harness.put_id("b").await.unwrap();
    let (outcome, facts) = gather(Box::pin(harness.put_id("c"))).await;
    assert!(outcome.is_err());
    assert_eq!((facts.parts[0].halves, facts.parts[0].is_throttled()), (0, true));
    assert_eq!(facts.throttled[0].name(), "TableWriteProvisionedThroughputExceeded");
}

/// A write that finds both its table and its partition without capacity is one throttle event.
#[tokio::test]
async fn a_part_knows_all_limits_that_it_met() {
    let harness = harness(Observe).await;
    harness.create(create_provisioned(1, 1_000)).await;
    let mut heavy = item("a", &[]);
    heavy.insert("data".into(), long(400_000));
    for _ in 0..3 {
        harness.put(heavy.clone()).await.unwrap();
    }
    let (outcome, facts) = gather(Box::pin(harness.put_id("a"))).await;
    outcome.unwrap();
    let causes = facts.parts[0].causes;
    let met = ThrottleCause::ALL.into_iter().filter(|cause| causes.contains(*cause));
    let met: Vec<_> = met.collect();
    assert_eq!(met, [ThrottleCause::Provisioned, ThrottleCause::KeyRange]);
    assert_eq!((facts.throttled.len(), facts.throttle_events()), (2, 1));
}
