//! The store for many nodes: ordered bytes over PostgreSQL's protocol. Nodes keep no state of their own, so any number of them can
//! share one store.
//!
//! - A read is one statement on a shared connection, or part of one that reads share while others are in flight (`read`, `gather`,
//!   `pool`). Each scan and each snapshot has a read-only transaction on a connection of its own (`view`, `scan`).
//! - Writes are decided on cached values and grouped into transactions, in which the store confirms what the decisions saw (`write`).
//! - Standbys answer eventually consistent reads, if the options allow it (`standbys`).
//! - `sql`, `keys` and `rows` define how keys and values are stored in rows.
//!
//! **Invariant:** every consistent read and every write goes to the primary. The node's cache never answers a request; it only supplies
//! the values on which a decision is first tried.

mod answers;
mod connect;
mod dialect;
mod gather;
mod inspect;
mod keys;
mod open;
mod options;
mod pool;
mod read;
mod rows;
mod scan;
mod seal;
mod sql;
mod standbys;
mod statement_error;
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
    CommitOutcome, Decide, Direction, Error, Inspection, Key, KeyRange, LogEnd, Reader, Replica,
    Result, Statistics, Store, Value, Visitor, WriteSet,
};

pub use options::Options;

use connect::Hosts;
use dialect::Dialect;
use pool::Pool;
use standbys::Standbys;
use url::ServerUrl;
use write::Queue;

/// Threads of the runtime that drives the connections. They only move bytes.
const THREADS: usize = 2;

pub struct PostgresStore {
    pool: Arc<Pool>,
    queue: Arc<Queue>,
    is_closed: AtomicBool,
    view_age_max: Duration,
    size_bytes: Arc<AtomicU64>,
    standbys: Option<Arc<Standbys>>,
    /// Drives the connections, including those of snapshots that outlive the store.
    runtime: Arc<OwnedRuntime>,
}

/// A runtime that may be dropped anywhere, even in async code.
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
    /// [`Error::Open`], if the URL is invalid, the store cannot be reached in time, or its tables have a newer version.
    pub async fn open(url: &str, options: Options) -> Result<PostgresStore> {
        let target = ServerUrl::parse(url)?;
        let connector = tls::Connector::new(&target.tls)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("zenobe-postgres")
            .enable_all()
            .build()
            .map_err(|error| Error::Open {
                detail: format!("cannot start the threads of its connections: {error}"),
            })?;
        let handle = runtime.handle().clone();
        let runtime = Arc::new(OwnedRuntime(Some(runtime)));
        let hosts = Arc::new(Hosts::new(target.clone(), connector.clone()));
        let preparing = {
            let (hosts, options) = (Arc::clone(&hosts), options.clone());
            handle.spawn(async move { open::prepare(&hosts, &options).await })
        };
        let aborted =
            |error| Err(Error::Open { detail: format!("opening was interrupted: {error}") });
        let dialect = preparing.await.unwrap_or_else(aborted)?;
        let pool = Arc::new(Pool::new(hosts, dialect, &options, handle));
        let queue = Arc::new(Queue::new(Arc::clone(&pool), &options));
        let size_bytes = Arc::new(AtomicU64::new(0));
        upkeep::start(&pool, &size_bytes).await?;
        let standbys = options
            .standby_lag_max
            .filter(|_| dialect == Dialect::Postgres)
            .map(|lag_max| Standbys::watch(&target, &connector, &pool, &options, lag_max));
        let view_age_max = options.view_age_max;
        let is_closed = AtomicBool::new(false);
        Ok(PostgresStore { pool, queue, is_closed, view_age_max, size_bytes, standbys, runtime })
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }
}

impl Reader for PostgresStore {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move {
            self.check_open()?;
            let reads = gather::read_keys(&self.pool, &[Key::copy_from_slice(key)]).await?;
            Ok(reads.into_iter().next().and_then(|read| read.value))
        }
        .boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move {
            self.check_open()?;
            Ok(read::values(gather::read_keys(&self.pool, keys).await?))
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
            let states = view::States::Rising;
            view::scan(&self.pool, states, range, direction, entries_max, visit, keys).await
        }
        .boxed()
    }
}

impl Store for PostgresStore {
    fn snapshot(&self) -> Arc<dyn Reader> {
        let refused = self.check_open().err();
        let snapshot = view::ViewSnapshot::new(Arc::clone(&self.pool), self.view_age_max, refused);
        Arc::new(OwnedSnapshot { snapshot, _runtime: Arc::clone(&self.runtime) })
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<CommitOutcome>> {
        write::write(&self.pool, &self.queue, set, decide).boxed()
    }

    fn log_ends<'a>(
        &'a self,
        start: &'a [u8],
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<(Key, LogEnd)>>> {
        async move {
            self.check_open()?;
            read::log_ends(&self.pool, start, count_max).await
        }
        .boxed()
    }

    fn seal(&self, key: Key, value: Option<Value>) -> BoxFuture<'_, Result<()>> {
        async move {
            self.check_open()?;
            seal::seal(&self.pool, &key, value.as_deref()).await
        }
        .boxed()
    }

    fn checkpoint<'a>(&'a self, _directory: &'a Path) -> BoxFuture<'a, Result<()>> {
        let detail = "use PostgreSQL's own tools to back up this store".to_owned();
        ready(Err(Error::Unsupported { detail })).boxed()
    }

    /// PostgreSQL's autovacuum reclaims the space.
    fn reclaim<'a>(&'a self, _range: KeyRange) -> BoxFuture<'a, Result<()>> {
        ready(self.check_open()).boxed()
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            size_bytes: self.size_bytes.load(Ordering::Relaxed),
            commit_groups: self.queue.groups.load(Ordering::Relaxed),
            committed_writes: self.queue.committed_writes.load(Ordering::Relaxed),
            write_failure: None,
        }
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Option<Inspection>>> {
        async move {
            self.check_open()?;
            inspect::inspect(&self.pool, self.standbys.as_deref()).await.map(Some)
        }
        .boxed()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn replica(&self) -> Option<Arc<dyn Replica>> {
        let standbys = self.standbys.as_ref().filter(|_| self.check_open().is_ok())?;
        let chosen = standbys.choose(&self.runtime, self.view_age_max)?;
        Some(Arc::new(chosen))
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        async move {
            self.queue.close().await;
            self.is_closed.store(true, Ordering::Release);
            self.pool.close();
            self.standbys.iter().for_each(|standbys| standbys.close());
            Ok(())
        }
        .boxed()
    }
}

/// A snapshot that keeps its connections alive, so that it may outlive its store.
struct OwnedSnapshot {
    snapshot: view::ViewSnapshot,
    _runtime: Arc<OwnedRuntime>,
}

impl Reader for OwnedSnapshot {
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
