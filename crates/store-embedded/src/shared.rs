//! What the store's handle and its threads share.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use parking_lot::{Condvar, Mutex};
use zenobe_store::{Error, KeyRange, Result, Statistics, Value};

use crate::database::Database;
use crate::directory::{self, Directory};
use crate::key_locks::KeyLocks;
use crate::known_counters::KnownCounters;
use crate::options::Options;
use crate::overlay::Overlay;
use crate::queue::Queue;
use crate::reclaim::Reclaimer;
use crate::view::View;

/// How long a reader waits for a database that is being reopened.
const REOPENING_WAIT: Duration = Duration::from_secs(5);

pub(crate) struct Shared {
    pub options: Options,
    pub locks: KeyLocks,
    pub overlay: Overlay,
    pub known_counters: KnownCounters,
    pub queue: Queue,
    pub commit_groups: AtomicU64,
    pub commit_batches: AtomicU64,
    reclaimer: Reclaimer,
    /// The latest durable state; absent while the database is closed, for the reason beside it.
    published: ArcSwapOption<View>,
    absence: Mutex<Absence>,
    absence_changed: Condvar,
}

#[derive(Debug, Clone)]
pub(crate) enum Absence {
    Reopening,
    CannotReopen { detail: String },
    Closed,
}

impl Shared {
    pub fn open(path: &Path, options: Options) -> Result<Shared> {
        let directory = Arc::new(Directory::open(path)?);
        let database = Arc::new(Database::open(directory, &options)?);
        Ok(Shared {
            locks: KeyLocks::new(),
            overlay: Overlay::new(),
            known_counters: KnownCounters::new(),
            queue: Queue::new(&options),
            commit_groups: AtomicU64::new(0),
            commit_batches: AtomicU64::new(0),
            reclaimer: Reclaimer::default(),
            published: ArcSwapOption::from_pointee(View::new(database)),
            absence: Mutex::new(Absence::Reopening),
            absence_changed: Condvar::new(),
            options,
        })
    }

    /// The latest durable state.
    pub fn view(&self) -> Result<Arc<View>> {
        if let Some(view) = self.published.load_full() {
            return Ok(view);
        }
        let mut absence = self.absence.lock();
        loop {
            // Looked at again under the lock, so that a change cannot be missed.
            if let Some(view) = self.published.load_full() {
                return Ok(view);
            }
            let detail = match &*absence {
                Absence::Closed => return Err(Error::Closed),
                Absence::CannotReopen { detail } => detail.clone(),
                Absence::Reopening => {
                    let wait = self.absence_changed.wait_for(&mut absence, REOPENING_WAIT);
                    if !wait.timed_out() {
                        continue;
                    }
                    "the database is being reopened after a failure".to_owned()
                }
            };
            return Err(Error::Io { detail });
        }
    }

    /// Reads one key of the latest durable state, without counting a reference to that state.
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        match &*self.published.load() {
            Some(view) => view.read(key),
            None => self.view()?.read(key),
        }
    }

    pub fn publish(&self, view: Arc<View>) {
        self.published.store(Some(view));
    }

    /// Publishes again after [`Shared::withdraw`], and wakes the readers that wait.
    pub fn publish_again(&self, view: Arc<View>) {
        let _absence = self.absence.lock();
        self.published.store(Some(view));
        self.absence_changed.notify_all();
    }

    /// Takes the published state away. Readers are told why.
    pub fn withdraw(&self, reason: Absence) -> Option<Arc<View>> {
        let mut absence = self.absence.lock();
        *absence = reason;
        self.absence_changed.notify_all();
        self.published.swap(None)
    }

    /// Ends reading and background work, once the committer has ended.
    pub fn unpublish(&self) {
        if let Some(view) = self.withdraw(Absence::Closed) {
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

    pub fn reclaim(&self, range: KeyRange) -> Result<()> {
        self.reclaimer.request(Arc::clone(self.view()?.database()), range)
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
