//! The stores that every test runs on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zenobe_engine::clock::ManualClock;
use zenobe_engine::keyspace::Collections;
use zenobe_engine::{Engine, EngineOptions, Limits, StreamOptions};
use zenobe_store::Store;
use zenobe_store::memory::MemoryStore;
use zenobe_store::retrying::RetryingStore;
use zenobe_store::yielding::YieldingStore;
use zenobe_store_embedded::{Durability, EmbeddedStore, Options, PrefixExtractor};
use zenobe_testing::{Seed, TemporaryDirectory};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Memory,
    /// In memory; every write is decided on old values before it is decided for real.
    Retrying,
    Embedded,
}

/// A store that can be closed and reopened.
pub struct Disk {
    backend: Backend,
    memory: Option<Arc<MemoryStore>>,
    directory: TemporaryDirectory,
    /// What the disk held when the process died.
    remains: Option<TemporaryDirectory>,
}

impl Disk {
    pub fn new(backend: Backend) -> Disk {
        let memory = (backend != Backend::Embedded).then(|| Arc::new(MemoryStore::new()));
        Disk { backend, memory, directory: TemporaryDirectory::new("model"), remains: None }
    }

    /// An embedded store can only be reopened after everybody has dropped it.
    pub fn open(&self) -> Arc<dyn Store> {
        match (self.backend, &self.memory) {
            (Backend::Memory, Some(store)) => Arc::clone(store) as Arc<dyn Store>,
            (Backend::Retrying, Some(store)) => Arc::new(RetryingStore::new(store.clone())),
            _ => {
                let options = Options {
                    durability: Durability::Os,
                    // Small enough that histories reach the table files, not only the log.
                    write_buffer_bytes: 1 << 20,
                    cache_bytes: 16 << 20,
                    prefixes: Some(PrefixExtractor::of::<Collections>()),
                    ..Options::default()
                };
                let store = EmbeddedStore::open(self.directory.path(), options);
                Arc::new(store.expect("the store opens"))
            }
        }
    }

    /// Saves the current content of the disk, as if the process died now. Memory is unaffected.
    pub fn crash(&mut self) {
        if self.backend == Backend::Embedded {
            let remains = TemporaryDirectory::new("model-crashed");
            // A flush or a compaction may be running. Files that did not change in the meantime
            // were copied correctly.
            loop {
                let before = files(self.directory.path());
                copy(&before, self.directory.path(), remains.path());
                if files(self.directory.path()) == before {
                    break;
                }
                clear(remains.path());
            }
            self.remains = Some(remains);
        }
    }

    /// Continues with what a crash has left. Everybody must have dropped the store.
    pub fn recover(&mut self) {
        if let Some(remains) = self.remains.take() {
            self.directory = remains;
        }
    }

    pub async fn engine(&self, clock: &Arc<ManualClock>, limits: Limits) -> Arc<Engine> {
        engine_on(self.open(), clock, limits).await
    }

    /// An engine whose requests interleave.
    pub async fn yielding_engine(&self, clock: &Arc<ManualClock>, seed: Seed) -> Arc<Engine> {
        let store = YieldingStore::new(self.open(), seed.value());
        engine_on(Arc::new(store), clock, Limits::default()).await
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

async fn engine_on(store: Arc<dyn Store>, clock: &Arc<ManualClock>, limits: Limits) -> Arc<Engine> {
    let clock = Arc::clone(clock) as Arc<dyn zenobe_engine::clock::Clock>;
    // Small shards, so that histories go through several generations of them.
    let streams =
        StreamOptions { shards: 2, shard_records_max: Some(6), ..StreamOptions::default() };
    let options =
        EngineOptions { clock, random_seed: Some(1), limits, streams, ..EngineOptions::default() };
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
