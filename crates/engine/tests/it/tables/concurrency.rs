//! Changes of tables against each other and against writers.
//!
//! The store below yields to other tasks around each of its operations, a varying number of times,
//! so a run on one thread covers many interleavings; each seed gives another.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use futures_util::future::join_all;
use zenobe_engine::Limits;
use zenobe_engine::command::*;
use zenobe_engine::error::{Error, LimitError, UpdateTableError};
use zenobe_engine::keyspace;
use zenobe_engine::schema::*;
use zenobe_store::memory::MemoryStore;
use zenobe_store::yielding::YieldingStore;
use zenobe_value::Attributes;

use super::harness::*;

const SEEDS: std::ops::Range<u64> = 0..16;

#[tokio::test]
async fn of_many_creations_of_a_name_one_wins() {
    for seed in SEEDS {
        let harness = yielding(seed).await;
        let other = harness.another().await;
        let engines = [&harness.engine, &other.engine].into_iter().cycle().take(12);
        let results = join_all(engines.map(|engine| engine.create_table(create("t")))).await;
        let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(|it| it.is_ok());
        assert_eq!(won.len(), 1, "seed {seed}");
        assert!(lost.iter().all(|it| matches!(it, Err(Error::TableExists { .. }))), "seed {seed}");
        let created = won[0].as_ref().unwrap().definition.clone();
        assert_eq!(harness.definition().await, created);
        assert_eq!(other.definition().await, created);
    }
}

#[tokio::test]
async fn concurrent_creations_respect_the_limit() {
    for seed in SEEDS {
        let limits = Limits { tables_max: 5, ..Limits::default() };
        let harness = yielding_with(seed, limits).await;
        let creations = (0..9).map(|number| create(&format!("t{number}")));
        let results = join_all(creations.map(|it| harness.engine.create_table(it))).await;
        assert_eq!(results.iter().filter(|it| it.is_ok()).count(), 5, "seed {seed}");
        let ids = results.iter().flatten().map(|it| it.definition.id);
        assert_eq!(ids.collect::<std::collections::BTreeSet<_>>().len(), 5, "seed {seed}");
        let page = harness.engine.list_tables(&namespace(), None, 100).await.unwrap();
        assert_eq!(page.names.len(), 5, "seed {seed}");
    }
}

/// Creations and raises on two engines together stay within the account's limit, and use it up.
#[tokio::test]
async fn concurrent_raises_respect_the_limit_of_the_account() {
    for seed in SEEDS {
        let harness = yielding(seed).await;
        let other = harness.another().await;
        harness.create(create_provisioned(10_000, 1)).await;
        let provision = async |number: usize| {
            let engine = if number.is_multiple_of(2) { &harness.engine } else { &other.engine };
            if number == 3 || number == 4 {
                let raise = |request: &mut UpdateTable| request.throughput = units(30_000, 1);
                return engine.update_table(update(raise)).await.map(drop);
            }
            let table = name(&format!("t{number}"));
            let request = CreateTable { table, ..create_provisioned(20_000, 1) };
            engine.create_table(request).await.map(drop)
        };
        let results = join_all((0..8).map(provision)).await;
        let is_expected = |result: &Result<(), Error>| match result {
            Ok(()) => true,
            Err(Error::Limit(error)) => matches!(error, LimitError::AccountCapacity { .. }),
            // Two engines raise the same table to the same units.
            Err(Error::UpdateTable(error)) => {
                matches!(error, UpdateTableError::ThroughputUnchanged { .. })
            }
            Err(_) => false,
        };
        assert!(results.iter().all(is_expected), "seed {seed}: {results:?}");
        let page = harness.engine.list_tables(&namespace(), None, 100).await.unwrap();
        let mut reads = 0;
        for table in page.names {
            let described = harness.engine.describe_table(&name(&table)).await.unwrap();
            reads += described.definition.throughput.read_units;
        }
        assert_eq!(reads, 70_000, "seed {seed}");
    }
}

#[tokio::test]
async fn no_two_streams_share_a_label() {
    for seed in SEEDS {
        let harness = yielding(seed).await;
        let other = harness.another().await;
        harness.create(create("t")).await;
        let switch = async |engine: &Harness| {
            let mut labels = Vec::new();
            for _ in 0..20 {
                let enable = StreamChange::Enable(StreamViewType::KeysOnly);
                let enabled = engine.update(|request| request.stream = Some(enable)).await;
                labels.extend(enabled.ok().and_then(|it| it.after.definition.stream.clone()));
                // The other engine may have done it already.
                let disable = Some(StreamChange::Disable);
                let _ = engine.update(|request| request.stream = disable).await;
            }
            labels.into_iter().map(|stream| stream.label)
        };
        let (one, two) = tokio::join!(switch(&harness), switch(&other));
        let labels: Vec<String> = one.chain(two).collect();
        let distinct: std::collections::BTreeSet<&String> = labels.iter().collect();
        assert!(labels.len() > 1, "seed {seed}");
        assert_eq!(distinct.len(), labels.len(), "seed {seed}: {labels:?}");
    }
}

#[tokio::test]
async fn no_change_of_a_definition_is_lost() {
    for seed in SEEDS {
        let harness = yielding(seed).await;
        let other = harness.another().await;
        harness.create(create("t")).await;
        let tag = async |number: usize| {
            let engine = if number.is_multiple_of(2) { &harness.engine } else { &other.engine };
            let tags = [(format!("key{number}"), String::new())].into();
            engine.tag_resource(&name("t"), tags).await.unwrap();
        };
        join_all((0..20).map(tag)).await;
        let definition = harness.definition().await;
        assert_eq!((definition.tags.len(), definition.version), (20, 21), "seed {seed}");
    }
}

#[tokio::test]
async fn of_two_new_indexes_one_wins() {
    for seed in SEEDS {
        let harness = yielding(seed).await;
        harness.create(create("t")).await;
        let add = async |index| harness.update(|request| add_index(request, index, "owner")).await;
        let results = join_all(["a", "b", "c"].map(add)).await;
        assert_eq!(results.iter().filter(|it| it.is_ok()).count(), 1, "seed {seed}");
        let refused = results.into_iter().filter_map(|it| it.err());
        for error in refused {
            assert!(matches!(error, Error::UpdateTable(UpdateTableError::IndexWorkInProgress)));
        }
    }
}

#[tokio::test]
async fn writers_never_reach_a_deleted_table() {
    for seed in SEEDS {
        let harness = yielding(seed).await;
        harness.create(indexed_table()).await;
        let write = async |writer: u64| {
            for step in 0..40 {
                let id = format!("{}", (writer * 7 + step * 3) % 10);
                let written = harness.put(item(&id, &[("owner", &format!("o{step}"))])).await;
                assert!(written.is_ok() || is_not_found(&written), "seed {seed}: {written:?}");
            }
        };
        let replace = async {
            for _ in 0..5 {
                harness.engine.delete_table(&name("t")).await.unwrap();
                harness.create(indexed_table()).await;
            }
        };
        tokio::join!(join_all((0..6).map(write)), replace);
        harness.check_statistics().await;
        let current = harness.definition().await.id;
        let of_dead_tables = |key: &Vec<u8>| {
            (1..current.0).map(TableId).any(|id| {
                key.starts_with(&keyspace::item_prefix(id))
                    || key.starts_with(&keyspace::global_indexes_prefix(id))
                    || key.starts_with(&keyspace::statistics_prefix(id))
                    || key.starts_with(&keyspace::version_row(id))
            })
        };
        assert!(!harness.keys().await.iter().any(of_dead_tables), "seed {seed}");
    }
}

#[tokio::test]
async fn an_index_is_complete_however_writers_interfere() {
    for seed in SEEDS {
        let harness = yielding(seed).await;
        let other = harness.another().await;
        harness.create(create("t")).await;
        for number in 0..200 {
            harness.put(item(&format!("{number}"), &[("owner", "before")])).await.unwrap();
        }
        // The other engine starts with a definition without the index.
        other.describe().await;
        let work = async {
            harness.update(|request| add_index(request, "by-owner", "owner")).await.unwrap();
            if seed % 2 == 1 {
                harness.engine.run_pending_work().await.unwrap();
                return;
            }
            // Both engines do the same work at the same time.
            other.describe().await;
            let works = [&harness, &other].map(|it| it.engine.run_pending_work());
            join_all(works).await.into_iter().for_each(|work| work.unwrap());
        };
        let engines = [&harness, &other];
        let write = async |writer: u64| {
            for step in 0..60 {
                random_write(engines[(writer % 2) as usize], seed, writer, step).await;
            }
        };
        tokio::join!(work, join_all((0..4).map(write)));
        check_index(&harness, seed).await;
    }
}

#[tokio::test]
async fn an_index_deleted_during_its_backfill_leaves_nothing() {
    for seed in SEEDS {
        let harness = yielding(seed).await;
        harness.create(create("t")).await;
        for number in 0..300 {
            harness.put(item(&format!("{number}"), &[("owner", "before")])).await.unwrap();
        }
        let before = harness.keys().await;
        harness.update(|request| add_index(request, "by-owner", "owner")).await.unwrap();
        let delete = async {
            for _ in 0..seed {
                tokio::task::yield_now().await;
            }
            harness.update(|request| delete_index(request, "by-owner")).await.unwrap();
        };
        let work = async { harness.engine.run_pending_work().await.unwrap() };
        tokio::join!(work, delete);
        harness.engine.run_pending_work().await.unwrap();
        assert_eq!(harness.index_status("by-owner").await, None, "seed {seed}");
        assert_eq!(harness.keys().await, before, "seed {seed}");
    }
}

#[tokio::test]
async fn a_backfill_that_stops_anywhere_is_finished_by_the_next_engine() {
    for seed in SEEDS {
        let harness = yielding(seed).await;
        harness.create(create("t")).await;
        for number in 0..300 {
            harness.put(item(&format!("{number}"), &[("owner", "before")])).await.unwrap();
        }
        harness.update(|request| add_index(request, "by-owner", "owner")).await.unwrap();
        stop_after(seed * 2, harness.engine.run_pending_work()).await;
        let restarted = harness.another().await;
        random_write(&restarted, seed, 1, 1).await;
        restarted.engine.run_pending_work().await.unwrap();
        check_index(&restarted, seed).await;
    }
}

#[tokio::test]
async fn a_request_dropped_halfway_leaves_nothing_half_done() {
    for polls in 0..24 {
        let harness = yielding(polls).await;
        stop_after(polls, harness.engine.create_table(create("t"))).await;
        check_halves(&harness).await;
        let _ = harness.engine.create_table(create("t")).await;
        stop_after(polls, harness.update(|request| request.deletion_protection = Some(true))).await;
        check_halves(&harness).await;
        harness.update(|request| request.deletion_protection = Some(false)).await.unwrap();
        harness.put(item("a", &[])).await.unwrap();
        harness.check_statistics().await;
        stop_after(polls, harness.engine.delete_table(&name("t"))).await;
        check_halves(&harness).await;
    }
}

/// The definition and the version row exist both or neither, and the engine knows which.
async fn check_halves(harness: &Harness) {
    let keys = harness.keys().await;
    let of_kind = |kind: u8| keys.iter().filter(|key| key[0] == kind).count();
    let tables = of_kind(keyspace::tables_prefix()[0]);
    let versions = of_kind(keyspace::version_row(TableId(0))[0]);
    assert_eq!(tables, versions);
    let described = harness.engine.describe_table(&name("t")).await;
    assert_eq!(is_not_found(&described), tables == 0);
}

/// Polls a future a number of times, then drops it.
async fn stop_after<T>(polls: u64, future: impl Future<Output = T>) {
    let give_up = async {
        for _ in 0..polls {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        _ = future => {}
        () = give_up => {}
    }
}

async fn random_write(harness: &Harness, seed: u64, writer: u64, step: u64) {
    let random = BuildHasherDefault::<DefaultHasher>::new().hash_one((seed, writer, step));
    let id = format!("{}", random % 230);
    match random >> 16 & 3 {
        0 => harness.delete(&id).await,
        1 => drop(harness.put(item(&id, &[])).await.unwrap()),
        owner => {
            let owner = format!("owner{owner}");
            drop(harness.put(item(&id, &[("owner", &owner)])).await.unwrap());
        }
    }
}

/// The index holds exactly the items of the table that have its key, and the counters agree.
async fn check_index(harness: &Harness, seed: u64) {
    let status = harness.index_status("by-owner").await;
    assert_eq!(status, Some(IndexStatus::Active), "seed {seed}");
    let sorted = |mut items: Vec<Attributes>| {
        items.sort_by_key(|item| format!("{:?}", item["id"]));
        items
    };
    let mut expected = harness.scan(None).await.unwrap();
    expected.retain(|item| item.contains_key("owner"));
    let entries = harness.scan(Some("by-owner")).await.unwrap();
    assert_eq!(sorted(entries), sorted(expected), "seed {seed}");
    harness.check_statistics().await;
}

fn indexed_table() -> CreateTable {
    let indexes = vec![index("by-owner", "owner", ThroughputSettings::default())];
    CreateTable { global_indexes: indexes, ..create("t") }
}

async fn yielding(seed: u64) -> Harness {
    yielding_with(seed, Limits::default()).await
}

async fn yielding_with(seed: u64, limits: Limits) -> Harness {
    let store = YieldingStore::new(Arc::new(MemoryStore::new()), seed);
    Harness::with(Arc::new(store), limits).await
}
