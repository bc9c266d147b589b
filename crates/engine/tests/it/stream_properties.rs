//! Whatever happens, a copy of the table built from the records alone equals the table.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::*;
use zenobe_engine::{Engine, EngineOptions, Limits, StreamOptions};
use zenobe_store::Store;
use zenobe_store::memory::MemoryStore;
use zenobe_value::{EncodedItem, ValueView};

use crate::support::commands::Script;
use crate::support::streams::{names, records};
use crate::support::{Fixture, block_on};

type Items = BTreeMap<Vec<u8>, EncodedItem>;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn records_rebuild_the_table(steps in vec(step(), 1..60), slots in 1..4u32) {
        block_on(async {
            let mut world = World::new(slots).await;
            for step in &steps {
                world.take(step).await;
            }
            world.check().await;
        });
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// A script command, whatever its outcome.
    Run(String),
    /// Opens another engine on the same store.
    Restart,
    /// Disables the stream, or enables a new one.
    Toggle,
}

struct World {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    options: EngineOptions,
    script: Script,
    /// The table's content when each stream started, and when it ended.
    spans: Vec<(Items, Option<Items>)>,
}

impl World {
    async fn new(slots: u32) -> World {
        let clock = Arc::new(ManualClock::new(1_000_000));
        let streams = StreamOptions {
            shards: slots,
            shard_records_max: Some(3),
            retention_ms: u64::MAX,
            ..StreamOptions::default()
        };
        let limits = Limits { time_to_live_change_interval_ms: 0, ..Limits::default() };
        let options =
            EngineOptions { clock: clock.clone(), limits, streams, ..EngineOptions::default() };
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let script = open(&store, &options, &clock).await;
        let mut world = World { store, clock, options, script, spans: Vec::new() };
        world.script.run(&["create t pk:S sk:N", "lsi l a:N all", "gsi g a:N - keys"]).await;
        world.take(&Step::Toggle).await;
        world
    }

    async fn take(&mut self, step: &Step) {
        match step {
            Step::Run(command) => {
                let lines: Vec<&str> = command.lines().collect();
                self.script.run(&lines).await;
            }
            Step::Restart => {
                self.script = open(&self.store, &self.options, &self.clock).await;
            }
            Step::Toggle => self.toggle().await,
        }
    }

    async fn toggle(&mut self) {
        let items = self.items().await;
        let output = match self.spans.last_mut() {
            Some((_, end @ None)) => {
                *end = Some(items);
                self.script.run(&["stream t off"]).await
            }
            _ => {
                self.spans.push((items, None));
                self.script.run(&["stream t both"]).await
            }
        };
        assert_eq!(output, "ok\n");
    }

    async fn items(&self) -> Items {
        let page = PageRequest { consistent: true, ..PageRequest::default() };
        let scan = Scan { table: self.script.table("t"), index: None, segment: None, page };
        let page = self.script.engine().scan(&scan).await.unwrap();
        page.items.into_items().into_iter().map(|item| (key_of(&item), item)).collect()
    }

    async fn check(&self) {
        let now = self.items().await;
        let engine = self.script.engine();
        let streams = names(engine, &self.script.table("t")).await.unwrap();
        assert_eq!(streams.len(), self.spans.len());
        let mut ids = HashSet::new();
        for (stream, (start, end)) in streams.iter().zip(&self.spans) {
            let records = records(engine, stream).await.unwrap();
            assert!(records.is_sorted_by(|a, b| a.sequence_number < b.sequence_number));
            assert!(records.iter().all(|record| ids.insert(record.id)));
            assert_eq!(&replay(start.clone(), &records), end.as_ref().unwrap_or(&now));
        }
        let found = engine.check_consistency(&self.script.table("t")).await.unwrap();
        assert_eq!(found, []);
    }
}

async fn open(store: &Arc<dyn Store>, options: &EngineOptions, clock: &Arc<ManualClock>) -> Script {
    let engine = Engine::open(Arc::clone(store), options.clone()).await.unwrap();
    Script::with_fixture(Fixture::with_engine(engine, clock.clone()))
}

/// Applies the records to a copy. Each must fit the state that the records before it gave its item.
fn replay(mut copy: Items, records: &[StreamRecord]) -> Items {
    for record in records {
        let key = record.keys.as_bytes().to_vec();
        let images = (record.old.is_some(), record.new.is_some());
        let expected = match record.event {
            StreamEvent::Insert => (false, true),
            StreamEvent::Modify => (true, true),
            StreamEvent::Remove => (true, false),
        };
        assert_eq!(images, expected, "{record:?}");
        assert_ne!(record.old, record.new, "a record without a change");
        if record.by_service {
            assert!(has_expired(record), "{record:?}");
        }
        let before = match &record.new {
            Some(item) => copy.insert(key, item.clone()),
            None => copy.remove(&key),
        };
        assert_eq!(before, record.old, "{record:?}");
    }
    copy
}

fn has_expired(record: &StreamRecord) -> bool {
    let expiry = record.old.as_ref().and_then(|item| match item.as_item().get("e")?.view() {
        ValueView::N(text) => text.parse::<u64>().ok(),
        _ => None,
    });
    record.event == StreamEvent::Remove
        && expiry.is_some_and(|second| second < record.created_at_ms / 1_000)
}

fn key_of(item: &EncodedItem) -> Vec<u8> {
    item.as_item().retain(|name| name == "pk" || name == "sk").as_bytes().to_vec()
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => write().prop_map(Step::Run),
        3 => vec(write(), 1..4)
            .prop_map(|writes| Step::Run(format!("transact-write\n{}", writes.join("\n")))),
        3 => vec(plain_write(), 1..4)
            .prop_map(|writes| Step::Run(format!("batch-write\n{}", writes.join("\n")))),
        3 => (1..3_000u32).prop_map(|by_ms| Step::Run(format!("clock +{by_ms}"))),
        4 => Just(Step::Run("work".to_owned())),
        1 => Just(Step::Run("clock +14400000".to_owned())),
        1 => prop_oneof![Just("ttl t on e"), Just("ttl t off e")]
            .prop_map(|command| Step::Run(command.to_owned())),
        1 => Just(Step::Restart),
        1 => Just(Step::Toggle),
    ]
}

fn write() -> impl Strategy<Value = String> {
    let update = (key(), 0..4u8).prop_map(|(key, which)| {
        let expression = match which {
            0 => "SET a = `1`",
            1 => "ADD a `1`",
            2 => "REMOVE a, e",
            _ => "SET e = `1001`",
        };
        format!("update t {{{key}}} {expression}")
    });
    prop_oneof![2 => plain_write(), 1 => update]
}

fn plain_write() -> impl Strategy<Value = String> {
    let expiry =
        prop_oneof![Just("1000"), Just("1002"), Just("1005"), Just("20000"), Just("\"x\"")];
    prop_oneof![
        1 => key().prop_map(|key| format!("delete t {{{key}}}")),
        2 => (key(), 0..3u8).prop_map(|(key, a)| format!(r#"put t {{{key}, "a": {a}}}"#)),
        2 => (key(), expiry).prop_map(|(key, expiry)| format!(r#"put t {{{key}, "e": {expiry}}}"#)),
    ]
}

fn key() -> impl Strategy<Value = String> {
    (0..4u8, 0..2u8).prop_map(|(pk, sk)| format!(r#""pk": "{pk}", "sk": {sk}"#))
}
