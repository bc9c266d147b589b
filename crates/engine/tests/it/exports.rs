//! What exports read, compared with a naive record of the past; and what keeps it until they end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use zenobe_engine::clock::ManualClock;
use zenobe_engine::error::Error;
use zenobe_engine::export::{
    ExportRecords, ExportRequest, ExportSource, ExportSpan, Exportable, KIND, SOURCE,
};
use zenobe_engine::jobs::NewJob;
use zenobe_engine::schema::Namespace;
use zenobe_engine::{Engine, EngineOptions};
use zenobe_store::Store;
use zenobe_store::memory::MemoryStore;
use zenobe_value::{AttributeValue, Attributes, EncodedItem};

use crate::support::commands::Script;
use crate::support::{Fixture, block_on};

const MINUTE_MS: u64 = 60 * 1_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
const START_MS: u64 = 100 * DAY_MS;

/// Values by key.
type State = BTreeMap<String, String>;

async fn world() -> (Arc<ManualClock>, Script) {
    let clock = Arc::new(ManualClock::new(START_MS));
    let options = EngineOptions {
        clock: clock.clone(),
        clock_skew_ms_max: 0,
        lease_period: Duration::ZERO,
        ..EngineOptions::default()
    };
    let store = Arc::new(MemoryStore::new()) as Arc<dyn Store>;
    let engine = Engine::open(store, options).await.unwrap();
    let mut script = Script::with_fixture(Fixture::with_engine(engine, clock.clone()));
    script.run(&["create t pk:S"]).await;
    recover(&script, true).await;
    (clock, script)
}

async fn recover(script: &Script, is_on: bool) {
    let days = is_on.then_some(1);
    script.engine().update_continuous_backups(&script.table("t"), is_on, days).await.unwrap();
}

async fn exportable(script: &Script, span: ExportSpan) -> Exportable {
    let table = script.table("t");
    let request =
        ExportRequest { table, span, key_conditions: None, filter: None, projection: None };
    script.engine().exportable(&request).await.unwrap()
}

fn entry(item: &EncodedItem) -> (String, String) {
    let item = item.as_item().decode();
    let text = |name: &str| format!("{:?}", item[name]);
    (text("pk"), text("v"))
}

/// All items, or else the old and new values of changed ones.
async fn read(
    engine: &Engine,
    source: &ExportSource,
) -> (State, BTreeMap<String, [Option<String>; 2]>) {
    // It must survive storage, like the source of every job.
    let source = ExportSource::decode(source.encode()).unwrap();
    let (mut state, mut changes) = (State::new(), BTreeMap::new());
    let mut position = None;
    loop {
        let step = engine.read_export(&source, position.as_deref()).await.unwrap().unwrap();
        match step.records {
            ExportRecords::Items(items) => {
                state.extend(items.into_items().iter().map(entry));
            }
            ExportRecords::Changes(found) => {
                for change in found {
                    let images = [&change.old, &change.new].map(|it| it.as_ref().map(entry));
                    let key = images.iter().flatten().next().unwrap().0.clone();
                    let values = images.map(|image| image.map(|(_, value)| value));
                    assert!(changes.insert(key, values).is_none(), "an item twice");
                }
            }
        }
        position = step.position;
        if position.is_none() {
            return (state, changes);
        }
    }
}

/// A key and a value, or none to delete it. There are few keys, so that some have long histories.
type Write = (usize, Option<u64>);

fn a_write() -> impl Strategy<Value = Write> {
    (0..12_usize, option::weighted(0.75, 0..3_u64))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn exports_have_what_was_there_and_what_has_changed(
        minutes in vec(vec(a_write(), 0..30), 40),
    ) {
        block_on(check(&minutes));
    }
}

/// Writes minute by minute, and compares exports with what the table was at the end of each minute.
async fn check(minutes: &[Vec<Write>]) {
    let (clock, mut script) = world().await;
    let mut states: Vec<State> = vec![State::new()];
    for writes in minutes {
        let mut state = states.last().unwrap().clone();
        for (key, value) in writes {
            let shown = format!("S(\"k{key}\")");
            match value {
                None => {
                    script.run(&[&format!(r#"delete t {{"pk": "k{key}"}}"#)[..]]).await;
                    state.remove(&shown);
                }
                Some(value) => {
                    let put = format!(r#"put t {{"pk": "k{key}", "v": {value}}}"#);
                    script.run(&[&put[..]]).await;
                    state.insert(shown, format!("N({value})"));
                }
            }
        }
        states.push(state);
        clock.advance_ms(MINUTE_MS);
    }
    let time = |minute: usize| START_MS + minute as u64 * MINUTE_MS;
    for minute in [0, 1, 17, 39] {
        let at_ms = Some(time(minute) + 30_001);
        let found = exportable(&script, ExportSpan::Full { at_ms }).await;
        let (items, _) = read(script.engine(), &found.source).await;
        assert_eq!(items, states[minute + 1], "minute {minute}");
    }
    for (from, to) in [(0, 15), (1, 40), (20, 36), (24, 39)] {
        let span = ExportSpan::Incremental { from_ms: time(from), to_ms: Some(time(to)) };
        let found = exportable(&script, span).await;
        let (_, changes) = read(script.engine(), &found.source).await;
        let mut expected = BTreeMap::new();
        for key in (0..12).map(|key| format!("S(\"k{key}\")")) {
            let values = [&states[from], &states[to]].map(|state| state.get(&key).cloned());
            if values[0] != values[1] {
                expected.insert(key, values);
            }
        }
        assert_eq!(changes, expected, "from {from} to {to}");
    }
}

#[test]
fn large_tables_and_long_histories_are_read_in_steps() {
    block_on(async {
        let (clock, mut script) = world().await;
        let put = |key: usize, value: usize| format!(r#"put t {{"pk": "key{key}", "v": {value}}}"#);
        for key in 0..5_000 {
            script.run(&[&put(key, 0)[..]]).await;
        }
        clock.advance_ms(MINUTE_MS);
        for key in (0..5_000).step_by(2) {
            script.run(&[&put(key, 1)[..]]).await;
        }
        clock.advance_ms(20 * MINUTE_MS);
        let now = exportable(&script, ExportSpan::Full { at_ms: None }).await;
        script.run(&[&put(1, 2)[..]]).await;
        let first = script.engine().read_export(&now.source, None).await.unwrap().unwrap();
        assert!(first.position.is_some(), "more than one step");
        let (items, _) = read(script.engine(), &now.source).await;
        assert_eq!(items.len(), 5_000);
        assert_eq!(items["S(\"key1\")"], "N(0)", "what came later is not in it");
        let from_ms = START_MS + MINUTE_MS;
        let to_ms = Some(from_ms + 15 * MINUTE_MS);
        let span = ExportSpan::Incremental { from_ms, to_ms };
        let found = exportable(&script, span).await;
        let (_, changes) = read(script.engine(), &found.source).await;
        assert_eq!(changes.len(), 2_500);
    });
}

fn new_job(script: &Script, found: &Exportable) -> NewJob {
    let source = AttributeValue::M(found.source.encode());
    NewJob {
        namespace: Namespace::clone(&script.table("t").namespace),
        kind: KIND,
        table: Some("t".to_owned()),
        token: None,
        token_lifetime_ms: 0,
        parameters: Attributes::from([(SOURCE.to_owned(), source)]),
        progress: Attributes::new(),
    }
}

/// Trimming waits for the job, but nothing waits before there is one.
#[test]
fn no_export_begins_with_a_period_that_has_changed_since() {
    block_on(async {
        let (_, script) = world().await;
        let found = exportable(&script, ExportSpan::Full { at_ms: None }).await;
        let table = script.table("t");
        script.engine().update_continuous_backups(&table, true, Some(2)).await.unwrap();
        let begun = script.engine().start_export(new_job(&script, &found), &found).await;
        assert!(matches!(begun, Err(Error::TableChanged { .. })), "{begun:?}");
        assert_eq!(script.engine().open_jobs().await.unwrap(), []);
    });
}

#[test]
fn running_exports_keep_what_they_read() {
    block_on(async {
        let (clock, mut script) = world().await;
        script.run(&[r#"put t {"pk": "a", "v": 1}"#]).await;
        clock.advance_ms(MINUTE_MS);
        let span = ExportSpan::Full { at_ms: None };
        let found = exportable(&script, span).await;
        script.engine().start_export(new_job(&script, &found), &found).await.unwrap();
        clock.advance_ms(MINUTE_MS);
        script.run(&[r#"put t {"pk": "a", "v": 2}"#]).await;
        // The version is older than the period of one day, but the export reads it.
        clock.advance_ms(3 * DAY_MS);
        script.run(&["work"]).await;
        let (items, _) = read(script.engine(), &found.source).await;
        assert_eq!(items["S(\"a\")"], "N(1)");
        script.run(&["drop t"]).await;
        let (items, _) = read(script.engine(), &found.source).await;
        assert_eq!(items["S(\"a\")"], "N(1)", "the table's backup has it");
        let (_, mut script) = world().await;
        let found = exportable(&script, span).await;
        script.run(&[r#"put t {"pk": "a", "v": 1}"#]).await;
        recover(&script, false).await;
        assert!(script.engine().read_export(&found.source, None).await.unwrap().is_none());
    });
}
