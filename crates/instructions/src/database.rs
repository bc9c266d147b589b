//! A database with a few items, on the backend that a case names.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use zenobe_api::{Api, ApiOptions, Operation};
use zenobe_engine::clock::ManualClock;
use zenobe_engine::keyspace::Collections;
use zenobe_engine::schema::Namespace;
use zenobe_engine::{Engine, EngineOptions};
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

pub struct Database {
    runtime: Runtime,
    pub api: Arc<Api>,
    pub store: Arc<dyn Store>,
    pub namespace: Arc<Namespace>,
    /// Dropped last.
    _directory: Option<TemporaryDirectory>,
}

impl Database {
    /// Creates the tables and loads their items.
    pub fn load(backend: Backend) -> Database {
        let directory =
            (backend != Backend::Memory).then(|| TemporaryDirectory::new("instructions"));
        let database = Database::open(directory);
        database.expect(Operation::CreateTable, &requests::create_items_table());
        database.expect(Operation::CreateTable, &requests::create_events_table());
        for body in requests::load() {
            database.expect(Operation::BatchWriteItem, &body);
        }
        match backend {
            Backend::EmbeddedTables => database.reopened(),
            Backend::Memory | Backend::EmbeddedMemtable => database,
        }
    }

    fn open(directory: Option<TemporaryDirectory>) -> Database {
        // No drivers: nothing here waits for I/O or timers.
        let runtime = Builder::new_current_thread().build().expect("a runtime can be built");
        let store: Arc<dyn Store> = match &directory {
            None => Arc::new(MemoryStore::new()),
            Some(directory) => Arc::new(
                EmbeddedStore::open(directory.path().join("data"), store_options())
                    .expect("a new directory can be opened"),
            ),
        };
        let options = EngineOptions {
            clock: Arc::new(ManualClock::new(1_700_000_000_000)),
            random_seed: Some(1),
            ..EngineOptions::default()
        };
        let engine = runtime.block_on(Engine::open(store.clone(), options)).expect("it opens");
        let api = Arc::new(Api::new(engine, ApiOptions::default()));
        let namespace =
            Arc::new(Namespace { account: "000000000000".into(), region: "us-east-1".into() });
        Database { runtime, api, store, namespace, _directory: directory }
    }

    /// Closing moves everything from memory into table files.
    fn reopened(self) -> Database {
        let Database { runtime, api, store, _directory: directory, .. } = self;
        runtime.block_on(store.close()).expect("it closes");
        drop((api, store));
        Database::open(directory)
    }

    pub fn expect(&self, operation: Operation, body: &[u8]) {
        let handled = self.api.handle(operation, &self.namespace, body);
        let response = self.runtime.block_on(handled);
        assert_eq!(response.status, 200, "{operation:?}: {response:?}");
    }

    /// An operation that sends the bodies in rotation.
    pub fn repeat(self, operation: Operation, bodies: Vec<Vec<u8>>) -> case::Measured {
        let mut next = 0;
        Box::new(move |iterations| {
            self.runtime.block_on(async {
                for _ in 0..iterations {
                    let body = &bodies[next];
                    next = (next + 1) % bodies.len();
                    let response = self.api.handle(operation, &self.namespace, body).await;
                    assert_eq!(response.status, 200, "{operation:?}: {response:?}");
                }
            });
        })
    }
}

fn store_options() -> Options {
    Options {
        durability: Durability::Os,
        prefixes: Some(PrefixExtractor::of::<Collections>()),
        ..Options::default()
    }
}
