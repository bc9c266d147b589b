//! The store for many nodes: ordered bytes on PostgreSQL's protocol. Nodes keep nothing of their own, so any number of them can work on
//! one store.
//!
//! - Reads are one statement each, on connections that all of them share (`read`, `pool`). Scans and snapshots have a
//!   read-only transaction and a connection for themselves (`view`, `scan`).
//! - Writes are decided on what the node remembers, and share transactions that have the store confirm what was seen (`write`).
//! - How keys and values lie in rows is in `sql`, `keys` and `rows`.
//!
//! **Invariant:** a strong read and every write goes to the primary. Nothing that is remembered here is ever an answer: it is only what
//! a decision is tried on.

mod dialect;
mod fault;
mod keys;
mod open;
mod options;
mod pool;
mod read;
mod rows;
mod scan;
mod sql;
mod tls;
mod upkeep;
mod url;
mod view;
mod write;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use tokio::runtime::{Builder, Runtime};
use zenobe_store::{
    CommitOutcome, Decide, Direction, Error, Key, KeyRange, Reader, Result, Statistics, Store,
    Value, Visitor, WriteSet,
};

pub use options::Options;

use pool::Pool;
use url::Target;
use write::Queue;

/// Threads of the runtime that the connections live on. They only move bytes.
const THREADS: usize = 2;

pub struct PostgresStore {
    pool: Arc<Pool>,
    queue: Arc<Queue>,
    is_closed: AtomicBool,
    view_age_max: Duration,
    size_bytes: Arc<AtomicU64>,
    /// Keeps the connections going, also those of snapshots that outlive the store.
    runtime: Arc<OwnedRuntime>,
}

/// A runtime that can be dropped anywhere.
struct OwnedRuntime(Option<Runtime>);

impl Drop for OwnedRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl PostgresStore {
    /// Connects to the store that the URL names, such as `postgres://user:password@a,b,c/database`, and creates its tables if
    /// there are none.
    ///
    /// # Errors
    /// [`Error::Open`], if the URL is wrong, the store cannot be reached in time, or its tables are of a newer version.
    pub async fn open(url: &str, options: Options) -> Result<PostgresStore> {
        let target = Target::parse(url)?;
        let connector = tls::Connector::new(&target.tls)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("zenobe-postgres")
            .enable_all()
            .build()
            .map_err(|error| Error::Open { detail: format!("no threads: {error}") })?;
        let handle = runtime.handle().clone();
        let runtime = Arc::new(OwnedRuntime(Some(runtime)));
        let preparing = {
            let (target, connector, options) = (target.clone(), connector.clone(), options.clone());
            handle.spawn(async move { open::prepare(&target, &connector, &options).await })
        };
        let aborted = |error| Err(Error::Open { detail: format!("opening was cut off: {error}") });
        let dialect = preparing.await.unwrap_or_else(aborted)?;
        let pool = Arc::new(Pool::new(target, connector, dialect, &options, handle));
        let queue = Arc::new(Queue::new(Arc::clone(&pool), &options));
        let size_bytes = Arc::new(AtomicU64::new(0));
        upkeep::start(&pool, &size_bytes).await?;
        let view_age_max = options.view_age_max;
        let is_closed = AtomicBool::new(false);
        Ok(PostgresStore { pool, queue, is_closed, view_age_max, size_bytes, runtime })
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }
}

impl Reader for PostgresStore {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move {
            self.check_open()?;
            read::get(&self.pool, key).await
        }
        .boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move {
            self.check_open()?;
            Ok(read::values(read::read_keys(&self.pool, keys).await?))
        }
        .boxed()
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
            self.check_open()?;
            view::scan(&self.pool, range, direction, entries_max, visit, keys).await
        }
        .boxed()
    }
}

impl Store for PostgresStore {
    fn snapshot(&self) -> Arc<dyn Reader> {
        let refused = self.check_open().err();
        let snapshot = view::Snapshot::new(Arc::clone(&self.pool), self.view_age_max, refused);
        Arc::new(Kept { snapshot, _runtime: Arc::clone(&self.runtime) })
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<CommitOutcome>> {
        write::write(&self.pool, &self.queue, set, decide).boxed()
    }

    fn checkpoint<'a>(&'a self, _directory: &'a Path) -> BoxFuture<'a, Result<()>> {
        let detail = "the store is backed up with PostgreSQL's own tools".to_owned();
        ready(Err(Error::Unsupported { detail })).boxed()
    }

    /// PostgreSQL's autovacuum gives the space back.
    fn reclaim<'a>(&'a self, _range: KeyRange) -> BoxFuture<'a, Result<()>> {
        ready(self.check_open()).boxed()
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            size_bytes: self.size_bytes.load(Ordering::Relaxed),
            commit_groups: self.queue.groups.load(Ordering::Relaxed),
            commit_batches: self.queue.batches.load(Ordering::Relaxed),
            write_failure: None,
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        async move {
            self.queue.close().await;
            self.is_closed.store(true, Ordering::Release);
            self.pool.close();
            Ok(())
        }
        .boxed()
    }
}

/// A snapshot with what it needs to outlive its store.
struct Kept {
    snapshot: view::Snapshot,
    _runtime: Arc<OwnedRuntime>,
}

impl Reader for Kept {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        self.snapshot.get(key)
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        self.snapshot.get_many(keys)
    }

    fn scan_then_get<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        entries_max: Option<usize>,
        visit: &'a mut Visitor<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        self.snapshot.scan_then_get(range, direction, entries_max, visit, keys)
    }
}
