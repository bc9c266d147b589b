//! Runs one trigger: finds its table's streams, keeps a worker on every shard that is ready, and
//! moves on to new shards and streams.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinSet};
use zenobe_engine::command::StreamName;
use zenobe_engine::consumers::{Checkpoint, Mandate, ShardName};
use zenobe_engine::error::Error;

use super::definition::StartingPosition;
use super::plan::plan;
use super::source::{KnownStream, SourceError, StreamDetail};
use super::worker::{ShardWorker, Trigger};
use crate::shutdown;

/// How often to look for new shards and streams, besides when a worker ends.
const REFRESH_DELAY: Duration = Duration::from_secs(2);
/// The same while the table has no stream, or after a failure.
const WAITING_DELAY: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
enum CoordinatorError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Engine(#[from] Error),
}

/// Runs a trigger until it is stopped. Afterwards no worker is left that could still write a
/// checkpoint.
pub async fn run(trigger: Arc<Trigger>, mut stop: shutdown::Listener) {
    let mut workers = ShardWorkers::default();
    tokio::select! {
        () = coordinate(&trigger, &mut workers) => {}
        () = stop.stopped() => {}
    }
    workers.tasks.shutdown().await;
    if let Err(error) = trigger.engine.release_leases(&trigger.work(None)).await {
        // The leases expire by themselves.
        tracing::debug!(%error, "a trigger's leases could not be released");
    }
}

async fn coordinate(trigger: &Arc<Trigger>, workers: &mut ShardWorkers) {
    loop {
        let delay = match refresh(trigger, workers).await {
            Ok(()) if workers.shards.is_empty() => WAITING_DELAY,
            // Another node does the work, or the trigger is about to be stopped.
            Ok(()) | Err(CoordinatorError::Engine(Error::LeaseLost { .. })) => REFRESH_DELAY,
            Err(error) => {
                let name = &trigger.definition.name;
                tracing::warn!(trigger = name, %error, "a trigger's stream cannot be read");
                trigger.metrics.set_problem(Some(error.to_string()));
                WAITING_DELAY
            }
        };
        workers.wait(trigger, delay).await;
    }
}

#[derive(Default)]
struct ShardWorkers {
    tasks: JoinSet<()>,
    shards: HashMap<Id, ShardName>,
}

impl ShardWorkers {
    /// Starts work on a shard, if none is running and this node may.
    async fn start(
        &mut self,
        trigger: &Arc<Trigger>,
        shard: ShardName,
        from: Checkpoint,
    ) -> Result<(), CoordinatorError> {
        if self.shards.values().any(|running| *running == shard) {
            return Ok(());
        }
        let Some(mandate) = trigger.mandate(Some(&shard)).await? else { return Ok(()) };
        // Another node may have made progress before it released the shard.
        let noted = trigger.engine.checkpoint(&trigger.consumer, &shard).await?;
        let worker =
            ShardWorker::new(trigger.clone(), shard.clone(), noted.unwrap_or(from), mandate);
        let task = self.tasks.spawn(worker.run());
        self.shards.insert(task.id(), shard);
        Ok(())
    }

    /// Waits until a worker ends or the time is up.
    async fn wait(&mut self, trigger: &Trigger, delay: Duration) {
        if self.tasks.is_empty() {
            return tokio::time::sleep(delay).await;
        }
        let Ok(Some(ended)) = tokio::time::timeout(delay, self.tasks.join_next_with_id()).await
        else {
            return;
        };
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                let name = &trigger.definition.name;
                tracing::error!(trigger = name, %error, "a trigger's worker failed; restarting it");
                error.id()
            }
        };
        self.shards.remove(&id);
    }
}

async fn refresh(
    trigger: &Arc<Trigger>,
    workers: &mut ShardWorkers,
) -> Result<(), CoordinatorError> {
    // Only one node initialises and cleans up. It must hold the lease before it looks for work.
    let mandate = trigger.mandate(None).await?;
    let streams = trigger.streams.known(&trigger.definition.table).await?;
    let mut checkpoints = checkpoints(trigger, mandate.as_ref()).await?;
    if checkpoints.is_empty() {
        let (Some(newest), Some(mandate)) = (streams.last(), &mandate) else { return Ok(()) };
        let initial = initial_checkpoints(trigger, newest).await?;
        trigger.engine.save_checkpoints(mandate, &initial).await?;
        checkpoints.extend(initial);
    }
    let plan = plan(&streams, &checkpoints);
    for (shard, from) in plan.runnable {
        workers.start(trigger, shard, from).await?;
    }
    if let Some(mandate) = mandate.filter(|_| !plan.forgotten.is_empty()) {
        trigger.engine.forget_checkpoints(&mandate, &plan.forgotten).await?;
    }
    Ok(())
}

/// The checkpoints in streams of the trigger's table. Others are from before the definition
/// changed, and are deleted.
async fn checkpoints(
    trigger: &Trigger,
    mandate: Option<&Mandate>,
) -> Result<BTreeMap<ShardName, Checkpoint>, CoordinatorError> {
    let table = format!(":table/{}/stream/", trigger.definition.table);
    let saved = trigger.engine.checkpoints(&trigger.consumer).await?;
    let (own, foreign): (Vec<_>, Vec<_>) =
        saved.into_iter().partition(|(shard, _)| shard.stream.contains(&table));
    if let Some(mandate) = mandate.filter(|_| !foreign.is_empty()) {
        let shards: Vec<ShardName> = foreign.into_iter().map(|(shard, _)| shard).collect();
        trigger.engine.forget_checkpoints(mandate, &shards).await?;
    }
    Ok(own.into_iter().collect())
}

/// Where a new trigger starts in each shard. Once stored, this never changes, so records that
/// arrive while the trigger is not running are not mistaken for old ones.
async fn initial_checkpoints(
    trigger: &Trigger,
    stream: &KnownStream,
) -> Result<Vec<(ShardName, Checkpoint)>, CoordinatorError> {
    let StreamDetail { shards, .. } = &stream.detail;
    let mut checkpoints = Vec::with_capacity(shards.len());
    for shard in shards {
        let name = ShardName { stream: stream.arn.clone(), shard: shard.id.clone() };
        let checkpoint = match trigger.definition.starting_position {
            StartingPosition::TrimHorizon => Checkpoint::Oldest,
            StartingPosition::AtTimestamp { timestamp_ms } => {
                let now_ms = trigger.engine.clock().now_ms();
                Checkpoint::From { timestamp_ms: timestamp_ms.min(now_ms) }
            }
            StartingPosition::Latest if shard.is_closed => Checkpoint::Finished,
            StartingPosition::Latest => latest(trigger, &name).await?,
        };
        checkpoints.push((name, checkpoint));
    }
    Ok(checkpoints)
}

/// The end of a shard in a form that can be stored: after the last existing record. A time would
/// not do, because the clocks of the nodes that write records may differ.
async fn latest(trigger: &Trigger, shard: &ShardName) -> Result<Checkpoint, CoordinatorError> {
    let Some((_, label)) = shard.stream.rsplit_once('/') else { return Ok(Checkpoint::Oldest) };
    let stream = StreamName { table: trigger.table(), label: label.to_owned() };
    let last = trigger.engine.last_sequence_number(&stream, &shard.shard).await?;
    Ok(match last {
        Some(last) => Checkpoint::After { sequence: last.to_string() },
        None => Checkpoint::Oldest,
    })
}
