//! The stores that every test runs on.

use std::sync::Arc;

use zenobe_engine::clock::ManualClock;
use zenobe_engine::keyspace::Collections;
use zenobe_engine::{Engine, EngineOptions, Limits};
use zenobe_store::Store;
use zenobe_store::memory::MemoryStore;
use zenobe_store::retrying::RetryingStore;
use zenobe_store_embedded::{Durability, EmbeddedStore, Grouping, Options};
use zenobe_testing::TemporaryDirectory;

use crate::hesitant::HesitantStore;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Memory,
    /// In memory, and every write is decided on old values before it is decided for real.
    Retrying,
    Embedded,
}

/// A store that can be closed and opened again.
pub struct Disk {
    backend: Backend,
    memory: Option<Arc<MemoryStore>>,
    directory: TemporaryDirectory,
}

impl Disk {
    pub fn new(backend: Backend) -> Disk {
        let memory = (backend != Backend::Embedded).then(|| Arc::new(MemoryStore::new()));
        Disk { backend, memory, directory: TemporaryDirectory::new("model") }
    }

    /// Whoever holds an embedded store must let go of it before it can be opened again.
    pub fn open(&self) -> Arc<dyn Store> {
        match (self.backend, &self.memory) {
            (Backend::Memory, Some(store)) => Arc::clone(store) as Arc<dyn Store>,
            (Backend::Retrying, Some(store)) => Arc::new(RetryingStore::new(store.clone())),
            _ => {
                let options = Options {
                    durability: Durability::Os,
                    // Small enough that histories reach the files, not only the log.
                    write_buffer_bytes: 1 << 20,
                    cache_bytes: 16 << 20,
                    grouping: Some(Grouping::by::<Collections>()),
                    ..Options::default()
                };
                let store = EmbeddedStore::open(self.directory.path(), options);
                Arc::new(store.expect("the store opens"))
            }
        }
    }

    pub async fn engine(&self, clock: &Arc<ManualClock>, limits: Limits) -> Arc<Engine> {
        engine_on(self.open(), clock, limits).await
    }

    /// An engine whose requests meet each other in the middle.
    pub async fn hesitant_engine(&self, clock: &Arc<ManualClock>, limits: Limits) -> Arc<Engine> {
        engine_on(Arc::new(HesitantStore::new(self.open())), clock, limits).await
    }
}

async fn engine_on(store: Arc<dyn Store>, clock: &Arc<ManualClock>, limits: Limits) -> Arc<Engine> {
    let clock = Arc::clone(clock) as Arc<dyn zenobe_engine::clock::Clock>;
    let options = EngineOptions { clock, random_seed: Some(1), limits, ..EngineOptions::default() };
    Engine::open(store, options).await.expect("the engine opens")
}

/// A runtime for one test: with threads if its tasks are to run side by side.
pub fn runtime(threads: bool) -> tokio::runtime::Runtime {
    let mut builder = if threads {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    builder.enable_all().build().expect("a runtime can be built")
}
