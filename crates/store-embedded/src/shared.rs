//! What the store's handle and its threads share.

use std::future::poll_fn;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use zenobe_store::{Error, KeyRange, Result, Statistics, Value};

use crate::database::Database;
use crate::dead_runs::DeadRuns;
use crate::directory::{self, Directory};
use crate::key_locks::KeyLocks;
use crate::known_counters::KnownCounters;
use crate::log::AcceptDamage;
use crate::options::Options;
use crate::overlay::Overlay;
use crate::queue::Queue;
use crate::reclaim::Reclaimer;
use crate::turn::Turns;
use crate::value_cache::ValueCache;
use crate::view::View;

pub(crate) struct Shared {
    pub options: Options,
    pub locks: KeyLocks,
    pub overlay: Overlay,
    pub known_counters: KnownCounters,
    pub queue: Queue,
    pub turns: Turns,
    pub values: Arc<ValueCache>,
    pub commit_groups: AtomicU64,
    pub commit_batches: AtomicU64,
    reclaimer: Arc<Reclaimer>,
    pub dead_runs: Arc<DeadRuns>,
    /// The latest durable state; absent while the database is closed, for the reason beside it.
    published: ArcSwapOption<View>,
    absence: Mutex<Absence>,
    /// Reads that wait for a published state. Locked after `absence`.
    readers: Mutex<Vec<Waker>>,
}

#[derive(Debug)]
pub(crate) enum Absence {
    Reopening,
    CannotReopen { detail: String },
    Closed,
}

impl Shared {
    pub fn open(path: &Path, options: Options) -> Result<Shared> {
        let directory = Arc::new(Directory::open(path)?);
        let accept_damage = match options.accept_log_damage {
            true => AcceptDamage::Yes,
            false => AcceptDamage::No,
        };
        let database = Arc::new(Database::open(directory, &options, accept_damage)?);
        let values = ValueCache::new(options.value_cache_bytes());
        let reclaimer = Arc::new(Reclaimer::default());
        Ok(Shared {
            locks: KeyLocks::new(),
            overlay: Overlay::new(),
            known_counters: KnownCounters::new(),
            queue: Queue::new(&options),
            turns: Turns::default(),
            commit_groups: AtomicU64::new(0),
            commit_batches: AtomicU64::new(0),
            dead_runs: Arc::new(DeadRuns::new(Arc::clone(&reclaimer))),
            reclaimer,
            published: ArcSwapOption::from_pointee(View::new(database, Arc::clone(&values))),
            values,
            absence: Mutex::new(Absence::Reopening),
            readers: Mutex::default(),
            options,
        })
    }

    /// The latest durable state, if the database is open.
    pub fn published(&self) -> Option<Arc<View>> {
        self.published.load_full()
    }

    /// The latest durable state. Waits while the database is being reopened.
    pub async fn view(&self) -> Result<Arc<View>> {
        match self.published() {
            Some(view) => Ok(view),
            None => poll_fn(|context| self.poll_view(context)).await,
        }
    }

    fn poll_view(&self, context: &Context<'_>) -> Poll<Result<Arc<View>>> {
        let absence = self.absence.lock();
        // Looked at again under the lock, so that a change cannot be missed.
        if let Some(view) = self.published() {
            return Poll::Ready(Ok(view));
        }
        match &*absence {
            Absence::Closed => Poll::Ready(Err(Error::Closed)),
            Absence::CannotReopen { detail } => {
                Poll::Ready(Err(Error::Io { detail: detail.clone() }))
            }
            Absence::Reopening => {
                // A task that is polled again for another reason is woken twice, which does no harm.
                self.readers.lock().push(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The latest durable state for a decision, which must not wait: it holds keys. The database is closed
    /// only while writes are refused.
    pub fn view_for_writing(&self) -> Result<Arc<View>> {
        self.published().ok_or_else(|| match &*self.absence.lock() {
            Absence::Closed => Error::Closed,
            Absence::CannotReopen { detail } => Error::WritesDisabled { detail: detail.clone() },
            Absence::Reopening => Error::WritesDisabled {
                detail: "the database is being reopened after a failure".to_owned(),
            },
        })
    }

    /// Reads one key of the latest durable state, without counting a reference to that state.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        if let Some(view) = &*self.published.load() {
            return view.read(key);
        }
        self.view().await?.read(key)
    }

    pub fn publish(&self, view: Arc<View>) {
        self.published.store(Some(view));
    }

    /// Publishes again after [`Shared::withdraw`], unless something newer has been published since, and
    /// wakes the readers that wait.
    pub fn publish_again(&self, view: Arc<View>) {
        let absence = self.absence.lock();
        self.published.compare_and_swap(&None::<Arc<View>>, Some(view));
        drop(absence);
        self.wake_readers();
    }

    /// Takes the published state away. Readers are told why.
    pub fn withdraw(&self, reason: Absence) -> Option<Arc<View>> {
        let mut absence = self.absence.lock();
        *absence = reason;
        let view = self.published.swap(None);
        drop(absence);
        self.wake_readers();
        view
    }

    fn wake_readers(&self) {
        let readers = std::mem::take(&mut *self.readers.lock());
        readers.into_iter().for_each(Waker::wake);
    }

    /// Whether nobody but this seems to use the database. Readers that come and go are not all seen.
    pub fn looks_unused(&self) -> bool {
        self.published().is_none_or(|view| {
            // The published reference, and this one.
            Arc::strong_count(&view) <= 2 && view.is_last()
        })
    }

    /// Ends reading and background work, once the committer has ended.
    pub fn unpublish(&self) {
        if let Some(view) = self.withdraw(Absence::Closed) {
            self.dead_runs.stop();
            // The next start then has no log to replay, and no tail of it to doubt. A log that failed is
            // left as it is.
            if self.queue.failure().is_none()
                && let Err(error) = view.database().flush()
            {
                tracing::warn!(
                    "the memtables stay in the log, which the next start replays: {error}"
                );
            }
            self.reclaimer.stop(|| view.database().rocks().cancel_all_background_work(false));
        }
    }

    /// Ends reclaiming in a database that is about to be closed, and that it would keep open.
    pub fn cancel_reclaiming(&self) {
        self.dead_runs.stop();
        if let Some(view) = self.published() {
            self.reclaimer.stop(|| view.database().rocks().cancel_all_background_work(false));
        }
    }

    #[cfg(test)]
    pub fn is_reclaiming(&self) -> bool {
        self.reclaimer.is_working()
    }

    pub async fn reclaim(&self, range: KeyRange) -> Result<()> {
        self.reclaimer.request(Arc::clone(self.view().await?.database()), range)
    }

    pub fn statistics(&self) -> Statistics {
        let view = self.published.load();
        let path = view.as_ref().map(|view| view.database().directory().rocksdb_path());
        Statistics {
            size_bytes: path.map_or(0, |path| directory::size_bytes(&path)),
            commit_groups: self.commit_groups.load(Ordering::Relaxed),
            commit_batches: self.commit_batches.load(Ordering::Relaxed),
            write_failure: self.queue.failure(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Absence, Shared};
    use crate::options::Options;
    use crate::pending_view::PendingView;
    use crate::view::View;
    use futures_util::FutureExt;
    use std::sync::Arc;
    use zenobe_store::conformance::block_on;
    use zenobe_store::{Error, Reader};

    /// A read that waits for the database leaves its thread to others.
    #[test]
    fn reads_wait_for_a_published_state_without_blocking() {
        let directory = tempfile::tempdir().unwrap();
        let shared = Arc::new(Shared::open(directory.path(), Options::default()).unwrap());
        let database = Arc::clone(shared.published().unwrap().database());
        shared.withdraw(Absence::Reopening);
        let snapshot = PendingView::new(Arc::clone(&shared));
        let mut read = shared.get(b"k").boxed();
        let mut snapshot_read = snapshot.get(b"k");
        assert!((&mut read).now_or_never().is_none());
        assert!((&mut snapshot_read).now_or_never().is_none());
        let decided = shared.view_for_writing().map(drop);
        assert!(matches!(decided, Err(Error::WritesDisabled { .. })), "{decided:?}");

        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| (block_on(read), block_on(snapshot_read)));
            std::thread::sleep(std::time::Duration::from_millis(20));
            shared.publish_again(Arc::new(View::new(database, Arc::clone(&shared.values))));
            let (read, snapshot_read) = waiting.join().unwrap();
            assert_eq!((read.unwrap(), snapshot_read.unwrap()), (None, None));
        });

        shared.withdraw(Absence::Closed);
        assert!(matches!(block_on(shared.get(b"k")), Err(Error::Closed)));
        assert_eq!(block_on(snapshot.get(b"k")).unwrap(), None, "it keeps its state");
    }

    #[test]
    fn publishing_again_does_not_replace_what_is_newer() {
        let directory = tempfile::tempdir().unwrap();
        let shared = Shared::open(directory.path(), Options::default()).unwrap();
        let old = shared.withdraw(Absence::Reopening).unwrap();
        let newer = Arc::new(View::new(Arc::clone(old.database()), Arc::clone(&shared.values)));
        shared.publish(Arc::clone(&newer));
        shared.publish_again(Arc::clone(&old));
        assert!(Arc::ptr_eq(&shared.published().unwrap(), &newer));
        drop(shared.withdraw(Absence::Reopening));
        shared.publish_again(Arc::clone(&old));
        assert!(Arc::ptr_eq(&shared.published().unwrap(), &old));
    }
}
