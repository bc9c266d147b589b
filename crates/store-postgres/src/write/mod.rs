//! Writes: read, decide, join a group.
//!
//! A write is first decided on what the node has in memory: cached values and the changes in flight. In the transaction that commits
//! it, the store confirms every revision that the decision saw, under locks. If one has changed, nothing is written, and the write
//! reads its keys and decides again.
//!
//! Each write decides in its own task, so no decision blocks another.

mod cache;
mod commit;
mod effects;
mod group;
mod marked_counters;
mod queue;
mod resolve;
mod trust;

use std::sync::Arc;
use std::time::Duration;

use zenobe_store::{Batch, CommitOutcome, Decide, Decision, Error, Key, Result, WriteSet};

pub use queue::Queue;

use crate::gather::read_keys;
use crate::pool::Pool;
use crate::rows::Read;
use effects::segments;
use group::GroupResult;
use queue::{Joined, Lookup, Manner, SeenValues, declared};

/// How often a write is decided before it fails with a conflict.
const TRIES_MAX: u32 = 60;
/// Attempts without a delay. Later ones wait for a short random time.
const TRIES_AT_ONCE: u32 = 4;

/// Runs one write.
pub async fn write(
    pool: &Arc<Pool>,
    queue: &Arc<Queue>,
    set: WriteSet<'_>,
    decide: &mut Decide<'_>,
) -> Result<CommitOutcome> {
    let patience = pool.patience();
    let mut fresh: Option<Vec<Read>> = None;
    let mut is_alone = false;
    for tried in 0..TRIES_MAX {
        pause(pool, tried).await;
        let view = match queue.look_up(set, fresh.as_deref())? {
            Lookup::Known(view) => view,
            Lookup::Missing => {
                let reads = read_declared(pool, queue, set).await?;
                fresh = Some(reads);
                continue;
            }
            Lookup::Wait(group) => {
                queue.end_of(group).await;
                continue;
            }
        };
        let Some(batch) = batch(decide(&view.values)) else {
            if fresh.as_deref().is_some_and(|reads| view.is_one_state(reads)) {
                return Ok(CommitOutcome::default());
            }
            match confirm_abort(pool, queue, set, view, decide).await? {
                None => return Ok(CommitOutcome::default()),
                Some(reads) => fresh = Some(reads),
            }
            continue;
        };
        let manner = Manner { is_alone, is_remembered: fresh.is_none() };
        let answered = match queue.join(set, &view, segments(batch)?, manner)? {
            Joined::Waiting(answered) => answered,
            Joined::Changed => continue,
        };
        // What was read before is stale now.
        fresh = None;
        match answered.await.unwrap_or(GroupResult::Failed(Error::Closed)) {
            GroupResult::Committed(sequences) => {
                return Ok(CommitOutcome { sequences, stamp: None });
            }
            GroupResult::Again => {}
            GroupResult::Lost(detail) => patience.bear_loss(detail)?,
            GroupResult::Alone => is_alone = true,
            GroupResult::Failed(error) => return Err(error),
        }
    }
    Err(Error::Conflict)
}

/// The batch to commit, if any.
fn batch(decision: Decision) -> Option<Batch> {
    match decision {
        Decision::Commit(batch) if !batch.is_empty() => Some(batch),
        Decision::Commit(_) | Decision::Abort => None,
    }
}

/// Confirms a decision to abort, which must rest on one state of the store. It waits for the groups in flight that the decision saw,
/// reads all keys at once, and decides again. If the decision is now to commit, returns what was read.
async fn confirm_abort(
    pool: &Arc<Pool>,
    queue: &Queue,
    set: WriteSet<'_>,
    view: SeenValues,
    decide: &mut Decide<'_>,
) -> Result<Option<Vec<Read>>> {
    view.settle(queue).await;
    if view.values.is_empty() {
        return Ok(None);
    }
    queue.forget(set);
    let reads = read_declared(pool, queue, set).await?;
    let decision = decide(&SeenValues::of(&reads).values);
    Ok(batch(decision).map(|_| reads))
}

/// Reads the declared keys, and remembers them.
async fn read_declared(pool: &Arc<Pool>, queue: &Queue, set: WriteSet<'_>) -> Result<Vec<Read>> {
    let keys: Vec<Key> = declared(set).cloned().collect();
    let reads = read_keys(pool, &keys).await?;
    queue.remember(set, &reads);
    Ok(reads)
}

async fn pause(pool: &Pool, tried: u32) {
    if tried >= TRIES_AT_ONCE {
        let longest_ms = u64::from(tried).min(20) * 2;
        let pause = Duration::from_millis(rand::random_range(0..=longest_ms));
        let sleep = async move {
            tokio::time::sleep(pause).await;
            Ok(())
        };
        let _slept = pool.on_runtime(sleep).await;
    }
}
