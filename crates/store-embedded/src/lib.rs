//! The embedded durable backend: RocksDB with group commit.
//!
//! `commit` tells how a write gets to disk, to readers and back to its caller. Start there.
//!
//! **Invariant:** no write needs an async runtime, and nothing is awaited while a key is locked.
//!
//! | module | what it does |
//! |---|---|
//! | `commit` | the commit path, from [`Store::write`] to its answer, and the threads behind it |
//! | `key_locks`, `in_flight`, `checked_counters` | deciding: locks, values that are not published yet, sound counters |
//! | `numbers`, `last_writes` | encoding a group: sums, the ends of logs, what earlier mutations leave behind |
//! | `published`, `snapshot`, `value_cache` | what readers see |
//! | `scan`, `dead_runs`, `reclaim` | walking over ranges, and over what was deleted in them |
//! | `change_tap`, `handover` | copying the store while it is in use, and handing it over to another |
//! | `log_tap`, `apply_shipped` | handing out committed groups, and applying them to a restored copy |
//! | `recovery` | reopening the database after a failure |
//! | `directory`, `rocks_database`, `options`, `prefix_extractor` | files, RocksDB and its settings |
//! | `write_ahead_log`, `damaged_table_files` | telling a damaged log from a torn one; naming damaged tables |
//!
//! When the disk fails, unanswered writes return [`Error::Uncertain`] if they may be on disk and [`Error::Io`] if they can't be. Later
//! writes return [`Error::WritesRefused`]. Reads continue from the last durable state. The store
//! recovers by itself once the disk accepts writes again. `docs/store-format/directory.md` describes the files, and which
//! failures writes survive.

mod apply_shipped;
mod change_tap;
mod checked_counters;
mod commit;
mod damaged_table_files;
mod dead_runs;
mod directory;
mod handover;
mod in_flight;
mod inner;
mod key_locks;
mod last_writes;
mod log_tap;
mod numbers;
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

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use futures_channel::oneshot;
use futures_util::future::{BoxFuture, FutureExt, ready};
use parking_lot::Mutex;
use zenobe_store::{
    CommitOutcome, Decide, Direction, Error, Inspection, Key, KeyRange, LogEnd, Reader, Replica,
    Result, Statistics, Store, Value, Visitor, WriteSet, scan_first,
};

use crate::inner::Inner;
use crate::snapshot::Snapshot;
use crate::snapshot_reader::SnapshotReader;

pub use crate::apply_shipped::RestoringDirectory;
pub use crate::directory::{
    FORMAT_VERSION, RESTORING_FILE, checkpoint_path, remove_restoring_mark,
};
pub use crate::handover::{ChangeTapGuard, PausedWrites};
pub use crate::log_tap::LogFollower;
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

    /// Where [`Store::checkpoint`] can link the files instead of copying them. What is left there is removed when the store is
    /// opened next.
    ///
    /// # Errors
    /// If the store is closed, or recovers from a failure.
    pub fn checkpoint_path(&self, name: &str) -> Result<PathBuf> {
        let snapshot = self.inner.published.without_waiting()?;
        Ok(snapshot.database().directory().checkpoint_path(name))
    }

    /// A number that this store shares with its copies, and with no other store.
    ///
    /// # Errors
    /// If the store is closed, or recovers from a failure.
    pub fn identity(&self) -> Result<u64> {
        let snapshot = self.inner.published.without_waiting()?;
        Ok(snapshot.database().directory().identity())
    }

    /// For tests: waits until nothing is in flight and the horizon covers everything, as in an idle store.
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

/// Who answers a request.
enum Answerer<'a> {
    This(Arc<Snapshot>),
    Successor(&'a Arc<dyn Store>),
}

impl EmbeddedStore {
    async fn answerer(&self) -> Result<Answerer<'_>> {
        match (self.inner.published.wait().await, self.successor()) {
            (Ok(snapshot), _) => Ok(Answerer::This(snapshot)),
            (Err(Error::Closed), Some(successor)) => Ok(Answerer::Successor(successor)),
            (Err(error), _) => Err(error),
        }
    }
}

impl Reader for EmbeddedStore {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move {
            let read = self.inner.published.read(key).await;
            match (read, self.successor()) {
                (Err(Error::Closed), Some(successor)) => successor.get(key).await,
                (read, _) => read,
            }
        }
        .boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move {
            match self.answerer().await? {
                Answerer::This(snapshot) => snapshot.read_many(keys),
                Answerer::Successor(successor) => successor.get_many(keys).await,
            }
        }
        .boxed()
    }

    fn scan<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        visit: &'a mut Visitor<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            match self.answerer().await? {
                Answerer::This(snapshot) => {
                    scan::scan(&snapshot, &self.inner.dead_runs, range, direction, visit).await
                }
                Answerer::Successor(successor) => successor.scan(range, direction, visit).await,
            }
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
        match self.successor() {
            Some(successor) => successor.scan_then_get(range, direction, entries_max, visit, keys),
            None => scan_first(self, range, direction, entries_max, visit, keys).boxed(),
        }
    }
}

impl Store for EmbeddedStore {
    fn snapshot(&self) -> Arc<dyn Reader> {
        let snapshot = SnapshotReader::new(Arc::clone(&self.inner));
        match self.successor() {
            Some(successor) if !snapshot.has_begun() => successor.snapshot(),
            _ => Arc::new(snapshot),
        }
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<CommitOutcome>> {
        async move {
            let written = commit::write(&self.inner, set, &mut *decide).await;
            // A closed store has queued nothing.
            match (written, self.successor()) {
                (Err(Error::Closed), Some(successor)) => successor.write(set, decide).await,
                (written, _) => written,
            }
        }
        .boxed()
    }

    fn log_ends<'a>(
        &'a self,
        start: &'a [u8],
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<(Key, LogEnd)>>> {
        match self.successor() {
            Some(successor) => successor.log_ends(start, count_max),
            None => handover::log_ends(&self.inner, start, count_max).boxed(),
        }
    }

    fn seal(&self, key: Key, value: Option<Value>) -> BoxFuture<'_, Result<()>> {
        match self.successor() {
            Some(successor) => successor.seal(key, value),
            None => zenobe_store::put_or_delete(self, key, value).boxed(),
        }
    }

    fn checkpoint<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Result<()>> {
        async move {
            let target = directory.to_path_buf();
            match self.answerer().await? {
                Answerer::This(snapshot) => {
                    in_background("zenobe-checkpoint", move || {
                        directory::write_checkpoint(snapshot.database(), &target)
                    })
                    .await
                }
                Answerer::Successor(successor) => successor.checkpoint(directory).await,
            }
        }
        .boxed()
    }

    fn reclaim<'a>(&'a self, range: KeyRange) -> BoxFuture<'a, Result<()>> {
        match self.successor() {
            Some(successor) => successor.reclaim(range),
            None => async move { self.inner.reclaim(range).await }.boxed(),
        }
    }

    fn statistics(&self) -> Statistics {
        self.successor().map_or_else(|| self.inner.statistics(), |successor| successor.statistics())
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Option<Inspection>>> {
        match self.successor() {
            Some(successor) => successor.inspect(),
            None => ready(Ok(None)).boxed(),
        }
    }

    fn replica(&self) -> Option<Arc<dyn Replica>> {
        self.successor()?.replica()
    }

    fn is_shared(&self) -> bool {
        self.successor().is_some_and(|successor| successor.is_shared())
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        // Refuses new writes at once, even if the future is never polled.
        self.inner.queue.close();
        let (inner, commit_thread) = (Arc::clone(&self.inner), Arc::clone(&self.commit_thread));
        let closing = in_background("zenobe-close", move || {
            finish(&inner, &commit_thread);
            Ok(())
        });
        async move {
            closing.await?;
            match self.successor() {
                Some(successor) => successor.close().await,
                None => Ok(()),
            }
        }
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
        let leadership = store.inner.leader_lock.lock();
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
            store.inner.leader_lock.unlock(leadership);
            second.join().unwrap();
        });
        block_on(first).unwrap();
    }
}
