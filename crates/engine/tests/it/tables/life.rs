//! Creating, describing, listing and deleting tables; what survives a restart.

use zenobe_engine::command::*;
use zenobe_engine::error::Error;
use zenobe_engine::keyspace;
use zenobe_engine::schema::*;
use zenobe_store::{Batch, Decision, WriteSet};

use super::harness::*;

#[tokio::test]
async fn a_created_table_is_described_as_asked() {
    let harness = Harness::new().await;
    let request = CreateTable {
        global_indexes: vec![index("by-owner", "owner", ThroughputSettings::default())],
        stream: Some(StreamViewType::NewImage),
        kms_key: Some(KmsKey::Customer("1234".into())),
        table_class: Some(TableClass::StandardInfrequentAccess),
        tags: [("team".to_owned(), "a".to_owned())].into(),
        ..create("t")
    };
    let created = harness.create(request).await;
    let described = harness.describe().await;
    assert_eq!(created.definition, described.definition);
    let definition = &described.definition;
    assert_eq!(definition.created_at_ms, START_MS);
    assert_eq!(definition.on_demand_since_ms, Some(START_MS));
    assert_eq!(definition.index("by-owner").unwrap().status, IndexStatus::Active);
    assert_eq!(definition.stream.as_ref().unwrap().label, "2026-10-09T05:53:25.330");
    assert_eq!(definition.latest_stream_label.as_deref(), Some("2026-10-09T05:53:25.330"));
    assert_eq!(
        definition.kms_key_arn.as_deref(),
        Some("arn:aws:kms:eu-west-1:000000000000:key/1234")
    );
    assert_eq!(definition.table_class, Some((TableClass::StandardInfrequentAccess, None)));
    assert_eq!(definition.arn(), "arn:aws:dynamodb:eu-west-1:000000000000:table/t");
    assert_eq!(described.statistics, ItemStatistics::default());
    assert_eq!(described.index_statistics["by-owner"], ItemStatistics::default());
}

#[tokio::test]
async fn a_name_is_taken_once_per_namespace() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    let again = harness.engine.create_table(create("t")).await;
    assert!(matches!(again, Err(Error::TableExists { name }) if name == "t"));
    let elsewhere = Namespace { account: "000000000000".into(), region: "us-east-1".into() };
    let table = TableName { namespace: elsewhere.into(), name: "t".into() };
    harness.create(CreateTable { table: table.clone(), ..create("t") }).await;
    let here = harness.describe().await.definition;
    let there = harness.engine.describe_table(&table).await.unwrap().definition;
    assert_ne!((here.id, &here.uuid), (there.id, &there.uuid));
}

#[tokio::test]
async fn missing_tables_are_not_found() {
    let harness = Harness::new().await;
    assert!(is_not_found(&harness.engine.describe_table(&name("t")).await));
    assert!(is_not_found(&harness.engine.delete_table(&name("t")).await));
    assert!(is_not_found(&harness.update(|_| {}).await));
    assert!(is_not_found(&harness.engine.describe_time_to_live(&name("t")).await));
    let tags = harness.engine.list_tags(&name("t")).await;
    let arn = "arn:aws:dynamodb:eu-west-1:000000000000:table/t";
    assert!(matches!(tags, Err(Error::ResourceNotFound { arn: given }) if given == arn));
}

#[tokio::test]
async fn tables_are_listed_in_byte_order_page_by_page() {
    let harness = Harness::new().await;
    for table in ["beta", "alpha", "Zeta", "_x", "alpha.2", "alpha-1"] {
        harness.create(create(table)).await;
    }
    let check = async |start: Option<&str>, limit, expected: &[&str], more| {
        let page = harness.engine.list_tables(&namespace(), start, limit).await.unwrap();
        assert_eq!((page.names.as_slice(), page.more), (&strings(expected)[..], more));
    };
    let all = ["Zeta", "_x", "alpha", "alpha-1", "alpha.2", "beta"];
    check(None, 100, &all, false).await;
    check(None, 6, &all, false).await;
    check(None, 5, &all[..5], true).await;
    check(Some("alpha"), 2, &["alpha-1", "alpha.2"], true).await;
    // The start need not exist.
    check(Some("b"), 2, &["beta"], false).await;
    check(Some("zzz"), 2, &[], false).await;
    let elsewhere = Namespace { account: "1".into(), region: "eu-west-1".into() };
    let page = harness.engine.list_tables(&elsewhere, None, 10).await.unwrap();
    assert!(page.names.is_empty());
}

#[tokio::test]
async fn a_deleted_table_leaves_nothing() {
    let harness = Harness::new().await;
    harness.create(create("other")).await;
    let before = harness.keys().await;
    let request = CreateTable {
        keys: KeySchema {
            partition: vec![key("id", ScalarType::S)],
            sort: vec![key("at", ScalarType::S)],
        },
        local_indexes: vec![CreateIndex {
            keys: KeySchema {
                partition: vec![key("id", ScalarType::S)],
                sort: vec![key("owner", ScalarType::S)],
            },
            ..index("local", "id", ThroughputSettings::default())
        }],
        global_indexes: vec![index("by-owner", "owner", ThroughputSettings::default())],
        ..create("t")
    };
    harness.create(request).await;
    for id in ["a", "b", "c"] {
        harness.put(item(id, &[("at", "1"), ("owner", "o")])).await.unwrap();
    }
    assert!(harness.keys().await.len() > before.len() + 9);
    let deleted = harness.engine.delete_table(&name("t")).await.unwrap();
    assert_eq!(deleted.statistics.item_count, 3);
    assert_eq!(harness.keys().await, before);
    assert!(is_not_found(&harness.engine.describe_table(&name("t")).await));
    assert!(is_not_found(&harness.put(item("a", &[("at", "1")])).await));
    harness.engine.run_pending_work().await.unwrap();
}

#[tokio::test]
async fn a_name_used_again_stands_for_a_new_table() {
    let harness = Harness::new().await;
    let first = harness.create(create("t")).await.definition;
    harness.put(item("a", &[])).await.unwrap();
    harness.engine.delete_table(&name("t")).await.unwrap();
    let second = harness.create(create("t")).await.definition;
    assert!(second.id > first.id);
    assert_ne!(second.uuid, first.uuid);
    assert_eq!(harness.scan(None).await.unwrap(), vec![]);
    harness.check_statistics().await;
}

#[tokio::test]
async fn deletion_protection_protects_until_it_is_lifted() {
    let harness = Harness::new().await;
    harness.create(CreateTable { deletion_protection: true, ..create("t") }).await;
    let refused = harness.engine.delete_table(&name("t")).await;
    assert!(matches!(refused, Err(Error::DeletionProtected)));
    harness.update(|request| request.deletion_protection = Some(true)).await.unwrap();
    harness.update(|request| request.deletion_protection = Some(false)).await.unwrap();
    harness.engine.delete_table(&name("t")).await.unwrap();
}

#[tokio::test]
async fn everything_survives_a_restart() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    harness.create(create("gone")).await;
    harness.engine.delete_table(&name("gone")).await.unwrap();
    harness.put(item("a", &[("owner", "o")])).await.unwrap();
    harness
        .update(|request| request.stream = Some(StreamChange::Enable(StreamViewType::KeysOnly)))
        .await
        .unwrap();
    let before = harness.describe().await;
    let restarted = harness.another().await;
    let after = restarted.describe().await;
    assert_eq!(after.definition, before.definition);
    assert_eq!(after.statistics, before.statistics);
    assert_eq!(ids(&restarted.scan(None).await.unwrap()), ["a"]);
    assert!(is_not_found(&restarted.engine.describe_table(&name("gone")).await));
    // Ids of deleted tables stay used.
    let next = restarted.create(create("next")).await.definition;
    assert_eq!(next.id, TableId(3));
}

#[tokio::test]
async fn engines_that_share_a_store_agree() {
    let one = Harness::new().await;
    let other = one.another().await;
    one.create(create("t")).await;
    other.put(item("a", &[("owner", "o")])).await.unwrap();
    one.update(|request| add_index(request, "by-owner", "owner")).await.unwrap();
    // The other engine learns about the index when its next write is decided.
    other.put(item("b", &[("owner", "o")])).await.unwrap();
    assert_eq!(other.describe().await.index_statistics["by-owner"].item_count, 1);
    one.engine.run_pending_work().await.unwrap();
    assert_eq!(other.index_status("by-owner").await, Some(IndexStatus::Active));
    other.check_statistics().await;
    // Deleted and created again without the other engine's knowledge.
    one.engine.delete_table(&name("t")).await.unwrap();
    one.create(create("t")).await;
    other.put(item("c", &[])).await.unwrap();
    assert_eq!(ids(&one.scan(None).await.unwrap()), ["c"]);
    one.engine.delete_table(&name("t")).await.unwrap();
    assert!(is_not_found(&other.engine.describe_table(&name("t")).await));
    assert!(is_not_found(&other.update(|_| {}).await));
    other.create(create("t")).await;
    assert!(matches!(one.engine.create_table(create("t")).await, Err(Error::TableExists { .. })));
}

#[tokio::test]
async fn a_definition_that_does_not_decode_prevents_opening() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    let row = keyspace::table_row(&namespace(), "t");
    let mut definition = harness.store.get(&row).await.unwrap().unwrap().to_vec();
    definition.truncate(definition.len() - 1);
    overwrite(&harness, &row, definition).await;
    let opened = open(harness.store.clone(), harness.clock.clone()).await;
    assert!(matches!(opened, Err(Error::Corrupt { .. })));
    let updated = harness.update(|request| request.deletion_protection = Some(true)).await;
    assert!(matches!(updated, Err(Error::Corrupt { .. })));
}

#[tokio::test]
async fn a_definition_under_another_name_prevents_opening() {
    let harness = Harness::new().await;
    harness.create(create("t")).await;
    let definition = harness.store.get(&keyspace::table_row(&namespace(), "t")).await.unwrap();
    let elsewhere = keyspace::table_row(&namespace(), "u");
    overwrite(&harness, &elsewhere, definition.unwrap().to_vec()).await;
    let opened = open(harness.store.clone(), harness.clock.clone()).await;
    assert!(matches!(opened, Err(Error::Corrupt { .. })));
}

async fn overwrite(harness: &Harness, key: &zenobe_store::Key, value: Vec<u8>) {
    let set = WriteSet { guards: &[], keys: std::slice::from_ref(key) };
    let mut decide = |_: &[Option<zenobe_store::Value>]| {
        let mut batch = Batch::new();
        batch.put(key.clone(), value.clone());
        Decision::Commit(batch)
    };
    harness.store.write(set, &mut decide).await.unwrap();
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}
