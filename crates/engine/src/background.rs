//! Work that no request waits for: filling and removing indexes, expiring items, rolling over and
//! trimming streams, forgetting expired tokens, reclaiming the space of deleted tables, splitting
//! partitions.
//!
//! The catalogue says what has to be done, so the work survives a restart. Only requests to reclaim
//! space are kept in memory: they are hints, and a store finds the space by itself in time.
//!
//! If several engines share a store, only one does each kind of work at a time ([`crate::lease`]).
//! Each round reads the stored definitions first, because another engine may have changed them.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select_all;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use zenobe_store::KeyRange;

use crate::Engine;
use crate::error::{Error, Result};
use crate::gauges::{ExpiredItems, StreamReturns};
use crate::history;
use crate::indexes;
use crate::lease::Lease;
use crate::pace::RequestPace;
use crate::streams;
use crate::throughput;
use crate::ttl;

/// How long to wait after a failure before retrying.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How often to look for work without being woken.
const IDLE_DELAY: Duration = Duration::from_secs(30);
/// How often to check whether other engines have changed definitions.
const FOLLOW_DELAY: Duration = Duration::from_millis(500);
/// How often to look for expired items, while a table has time to live enabled.
const EXPIRY_DELAY: Duration = Duration::from_secs(1);
/// How often to look for history that is too old.
const HISTORY_DELAY: Duration = Duration::from_secs(5 * 60);
/// After a search that found nothing, the pause is at least this many times as long as the search
/// took: stepping over the tombstones of many deletions must not take over the thread.
const FRUITLESS_REST_FACTOR: u32 = 20;

/// The kinds of work. They run side by side: filling an index may take hours, and nothing else
/// waits for it.
#[derive(Debug, Clone, Copy)]
enum Work {
    Indexes,
    ExpiryIndexes,
    Expiry,
    Streams,
    Tokens,
    Garbage,
    Space,
    Time,
    /// Following other engines' changes of definitions, on a shared store.
    Catalog,
    /// Renewing leases, on a shared store.
    Leases,
    Jobs,
    /// Trimming history, and removing expired backups.
    History,
    /// Splitting partitions.
    Throughput,
}

impl Work {
    const ALL: [Work; 13] = [
        Work::Indexes,
        Work::ExpiryIndexes,
        Work::Expiry,
        Work::Streams,
        Work::Tokens,
        Work::Garbage,
        Work::Space,
        Work::Time,
        Work::Catalog,
        Work::Leases,
        Work::Jobs,
        Work::History,
        Work::Throughput,
    ];

    /// The lease for the work, if only one node may do it at a time.
    fn lease(self) -> Option<&'static str> {
        match self {
            Work::Indexes => Some("indexes"),
            Work::ExpiryIndexes => Some("expiry-indexes"),
            Work::Expiry => Some("expiry"),
            Work::Streams => Some("streams"),
            Work::Tokens => Some(TOKENS_LEASE),
            Work::Garbage => Some("garbage"),
            Work::History => Some("history"),
            // Jobs take a lease each, and changing partition maps has its own. The rest every node does for itself.
            Work::Space
            | Work::Time
            | Work::Catalog
            | Work::Leases
            | Work::Jobs
            | Work::Throughput => None,
        }
    }

    /// Whether it deletes what has expired. A node whose clock has jumped must not do that.
    fn goes_by_the_clock(self) -> bool {
        matches!(self, Work::Expiry | Work::Streams | Work::Tokens | Work::History)
    }
}

/// The lease for forgetting tokens. Transactions also forget some.
pub(crate) const TOKENS_LEASE: &str = "tokens";

#[derive(Default)]
pub(crate) struct Background {
    /// One for each kind of work, in the order of [`Work::ALL`].
    wakes: [Notify; Work::ALL.len()],
    to_reclaim: Mutex<Vec<KeyRange>>,
    pub(crate) expired_items: AtomicU64,
    pub(crate) expired_by_table: ExpiredItems,
    pub(crate) returned_records: StreamReturns,
    panics: AtomicU64,
    pub(crate) pace: RequestPace,
}

impl Background {
    /// Wakes the background workers.
    pub(crate) fn wake(&self) {
        self.wakes.iter().for_each(Notify::notify_one);
    }

    pub(crate) fn reclaim(&self, ranges: Vec<KeyRange>) {
        self.reclaim_later(ranges);
        self.wake();
    }

    /// Like [`Background::reclaim`], for callers in the background, which get to it without being
    /// woken.
    pub(crate) fn reclaim_later(&self, ranges: Vec<KeyRange>) {
        self.to_reclaim.lock().extend(ranges);
    }
}

impl Engine {
    /// Runs background work as it comes up, until the store is closed. Spawn it once per engine.
    pub async fn run_background(self: Arc<Self>) {
        let workers = Work::ALL.map(|work| Box::pin(self.keep_working(work)));
        // The first worker that ends has found the store closed, so the others can end as well.
        select_all(workers).await;
    }

    /// The kinds of work of this engine. Without other engines on the store, there is nothing to
    /// follow.
    fn works(&self) -> impl Iterator<Item = Work> {
        Work::ALL.into_iter().filter(|work| self.is_needed(*work))
    }

    fn is_needed(&self, work: Work) -> bool {
        self.is_shared() || !matches!(work, Work::Catalog | Work::Leases)
    }

    /// Makes the background workers look for work, for example because the clock was set.
    pub fn wake_background(&self) {
        self.background.wake();
    }

    /// How often background work has panicked. Each panic is a defect, or damage that nobody
    /// foresaw.
    pub fn background_panics(&self) -> u64 {
        self.background.panics.load(Ordering::Relaxed)
    }

    /// Runs one kind of work, round by round. A round that panics counts as failed: its writes are
    /// atomic, so each happened completely or not at all.
    async fn keep_working(&self, work: Work) {
        loop {
            match AssertUnwindSafe(self.work_once(work)).catch_unwind().await {
                Ok(Ok(rest)) => {
                    // After a wake-up or a timeout, the next step is the same: to look.
                    let _ = timeout(rest, self.background.wakes[work as usize].notified()).await;
                    continue;
                }
                Ok(Err(Error::Store(zenobe_store::Error::Closed))) => return,
                Ok(Err(error @ Error::LeaseLost { .. })) => {
                    tracing::info!(?work, %error, "another node took over background work");
                }
                // One kind of work suffices to report it.
                Ok(Err(error @ Error::Unavailable { .. })) if !matches!(work, Work::Catalog) => {
                    tracing::debug!(?work, %error, "background work waits for the store");
                }
                Ok(Err(error)) => {
                    tracing::error!(?work, %error, "background work failed; retrying");
                }
                Err(panic) => {
                    self.background.panics.fetch_add(1, Ordering::Relaxed);
                    let panic = panic_message(&*panic);
                    tracing::error!(?work, panic, "background work panicked; retrying");
                }
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    /// Does the pending work of one kind. Returns how long to rest unless woken.
    async fn work_once(&self, work: Work) -> Result<Duration> {
        if !self.is_needed(work) {
            // Sharing the store wakes this work.
            return Ok(IDLE_DELAY);
        }
        let Some(lease) = self.lease_of(work).await? else { return Ok(self.lease_interval()) };
        if self.catalog.follow(&*self.store).await? {
            self.background.wake();
        }
        match work {
            Work::Indexes => {
                indexes::backfill::finish_pending(self, &lease).await?;
                return Ok(self.status_delay.next_look().unwrap_or(IDLE_DELAY));
            }
            Work::ExpiryIndexes => ttl::expiry_backfill::finish_pending(self, &lease).await?,
            Work::Expiry => return self.expire_items_and_rest(&lease).await,
            Work::Streams => {
                streams::maintain(self, &lease).await?;
                return Ok(streams::rest(self, IDLE_DELAY));
            }
            Work::Tokens => self.forget_all_expired_tokens(&lease).await?,
            Work::Garbage => self.collect_garbage(&lease).await?,
            Work::Space => self.reclaim_space().await?,
            Work::Time => self.remember_time().await?,
            Work::Catalog => return Ok(FOLLOW_DELAY),
            Work::Leases => {
                self.renew_leases().await?;
                return Ok(self.lease_interval());
            }
            Work::History => {
                history::trim_all(self, &lease).await?;
                self.forget_expired_backups(&lease).await?;
                return Ok(HISTORY_DELAY);
            }
            Work::Throughput => return throughput::maintain(self).await,
            Work::Jobs => self.run_jobs(&self.background.wakes[work as usize]).await?,
        }
        Ok(IDLE_DELAY)
    }

    /// The right to do some work now, if this node has it.
    async fn lease_of(&self, work: Work) -> Result<Option<Lease>> {
        let Some(name) = work.lease() else { return Ok(Some(Lease::default())) };
        if self.is_shared() && work.goes_by_the_clock() && self.trusted_clock.read().is_paused {
            // Other nodes may have the right time.
            self.release_leases(name).await?;
            return Ok(None);
        }
        self.lease(name).await
    }

    async fn expire_items_and_rest(&self, lease: &Lease) -> Result<Duration> {
        let start = Instant::now();
        let expired = self.expire_items(lease).await?;
        Ok(match expired {
            _ if !self.has_time_to_live() => IDLE_DELAY,
            0 => (start.elapsed() * FRUITLESS_REST_FACTOR).clamp(EXPIRY_DELAY, IDLE_DELAY),
            _ => EXPIRY_DELAY,
        })
    }

    /// Does the pending work that this node may do. If one kind of work fails, the others still
    /// run.
    pub async fn run_pending_work(&self) -> Result<()> {
        let mut outcome = Ok(());
        for work in self.works() {
            outcome = outcome.and(self.work_once(work).await.map(drop));
        }
        outcome
    }

    async fn forget_all_expired_tokens(&self, lease: &Lease) -> Result<()> {
        while self.forget_expired_tokens(lease).await? {}
        Ok(())
    }

    async fn reclaim_space(&self) -> Result<()> {
        let ranges = std::mem::take(&mut *self.background.to_reclaim.lock());
        for range in ranges {
            self.store.reclaim(range).await?;
        }
        Ok(())
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
