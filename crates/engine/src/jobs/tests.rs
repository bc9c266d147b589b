use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use zenobe_expression::{Binder, ExpressionKind};
use zenobe_store::Store;
use zenobe_store::memory::MemoryStore;
use zenobe_store::yielding::YieldingStore;
use zenobe_value::{AttributeValue, EncodedItem, Number};

use super::*;
use crate::catalog::tests::create_table;
use crate::clock::{Clock, ManualClock};
use crate::command::{GetItem, TableName};
use crate::keys::PrimaryKey;
use crate::schema::{Filling, TableId};
use crate::write::commit::Terms;
use crate::{EngineOptions, ItemLoad, keyspace};

const NOW_MS: u64 = 1_700_000_000_000;
const STEPS: u64 = 5;

/// Puts five items, one per step, and fails where it is told to.
#[derive(Default)]
struct Filler {
    /// The step before which an attempt fails, for the first attempts.
    fails_at: Option<u64>,
    failures_left: AtomicUsize,
    gives_up: bool,
    panics: bool,
    /// Only jobs on tables whose names begin like this fail.
    fails_for: &'static str,
    steps: AtomicUsize,
}

impl JobHandler for Filler {
    fn kind(&self) -> &'static str {
        "fill"
    }

    fn run<'a>(&'a self, engine: &'a Engine, job: &'a mut Job) -> BoxFuture<'a, Result<()>> {
        self.fill(engine, job).boxed()
    }
}

impl Filler {
    async fn fill(&self, engine: &Engine, job: &mut Job) -> Result<()> {
        let name = name_of(job.row().table.as_deref().unwrap());
        let table = match engine.filling_table(&name, &job.row().id).await? {
            Some(table) => table,
            None => {
                let filling =
                    Filling { job_kind: "fill".into(), job_id: job.row().id.clone(), source: None };
                engine.create_filling_table(create_table(&name), filling, job.lease()).await?
            }
        };
        for step in done(job.row())..STEPS {
            if job.is_cancelled() {
                let progress = job.row().progress.clone();
                return job.cancel(engine, progress, FailedTable::Delete).await;
            }
            if self.fails_at == Some(step)
                && name.name.starts_with(self.fails_for)
                && self.failures_left.load(Ordering::SeqCst) > 0
            {
                self.failures_left.fetch_sub(1, Ordering::SeqCst);
                assert!(!self.panics, "a test");
                if self.gives_up {
                    let progress = job.row().progress.clone();
                    return job
                        .fail(engine, "Broken", "no more", progress, FailedTable::Delete)
                        .await;
                }
                return Err(Error::Unavailable { detail: "a test".into() });
            }
            let item = EncodedItem::encode(&Attributes::from([(
                "pk".into(),
                AttributeValue::S(step.to_string()),
            )]));
            let items = [item];
            let mut load = ItemLoad::new(&table, &items, &[]);
            assert!(job.load(engine, &mut load, &progress(step + 1)).await?);
            assert!(load.errors()[0].is_none());
            self.steps.fetch_add(1, Ordering::SeqCst);
        }
        job.finish(engine, progress(STEPS)).await
    }
}

fn progress(done: u64) -> Attributes {
    Attributes::from([("done".into(), AttributeValue::N(Number::from(done)))])
}

fn done(row: &JobRow) -> u64 {
    match &row.progress["done"] {
        AttributeValue::N(number) => number.to_i64().unwrap() as u64,
        other => panic!("{other:?}"),
    }
}

fn namespace() -> Namespace {
    Namespace { account: "1".into(), region: "r".into() }
}

fn name_of(table: &str) -> TableName {
    TableName { namespace: Arc::new(namespace()), name: table.into() }
}

fn new_job(table: &str, token: Option<&str>) -> NewJob {
    NewJob {
        namespace: namespace(),
        kind: "fill",
        table: Some(table.into()),
        token: token.map(str::to_owned),
        token_lifetime_ms: 1_000,
        parameters: Attributes::new(),
        progress: progress(0),
    }
}

async fn open(store: &Arc<dyn Store>, clock: &Arc<ManualClock>) -> Arc<Engine> {
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let options = EngineOptions { clock, clock_jump_ms_max: None, ..EngineOptions::default() };
    Engine::open(Arc::clone(store), options).await.unwrap()
}

fn new_store() -> (Arc<dyn Store>, Arc<ManualClock>) {
    (Arc::new(MemoryStore::new()), Arc::new(ManualClock::new(NOW_MS)))
}

async fn new_engine() -> (Arc<Engine>, Arc<ManualClock>) {
    let (store, clock) = new_store();
    (open(&store, &clock).await, clock)
}

/// Creates table `t`.
async fn new_table(engine: &Engine) -> Arc<Table> {
    let name = name_of("t");
    engine.create_table(create_table(&name)).await.unwrap();
    engine.table(&name).await.unwrap()
}

async fn start(engine: &Engine, table: &str, token: Option<&str>) -> JobRow {
    match engine.start_job(new_job(table, token)).await.unwrap() {
        Started::New(row) => row,
        Started::Existing(row) => panic!("{row:?}"),
    }
}

async fn status(engine: &Engine, row: &JobRow) -> JobStatus {
    engine.job(&row.namespace, &row.kind, &row.id).await.unwrap().unwrap().status
}

#[tokio::test]
async fn a_table_appears_when_its_job_ends() {
    let (store, clock) = new_store();
    let engine = open(&store, &clock).await;
    let filler = Arc::new(Filler {
        fails_at: Some(3),
        failures_left: AtomicUsize::new(usize::MAX),
        ..Filler::default()
    });
    engine.add_job_handler(filler.clone());
    let row = start(&engine, "t", None).await;
    tokio::time::pause();
    {
        let mut work = std::pin::pin!(engine.run_pending_work());
        let stuck = tokio::time::timeout(std::time::Duration::from_secs(30), &mut work);
        assert!(stuck.await.is_err(), "it tries again and again");
        let here: Vec<_> = engine.running_jobs();
        assert_eq!((here.len(), &here[0].id, done(&here[0])), (1, &row.id, 3));
    }
    assert_eq!(engine.running_jobs(), []);
    // Only its description shows the table.
    let name = name_of("t");
    let described = engine.describe_table(&name).await.unwrap();
    assert_eq!(described.definition.filling.as_ref().unwrap().job_id, row.id);
    assert_eq!(described.statistics.item_count, 3);
    assert!(matches!(engine.table(&name).await, Err(Error::TableNotFound { .. })));
    assert!(matches!(engine.delete_table(&name).await, Err(Error::TableFilling { .. })));
    let again = engine.create_table(create_table(&name)).await;
    assert!(matches!(again, Err(Error::TableFilling { .. })));
    drop(engine);

    // Another process continues where the first one stopped.
    let engine = open(&store, &clock).await;
    assert!(matches!(engine.table(&name).await, Err(Error::TableNotFound { .. })));
    let filler = Arc::new(Filler::default());
    engine.add_job_handler(filler.clone());
    engine.run_pending_work().await.unwrap();
    assert_eq!(status(&engine, &row).await, JobStatus::Completed);
    assert_eq!(filler.steps.load(Ordering::SeqCst), 2);
    assert_eq!(engine.running_jobs(), []);
    let described = engine.describe_table(&name).await.unwrap();
    assert_eq!(described.definition.filling, None);
    assert_eq!(described.statistics.item_count, STEPS);
    engine.table(&name).await.unwrap();
    engine.delete_table(&name).await.unwrap();
}

/// A client that waits for a table may ask at any moment, even while its job ends.
#[tokio::test]
async fn a_table_is_described_while_its_job_ends() {
    let mut descriptions = 0;
    for seed in 0..200 {
        let (store, clock) = new_store();
        let store: Arc<dyn Store> = Arc::new(YieldingStore::new(store, seed));
        let engine = open(&store, &clock).await;
        engine.add_job_handler(Arc::new(Filler::default()));
        start(&engine, "t", None).await;
        let name = name_of("t");
        let watch = async {
            let mut exists = false;
            loop {
                match engine.describe_table(&name).await {
                    Ok(described) if described.definition.filling.is_none() => break,
                    Ok(_) => {
                        exists = true;
                        descriptions += 1;
                    }
                    Err(Error::TableNotFound { .. }) if !exists => {}
                    Err(error) => panic!("seed {seed}: {error}"),
                }
            }
        };
        let (worked, ()) = tokio::join!(engine.run_pending_work(), watch);
        worked.unwrap();
    }
    assert!(
        descriptions > 200,
        "tables were described while they were filled {descriptions} times"
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_that_panics_is_tried_again_and_stops_no_other() {
    let (engine, _) = new_engine().await;
    engine.add_job_handler(Arc::new(Filler {
        fails_at: Some(2),
        failures_left: AtomicUsize::new(1),
        panics: true,
        ..Filler::default()
    }));
    let rows = [start(&engine, "t", None).await, start(&engine, "u", None).await];
    engine.run_pending_work().await.unwrap();
    for row in rows {
        assert_eq!(status(&engine, &row).await, JobStatus::Completed);
    }
}

/// A job that waits to be tried again lets others run.
#[tokio::test(start_paused = true)]
async fn jobs_that_fail_do_not_hold_back_the_others() {
    let (engine, clock) = new_engine().await;
    engine.add_job_handler(Arc::new(Filler {
        fails_at: Some(2),
        failures_left: AtomicUsize::new(usize::MAX),
        fails_for: "bad",
        ..Filler::default()
    }));
    for number in 0..5 {
        start(&engine, &format!("bad{number}"), None).await;
        clock.advance_ms(1);
    }
    let good = start(&engine, "good", None).await;
    let stuck = tokio::time::timeout(std::time::Duration::from_secs(30), engine.run_pending_work());
    assert!(stuck.await.is_err(), "some fail again and again");
    assert_eq!(status(&engine, &good).await, JobStatus::Completed);
}

struct Stuck;

impl JobHandler for Stuck {
    fn kind(&self) -> &'static str {
        "stuck"
    }

    fn run<'a>(&'a self, _: &'a Engine, _: &'a mut Job) -> BoxFuture<'a, Result<()>> {
        std::future::pending().boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn slow_jobs_hold_back_only_their_kind() {
    let (engine, clock) = new_engine().await;
    engine.add_job_handler(Arc::new(Stuck));
    engine.add_job_handler(Arc::new(Filler::default()));
    for number in 0..5 {
        let new = NewJob { kind: "stuck", ..new_job(&format!("slow{number}"), None) };
        engine.start_job(new).await.unwrap();
        clock.advance_ms(1);
    }
    let quick = start(&engine, "quick", None).await;
    let stuck = tokio::time::timeout(std::time::Duration::from_secs(30), engine.run_pending_work());
    assert!(stuck.await.is_err(), "some never end");
    assert_eq!(status(&engine, &quick).await, JobStatus::Completed);
}

#[tokio::test]
async fn a_job_that_gives_up_leaves_no_table() {
    let (engine, _) = new_engine().await;
    engine.add_job_handler(Arc::new(Filler {
        fails_at: Some(2),
        failures_left: AtomicUsize::new(1),
        gives_up: true,
        ..Filler::default()
    }));
    let row = start(&engine, "t", None).await;
    engine.run_pending_work().await.unwrap();
    let failed = JobStatus::Failed { code: "Broken".into(), message: "no more".into() };
    assert_eq!(status(&engine, &row).await, failed);
    let gone = engine.describe_table(&name_of("t")).await;
    assert!(matches!(gone, Err(Error::TableNotFound { .. })));
    assert!(engine.list_tables(&namespace(), None, 10).await.unwrap().names.is_empty());
    // Nothing but the job and what counts tables and times is left, and the name is free.
    let mut items = 0;
    let mut visit = |_: &[u8], _: &[u8]| {
        items += 1;
        ControlFlow::Continue(())
    };
    engine
        .store
        .scan(KeyRange::prefix(b"T".to_vec()), Direction::Forward, &mut visit)
        .await
        .unwrap();
    assert_eq!(items, 0);
    engine.create_table(create_table(&name_of("t"))).await.unwrap();
}

#[tokio::test]
async fn a_job_can_be_cancelled_before_it_starts() {
    let (engine, _) = new_engine().await;
    let row = start(&engine, "t", None).await;
    let cancelled = engine.cancel_job(&namespace(), "fill", &row.id).await.unwrap().unwrap();
    assert_eq!(cancelled.status, JobStatus::Cancelling);
    engine.add_job_handler(Arc::new(Filler::default()));
    engine.run_pending_work().await.unwrap();
    assert_eq!(status(&engine, &row).await, JobStatus::Cancelled);
    assert!(engine.describe_table(&name_of("t")).await.is_err());
    let missing = engine.cancel_job(&namespace(), "fill", "1").await.unwrap();
    assert_eq!(missing, None);
}

#[tokio::test]
async fn a_token_stands_for_one_job_for_a_while() {
    let (engine, clock) = new_engine().await;
    let first = start(&engine, "t", Some("token")).await;
    let second = engine.start_job(new_job("u", Some("token"))).await.unwrap();
    assert_eq!(second, Started::Existing(first.clone()));
    let of_token = async |token| engine.job_of_token(&namespace(), "fill", token).await.unwrap();
    assert_eq!(of_token("token").await, Some(first.clone()));
    assert_eq!(of_token("other").await, None);
    clock.set_ms(NOW_MS + 1_000);
    assert_eq!(of_token("token").await, None);
    let third = start(&engine, "v", Some("token")).await;
    let (rows, more) = engine.jobs(&namespace(), "fill", None, 1).await.unwrap();
    assert_eq!((rows, more), (vec![third.clone()], true), "the newest comes first");
    let (rows, more) = engine.jobs(&namespace(), "fill", Some(&third.id), 1).await.unwrap();
    assert_eq!((rows, more), (vec![first], false));
}

#[tokio::test]
async fn jobs_are_forgotten_long_after_their_end() {
    let (engine, clock) = new_engine().await;
    engine.add_job_handler(Arc::new(Filler::default()));
    let row = start(&engine, "t", Some("token")).await;
    engine.run_pending_work().await.unwrap();
    clock.set_ms(NOW_MS + RETENTION_MS);
    engine.run_pending_work().await.unwrap();
    assert_eq!(status(&engine, &row).await, JobStatus::Completed);
    clock.set_ms(NOW_MS + RETENTION_MS + 1);
    engine.run_pending_work().await.unwrap();
    assert_eq!(engine.job(&row.namespace, &row.kind, &row.id).await.unwrap(), None);
}

/// Puts items, and returns the errors of those that can't be put.
async fn load(engine: &Engine, table: &Arc<Table>, items: &[EncodedItem]) -> Vec<bool> {
    let mut load = ItemLoad::new(table, items, &[]);
    let lease = Lease::default();
    while !load.is_empty() && !load.commit(engine, Terms::Lease(&lease)).await.unwrap() {}
    load.errors().iter().map(Option::is_some).collect()
}

#[tokio::test]
async fn faulty_items_do_not_hold_back_the_others() {
    let (engine, _) = new_engine().await;
    let name = name_of("t");
    let table = new_table(&engine).await;
    let item =
        |value: AttributeValue| EncodedItem::encode(&Attributes::from([("pk".to_owned(), value)]));
    let text = |text: &str| item(AttributeValue::S(text.into()));
    let items = [
        text("a"),
        text(""),
        item(AttributeValue::Bool(true)),
        EncodedItem::encode(&Attributes::new()),
        text("a"),
        text("b"),
    ];
    let errors = load(&engine, &table, &items).await;
    assert_eq!(errors, [false, true, true, true, false, false]);
    assert_eq!(engine.describe_table(&name).await.unwrap().statistics.item_count, 2);
}

/// As if the items had been put one after the other.
#[tokio::test]
async fn the_last_of_several_items_with_one_key_stays() {
    let (engine, _) = new_engine().await;
    let name = name_of("t");
    let table = new_table(&engine).await;
    let text = |text: &str| AttributeValue::S(text.into());
    let item = |(key, value): &(&str, &str)| {
        let attributes = [("pk".to_owned(), text(key)), ("v".to_owned(), text(value))];
        EncodedItem::encode(&Attributes::from(attributes))
    };
    let pairs = [("b", "1"), ("a", "1"), ("b", "2"), ("c", "1"), ("a", "2"), ("b", "3")];
    let items: Vec<_> = pairs.iter().map(item).collect();
    for _ in 0..2 {
        let errors = load(&engine, &table, &items).await;
        assert!(errors.iter().all(|is_faulty| !is_faulty));
        for (key, value) in [("a", "2"), ("b", "3"), ("c", "1")] {
            let key = Attributes::from([("pk".to_owned(), text(key))]);
            let get = GetItem { table: name.clone(), key, projection: None, consistent: true };
            let item = engine.get_item(&get).await.unwrap().item.unwrap();
            assert_eq!(item.as_item().decode().get("v"), Some(&text(value)));
        }
        let statistics = engine.describe_table(&name).await.unwrap().statistics;
        assert_eq!(statistics.item_count, 3);
    }
}

/// Racing starts find each other, no matter which is first.
#[tokio::test]
async fn a_sole_job_has_its_table_to_itself() {
    for seed in 0..20 {
        let (store, clock) = new_store();
        let store: Arc<dyn Store> = Arc::new(YieldingStore::new(store, seed));
        let engine = open(&store, &clock).await;
        for name in ["t", "u"] {
            engine.create_table(create_table(&name_of(name))).await.unwrap();
        }
        let (table, other) = (
            engine.table(&name_of("t")).await.unwrap(),
            engine.table(&name_of("u")).await.unwrap(),
        );
        let starts = (0..4).map(|_| engine.start_sole_job(new_job("t", None), &table));
        let started = futures_util::future::try_join_all(starts).await.unwrap();
        let started: Vec<Started> = started.into_iter().flatten().collect();
        let [Started::New(first)] = &started[..] else { panic!("seed {seed}: {started:?}") };
        assert!(engine.start_sole_job(new_job("u", None), &other).await.unwrap().is_some());

        let mut job = Job::new(first.clone(), Lease::default());
        job.finish(&engine, progress(STEPS)).await.unwrap();
        let with_token = new_job("t", Some("token"));
        let second = engine.start_sole_job(with_token.clone(), &table).await.unwrap();
        let Some(Started::New(second)) = second else { panic!("{second:?}") };
        let again = engine.start_sole_job(with_token, &table).await.unwrap();
        assert_eq!(again, Some(Started::Existing(second.clone())), "the same token");
        assert_eq!(engine.start_sole_job(new_job("t", None), &table).await.unwrap(), None);

        // The row that says so is forgotten with the job that it names.
        let key = keyspace::job_occupying_table_row(&namespace(), "fill", "t");
        engine.forget_old_jobs(std::slice::from_ref(first), &Lease::default()).await.unwrap();
        assert!(engine.store.get(&key).await.unwrap().is_some());
        let mut job = Job::new(second, Lease::default());
        job.finish(&engine, progress(STEPS)).await.unwrap();
        clock.advance_ms(RETENTION_MS + 1);
        engine.forget_old_jobs(&[job.row().clone()], &Lease::default()).await.unwrap();
        assert!(engine.store.get(&key).await.unwrap().is_none());
    }
}

/// What a step has put is done, even if nothing happens after it.
#[tokio::test]
async fn items_and_progress_are_stored_in_one_write() {
    let (engine, _) = new_engine().await;
    let name = name_of("t");
    let table = new_table(&engine).await;
    let row = start(&engine, "t", None).await;
    let mut job = Job::new(row.clone(), Lease::default());
    let item = |key: &str| {
        let key = AttributeValue::S(key.into());
        EncodedItem::encode(&Attributes::from([("pk".into(), key)]))
    };
    let exists = async |key: &str| {
        let key = Attributes::from([("pk".to_owned(), AttributeValue::S(key.into()))]);
        let get = GetItem { table: name.clone(), key, projection: None, consistent: true };
        engine.get_item(&get).await.unwrap().item.is_some()
    };

    let items = [item("a"), item("")];
    let mut load = ItemLoad::new(&table, &items, &[]);
    assert!(load.errors()[1].is_some());
    assert!(job.load(&engine, &mut load, &progress(2)).await.unwrap());
    let stored = engine.job(&row.namespace, &row.kind, &row.id).await.unwrap().unwrap();
    assert_eq!((done(&stored), done(job.row())), (2, 2));
    assert!(exists("a").await);

    // Nothing to put is progress as well, and a request to stop is seen with the next step.
    let nothing = [item("")];
    let mut load = ItemLoad::new(&table, &nothing, &[]);
    engine.cancel_job(&row.namespace, &row.kind, &row.id).await.unwrap();
    assert!(!job.is_cancelled());
    assert!(job.load(&engine, &mut load, &progress(3)).await.unwrap());
    assert!(job.is_cancelled());
    assert_eq!(done(job.row()), 3);

    // A job that has ended puts nothing more.
    let mut late = Job::new(row, Lease::default());
    job.cancel(&engine, progress(3), FailedTable::Keep).await.unwrap();
    let items = [item("b")];
    let mut load = ItemLoad::new(&table, &items, &[]);
    let refused = late.load(&engine, &mut load, &progress(4)).await;
    assert!(matches!(refused, Err(Error::LeaseLost { .. })), "{refused:?}");
    assert!(!exists("b").await);
}

/// What a job copies is read back under the keys of the new table, counted once, and put only together with the progress.
#[tokio::test]
async fn copies_are_put_in_the_write_that_stores_the_progress() {
    let (engine, _) = new_engine().await;
    let name = name_of("t");
    let table = new_table(&engine).await;
    let row = start(&engine, "t", None).await;
    let mut job = Job::new(row.clone(), Lease::default());
    let source = keyspace::item_prefix(TableId(1_000));
    let copy = |key: &str| {
        let key = AttributeValue::S(key.into());
        let item = EncodedItem::encode(&Attributes::from([("pk".into(), key)]));
        let key = PrimaryKey::from_stored(&table.definition().keys, item.as_item()).unwrap();
        (key.item_key_below(&source), item)
    };
    let mut both = [copy("a"), copy("b")];
    both.sort_by(|(one, _), (other, _)| one.cmp(other));
    job.insert(&engine, &table, &both, &progress(2)).await.unwrap();
    job.insert(&engine, &table, &[], &progress(3)).await.unwrap();
    let stored = engine.job(&row.namespace, &row.kind, &row.id).await.unwrap().unwrap();
    assert_eq!((done(&stored), done(job.row())), (3, 3));
    for key in ["a", "b"] {
        let key = Attributes::from([("pk".to_owned(), AttributeValue::S(key.into()))]);
        let get = GetItem { table: name.clone(), key, projection: None, consistent: true };
        assert!(engine.get_item(&get).await.unwrap().item.is_some());
    }
    let count = async || engine.describe_table(&name).await.unwrap().statistics.item_count;
    assert_eq!(count().await, 2);

    // A node may read an old state of the row after an error that left open whether a step was written.
    let mut stale = Job::new(row.clone(), Lease::default());
    for key in ["b", "c"] {
        let refused = stale.insert(&engine, &table, &[copy(key)], &progress(2)).await;
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    }
    for refused in [
        stale.save(&engine, progress(2)).await,
        stale.finish(&engine, progress(2)).await,
        stale.cancel(&engine, progress(0), FailedTable::Keep).await,
    ] {
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    }

    // Out of order, an item with other keys, or none at all.
    for twice in [[copy("c"), copy("c")], [copy("d"), copy("c")]] {
        let mut twice = twice;
        if twice[0].0 < twice[1].0 {
            twice.reverse();
        }
        let refused = job.insert(&engine, &table, &twice, &progress(4)).await;
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
    }
    let damaged = (Key::from_static(b"T"), copy("c").1);
    let refused = job.insert(&engine, &table, &[damaged], &progress(4)).await;
    assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");

    let mut late = Job::new(row, Lease::default());
    job.cancel(&engine, progress(3), FailedTable::Keep).await.unwrap();
    let refused = late.insert(&engine, &table, &[copy("c")], &progress(4)).await;
    assert!(matches!(refused, Err(Error::LeaseLost { .. })), "{refused:?}");
    assert_eq!(count().await, 2);
}

/// Conditions hold or fail as if the items were put one after the other.
#[tokio::test]
async fn a_load_with_conditions_ends_before_an_item_that_it_has() {
    let (engine, _) = new_engine().await;
    let table = new_table(&engine).await;
    let mut job = Job::new(start(&engine, "t", None).await, Lease::default());
    let item = |key: &str, value: u64| {
        let key = AttributeValue::S(key.into());
        let value = AttributeValue::N(Number::from(value));
        EncodedItem::encode(&Attributes::from([("pk".into(), key), ("v".into(), value)]))
    };
    let is_new = || {
        let mut binder = Binder::new(None, None);
        Some(binder.condition(ExpressionKind::Condition, "attribute_not_exists(pk)").unwrap())
    };
    let items = [item("a", 1), item("b", 1), item("a", 2), item("b", 2)];
    let conditions = [is_new(), None, is_new(), None];
    let mut first = ItemLoad::new(&table, &items, &conditions);
    assert_eq!(first.errors().len(), 2, "it ends before the second a");
    assert!(job.load(&engine, &mut first, &progress(2)).await.unwrap());

    let mut second = ItemLoad::new(&table, &items[2..], &conditions[2..]);
    assert!(!job.load(&engine, &mut second, &progress(4)).await.unwrap(), "nothing is written yet");
    assert_eq!(done(job.row()), 2);
    let [Some(Error::ConditionFailed { item: Some(existing) }), None] = second.errors() else {
        panic!("{:?}", second.errors())
    };
    assert_eq!(*existing, items[0]);
    assert_eq!(second.sizes().table_bytes, items[3].as_item().size_bytes() as u64);
    assert!(job.load(&engine, &mut second, &progress(4)).await.unwrap());
    assert_eq!(done(job.row()), 4);
}
