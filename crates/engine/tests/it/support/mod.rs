//! Scripts that drive an engine on the memory store: the notation of values, the commands, the dump of the store.

pub mod commands;
pub mod dump;
pub mod golden;
pub mod notation;
pub mod output;
pub mod streams;
pub mod wall_clock;
pub mod world;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::TableName;
use zenobe_engine::schema::Namespace;
use zenobe_engine::{Engine, EngineOptions, Limits, StreamOptions};
use zenobe_store::memory::MemoryStore;
use zenobe_store::{Direction, KeyRange, Store};

use self::commands::Script;

pub struct Fixture {
    pub engine: Arc<Engine>,
    pub clock: Arc<ManualClock>,
    pub namespace: Arc<Namespace>,
}

/// Small enough for tests to reach the limit of an item collection.
pub const COLLECTION_SIZE_BYTES_MAX: u64 = 10_000;

impl Fixture {
    pub async fn new() -> Fixture {
        let limits =
            Limits { collection_size_bytes_max: COLLECTION_SIZE_BYTES_MAX, ..Limits::default() };
        // Two shards, so that records are divided.
        let streams = StreamOptions { shards: 2, ..StreamOptions::default() };
        Fixture::with_options(EngineOptions { limits, streams, ..EngineOptions::default() }).await
    }

    /// The fixture replaces the clock and the randomness.
    pub async fn with_options(options: EngineOptions) -> Fixture {
        let clock = Arc::new(ManualClock::new(1_000_000));
        let options = EngineOptions { clock: clock.clone(), random_seed: Some(1), ..options };
        let engine = Engine::open(Arc::new(MemoryStore::new()), options).await;
        Fixture::with_engine(engine.expect("an empty store opens"), clock)
    }

    /// `clock` is the engine's, unless the engine has one that nobody moves.
    pub fn with_engine(engine: Arc<Engine>, clock: Arc<ManualClock>) -> Fixture {
        let namespace = Namespace { account: "000000000000".into(), region: "local".into() };
        Fixture { engine, clock, namespace: Arc::new(namespace) }
    }

    pub fn name(&self, name: &str) -> TableName {
        TableName { namespace: self.namespace.clone(), name: name.into() }
    }
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime without threads can be built")
        .block_on(future)
}

/// A script on an engine of its own. Leases of engines on the same store pass to it at once.
pub async fn open(store: Arc<dyn Store>, clock: &Arc<ManualClock>) -> Script {
    open_with(store, clock, Duration::ZERO).await
}

pub async fn open_with(
    store: Arc<dyn Store>,
    clock: &Arc<ManualClock>,
    lease_period: Duration,
) -> Script {
    let options = EngineOptions {
        clock: clock.clone(),
        clock_skew_ms_max: 0,
        lease_period,
        ..EngineOptions::default()
    };
    let engine = Engine::open(store, options).await.unwrap();
    Script::with_fixture(Fixture::with_engine(engine, clock.clone()))
}

/// How many keys of the store begin with this byte.
pub async fn count_keys(store: &dyn Store, kind: u8) -> usize {
    let mut count = 0;
    let mut visit = |_: &[u8], _: &[u8]| {
        count += 1;
        ControlFlow::Continue(())
    };
    store.scan(KeyRange::prefix(vec![kind]), Direction::Forward, &mut visit).await.unwrap();
    count
}

/// Runs a test on a store that one engine has for itself, and on one that several may share.
pub fn on_each_store(test: impl AsyncFn(fn() -> MemoryStore)) {
    for store in [MemoryStore::new as fn() -> MemoryStore, MemoryStore::shared] {
        block_on(test(store));
    }
}
