//! The stores that every test runs on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use zenobe_engine::clock::ManualClock;
use zenobe_engine::keyspace::Collections;
use zenobe_engine::{Engine, EngineOptions, Limits, StreamOptions};
use zenobe_store::Store;
use zenobe_store::memory::MemoryStore;
use zenobe_store::redeciding::RedecidingStore;
use zenobe_store::yielding::YieldingStore;
use zenobe_store_embedded::{Durability, EmbeddedStore, Options, PrefixExtractor};
use zenobe_store_postgres::PostgresStore;
use zenobe_testing::{Postgres, Seed, TemporaryDirectory};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Memory,
    /// In memory; every write is decided on old values before it is decided for real.
    Retrying,
    Embedded,
    /// A database of a real PostgreSQL.
    Postgres,
    /// Two engines share an in-memory store; each request goes to one of them.
    TwoEngines,
    /// The same, and every write is decided on old values before it is decided for real.
    TwoRetryingEngines,
    /// Two engines with a store each, on one database of a real PostgreSQL. Every write is decided
    /// on old values before it is decided for real.
    TwoEnginesOnPostgres,
}

impl Backend {
    pub const ALL: [Backend; 7] = [
        Backend::Memory,
        Backend::Retrying,
        Backend::Embedded,
        Backend::Postgres,
        Backend::TwoEngines,
        Backend::TwoRetryingEngines,
        Backend::TwoEnginesOnPostgres,
    ];

    fn engines(self) -> u64 {
        match self {
            Backend::Memory | Backend::Retrying | Backend::Embedded | Backend::Postgres => 1,
            Backend::TwoEngines | Backend::TwoRetryingEngines | Backend::TwoEnginesOnPostgres => 2,
        }
    }
}

/// A store that can be closed and reopened.
pub struct Disk {
    backend: Backend,
    place: Place,
}

/// Where the bytes are while no store is open.
enum Place {
    Memory(Arc<MemoryStore>),
    Directory {
        directory: TemporaryDirectory,
        /// What the disk held when the process died.
        remains: Option<TemporaryDirectory>,
    },
    /// The URL of a database.
    Postgres(String),
}

impl Drop for Place {
    fn drop(&mut self) {
        // Finding the shortest failing history takes hundreds of them.
        if let Place::Postgres(url) = self
            && !std::thread::panicking()
        {
            Postgres::shared().remove(url);
        }
    }
}

impl Disk {
    pub fn new(backend: Backend) -> Disk {
        let place = match backend {
            Backend::Memory | Backend::Retrying => Place::Memory(Arc::new(MemoryStore::new())),
            Backend::TwoEngines | Backend::TwoRetryingEngines => {
                Place::Memory(Arc::new(MemoryStore::shared()))
            }
            Backend::Embedded => {
                Place::Directory { directory: TemporaryDirectory::new("model"), remains: None }
            }
            Backend::Postgres | Backend::TwoEnginesOnPostgres => {
                Place::Postgres(Postgres::shared().database())
            }
        };
        Disk { backend, place }
    }

    /// An embedded store can only be reopened after everybody has dropped it.
    pub async fn open(&self) -> Arc<dyn Store> {
        match &self.place {
            Place::Memory(store) => match self.backend {
                Backend::Retrying | Backend::TwoRetryingEngines => {
                    Arc::new(RedecidingStore::new(store.clone()))
                }
                _ => Arc::clone(store) as Arc<dyn Store>,
            },
            Place::Directory { directory, .. } => {
                let options = Options {
                    durability: Durability::Os,
                    // Small enough that histories reach the table files, not only the log.
                    write_buffer_bytes: 1 << 20,
                    cache_bytes: 16 << 20,
                    prefixes: Some(PrefixExtractor::of::<Collections>()),
                    ..Options::default()
                };
                let store = EmbeddedStore::open(directory.path(), options);
                Arc::new(store.expect("the store opens"))
            }
            Place::Postgres(url) => {
                let store = PostgresStore::open(url, Default::default()).await;
                let store = Arc::new(store.expect("the store opens"));
                match self.backend {
                    Backend::TwoEnginesOnPostgres => Arc::new(RedecidingStore::new(store)),
                    _ => store,
                }
            }
        }
    }

    /// Saves the current content of the disk, as if the process died now. Memory is unaffected, and
    /// so is another server.
    pub fn crash(&mut self) {
        if let Place::Directory { directory, remains } = &mut self.place {
            let copied = TemporaryDirectory::new("model-crashed");
            // A flush or a compaction may be running. Files that did not change in the meantime
            // were copied correctly.
            loop {
                let before = files(directory.path());
                copy(&before, directory.path(), copied.path());
                if files(directory.path()) == before {
                    break;
                }
                clear(copied.path());
            }
            *remains = Some(copied);
        }
    }

    /// Continues with what a crash has left. Everybody must have dropped the store.
    pub fn recover(&mut self) {
        if let Place::Directory { directory, remains } = &mut self.place
            && let Some(remains) = remains.take()
        {
            *directory = remains;
        }
    }

    pub async fn engines(&self, clock: &Arc<ManualClock>, limits: Limits) -> Engines {
        self.engines_on(|store| store, clock, limits).await
    }

    /// Engines whose requests interleave.
    pub async fn yielding_engines(&self, clock: &Arc<ManualClock>, seed: Seed) -> Engines {
        let layer = |store| Arc::new(YieldingStore::new(store, seed.value())) as Arc<dyn Store>;
        self.engines_on(layer, clock, Limits::default()).await
    }

    async fn engines_on(
        &self,
        layer: impl Fn(Arc<dyn Store>) -> Arc<dyn Store>,
        clock: &Arc<ManualClock>,
        limits: Limits,
    ) -> Engines {
        let mut engines = Vec::new();
        for seed in 1..=self.backend.engines() {
            engines.push(engine_on(layer(self.open().await), clock, limits, seed).await);
        }
        Engines { engines, calls: AtomicU64::new(0) }
    }
}

/// Equivalent engines on one store.
pub struct Engines {
    engines: Vec<Arc<Engine>>,
    calls: AtomicU64,
}

impl Engines {
    /// One of them, chosen at random. A history that runs again gets the same sequence.
    pub fn any(&self) -> &Arc<Engine> {
        // The upper bits of a number multiplied by the golden ratio are as good as random.
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let random = call.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        &self.engines[random as usize % self.engines.len()]
    }
}

/// The files of a store, relative to its directory, with their sizes.
fn files(directory: &Path) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    for below in ["", "rocksdb"] {
        for entry in fs::read_dir(directory.join(below)).expect("a directory").flatten() {
            // The file may be gone by now; the next listing will show it.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() {
                found.insert(Path::new(below).join(entry.file_name()), metadata.len());
            }
        }
    }
    found
}

fn copy(files: &BTreeMap<PathBuf, u64>, from: &Path, to: &Path) {
    fs::create_dir_all(to.join("rocksdb")).expect("a directory");
    for file in files.keys() {
        // As above.
        let _ = fs::copy(from.join(file), to.join(file));
    }
}

fn clear(directory: &Path) {
    fs::remove_dir_all(directory).expect("the directory goes");
    fs::create_dir_all(directory).expect("a directory");
}

async fn engine_on(
    store: Arc<dyn Store>,
    clock: &Arc<ManualClock>,
    limits: Limits,
    seed: u64,
) -> Arc<Engine> {
    let clock = Arc::clone(clock) as Arc<dyn zenobe_engine::clock::Clock>;
    // Small shards, so that histories go through several generations of them.
    let streams =
        StreamOptions { shards: 2, shard_records_max: Some(6), ..StreamOptions::default() };
    let options = EngineOptions {
        clock,
        random_seed: Some(seed),
        limits,
        streams,
        // All engines have the same clock, and an engine that is asked to work takes the work over
        // at once.
        clock_skew_ms_max: 0,
        lease_period: Duration::ZERO,
        ..EngineOptions::default()
    };
    Engine::open(store, options).await.expect("the engine opens")
}

/// A runtime for one test, with threads if its tasks must run side by side.
pub fn runtime(threads: bool) -> tokio::runtime::Runtime {
    let mut builder = if threads {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    builder.enable_all().build().expect("a runtime can be built")
}
