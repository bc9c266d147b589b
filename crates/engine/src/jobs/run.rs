//! Runs the jobs that have not ended.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use zenobe_store::{Direction, KeyRange};

use super::{Job, JobHandler, JobRow, key_of};
use crate::Engine;
use crate::error::{Error, Result};
use crate::keyspace;

/// How many jobs of a kind a node runs at a time; more wait. Those that wait to be tried again don't count.
const RUNNING_MAX: usize = 4;
/// How many jobs a node has, with those that wait to be tried again.
const TAKEN_MAX: usize = 64;
const RETRY_DELAY_FIRST: Duration = Duration::from_secs(1);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(60);
/// How often to look for jobs of other nodes while some run here.
const LOOK_DELAY: Duration = Duration::from_secs(30);

impl Engine {
    /// Runs jobs until none is left that this node may run. `wake` announces new ones.
    pub(crate) async fn run_jobs(&self, wake: &Notify) -> Result<()> {
        let mut running = FuturesUnordered::new();
        let mut known = HashSet::new();
        let mut slots = Slots::default();
        loop {
            for row in self.pending_jobs().await? {
                if running.len() >= TAKEN_MAX {
                    break;
                }
                let Some(handler) = self.jobs.handler(&row.kind) else { continue };
                if known.contains(&row.id) {
                    continue;
                }
                let Some(slot) = slots.take(&row.kind, wake) else { continue };
                if let Some(job) = self.take_job(row).await? {
                    known.insert(job.row().id.clone());
                    running.push(async move {
                        let id = job.row().id.clone();
                        let _shown = self.jobs.show(job.row());
                        (id, self.run_job(&*handler, job, slot).await)
                    });
                }
            }
            if running.is_empty() {
                return Ok(());
            }
            let woken = Box::pin(timeout(LOOK_DELAY, wake.notified()));
            if let Either::Left((Some((id, outcome)), _)) = select(running.next(), woken).await {
                known.remove(&id);
                match outcome {
                    Err(error @ Error::Store(zenobe_store::Error::Closed)) => return Err(error),
                    // The next look takes it up again. The other jobs continue.
                    Err(error) => tracing::warn!(id, %error, "a job was interrupted"),
                    Ok(()) => {}
                }
            }
        }
    }

    /// The jobs that have not ended, oldest first. Those that ended long ago are forgotten on the
    /// way.
    async fn pending_jobs(&self) -> Result<Vec<JobRow>> {
        let range = KeyRange::prefix(keyspace::all_jobs_prefix());
        let rows = self.job_rows(range, Direction::Forward, usize::MAX).await?;
        let (ended, mut pending): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.status.is_final());
        if let Some(lease) = self.lease("jobs").await? {
            self.forget_old_jobs(&ended, &lease).await?;
        }
        pending.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(pending)
    }

    /// The job with its lease, unless another node has it.
    async fn take_job(&self, row: JobRow) -> Result<Option<Job>> {
        let lease = self.lease(&lease_name(&row)).await?;
        let Some(lease) = lease else { return Ok(None) };
        // It may have ended between the look and the lease.
        let Some(row) = self.job(&row.namespace, &row.kind, &row.id).await? else {
            return Ok(None);
        };
        if row.status.is_final() {
            self.release_leases(&lease_name(&row)).await?;
            return Ok(None);
        }
        Ok(Some(Job::new(row, lease)))
    }

    /// Runs a job until it has ended or belongs to another node.
    async fn run_job(
        &self,
        handler: &dyn JobHandler,
        mut job: Job,
        mut slot: Slot<'_>,
    ) -> Result<()> {
        let name = lease_name(job.row());
        let mut delay = RETRY_DELAY_FIRST;
        loop {
            let outcome = AssertUnwindSafe(handler.run(self, &mut job)).catch_unwind().await;
            let outcome = outcome.unwrap_or_else(|_panic| {
                Err(Error::Corrupt { detail: "the job's handler panicked".to_owned() })
            });
            let (kind, id) = (&job.row().kind, &job.row().id);
            match outcome {
                Ok(()) => {
                    tracing::info!(kind, id, status = ?job.row().status, "a job has ended");
                    return self.release_leases(&name).await;
                }
                Err(error @ Error::Store(zenobe_store::Error::Closed)) => return Err(error),
                Err(error @ Error::LeaseLost { .. }) => {
                    tracing::info!(kind, id, %error, "another node took over a job");
                    return self.release_leases(&name).await;
                }
                Err(error) => {
                    let delay = format!("{delay:?}");
                    tracing::warn!(kind, id, %error, delay, "a job failed; retrying");
                }
            }
            slot.leave();
            sleep(delay).await;
            slot.enter().await;
            delay = (delay * 2).min(RETRY_DELAY_MAX);
            let key = key_of(job.row());
            match self.store.get(&key).await? {
                // It has ended after all: the write that said so was uncertain.
                Some(row) if JobRow::decode(&row)?.status.is_final() => {
                    return self.release_leases(&name).await;
                }
                Some(row) => job = Job::new(JobRow::decode(&row)?, job.lease().clone()),
                None => return self.release_leases(&name).await,
            }
        }
    }
}

/// The slots of each kind of job.
#[derive(Default)]
struct Slots(HashMap<String, Arc<Semaphore>>);

impl Slots {
    /// A slot for a job of this kind, if one is free. `wake` is notified when it becomes free for another job.
    fn take<'a>(&mut self, kind: &str, wake: &'a Notify) -> Option<Slot<'a>> {
        let new = || Arc::new(Semaphore::new(RUNNING_MAX));
        let slots = self.0.entry(kind.to_owned()).or_insert_with(new);
        let permit = Arc::clone(slots).try_acquire_owned().ok()?;
        Some(Slot { slots: Arc::clone(slots), permit: Some(permit), wake })
    }
}

/// The place of a job among those that run.
struct Slot<'a> {
    slots: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    wake: &'a Notify,
}

impl Slot<'_> {
    /// Lets another job run.
    fn leave(&mut self) {
        self.permit = None;
        self.wake.notify_one();
    }

    /// Waits until there is a place again.
    async fn enter(&mut self) {
        // Nobody closes the semaphore.
        self.permit = Arc::clone(&self.slots).acquire_owned().await.ok();
    }
}

fn lease_name(row: &JobRow) -> String {
    format!("jobs/{}/{}", row.kind, row.id)
}
