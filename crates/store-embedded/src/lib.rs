//! The embedded durable backend: RocksDB with group commit.
//!
//! A write locks its keys (`key_locks`), reads their values, through the writes still in flight (`overlay`),
//! decides, takes its place in the commit order (`queue`) and releases its locks. Then the first whose turn it is (`turn`)
//! turns everything that waits into one RocksDB write (`log_writer`); a thread (`settler`) syncs the log, publishes the new
//! state to readers and only then acknowledges. So the next group is written while the one before it is being synced, and
//! readers never see what could be lost. What a writer would have to wait for it leaves to another thread (`committer`).
//!
//! **Invariant:** no write needs an async runtime, and nothing is awaited while a key is locked.
//!
//! When the disk fails (`failure`), writes answer [`Error::WritesDisabled`] and reads go on from the last
//! durable state; the store recovers by itself once the disk takes writes again. The files, and what
//! exactly survives what, are described in `docs/store-format/directory.md`.

mod committer;
mod counters;
mod database;
mod dead_runs;
mod directory;
mod failure;
mod group;
mod groups;
mod key_locks;
mod known_counters;
mod log;
mod log_writer;
mod options;
mod overlay;
mod pending_view;
mod queue;
mod reclaim;
mod scan;
mod settler;
mod shared;
mod turn;
mod value_cache;
mod view;
mod write;
mod written;

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use futures_channel::oneshot;
use futures_util::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;
use zenobe_store::{
    Decide, Direction, Error, Key, KeyRange, Reader, Result, Statistics, Store, Value, Visitor,
    WriteOutcome, WriteSet,
};

use crate::committer::Committer;
use crate::pending_view::PendingView;
use crate::scan::HeldView;
use crate::shared::Shared;

pub use crate::directory::FORMAT_VERSION;
pub use crate::groups::Grouping;
pub use crate::options::{Durability, Options};

pub struct EmbeddedStore {
    shared: Arc<Shared>,
    committer: Arc<CommitterThread>,
}

/// Locked by whoever closes the store until it is closed, so that whoever closes it too waits for that.
type CommitterThread = Mutex<Option<JoinHandle<()>>>;

impl EmbeddedStore {
    /// Opens the store in `directory`, which is created if it does not exist.
    ///
    /// # Errors
    /// [`Error::Open`] if another process uses the directory, if its format is unknown, or if it holds
    /// something else; [`Error::Corrupt`] if its content is damaged, or if acknowledged writes cannot be
    /// replayed from its log and [`Options::accept_log_damage`] does not say to go on without them.
    pub fn open(directory: impl AsRef<Path>, options: Options) -> Result<EmbeddedStore> {
        let shared = Arc::new(Shared::open(directory.as_ref(), options)?);
        let committer = Committer::new(Arc::clone(&shared))?;
        let thread = spawn("zenobe-commit", move || committer.run())?;
        Ok(EmbeddedStore { shared, committer: Arc::new(Mutex::new(Some(thread))) })
    }
}

/// Waits until what was accepted has been committed, and ends reading.
fn finish(shared: &Shared, committer: &CommitterThread) {
    let mut committer = committer.lock();
    if let Some(thread) = committer.take() {
        // The committer reports its own failures; a panic of it has been turned into one of them.
        let _ = thread.join();
        shared.unpublish();
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.shared.queue.close();
        finish(&self.shared, &self.committer);
    }
}

impl Reader for EmbeddedStore {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move { self.shared.get(key).await }.boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move { self.shared.view().await?.read_many(keys) }.boxed()
    }

    fn scan<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        visit: &'a mut Visitor<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            let view = self.shared.view().await?;
            scan::scan(&view, &self.shared.dead_runs, range, direction, visit).await
        }
        .boxed()
    }
}

impl Store for EmbeddedStore {
    fn snapshot(&self) -> Arc<dyn Reader> {
        match self.shared.published() {
            Some(view) => {
                let dead_runs = Arc::clone(&self.shared.dead_runs);
                Arc::new(HeldView { view, dead_runs })
            }
            None => Arc::new(PendingView::new(Arc::clone(&self.shared))),
        }
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<WriteOutcome>> {
        write::write(&self.shared, set, decide).boxed()
    }

    fn checkpoint<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Result<()>> {
        async move {
            let target = directory.to_path_buf();
            let view = self.shared.view().await?;
            in_background("zenobe-checkpoint", move || {
                directory::write_checkpoint(view.database(), &target)
            })
            .await
        }
        .boxed()
    }

    fn reclaim<'a>(&'a self, range: KeyRange) -> BoxFuture<'a, Result<()>> {
        async move { self.shared.reclaim(range).await }.boxed()
    }

    fn statistics(&self) -> Statistics {
        self.shared.statistics()
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        // Refuses new writes at once, even if the future is never polled.
        self.shared.queue.close();
        let (shared, committer) = (Arc::clone(&self.shared), Arc::clone(&self.committer));
        in_background("zenobe-close", move || {
            finish(&shared, &committer);
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
        // Nobody listens any more if the future was dropped; the work is done all the same.
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
