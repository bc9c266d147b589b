//! How much of a long history the reads of the past visit: a bounded part, however much of it is older than the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::{BoxFuture, FutureExt};
use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::{GetItem, PageOutcome, PageRequest, RuleSet, Scan};
use zenobe_engine::history::AsOf;
use zenobe_engine::restore::{RestoreFrom, RestoreOverrides, RestoreTable, RestoreTime};
use zenobe_engine::{Engine, EngineOptions};
use zenobe_store::layer::Layer;
use zenobe_store::memory::MemoryStore;
use zenobe_store::{Direction, Key, KeyRange, Reader, Result, Store, Value, Visitor};
use zenobe_value::{AttributeValue, EncodedItem};

use crate::costs::{LEAVES, filter_on};
use crate::support::commands::Script;
use crate::support::{Fixture, block_on};

const START_MS: u64 = 1_700_000_000_000;

/// What one step of a restore may visit: its 2,000 items and the history of up to twice as many.
const STEP_ROWS_MAX: usize = 6_200;

/// Counts what is visited in each snapshot. As-of reads and steps of restores take one each.
struct CountingStore {
    below: Arc<dyn Store>,
    /// The most that was visited in a snapshot.
    most: Arc<AtomicUsize>,
}

impl Layer for CountingStore {
    fn below(&self) -> &Arc<dyn Store> {
        &self.below
    }

    fn snapshot(&self) -> Arc<dyn Reader> {
        let (below, most) = (self.below.snapshot(), Arc::clone(&self.most));
        Arc::new(CountingReader { below, visited: AtomicUsize::new(0), most })
    }
}

struct CountingReader {
    below: Arc<dyn Reader>,
    visited: AtomicUsize,
    most: Arc<AtomicUsize>,
}

impl Reader for CountingReader {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        self.below.get(key)
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        self.below.get_many(keys)
    }

    fn scan_then_get<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        entries_max: Option<usize>,
        visit: &'a mut Visitor<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move {
            let mut count = |key: &[u8], value: &[u8]| {
                let visited = self.visited.fetch_add(1, Ordering::SeqCst) + 1;
                self.most.fetch_max(visited, Ordering::SeqCst);
                visit(key, value)
            };
            self.below.scan_then_get(range, direction, entries_max, &mut count, keys).await
        }
        .boxed()
    }
}

struct World {
    script: Script,
    clock: Arc<ManualClock>,
    most: Arc<AtomicUsize>,
}

impl World {
    /// Table `t`, where every item was put once, a second after recovery was switched on.
    async fn with_items(items: usize) -> World {
        let clock = Arc::new(ManualClock::new(START_MS));
        let most = Arc::new(AtomicUsize::new(0));
        let below: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let store = Arc::new(CountingStore { below, most: Arc::clone(&most) });
        let options = EngineOptions { clock: clock.clone(), ..EngineOptions::default() };
        let engine = Engine::open(store, options).await.unwrap();
        let mut script = Script::with_fixture(Fixture::with_engine(engine, clock.clone()));
        script.run(&["create t pk:S"]).await;
        let name = script.table("t");
        script.engine().update_continuous_backups(&name, true, None).await.unwrap();
        clock.advance_ms(1_000);
        let text =
            script.run(&[&format!(r#"repeat 0..{items} put t {{"pk": "$i", "more": 1}}"#)]).await;
        assert!(!text.starts_with("error"), "{text}");
        clock.advance_ms(1_000);
        World { script, clock, most }
    }

    async fn scan_as_of_now(&self, page: PageRequest) -> PageOutcome {
        let now = AsOf::ms(zenobe_engine::clock::Clock::now_ms(&*self.clock));
        let scan = Scan { table: self.script.table("t"), index: None, segment: None, page };
        self.most.store(0, Ordering::SeqCst);
        self.script.engine().reads(Some(now)).scan(RuleSet::Expressions, &scan).await.unwrap()
    }

    /// An item as of a time, and how many undo rows were visited to find it.
    async fn get(&self, key: &str, as_of: AsOf) -> (Option<EncodedItem>, usize) {
        let key = [("pk".to_owned(), AttributeValue::S(key.to_owned()))].into();
        let get =
            GetItem { table: self.script.table("t"), key, projection: None, consistent: true };
        self.most.store(0, Ordering::SeqCst);
        let read = self.script.engine().reads(Some(as_of)).get_item(&get).await.unwrap();
        (read.item, self.most())
    }

    /// How many items a restore brings back.
    async fn restore(&self, time: RestoreTime, to: &str) -> u64 {
        let engine = self.script.engine();
        let (name, target) = (self.script.table("t"), self.script.table(to));
        let source = RestoreFrom::Table { name, time };
        let overrides = RestoreOverrides::default();
        let request = RestoreTable { source, target: target.clone(), overrides };
        self.most.store(0, Ordering::SeqCst);
        engine.restore_table(request).await.unwrap();
        engine.run_pending_work().await.unwrap();
        let restored = engine.describe_table(&target).await.unwrap();
        assert_eq!(restored.definition.filling, None);
        restored.statistics.item_count
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

#[test]
fn history_before_the_time_is_read_in_bounded_parts() {
    block_on(async {
        let world = World::with_items(6_000).await;
        let one = PageRequest { limit: Some(1), ..PageRequest::default() };
        let page = world.scan_as_of_now(one).await;
        assert_eq!(page.count, 1);
        assert!(world.most() <= 300, "a page of one item visits {}", world.most());
        assert_eq!(world.restore(RestoreTime::Latest, "latest").await, 6_000);
        assert!(world.most() <= STEP_ROWS_MAX, "a step visits {}", world.most());
        // Nothing was there yet. The steps pass over items that came later, and find none.
        let before = RestoreTime::Second(START_MS / 1_000);
        assert_eq!(world.restore(before, "before").await, 0);
        assert!(world.most() <= STEP_ROWS_MAX, "a step visits {}", world.most());
    });
}

#[test]
fn a_page_in_many_time_slices_reads_the_history_once() {
    block_on(async {
        let items = 40;
        let world = World::with_items(items).await;
        let filter = Some(filter_on("more", LEAVES));
        let page = world.scan_as_of_now(PageRequest { filter, ..PageRequest::default() }).await;
        assert_eq!(page.count, items as u64);
        assert!(world.most() <= 3 * items, "it visits {}", world.most());
    });
}

#[test]
fn an_image_that_was_found_is_read_by_its_key() {
    block_on(async {
        let mut world = World::with_items(2).await;
        let [before, then] = [500, 2_000].map(|later_ms| AsOf::ms(START_MS + later_ms));
        world.clock.advance_ms(1_000);
        let put = |more: u32| format!(r#"put t {{"pk": "0", "more": {more}}}"#);
        world.script.run(&[&put(2)]).await;
        let (image, visited) = world.get("0", then).await;
        assert!(image.is_some());
        assert_eq!(visited, 1);
        // The time before the item was put is another one.
        assert_eq!(world.get("0", before).await, (None, 1));
        world.clock.advance_ms(1_000);
        world.script.run(&[&put(3)]).await;
        assert_eq!(world.get("0", then).await, (image.clone(), 0));
        assert_eq!(world.get("0", before).await, (None, 0));
        // An item that has not changed since may change any time.
        assert_eq!(world.get("1", then).await.1, 0);
        world.script.run(&[r#"put t {"pk": "1", "more": 9}"#]).await;
        let (unchanged, visited) = world.get("1", then).await;
        assert_eq!(
            (unchanged.map(|it| it.as_item().size_bytes()), visited),
            (image.map(|it| it.as_item().size_bytes()), 1)
        );
    });
}
