//! The work of each minute: adds up what was consumed, runs scheduled actions and policies.
//!
//! On a shared store every node stores its own consumption. The holder of the lease does the rest,
//! after the others have had time to store theirs.

mod round;

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use zenobe_engine::error::{Error, Result};
use zenobe_engine::lease::Lease;
use zenobe_engine::schema::Namespace;
use zenobe_engine::service_rows::RowOwner;

pub(crate) use self::round::Occasion;
use self::round::Round;
use crate::activity::RETENTION_MS;
use crate::resource::TargetName;
use crate::usage::{MINUTE_MS, MinuteUsage, StoredUsage, UsageSampler};
use crate::{Scaling, keys};

/// The lease for scaling.
const LEASE: &str = "scaling";
/// How long the other nodes of a shared store have to store what they consumed in a minute.
const NODES_GRACE_MS: u64 = 15 * 1_000;
/// After a longer pause, only this many of the last minutes are processed.
const MINUTES_MAX: u64 = 60;
/// How long rows of consumption are kept.
const USAGE_MINUTES_MAX: u64 = 30;
/// How often to check the clock, which may be moved.
const LOOK_DELAY: Duration = Duration::from_secs(5);
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Which minutes have been processed.
pub(crate) struct Minutes {
    sampler: UsageSampler,
    /// Consumption that is not stored or used yet.
    pending: VecDeque<MinuteUsage>,
    /// All minutes before this one are done.
    next: u64,
}

impl Minutes {
    pub(crate) fn since(now_ms: u64) -> Minutes {
        let sampler = UsageSampler::since(now_ms);
        Minutes { sampler, pending: VecDeque::new(), next: now_ms / MINUTE_MS }
    }
}

impl Scaling {
    /// Does the work of each minute, until the store is closed. Spawn it once.
    pub async fn run(self: Arc<Self>) {
        loop {
            let rest = match AssertUnwindSafe(self.run_due()).catch_unwind().await {
                Ok(Ok(())) => self.until_next_minute(),
                Ok(Err(Error::Store(zenobe_store::Error::Closed))) => return,
                Ok(Err(error @ Error::LeaseLost { .. })) => {
                    tracing::info!(%error, "another node took over auto scaling");
                    RETRY_DELAY
                }
                Ok(Err(error @ Error::Unavailable { .. })) => {
                    tracing::debug!(%error, "auto scaling waits for the store");
                    RETRY_DELAY
                }
                Ok(Err(error)) => {
                    tracing::error!(%error, "auto scaling failed; retrying");
                    RETRY_DELAY
                }
                Err(_) => {
                    tracing::error!("auto scaling panicked; retrying");
                    RETRY_DELAY
                }
            };
            tokio::time::sleep(rest).await;
        }
    }

    fn until_next_minute(&self) -> Duration {
        let into_minute_ms = self.now_ms() % MINUTE_MS;
        Duration::from_millis(MINUTE_MS - into_minute_ms).min(LOOK_DELAY)
    }

    /// Processes the minutes that have ended, if any. A caller that moves a driven clock awaits this
    /// to see the effects.
    pub async fn run_due(&self) -> Result<()> {
        let mut minutes = self.minutes.lock().await;
        let now_ms = self.now_ms();
        let collected = minutes.sampler.collect(&self.engine, now_ms, MINUTES_MAX);
        minutes.pending.extend(collected);
        let surplus = minutes.pending.len().saturating_sub(MINUTES_MAX as usize);
        minutes.pending.drain(..surplus);
        let is_shared = self.engine.is_shared();
        if is_shared {
            self.store_usage(&mut minutes.pending).await?;
        }
        let grace_ms = if is_shared { NODES_GRACE_MS } else { 0 };
        let end = now_ms.saturating_sub(grace_ms) / MINUTE_MS;
        if end == minutes.next {
            return Ok(());
        }
        if let Some(lease) = self.engine.lease(LEASE).await? {
            let first = minutes.next.max(end.saturating_sub(MINUTES_MAX));
            for namespace in self.engine.service_namespaces(RowOwner::Scaling).await? {
                for minute in first..end {
                    let usage = minutes.pending.iter().find(|usage| usage.minute == minute);
                    let at_ms = if minute + 1 == end { now_ms } else { (minute + 1) * MINUTE_MS };
                    self.work_minute(&namespace, minute, at_ms, usage, &lease).await?;
                }
                self.trim(&namespace, end, now_ms, is_shared, &lease).await?;
            }
        }
        // Even if the clock was set back: no minute is processed twice.
        minutes.next = end;
        minutes.pending.clear();
        Ok(())
    }

    /// Stores what this node's targets with policies consumed.
    async fn store_usage(&self, pending: &mut VecDeque<MinuteUsage>) -> Result<()> {
        if pending.is_empty() {
            return Ok(());
        }
        for namespace in self.engine.service_namespaces(RowOwner::Scaling).await? {
            let targets = self.all_targets(&namespace).await?;
            let tracked: Vec<&TargetName> = targets
                .iter()
                .filter(|(_, target)| target.policy.is_some())
                .map(|(name, _)| name)
                .collect();
            let rows = pending.iter().map(|usage| {
                let mut stored = StoredUsage::default();
                for name in &tracked {
                    stored.add(name, usage.of(&name.table_name(&namespace), name));
                }
                (keys::usage(usage.minute, &self.node), stored)
            });
            let rows = rows.filter(|(_, stored)| !stored.is_empty());
            let rows: Vec<_> = rows.map(|(key, stored)| (key, Some(stored.encode()))).collect();
            if !rows.is_empty() {
                let (owner, lease) = (RowOwner::Scaling, Lease::default());
                self.engine.write_service_rows(owner, &namespace, &lease, rows).await?;
            }
        }
        pending.clear();
        Ok(())
    }

    async fn read_usage(&self, namespace: &Namespace, minute: u64) -> Result<StoredUsage> {
        let mut stored = StoredUsage::default();
        let range = keys::usage_of(minute);
        let rows =
            self.engine.service_rows(RowOwner::Scaling, namespace, range, usize::MAX).await?;
        for row in rows {
            stored.add_row(row.fields)?;
        }
        Ok(stored)
    }

    async fn work_minute(
        &self,
        namespace: &Arc<Namespace>,
        minute: u64,
        at_ms: u64,
        usage: Option<&MinuteUsage>,
        lease: &Lease,
    ) -> Result<()> {
        let stored = match self.engine.is_shared() {
            true => Some(self.read_usage(namespace, minute).await?),
            false => None,
        };
        let mut outcome = Ok(());
        let mut rows = Vec::new();
        for (name, target) in self.all_targets(namespace).await? {
            if target.policy.is_none() && target.actions.is_empty() {
                continue;
            }
            let halves = match &stored {
                Some(stored) => stored.of(&name),
                None => usage.map(|usage| usage.of(&name.table_name(namespace), &name)),
            };
            let round = Round { scaling: self, namespace, name: &name, minute, at_ms, lease };
            match round.run(target, halves).await {
                Ok(changed) => rows.extend(changed),
                Err(error @ Error::LeaseLost { .. }) => return Err(error),
                // One target's failure must not stop the others.
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        if !rows.is_empty() {
            self.engine.write_service_rows(RowOwner::Scaling, namespace, lease, rows).await?;
        }
        outcome
    }

    /// Deletes old usage rows every half hour, and old activities every hour.
    async fn trim(
        &self,
        namespace: &Namespace,
        minute: u64,
        now_ms: u64,
        is_shared: bool,
        lease: &Lease,
    ) -> Result<()> {
        // A clock that has jumped is not a reason to delete anything.
        if self.engine.clock_status().is_paused {
            return Ok(());
        }
        let owner = RowOwner::Scaling;
        if is_shared && minute.is_multiple_of(USAGE_MINUTES_MAX) {
            let range = keys::usage_before(minute.saturating_sub(USAGE_MINUTES_MAX));
            self.engine.delete_service_rows(owner, namespace, lease, range).await?;
        }
        if minute.is_multiple_of(60) {
            let range = keys::activities_before(now_ms.saturating_sub(RETENTION_MS));
            self.engine.delete_service_rows(owner, namespace, lease, range).await?;
        }
        Ok(())
    }
}
