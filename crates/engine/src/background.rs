//! Work that no request waits for: filling and removing indexes, forgetting expired tokens, giving back
//! the space of deleted tables.
//!
//! What has to be done is read from the catalogue, so it survives a restart. Only requests to reclaim
//! space are kept in memory: they are hints, and a store finds the space by itself in time.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use zenobe_store::KeyRange;

use crate::Engine;
use crate::error::{Error, Result};
use crate::indexes;

/// How long to wait after a failure before the next attempt.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// How often to look for work that nobody announced.
const IDLE_DELAY: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(crate) struct Background {
    wake: Notify,
    to_reclaim: Mutex<Vec<KeyRange>>,
}

impl Background {
    /// Tells the background worker that there is work.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    pub(crate) fn reclaim(&self, ranges: Vec<KeyRange>) {
        self.to_reclaim.lock().extend(ranges);
        self.wake();
    }
}

impl Engine {
    /// Does background work as it comes up, until the store is closed. To be spawned once per engine.
    pub async fn run_background(self: Arc<Self>) {
        loop {
            match self.run_pending_work().await {
                Ok(()) => {
                    let wake = self.background.wake.notified();
                    // Whether it was woken or the time is up makes no difference.
                    let _ = tokio::time::timeout(IDLE_DELAY, wake).await;
                }
                Err(Error::Store(zenobe_store::Error::Closed)) => return,
                Err(error) => {
                    tracing::error!(%error, "background work failed and will be retried");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    /// Does the work that is pending now. The failure of one kind of work doesn't keep the others waiting.
    pub async fn run_pending_work(&self) -> Result<()> {
        let indexes_at_rest = indexes::backfill::finish_pending(self).await;
        let tokens_forgotten = self.forget_all_expired_tokens().await;
        let space_reclaimed = self.reclaim_space().await;
        indexes_at_rest.and(tokens_forgotten).and(space_reclaimed)
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
