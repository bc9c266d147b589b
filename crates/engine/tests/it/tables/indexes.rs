//! Global indexes that join and leave a table in use.

use std::sync::Arc;
use std::time::{Duration, Instant};

use zenobe_engine::command::*;
use zenobe_engine::error::{BlockedChange, Error, UpdateTableError};
use zenobe_engine::keyspace;
use zenobe_engine::schema::*;
use zenobe_store::{Batch, Decision, WriteSet};

use super::harness::*;

#[tokio::test]
async fn an_index_is_filled_with_the_items_that_fit() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    for number in 0..500 {
        let id = format!("{number:03}");
        harness.put(item(&id, &[("owner", &format!("owner{}", number % 7))])).await.unwrap();
    }
    harness.put(item("without", &[])).await.unwrap();
    harness.put(item("empty", &[("owner", "")])).await.unwrap();
    harness.put(item("long", &[("owner", &"x".repeat(2_049))])).await.unwrap();
    let mut mistyped = item("mistyped", &[]);
    mistyped.insert("owner".into(), number(1));
    harness.put(mistyped).await.unwrap();

    let update = harness.update(|request| add_index(request, "by-owner", "owner")).await.unwrap();
    assert!(update.before.definition.index("by-owner").is_none());
    let allocating = IndexStatus::Creating { backfilling: false };
    assert_eq!(update.after.definition.index("by-owner").unwrap().status, allocating);
    let definition = harness.definition().await;
    assert_eq!(definition.attribute_types["owner"], ScalarType::S);
    assert_eq!(definition.index("by-owner").unwrap().throughput.warm_read_units, 12_000);

    harness.engine.run_pending_work().await.unwrap();
    assert_eq!(harness.index_status("by-owner").await, Some(IndexStatus::Active));
    let entries = harness.scan(Some("by-owner")).await.unwrap();
    let expected: Vec<String> = (0..500).map(|number| format!("{number:03}")).collect();
    assert_eq!(ids(&entries), expected);
    harness.check_statistics().await;
    check_no_progress_left(&harness).await;
}

#[tokio::test]
async fn the_index_of_an_empty_table_becomes_active_the_same_way() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    harness.update(|request| add_index(request, "by-owner", "owner")).await.unwrap();
    let early = harness.scan(Some("by-owner")).await;
    assert!(matches!(early, Err(Error::Page(_))), "{early:?}");
    harness.engine.run_pending_work().await.unwrap();
    assert_eq!(harness.scan(Some("by-owner")).await.unwrap(), vec![]);
    harness.put(item("a", &[("owner", "o")])).await.unwrap();
    assert_eq!(ids(&harness.scan(Some("by-owner")).await.unwrap()), ["a"]);
    harness.check_statistics().await;
}

#[tokio::test]
async fn writes_before_the_backfill_count_once() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    for id in ["changed", "removed", "moved", "untouched"] {
        harness.put(item(id, &[("owner", "o")])).await.unwrap();
    }
    harness.update(|request| add_index(request, "by-owner", "owner")).await.unwrap();
    harness.put(item("changed", &[("owner", "o"), ("more", "data")])).await.unwrap();
    harness.put(item("moved", &[("owner", "another")])).await.unwrap();
    harness.put(item("new", &[("owner", "o")])).await.unwrap();
    harness.delete("removed").await;
    assert_eq!(harness.describe().await.index_statistics["by-owner"].item_count, 3);
    harness.engine.run_pending_work().await.unwrap();
    let entries = harness.scan(Some("by-owner")).await.unwrap();
    assert_eq!(ids(&entries), ["changed", "moved", "new", "untouched"]);
    harness.check_statistics().await;
}

#[tokio::test]
async fn a_backfill_goes_on_after_a_restart_where_it_stopped() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    for number in 0..300 {
        harness.put(item(&format!("{number:03}"), &[("owner", "o")])).await.unwrap();
    }
    harness.update(|request| add_index(request, "by-owner", "owner")).await.unwrap();
    // Progress as an interrupted backfill leaves it: the first 100 items count as done.
    let table = harness.engine.table(&name("t")).await.unwrap();
    let items = zenobe_store::KeyRange::prefix(table.item_prefix().clone());
    let keys = harness.keys().await;
    let last_done = keys.iter().filter(|key| items.contains(key)).nth(99).unwrap().clone();
    let index = harness.definition().await.index("by-owner").unwrap().id;
    let progress = keyspace::backfill_progress(table.definition().id, index);
    let set = WriteSet { guards: &[], keys: std::slice::from_ref(&progress) };
    let mut decide = |_: &[Option<zenobe_store::Value>]| {
        let mut batch = Batch::new();
        batch.put(progress.clone(), last_done.clone());
        Decision::Commit(batch)
    };
    harness.store.write(set, &mut decide).await.unwrap();

    let restarted = harness.another().await;
    restarted.engine.run_pending_work().await.unwrap();
    assert_eq!(restarted.index_status("by-owner").await, Some(IndexStatus::Active));
    assert_eq!(restarted.scan(Some("by-owner")).await.unwrap().len(), 200);
    check_no_progress_left(&restarted).await;
}

#[tokio::test]
async fn background_work_starts_by_itself() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    harness.put(item("a", &[("owner", "o")])).await.unwrap();
    let worker = tokio::spawn(Arc::clone(&harness.engine).run_background());
    let wait_for = async |index: &str, expected: Option<IndexStatus>| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while harness.index_status(index).await != expected {
            assert!(Instant::now() < deadline, "{index} did not become {expected:?}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    harness.update(|request| add_index(request, "by-owner", "owner")).await.unwrap();
    wait_for("by-owner", Some(IndexStatus::Active)).await;
    harness.update(|request| delete_index(request, "by-owner")).await.unwrap();
    wait_for("by-owner", None).await;
    worker.abort();
    // A worker ends with its store.
    harness.store.close().await.unwrap();
    harness.engine.run_background().await;
}

#[tokio::test]
async fn a_deleted_index_leaves_nothing() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    harness.put(item("a", &[("owner", "o")])).await.unwrap();
    let before = harness.keys().await;
    harness.update(|request| add_index(request, "by-owner", "owner")).await.unwrap();
    harness.engine.run_pending_work().await.unwrap();
    assert!(harness.keys().await.len() > before.len());
    harness.update(|request| delete_index(request, "by-owner")).await.unwrap();
    assert_eq!(harness.index_status("by-owner").await, Some(IndexStatus::Deleting));
    assert!(harness.scan(Some("by-owner")).await.is_err());
    // The index is no longer maintained: this write must leave no entry behind.
    harness.put(item("b", &[("owner", "o")])).await.unwrap();
    harness.delete("b").await;
    harness.engine.run_pending_work().await.unwrap();
    assert_eq!(harness.index_status("by-owner").await, None);
    assert_eq!(harness.keys().await, before);
    let definition = harness.definition().await;
    assert_eq!(definition.attribute_types.keys().collect::<Vec<_>>(), ["id"]);
    // The name is free again, the number is not.
    harness.update(|request| add_index(request, "by-owner", "owner")).await.unwrap();
    assert_eq!(harness.definition().await.index("by-owner").unwrap().id, IndexId(2));
    harness.engine.run_pending_work().await.unwrap();
    harness.check_statistics().await;
}

#[tokio::test]
async fn an_index_can_be_deleted_before_it_is_complete() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    harness.put(item("a", &[("owner", "o")])).await.unwrap();
    let before = harness.keys().await;
    harness.update(|request| add_index(request, "by-owner", "owner")).await.unwrap();
    harness.put(item("a", &[("owner", "p")])).await.unwrap();
    harness.update(|request| delete_index(request, "by-owner")).await.unwrap();
    harness.engine.run_pending_work().await.unwrap();
    assert_eq!(harness.keys().await, before);
}

#[tokio::test]
async fn one_index_at_a_time() {
    let harness = Harness::new().await;
    let existing = vec![index("existing", "owner", ThroughputSettings::default())];
    harness.create(CreateTable { global_indexes: existing, ..create("t") }).await;
    let both = harness
        .update(|request| {
            add_index(request, "a", "owner");
            add_index(request, "b", "owner");
        })
        .await;
    check_refused(both, UpdateTableError::IndexWorkInProgress);
    harness.update(|request| add_index(request, "a", "owner")).await.unwrap();
    let another = harness.update(|request| add_index(request, "b", "owner")).await;
    check_refused(another, UpdateTableError::IndexWorkInProgress);
    let delete = harness.update(|request| delete_index(request, "existing")).await;
    check_refused(delete, UpdateTableError::IndexWorkInProgress);
    harness.update(|request| delete_index(request, "a")).await.unwrap();
    let twice = harness.update(|request| delete_index(request, "a")).await;
    check_refused(twice, UpdateTableError::IndexBeingDeleted { index: "a".into() });
    harness.engine.run_pending_work().await.unwrap();
    harness.update(|request| add_index(request, "b", "owner")).await.unwrap();
}

#[tokio::test]
async fn other_changes_wait_for_indexes() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    harness.update(|request| add_index(request, "a", "owner")).await.unwrap();
    let blocked = async |change: fn(&mut UpdateTable), blocked, deleting| {
        let indexes = vec!["a".to_owned()];
        let expected = UpdateTableError::IndexesBusy { change: blocked, indexes, deleting };
        check_refused(harness.update(change).await, expected);
    };
    let stream: fn(&mut UpdateTable) =
        |request| request.stream = Some(StreamChange::Enable(StreamViewType::NewImage));
    let billing: fn(&mut UpdateTable) =
        |request| request.billing_mode = Some(BillingMode::PayPerRequest);
    let maximum: fn(&mut UpdateTable) = |request| {
        request.throughput.on_demand_max_read_units = Some(OnDemandMaximum::Units(5));
    };
    blocked(stream, BlockedChange::Stream, false).await;
    blocked(billing, BlockedChange::Throughput, false).await;
    blocked(maximum, BlockedChange::OnDemandMaximum, false).await;
    assert!(matches!(harness.engine.delete_table(&name("t")).await, Err(Error::IndexesInFlux)));
    // Tags and deletion protection don't wait.
    let tags = [("key".to_owned(), "value".to_owned())].into();
    harness.engine.tag_resource(&name("t"), tags).await.unwrap();
    harness.update(|request| request.deletion_protection = Some(true)).await.unwrap();
    harness.update(|request| delete_index(request, "a")).await.unwrap();
    blocked(stream, BlockedChange::Stream, true).await;
    harness.engine.run_pending_work().await.unwrap();
    harness.update(stream).await.unwrap();
}

#[tokio::test]
async fn invalid_requests_for_indexes_fail() {
    let harness = Harness::new().await;
    let local = CreateIndex {
        keys: KeySchema {
            partition: vec![key("id", ScalarType::S)],
            sort: vec![key("owner", ScalarType::S)],
        },
        ..index("local", "id", ThroughputSettings::default())
    };
    harness
        .create(CreateTable {
            keys: KeySchema {
                partition: vec![key("id", ScalarType::S)],
                sort: vec![key("at", ScalarType::N)],
            },
            attribute_types: ["id", "owner"]
                .map(|name| (name.to_owned(), ScalarType::S))
                .into_iter()
                .chain([("at".to_owned(), ScalarType::N)])
                .collect(),
            local_indexes: vec![local],
            global_indexes: vec![index("global", "owner", units(1, 1))],
            ..create_provisioned(1, 1)
        })
        .await;
    let refused = async |change: fn(&mut UpdateTable), expected| {
        check_refused(harness.update(change).await, expected);
    };
    let named = |index: &str| index.to_owned();
    let exists = |index| UpdateTableError::IndexExists { index: named(index) };
    refused(|request| add_index(request, "global", "owner"), exists("global")).await;
    refused(|request| add_index(request, "local", "owner"), exists("local")).await;
    let missing = || UpdateTableError::IndexMissing { index: named("x") };
    refused(|request| delete_index(request, "x"), missing()).await;
    refused(|request| update_index(request, "x", units(2, 2)), missing()).await;
    let is_local = |deleting| UpdateTableError::LocalIndex { index: named("local"), deleting };
    refused(|request| delete_index(request, "local"), is_local(true)).await;
    refused(|request| update_index(request, "local", units(2, 2)), is_local(false)).await;
    let undefined = UpdateTableError::DefinitionsMissing { index: named("new") };
    refused(
        |request| {
            add_index(request, "new", "owner");
            request.attribute_types = None;
        },
        undefined,
    )
    .await;
    let not_defined = UpdateTableError::KeysNotDefined {
        keys: vec![named("owner")],
        definitions: vec![named("other")],
    };
    refused(
        |request| {
            add_index(request, "new", "owner");
            request.attribute_types = Some([("other".to_owned(), ScalarType::S)].into());
        },
        not_defined,
    )
    .await;
    let required = UpdateTableError::IndexThroughputRequired { index: named("new") };
    refused(|request| add_index(request, "new", "owner"), required).await;
}

#[tokio::test]
async fn a_known_attribute_keeps_its_type_and_unused_ones_are_dropped() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    let update = |id_type: ScalarType| {
        harness.update(move |request| {
            add_index(request, "i", "id");
            let types = request.attribute_types.as_mut().unwrap();
            types.insert("id".to_owned(), id_type);
            types.insert("unused".to_owned(), ScalarType::S);
        })
    };
    let keys =
        |id_type: ScalarType| KeySchema { partition: vec![key("id", id_type)], sort: Vec::new() };
    let (existing, new) = (keys(ScalarType::S), keys(ScalarType::N));
    let refused = UpdateTableError::AttributesRedefined { existing, new };
    assert!(matches!(
        update(ScalarType::N).await,
        Err(Error::UpdateTable(error)) if error == refused
    ));
    update(ScalarType::S).await.unwrap();
    let definition = harness.definition().await;
    assert_eq!(definition.attribute_types, [("id".to_owned(), ScalarType::S)].into());
    assert_eq!(definition.index("i").unwrap().keys.partition, [key("id", ScalarType::S)]);
}

async fn check_no_progress_left(harness: &Harness) {
    let definition = harness.definition().await;
    let progress = keyspace::backfill_progress_prefix(definition.id);
    assert!(!harness.keys().await.iter().any(|key| key.starts_with(&progress)));
}
