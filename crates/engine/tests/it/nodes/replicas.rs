//! Eventually consistent reads from a copy of the store that is behind.

use std::sync::{Arc, Mutex};

use futures_util::future::{BoxFuture, FutureExt, ready};
use zenobe_engine::clock::ManualClock;
use zenobe_engine::{CacheOptions, EngineOptions};
use zenobe_store::layer::Layer;
use zenobe_store::memory::MemoryStore;
use zenobe_store::recent::FrozenReplica;
use zenobe_store::{
    Direction, Error, Key, KeyRange, Reader, Replica, Result, Store, Value, Visitor,
};

use super::{START_MS, node, options};

/// A shared store with a copy that stands still.
struct CopiedStore {
    below: Arc<dyn Store>,
    copy: Mutex<Option<Arc<dyn Replica>>>,
}

impl Layer for CopiedStore {
    fn below(&self) -> &Arc<dyn Store> {
        &self.below
    }

    fn replica(&self) -> Option<Arc<dyn Replica>> {
        self.copy.lock().unwrap().clone()
    }
}

impl CopiedStore {
    /// The copy shows the state of this moment from now on.
    fn freeze(&self) {
        *self.copy.lock().unwrap() = Some(Arc::new(FrozenReplica(self.below.snapshot())));
    }
}

/// A copy that has just gone.
struct Gone;

fn gone<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T>> {
    ready(Err(Error::Unavailable { detail: "gone".into() })).boxed()
}

impl Replica for Gone {
    fn snapshot(&self) -> Arc<dyn Reader> {
        Arc::new(Gone)
    }
}

impl Reader for Gone {
    fn get<'a>(&'a self, _: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        gone()
    }

    fn get_many<'a>(&'a self, _: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        gone()
    }

    fn scan<'a>(
        &'a self,
        _: KeyRange,
        _: Direction,
        _: &'a mut Visitor<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        gone()
    }
}

const READS: [&[&str]; 6] = [
    &[r#"get t {"pk": "a"}"#],
    &[r#"query t pk = `"a"`"#],
    &[r#"query t pk = `"a"`"#, "filter v > `0`"],
    &[r#"query t/g g = `"x"`"#],
    &["scan t"],
    &["batch-get", r#"get t {"pk": "a"}"#],
];

#[tokio::test]
async fn eventually_consistent_reads_see_the_copy_and_others_the_store() {
    let clock = Arc::new(ManualClock::new(START_MS));
    let below: Arc<dyn Store> = Arc::new(MemoryStore::shared());
    let store = Arc::new(CopiedStore { below, copy: Mutex::default() });
    let mut script = node(store.clone(), options(&clock), &clock).await;
    script.expect(&["create t pk:S", "gsi g g:S - all"], "ok").await;
    script.expect(&[r#"put t {"pk": "a", "g": "x", "v": 1}"#], "new").await;
    store.freeze();
    script.expect(&[r#"put t {"pk": "a", "g": "x", "v": 2}"#], "old").await;
    let (old, new) = (r#""v": 1"#, r#""v": 2"#);
    for read in READS {
        let eventual = script.run(read).await;
        assert!(eventual.contains(old) && !eventual.contains(new), "{read:?}: {eventual}");
        if !read[0].contains("t/g") {
            let consistent = script.run(&[read, &["consistent"]].concat()).await;
            assert!(consistent.contains(new), "{read:?}: {consistent}");
        }
    }
    let transaction = script.run(&["transact-get", r#"get t {"pk": "a"}"#]).await;
    assert!(transaction.contains(new), "{transaction}");

    // A copy that knows another definition, or none, is not asked twice.
    script.expect(&["create u pk:S"], "ok").await;
    script.expect(&[r#"put u {"pk": "a", "v": 2}"#], "new").await;
    for read in [r#"get u {"pk": "a"}"#, "scan u"] {
        let found = script.run(&[read]).await;
        assert!(found.contains(new), "{read}: {found}");
    }

    *store.copy.lock().unwrap() = Some(Arc::new(Gone));
    for read in READS {
        let found = script.run(read).await;
        assert!(found.contains(new), "{read:?}: {found}");
    }
}

/// What the copy does not show yet would stay in the cache for long.
#[tokio::test]
async fn the_cache_of_items_is_not_filled_from_the_copy() {
    let clock = Arc::new(ManualClock::new(START_MS));
    let below: Arc<dyn Store> = Arc::new(MemoryStore::shared());
    let store = Arc::new(CopiedStore { below, copy: Mutex::default() });
    let cache = CacheOptions { size_bytes_max: 1 << 20, time_to_live_ms: 1_000 };
    let with_cache = EngineOptions { item_cache: Some(cache), ..options(&clock) };
    let mut script = node(store.clone(), with_cache, &clock).await;
    script.expect(&["create t pk:S"], "ok").await;
    script.expect(&[r#"put t {"pk": "a", "v": 1}"#], "new").await;
    store.freeze();
    script.expect(&[r#"put t {"pk": "a", "v": 2}"#], "old").await;
    clock.advance_ms(1_000);
    for read in [&[r#"get t {"pk": "a"}"#][..], &["batch-get", r#"get t {"pk": "a"}"#]] {
        let found = script.run(read).await;
        assert!(found.contains(r#""v": 2"#), "{read:?}: {found}");
        clock.advance_ms(1_000);
    }
}
