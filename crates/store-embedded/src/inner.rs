//! What the store's handle and its threads share.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use zenobe_store::{KeyRange, Result, Statistics, Store};

use crate::change_tap::ChangeTap;
use crate::checked_counters::CheckedCounters;
use crate::commit::{LeaderLock, LeaderState, Queue};
use crate::dead_runs::DeadRuns;
use crate::directory::{self, Directory};
use crate::in_flight::InFlight;
use crate::key_locks::KeyLocks;
use crate::log_tap::LogTap;
use crate::options::Options;
use crate::published::{Absence, Published};
use crate::reclaim::Reclaimer;
use crate::rocks_database::RocksDatabase;
use crate::snapshot::Snapshot;
use crate::value_cache::ValueCache;
use crate::write_ahead_log::AcceptDamage;

pub(crate) struct Inner {
    pub options: Options,
    pub locks: KeyLocks,
    pub in_flight: InFlight,
    pub checked_counters: CheckedCounters,
    pub queue: Queue,
    /// Empty until the commit thread starts, while it recovers the store, and after its end.
    pub leader_lock: LeaderLock<Option<LeaderState>>,
    pub published: Published,
    pub value_cache: Arc<ValueCache>,
    pub commit_groups: AtomicU64,
    pub committed_writes: AtomicU64,
    pub dead_runs: Arc<DeadRuns>,
    pub change_tap: ChangeTap,
    pub log_tap: LogTap,
    /// The store that has taken over, once this one has been handed over.
    pub successor: OnceLock<Arc<dyn Store>>,
    /// The last state of a store that has been handed over, until it is closed.
    last_snapshot: Mutex<Option<Arc<Snapshot>>>,
    reclaimer: Arc<Reclaimer>,
}

impl Inner {
    pub fn open(path: &Path, options: Options) -> Result<Inner> {
        let directory = Arc::new(Directory::open(path)?);
        let accept_damage = match options.accept_log_damage {
            true => AcceptDamage::Yes,
            false => AcceptDamage::No,
        };
        let database = Arc::new(RocksDatabase::open(directory, &options, accept_damage)?);
        let value_cache = ValueCache::new(options.value_cache_bytes());
        let reclaimer = Arc::new(Reclaimer::default());
        Ok(Inner {
            locks: KeyLocks::new(),
            in_flight: InFlight::new(),
            checked_counters: CheckedCounters::new(),
            queue: Queue::new(&options),
            leader_lock: LeaderLock::default(),
            published: Published::new(Snapshot::new(database, Arc::clone(&value_cache))),
            value_cache,
            commit_groups: AtomicU64::new(0),
            committed_writes: AtomicU64::new(0),
            change_tap: ChangeTap::default(),
            log_tap: LogTap::default(),
            successor: OnceLock::new(),
            last_snapshot: Mutex::default(),
            dead_runs: Arc::new(DeadRuns::new(Arc::clone(&reclaimer))),
            reclaimer,
            options,
        })
    }

    /// Has another store answer all reads and writes from now on, those that wait too. Writes must be paused, and nothing
    /// in flight.
    pub fn hand_over(&self, successor: Arc<dyn Store>) {
        // Set before anything is refused, so that a refused read or write finds it.
        if self.successor.set(successor).is_ok() {
            // Before writes continue: no read that starts after one of them may miss it.
            *self.last_snapshot.lock() = self.published.withdraw(Absence::Closed);
            self.queue.close();
            self.log_tap.end();
        }
    }

    /// Ends reading and background work, once the commit thread has ended.
    pub fn finish(&self) {
        let published = self.published.withdraw(Absence::Closed);
        self.log_tap.end();
        let Some(snapshot) = published.or_else(|| self.last_snapshot.lock().take()) else { return };
        self.dead_runs.stop();
        // The next start then has no log to replay, and no tail of it to doubt. A log that failed is left as it is.
        if self.queue.failure().is_none()
            && let Err(error) = snapshot.database().flush()
        {
            tracing::warn!(
                "the memtables could not be flushed; the next start replays the log: {error}"
            );
        }
        self.reclaimer.stop(|| snapshot.database().rocks().cancel_all_background_work(false));
    }

    /// Ends the background work in a database that is about to be closed, and that it would keep open.
    pub fn cancel_background_work(&self) {
        self.dead_runs.stop();
        if let Some(snapshot) = self.published.get() {
            self.reclaimer.stop(|| snapshot.database().rocks().cancel_all_background_work(false));
        }
    }

    #[cfg(test)]
    pub fn is_reclaiming(&self) -> bool {
        self.reclaimer.is_working()
    }

    pub async fn reclaim(&self, range: KeyRange) -> Result<()> {
        self.reclaimer.request(Arc::clone(self.published.wait().await?.database()), range)
    }

    pub fn statistics(&self) -> Statistics {
        let snapshot = self.published.get();
        let path = snapshot.map(|snapshot| snapshot.database().directory().rocksdb_path());
        Statistics {
            size_bytes: path.map_or(0, |path| directory::size_bytes(&path)),
            commit_groups: self.commit_groups.load(Ordering::Relaxed),
            committed_writes: self.committed_writes.load(Ordering::Relaxed),
            write_failure: self.queue.failure(),
        }
    }
}
