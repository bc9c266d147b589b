//! The caches for eventually consistent reads, rule by rule. One node has them; the other, without
//! any, changes the same tables behind its back.

use std::sync::Arc;

use futures_util::future::join_all;
use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::{GetItem, PutItem};
use zenobe_engine::history::AsOf;
use zenobe_engine::{CacheOptions, CacheStatistics, EngineOptions};
use zenobe_store::failing::{FailingStore, WriteFailure};
use zenobe_store::memory::MemoryStore;
use zenobe_store::{Error, Store};

use super::{START_MS, node, options};
use crate::support::commands::Script;
use crate::support::notation::parse_item;

const TTL_MS: u64 = 300_000;

struct World {
    clock: Arc<ManualClock>,
    cached: Script,
    other: Script,
}

impl World {
    async fn new() -> World {
        World::with(Arc::new(MemoryStore::shared()), TTL_MS).await
    }

    async fn with(store: Arc<dyn Store>, time_to_live_ms: u64) -> World {
        let clock = Arc::new(ManualClock::new(START_MS));
        let cache = Some(CacheOptions { size_bytes_max: 1 << 20, time_to_live_ms });
        let with_caches =
            EngineOptions { item_cache: cache, query_cache: cache, ..options(&clock) };
        let mut cached = node(Arc::clone(&store), with_caches, &clock).await;
        let mut other = node(store, options(&clock), &clock).await;
        cached.expect(&["create t pk:S", "gsi g g:S - all"], "ok").await;
        other.expect(&[r#"put t {"pk": "a", "g": "x", "v": 1}"#], "new").await;
        World { clock, cached, other }
    }

    /// What GetItem of the cached node returns for the item, and what it consumed.
    async fn get(&mut self) -> (String, String) {
        let text = self.cached.run(&[r#"get t {"pk": "a"}"#, "project v"]).await;
        let (item, consumed) = text.split_once('\n').expect("an item and what it consumed");
        (item.to_owned(), consumed.trim().to_owned())
    }

    async fn check(&mut self, item: &str, consumed: f64) {
        let expected = (item.to_owned(), format!("consumed t: {consumed}"));
        assert_eq!(self.get().await, expected);
    }

    /// Changes the item where the cached node doesn't see it.
    async fn put_elsewhere(&mut self, value: u32) {
        let put = format!(r#"put t {{"pk": "a", "g": "x", "v": {value}}}"#);
        self.other.run(&[&put]).await;
    }

    fn items(&self) -> CacheStatistics {
        self.cached.engine().item_cache_statistics().expect("there is a cache")
    }
}

#[tokio::test]
async fn an_item_answers_for_its_time_and_a_hit_consumes_nothing() {
    let mut world = World::new().await;
    world.check(r#"{"v": 1}"#, 0.5).await;
    world.put_elsewhere(2).await;
    world.clock.advance_ms(TTL_MS - 1);
    world.check(r#"{"v": 1}"#, 0.0).await;
    world.clock.advance_ms(1);
    world.check(r#"{"v": 2}"#, 0.5).await;
    let CacheStatistics { hits, misses, evictions, entries, size_bytes } = world.items();
    assert_eq!((hits, misses, evictions, entries), (1, 2, 0, 1));
    assert!(size_bytes > 0);
    // One entry answers every projection.
    let whole = world.cached.run(&[r#"get t {"pk": "a"}"#]).await;
    assert!(whole.contains(r#""g": "x""#) && whole.contains("t: 0"), "{whole}");
}

#[tokio::test]
async fn a_missing_item_is_remembered_until_it_is_written_here() {
    let mut world = World::new().await;
    world.other.run(&[r#"delete t {"pk": "a"}"#]).await;
    world.check("nothing", 0.5).await;
    world.put_elsewhere(2).await;
    world.check("nothing", 0.0).await;
    world.cached.run(&[r#"update t {"pk": "a"} SET v = v + `1`"#]).await;
    world.check(r#"{"v": 3}"#, 0.0).await;
}

#[tokio::test]
async fn writes_of_this_node_show_at_once() {
    let a_write_of_each_kind: [(&[&str], &str); 6] = [
        (&[r#"put t {"pk": "a", "v": 10}"#], r#"{"v": 10}"#),
        (&[r#"update t {"pk": "a"} SET v = `11`"#], r#"{"v": 11}"#),
        (&["batch-write", r#"put t {"pk": "a", "v": 12}"#], r#"{"v": 12}"#),
        (
            &[
                "transact-write",
                "check t {\"pk\": \"b\"} attribute_not_exists(pk)",
                r#"put t {"pk": "a", "v": 13}"#,
            ],
            r#"{"v": 13}"#,
        ),
        (&["batch-write", r#"delete t {"pk": "a"}"#], "nothing"),
        (&[r#"delete t {"pk": "a"}"#], "nothing"),
    ];
    let mut world = World::new().await;
    world.check(r#"{"v": 1}"#, 0.5).await;
    for (write, expected) in a_write_of_each_kind {
        let answer = world.cached.run(write).await;
        assert!(!answer.contains("error"), "{write:?}: {answer}");
        world.check(expected, 0.0).await;
    }
}

#[tokio::test]
async fn a_failed_write_changes_nothing_here() {
    let mut world = World::new().await;
    let failing = [r#"put t {"pk": "a", "v": 5}"#, "if attribute_not_exists(pk)"];
    world.cached.expect(&failing, "error: condition failed").await;
    // It is not cached either.
    world.check(r#"{"v": 1}"#, 0.5).await;
    world.put_elsewhere(2).await;
    world.cached.expect(&failing, "error: condition failed").await;
    world.check(r#"{"v": 1}"#, 0.0).await;
}

#[tokio::test]
async fn consistent_and_transactional_reads_and_those_of_the_past_neither_use_nor_fill_it() {
    let mut world = World::new().await;
    let t = world.cached.table("t");
    world.cached.engine().update_continuous_backups(&t, true, None).await.unwrap();
    let reads: [&[&str]; 5] = [
        &[r#"get t {"pk": "a"}"#, "consistent"],
        &["batch-get", r#"get t {"pk": "a"}"#, "consistent"],
        &["transact-get", r#"get t {"pk": "a"}"#],
        &[r#"query t pk = `"a"`"#, "consistent"],
        &["scan t", "consistent"],
    ];
    for value in [2, 3] {
        world.put_elsewhere(value).await;
        for read in reads {
            let found = world.cached.run(read).await;
            assert!(found.contains(&format!(r#""v": {value}"#)), "{read:?}: {found}");
        }
        world.clock.advance_ms(1_000);
        let get = GetItem {
            table: t.clone(),
            key: parse_item(r#"{"pk": "a"}"#),
            projection: None,
            consistent: false,
        };
        let past = world
            .cached
            .engine()
            .reads(Some(AsOf::second(START_MS / 1_000 + u64::from(value) - 2)));
        let found = past.get_item(&get).await.unwrap().item.expect("it existed then");
        assert_eq!(
            found.as_item().decode(),
            parse_item(&format!(r#"{{"pk": "a", "g": "x", "v": {value}}}"#))
        );
    }
    assert_eq!(world.items(), CacheStatistics::default());
    let pages = world.cached.engine().query_cache_statistics();
    assert_eq!(pages, Some(CacheStatistics::default()));
    world.check(r#"{"v": 3}"#, 0.5).await;
}

#[tokio::test]
async fn a_batch_reads_only_what_is_missing() {
    let mut world = World::new().await;
    world.other.run(&[r#"put t {"pk": "b", "v": 1}"#]).await;
    world.check(r#"{"v": 1}"#, 0.5).await;
    world.put_elsewhere(2).await;
    let batch =
        ["batch-get", r#"get t {"pk": "a"}"#, r#"get t {"pk": "b"}"#, r#"get t {"pk": "c"}"#];
    let first = world.cached.run(&batch).await;
    assert!(
        first.contains(r#"{"g": "x", "pk": "a", "v": 1}"#) && first.contains("t: 1\n"),
        "{first}"
    );
    world.other.run(&[r#"put t {"pk": "c", "v": 2}"#]).await;
    let second = world.cached.run(&batch).await;
    assert!(second.contains(r#""pk": "b""#) && !second.contains(r#""pk": "c""#), "{second}");
    assert!(second.contains("consumed t: 0\n"), "{second}");
}

#[tokio::test]
async fn without_a_time_to_live_items_stay_until_they_are_written_and_pages_are_not_kept() {
    let mut world = World::with(Arc::new(MemoryStore::shared()), 0).await;
    world.check(r#"{"v": 1}"#, 0.5).await;
    world.put_elsewhere(2).await;
    world.clock.advance_ms(1_000 * TTL_MS);
    world.check(r#"{"v": 1}"#, 0.0).await;
    world.cached.run(&[r#"update t {"pk": "a"} SET v = v + `1`"#]).await;
    world.check(r#"{"v": 3}"#, 0.0).await;
    assert_eq!(world.cached.engine().query_cache_statistics(), None);
    world.put_elsewhere(4).await;
    let page = world.cached.run(&["scan t"]).await;
    assert!(page.contains(r#""v": 4"#), "{page}");
}

#[tokio::test]
async fn a_page_answers_the_same_request_for_its_time_whatever_is_written() {
    let requests: [&[&str]; 7] = [
        &[r#"query t pk = `"a"`"#],
        &[r#"query t pk = `"a"`"#, "backward"],
        &[r#"query t pk = `"a"`"#, "filter v > `0`"],
        &[r#"query t pk = `"a"`"#, "filter v > `-1`"],
        &[r#"query t/g g = `"x"`"#],
        &["scan t"],
        &["scan t", "limit 1"],
    ];
    let mut world = World::new().await;
    for request in requests {
        let found = world.cached.run(request).await;
        assert!(found.contains(r#""v": 1"#) && !found.contains("t: 0\n"), "{request:?}: {found}");
    }
    // Its own writes don't touch pages, and pages don't fill the cache of items.
    world.cached.run(&[r#"put t {"pk": "a", "g": "x", "v": 2}"#]).await;
    for request in requests {
        let found = world.cached.run(request).await;
        assert!(found.contains(r#""v": 1"#) && found.contains("t: 0\n"), "{request:?}: {found}");
    }
    let other = world.cached.run(&["scan t", "limit 2"]).await;
    assert!(other.contains(r#""v": 2"#), "{other}");
    world.clock.advance_ms(TTL_MS);
    for request in requests {
        let found = world.cached.run(request).await;
        assert!(found.contains(r#""v": 2"#), "{request:?}: {found}");
    }
    let CacheStatistics { hits, misses, entries, .. } =
        world.cached.engine().query_cache_statistics().unwrap();
    assert_eq!((hits, misses, entries), (7, 15, 8));
}

#[tokio::test]
async fn a_page_belongs_to_one_definition_of_its_table() {
    let mut world = World::new().await;
    let query = [r#"query t/g g = `"x"`"#];
    world.cached.expect(&query, "{").await;
    world.cached.expect(&["drop-index t g"], "ok").await;
    world.cached.expect(&["work"], "ok").await;
    world.cached.expect(&query, "error: IndexNotFound").await;
}

#[tokio::test]
async fn a_table_that_is_created_again_starts_without_entries() {
    let mut world = World::new().await;
    world.check(r#"{"v": 1}"#, 0.5).await;
    world.cached.expect(&["scan t"], "{").await;
    world.cached.expect(&["drop t"], "ok").await;
    world.cached.expect(&[r#"get t {"pk": "a"}"#], "error: TableNotFound").await;
    world.cached.expect(&["create t pk:S"], "ok").await;
    world.check("nothing", 0.5).await;
    world.cached.expect(&["scan t"], "count 0").await;

    // Elsewhere: this node notices with its next look at the definitions.
    world.other.expect(&["drop t"], "ok").await;
    world.other.expect(&["create t pk:S"], "ok").await;
    world.put_elsewhere(9).await;
    world.cached.expect(&["work"], "ok").await;
    world.check(r#"{"v": 9}"#, 0.5).await;
}

#[tokio::test]
async fn background_work_removes_entries_and_adds_none() {
    let mut world = World::new().await;
    world.cached.expect(&["ttl t on e"], "ok").await;
    let due = START_MS / 1_000 + 10;
    let put = format!(r#"put t {{"pk": "a", "e": {due}, "v": 1}}"#);
    world.cached.expect(&[&put], "old").await;
    world.check(r#"{"v": 1}"#, 0.0).await;
    world.clock.advance_ms(12_000);
    world.cached.expect(&["work"], "ok").await;
    assert_eq!(world.items().entries, 0);
    world.check("nothing", 0.5).await;
}

/// The client repeats a transaction at another node, because it has not seen the answer of the first.
#[tokio::test]
async fn a_replayed_transaction_shows_at_once() {
    let mut world = World::new().await;
    world.check(r#"{"v": 1}"#, 0.5).await;
    let transaction = ["transact-write", r#"put t {"pk": "a", "v": 2}"#, "token once"];
    world.other.run(&transaction).await;
    world.check(r#"{"v": 1}"#, 0.0).await;
    let replayed = world.cached.run(&transaction).await;
    assert!(replayed.contains("transactional reads"), "{replayed}");
    world.check(r#"{"v": 2}"#, 0.5).await;
}

#[tokio::test]
async fn a_write_with_an_unknown_outcome_leaves_no_entry() {
    let store = Arc::new(FailingStore::new(Arc::new(MemoryStore::shared())));
    let mut world = World::with(store.clone(), TTL_MS).await;
    world.check(r#"{"v": 1}"#, 0.5).await;
    let away = Error::Unavailable { detail: "away".to_owned() };
    store.set(WriteFailure::Refused(away));
    world.cached.expect(&[r#"put t {"pk": "a", "v": 2}"#], "error: ").await;
    store.set(WriteFailure::None);
    // Nothing was written, and nothing changes.
    world.check(r#"{"v": 1}"#, 0.0).await;
    let lost = Error::Uncertain { detail: "the answer was lost".to_owned() };
    store.set(WriteFailure::AnswerLost(lost));
    world.cached.expect(&[r#"put t {"pk": "a", "v": 2}"#], "error: ").await;
    store.set(WriteFailure::None);
    // For a while nothing is kept, because the write might be committed only now.
    for _ in 0..2 {
        world.check(r#"{"v": 2}"#, 0.5).await;
    }
    world.clock.advance_ms(TTL_MS);
    world.check(r#"{"v": 2}"#, 0.5).await;
    world.check(r#"{"v": 2}"#, 0.0).await;
}

/// Readers and writers of a few keys, all at once: after its own writes are acknowledged, the node
/// never shows what was there before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn acknowledged_writes_are_never_hidden() {
    let world = World::new().await;
    let engine = world.cached.engine();
    let table = world.cached.table("t");
    let key = |number: usize| parse_item(&format!(r#"{{"pk": "{number}"}}"#));
    let clients = (0..8).map(|client| {
        let (engine, table) = (Arc::clone(engine), table.clone());
        tokio::spawn(async move {
            for round in 0..200 {
                // Each key has one writer, so that it knows the last value; its neighbours read it,
                // and write keys of the same stripe now and then.
                let item = parse_item(&format!(r#"{{"pk": "{client}", "v": {round}}}"#));
                let put = PutItem { table: table.clone(), item: item.clone(), condition: None };
                engine.put_item(put).await.unwrap();
                for reader in [client, (client + 1) % 8] {
                    let get = GetItem {
                        table: table.clone(),
                        key: key(reader),
                        projection: None,
                        consistent: false,
                    };
                    let found = engine.get_item(&get).await.unwrap().item;
                    if reader == client {
                        assert_eq!(found.expect("it was put").as_item().decode(), item);
                    }
                }
            }
        })
    });
    for client in join_all(clients).await {
        client.unwrap();
    }
    assert!(world.items().hits > 0);
}

#[tokio::test]
async fn many_keys_stay_within_the_memory() {
    let mut world = World::new().await;
    let item = format!(r#"{{"pk": "$i", "v": "{}"}}"#, "x".repeat(2_000));
    world.cached.run(&[&format!("repeat 0..2000 put t {item}")]).await;
    world.cached.run(&[r#"repeat 0..2000 get t {"pk": "missing $i"}"#]).await;
    let CacheStatistics { size_bytes, evictions, entries, .. } = world.items();
    assert!(size_bytes <= 1 << 20, "{size_bytes}");
    assert_eq!(entries + evictions, 4_000);
}
