//! Work that no request waits for: filling and removing indexes, expiring items, rolling over and trimming
//! streams, forgetting expired tokens, giving back the space of deleted tables.
//!
//! What has to be done is read from the catalogue, so it survives a restart. Only requests to reclaim
//! space are kept in memory: they are hints, and a store finds the space by itself in time.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use zenobe_store::KeyRange;

use crate::Engine;
use crate::error::{Error, Result};
use crate::indexes;
use crate::streams;
use crate::ttl;

/// How long to wait after a failure before the next attempt.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How often to look for work that nobody announced.
const IDLE_DELAY: Duration = Duration::from_secs(30);
/// How often to look for items that have expired, while a table has time to live enabled.
const EXPIRY_DELAY: Duration = Duration::from_secs(1);
/// A search that found nothing is not repeated before this many times as long as it took: stepping over what
/// many deletions have left behind must not become a job of its own.
const FRUITLESS_REST_FACTOR: u32 = 20;

#[derive(Default)]
pub(crate) struct Background {
    wake: Notify,
    to_reclaim: Mutex<Vec<KeyRange>>,
    pub(crate) expired_items: AtomicU64,
}

impl Background {
    /// Tells the background worker that there is work.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    pub(crate) fn reclaim(&self, ranges: Vec<KeyRange>) {
        self.reclaim_later(ranges);
        self.wake();
    }

    /// As [`Background::reclaim`], for background work, which gets to it without being woken.
    pub(crate) fn reclaim_later(&self, ranges: Vec<KeyRange>) {
        self.to_reclaim.lock().extend(ranges);
    }
}

impl Engine {
    /// Does background work as it comes up, until the store is closed. To be spawned once per engine.
    pub async fn run_background(self: Arc<Self>) {
        loop {
            match self.run_pending_work().await {
                Ok(()) => self.idle().await,
                Err(Error::Store(zenobe_store::Error::Closed)) => return,
                Err(error) => {
                    tracing::error!(%error, "background work failed and will be retried");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    /// Makes the background worker look for work, for instance because the clock was set.
    pub fn wake_background(&self) {
        self.background.wake();
    }

    /// Waits until it is time to look for work again. Items expire meanwhile.
    async fn idle(&self) {
        let until = Instant::now() + IDLE_DELAY;
        let mut expiry_delay = EXPIRY_DELAY;
        loop {
            let delay = if self.has_time_to_live() { expiry_delay } else { IDLE_DELAY };
            let start = Instant::now();
            let wake = self.background.wake.notified();
            if timeout_at(until.min(start + delay), wake).await.is_ok() || start >= until {
                return;
            }
            let start = Instant::now();
            expiry_delay = match self.expire_items().await {
                Ok(0) => EXPIRY_DELAY.max(start.elapsed() * FRUITLESS_REST_FACTOR),
                Ok(_) => EXPIRY_DELAY,
                // A failure is logged, and met again by the work that follows.
                Err(_) => return,
            };
        }
    }

    /// Does the work that is pending now. The failure of one kind of work doesn't keep the others waiting.
    pub async fn run_pending_work(&self) -> Result<()> {
        let indexes_at_rest = indexes::backfill::finish_pending(self).await;
        let expiries_indexed = ttl::backfill::finish_pending(self).await;
        let items_expired = self.expire_items().await;
        let streams_maintained = streams::maintain(self).await;
        let tokens_forgotten = self.forget_all_expired_tokens().await;
        let space_reclaimed = self.reclaim_space().await;
        let items_settled = indexes_at_rest.and(expiries_indexed).and(items_expired.map(|_| ()));
        items_settled.and(streams_maintained).and(tokens_forgotten).and(space_reclaimed)
    }

    async fn forget_all_expired_tokens(&self) -> Result<()> {
        while self.forget_expired_tokens().await? {}
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

/// Lets other tasks run: a store that never waits would keep them out for a whole walk.
pub(crate) async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
