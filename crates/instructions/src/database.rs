//! A database with a few items, on the backend that a case names.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::{Builder, Runtime};
use zenobe_api::{Api, ApiOptions, Operation};
use zenobe_engine::clock::Clock;
use zenobe_engine::keyspace::Collections;
use zenobe_engine::schema::Namespace;
use zenobe_engine::{Engine, EngineOptions, ThroughputMode};
use zenobe_store::Store;
use zenobe_store::memory::MemoryStore;
use zenobe_store_embedded::{Durability, EmbeddedStore, Options, PrefixExtractor};
use zenobe_testing::TemporaryDirectory;

use crate::case;
use crate::requests;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Memory,
    /// The embedded store, with everything still in the memtable.
    EmbeddedMemtable,
    /// The embedded store, reopened after everything went to disk. Its blocks are cached once a
    /// case is warm.
    EmbeddedTables,
}

pub struct LoadedDatabase {
    runtime: Runtime,
    pub api: Arc<Api>,
    pub store: Arc<dyn Store>,
    pub namespace: Arc<Namespace>,
    clock: Arc<SteppingClock>,
    /// Dropped last.
    _directory: Option<TemporaryDirectory>,
}

impl LoadedDatabase {
    /// Creates the tables and loads their items.
    pub fn load(backend: Backend) -> LoadedDatabase {
        LoadedDatabase::load_metered(backend, ThroughputMode::default())
    }

    /// Like [`LoadedDatabase::load`], in this mode of throughput.
    pub fn load_metered(backend: Backend, throughput: ThroughputMode) -> LoadedDatabase {
        let directory =
            (backend != Backend::Memory).then(|| TemporaryDirectory::new("instructions"));
        let database = LoadedDatabase::open(directory, throughput);
        database.expect(Operation::CreateTable, &requests::create_items_table());
        database.expect(Operation::CreateTable, &requests::create_events_table());
        for body in requests::load() {
            database.expect(Operation::BatchWriteItem, &body);
        }
        match backend {
            Backend::EmbeddedTables => database.reopened(throughput),
            Backend::Memory | Backend::EmbeddedMemtable => database,
        }
    }

    /// A database on the embedded store that keeps the past of its items.
    pub fn load_recovered() -> LoadedDatabase {
        let database = LoadedDatabase::load(Backend::EmbeddedMemtable);
        database.expect(Operation::UpdateContinuousBackups, &requests::recover_items_table());
        database
    }

    /// A database whose table of items has used up its throughput.
    pub fn load_exhausted() -> LoadedDatabase {
        let database = LoadedDatabase::load_metered(Backend::Memory, ThroughputMode::Enforce);
        database.expect(Operation::UpdateTable, &requests::limit_items_table());
        database.clock.step_ms.store(0, Ordering::Relaxed);
        let takes = [
            (Operation::GetItem, requests::get_item()),
            (Operation::PutItem, requests::put_item()),
        ];
        for (operation, bodies) in takes {
            let status = |body: &Vec<u8>| {
                let handled = database.api.handle(operation, &database.namespace, body);
                database.runtime.block_on(handled).status
            };
            assert!(
                bodies.iter().any(|body| status(body) == THROTTLED),
                "{operation:?} is refused"
            );
        }
        database
    }

    fn open(directory: Option<TemporaryDirectory>, throughput: ThroughputMode) -> LoadedDatabase {
        // No drivers: nothing here waits for I/O or timers.
        let runtime = Builder::new_current_thread().build().expect("a runtime can be built");
        let store: Arc<dyn Store> = match &directory {
            None => Arc::new(MemoryStore::new()),
            Some(directory) => Arc::new(
                EmbeddedStore::open(directory.path().join("data"), store_options())
                    .expect("a new directory can be opened"),
            ),
        };
        let clock = Arc::new(SteppingClock {
            now_ms: AtomicU64::new(1_700_000_000_000),
            step_ms: AtomicU64::new(1_000),
        });
        let options = EngineOptions {
            clock: clock.clone(),
            random_seed: Some(1),
            throughput,
            ..EngineOptions::default()
        };
        let engine = runtime.block_on(Engine::open(store.clone(), options)).expect("it opens");
        let api = Arc::new(Api::new(engine, ApiOptions::default()));
        let namespace =
            Arc::new(Namespace { account: "000000000000".into(), region: "us-east-1".into() });
        LoadedDatabase { runtime, api, store, namespace, clock, _directory: directory }
    }

    /// Closing moves everything from memory into table files.
    fn reopened(self, throughput: ThroughputMode) -> LoadedDatabase {
        let LoadedDatabase { runtime, api, store, _directory: directory, .. } = self;
        runtime.block_on(store.close()).expect("it closes");
        drop((api, store));
        LoadedDatabase::open(directory, throughput)
    }

    pub fn expect(&self, operation: Operation, body: &[u8]) {
        let handled = self.api.handle(operation, &self.namespace, body);
        let response = self.runtime.block_on(handled);
        assert_eq!(response.status, 200, "{operation:?}: {response:?}");
    }

    /// An operation that sends the bodies in rotation.
    pub fn repeat(self, operation: Operation, bodies: Vec<Vec<u8>>) -> case::Measured {
        let is_exhausted = self.clock.step_ms.load(Ordering::Relaxed) == 0;
        let expected = if is_exhausted { THROTTLED } else { 200 };
        let mut next = 0;
        Box::new(move |iterations| {
            self.runtime.block_on(async {
                for _ in 0..iterations {
                    let body = &bodies[next];
                    next = (next + 1) % bodies.len();
                    let response = self.api.handle(operation, &self.namespace, body).await;
                    assert_eq!(response.status, expected, "{operation:?}: {response:?}");
                }
            });
        })
    }
}

/// The status of a request that met a limit of throughput.
const THROTTLED: u16 = 400;

/// Each look at the clock comes a second later, so that no request meets a limit of throughput.
struct SteppingClock {
    now_ms: AtomicU64,
    step_ms: AtomicU64,
}

impl Clock for SteppingClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.fetch_add(self.step_ms.load(Ordering::Relaxed), Ordering::Relaxed)
    }

    fn is_driven(&self) -> bool {
        true
    }
}

fn store_options() -> Options {
    Options {
        durability: Durability::Os,
        prefixes: Some(PrefixExtractor::of::<Collections>()),
        ..Options::default()
    }
}
