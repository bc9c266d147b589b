//! The embedded durable backend: RocksDB with group commit.
//!
//! `commit` tells how a write gets to disk, to readers and back to its caller. Start there.
//!
//! **Invariant:** no write needs an async runtime, and nothing is awaited while a key is locked.
//!
//! | module | what it does |
//! |---|---|
//! | `commit` | the commit path, from [`Store::write`] to its answer, and the threads behind it |
//! | `key_locks`, `in_flight`, `known_counters` | deciding: locks, values that are not published yet, sound counters |
//! | `counters`, `last_writes` | encoding a group: sums, the ends of logs, what earlier mutations leave behind |
//! | `published`, `snapshot`, `value_cache` | what readers see |
//! | `scan`, `dead_runs`, `reclaim` | walking over ranges, and over what was deleted in them |
//! | `recovery` | reopening the database after a failure |
//! | `directory`, `rocks_database`, `options`, `prefix_extractor` | files, RocksDB and its settings |
//! | `write_ahead_log` | telling a damaged log from a torn one |
//!
//! When the disk fails, writes return [`Error::WritesDisabled`] and reads continue from the last durable state. The store
//! recovers by itself once the disk accepts writes again. `docs/store-format/directory.md` describes the files, and which
//! failures writes survive.

mod commit;
mod counters;
mod dead_runs;
mod directory;
mod in_flight;
mod inner;
mod key_locks;
mod known_counters;
mod last_writes;
mod options;
mod prefix_extractor;
mod published;
mod reclaim;
mod recovery;
mod rocks_database;
mod scan;
mod snapshot;
mod snapshot_reader;
mod value_cache;
mod write_ahead_log;

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use futures_channel::oneshot;
use futures_util::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;
use zenobe_store::{
    CommitOutcome, Decide, Direction, Error, Key, KeyRange, Reader, Result, Statistics, Store,
    Value, Visitor, WriteSet,
};

use crate::inner::Inner;
use crate::snapshot_reader::SnapshotReader;

pub use crate::directory::FORMAT_VERSION;
pub use crate::options::{Durability, Options};
pub use crate::prefix_extractor::PrefixExtractor;

pub struct EmbeddedStore {
    inner: Arc<Inner>,
    commit_thread: Arc<CommitThread>,
}

/// Locked until the store is closed, so that a second call to close waits for the first.
type CommitThread = Mutex<Option<JoinHandle<()>>>;

impl EmbeddedStore {
    /// Opens the store in `directory`, which is created if it does not exist.
    ///
    /// # Errors
    /// [`Error::Open`] if another process uses the directory, if its format is unknown, or if it holds
    /// something else; [`Error::Corrupt`] if its content is damaged, or if acknowledged writes cannot be
    /// replayed from its log and [`Options::accept_log_damage`] does not accept the loss.
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<EmbeddedStore> {
        let inner = Arc::new(Inner::open(directory.as_ref(), options)?);
        let thread = commit::start(&inner)?;
        Ok(EmbeddedStore { inner, commit_thread: Arc::new(Mutex::new(Some(thread))) })
    }

    /// For tests: waits until nothing is in flight and the log's horizon covers everything, as in an idle store.
    #[doc(hidden)]
    pub fn wait_until_idle(&self) {
        self.inner.queue.wait_until_idle();
    }
}

/// Waits until all accepted writes have been committed, then ends reads.
fn finish(inner: &Inner, commit_thread: &CommitThread) {
    let mut commit_thread = commit_thread.lock();
    if let Some(thread) = commit_thread.take() {
        // The thread reports its own failures; a panic has been turned into one of them.
        let _ = thread.join();
        inner.finish();
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.inner.queue.close();
        finish(&self.inner, &self.commit_thread);
    }
}

impl Reader for EmbeddedStore {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move { self.inner.published.read(key).await }.boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move { self.inner.published.wait().await?.read_many(keys) }.boxed()
    }

    fn scan<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        visit: &'a mut Visitor<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            let snapshot = self.inner.published.wait().await?;
            scan::scan(&snapshot, &self.inner.dead_runs, range, direction, visit).await
        }
        .boxed()
    }
}

impl Store for EmbeddedStore {
    fn snapshot(&self) -> Arc<dyn Reader> {
        Arc::new(SnapshotReader::new(Arc::clone(&self.inner)))
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<CommitOutcome>> {
        commit::write(&self.inner, set, decide).boxed()
    }

    fn checkpoint<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Result<()>> {
        async move {
            let target = directory.to_path_buf();
            let snapshot = self.inner.published.wait().await?;
            in_background("zenobe-checkpoint", move || {
                directory::write_checkpoint(snapshot.database(), &target)
            })
            .await
        }
        .boxed()
    }

    fn reclaim<'a>(&'a self, range: KeyRange) -> BoxFuture<'a, Result<()>> {
        async move { self.inner.reclaim(range).await }.boxed()
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        // Refuses new writes at once, even if the future is never polled.
        self.inner.queue.close();
        let (inner, commit_thread) = (Arc::clone(&self.inner), Arc::clone(&self.commit_thread));
        in_background("zenobe-close", move || {
            finish(&inner, &commit_thread);
            Ok(())
        })
        .boxed()
    }
}

/// Runs blocking work on a thread of its own, so that it neither blocks nor needs a runtime.
async fn in_background(
    name: &str,
    work: impl FnOnce() -> Result<()> + Send + 'static,
) -> Result<()> {
    let (sender, receiver) = oneshot::channel();
    spawn(name, move || {
        // If the future was dropped, the result is discarded.
        let _ = sender.send(work());
    })?;
    receiver.await.unwrap_or_else(|_| {
        Err(Error::Io { detail: "a background thread ended without an answer".to_owned() })
    })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| Error::Io { detail: format!("cannot start a thread: {error}") })
}

#[cfg(test)]
mod tests {
    use super::{EmbeddedStore, Options};
    use futures_util::FutureExt;
    use std::sync::mpsc;
    use zenobe_store::Store;
    use zenobe_store::conformance::{block_on, commit};

    /// After any call to close returns, the directory can be opened again, even if another call closed the store.
    #[test]
    fn closing_twice_at_once_waits_for_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let open = || EmbeddedStore::open(directory.path(), Options::default()).unwrap();
        let store = open();
        commit(&store, |batch| batch.put("row", vec![1; 1_000_000]));
        // The commit thread cannot end while another thread leads.
        let leader = store.inner.leader.lock();
        let mut first = store.close();
        assert!((&mut first).now_or_never().is_none());
        while store.commit_thread.try_lock().is_some() {
            std::thread::yield_now();
        }
        let (begun, second_has_begun) = mpsc::channel();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                let mut close = store.close();
                let is_closed = (&mut close).now_or_never().is_some();
                begun.send(is_closed).unwrap();
                if !is_closed {
                    block_on(close).unwrap();
                }
                drop(open());
            });
            assert!(!second_has_begun.recv().unwrap(), "the first is still closing it");
            store.inner.leader.unlock(leader);
            second.join().unwrap();
        });
        block_on(first).unwrap();
    }
}
