//! One shard of one trigger: reads, batches, delivers and stores checkpoints until the shard ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::RngExt;
use tokio::sync::watch;
use zenobe_engine::Engine;
use zenobe_engine::command::TableName;
use zenobe_engine::consumers::{Checkpoint, ConsumerName, Mandate, ShardName};
use zenobe_engine::error::Error;
use zenobe_engine::schema::Namespace;

use super::batcher::Batcher;
use super::dead_letter::{self, Failure};
use super::definition::{DeadLetterDestination, TriggerDefinition};
use super::delivery::{Delivery, DeliveryVerdict, GivenUp, NextAction};
use super::endpoint::Endpoint;
use super::filter::{self, FilterPattern};
use super::metrics::{TriggerMetrics, add};
use super::reader::ShardReader;
use super::record::DeliveredRecord;
use super::source::Streams;
use crate::logging::shortened;

/// How long to wait for a notification before looking anyway: another process may share the store.
const IDLE_DELAY: Duration = Duration::from_secs(1);
/// How long notifications may gather, so that a busy server is not polled for each write.
const NEWS_DELAY: Duration = Duration::from_millis(5);
/// The pause after a failure that is not the endpoint's.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The least interval between checkpoints over filtered records.
const FILTERED_CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

/// Shared by all workers of a trigger.
pub struct Trigger {
    pub consumer: ConsumerName,
    pub definition: TriggerDefinition,
    /// The stored definition, if it is in the store.
    pub stored: Option<String>,
    /// Where to put records that are given up.
    pub dead_letter: Option<DeadLetterDestination>,
    pub engine: Arc<Engine>,
    pub streams: Streams,
    pub metrics: Arc<TriggerMetrics>,
}

impl Trigger {
    pub fn table(&self) -> TableName {
        let namespace = Arc::clone(&self.consumer.namespace);
        TableName { namespace, name: self.definition.table.clone() }
    }

    /// The name of the work to lease: a shard, or the whole trigger, whose name is a prefix of its
    /// shards' names.
    pub fn work(&self, shard: Option<&ShardName>) -> String {
        let Namespace { account, region } = &*self.consumer.namespace;
        let trigger = format!("trigger/{account}/{region}/{}/", self.consumer.name);
        match shard {
            None => trigger,
            Some(ShardName { stream, shard }) => format!("{trigger}{stream}/{shard}"),
        }
    }

    /// The right to work on a shard, or to initialise and clean up, if this node has it.
    pub async fn mandate(&self, shard: Option<&ShardName>) -> Result<Option<Mandate>, Error> {
        let lease = self.engine.lease(&self.work(shard)).await?;
        let (consumer, definition) = (self.consumer.clone(), self.stored.clone());
        Ok(lease.map(|lease| Mandate { consumer, definition, lease }))
    }
}

/// This node no longer works on the shard.
struct LeaseLost;

pub struct ShardWorker {
    trigger: Arc<Trigger>,
    shard: ShardName,
    mandate: Mandate,
    endpoint: Endpoint,
    patterns: Vec<FilterPattern>,
    reader: ShardReader,
    news: watch::Receiver<u64>,
    /// Read, but not examined yet.
    pending: VecDeque<DeliveredRecord>,
    batcher: Batcher,
    /// The last record examined.
    looked_at: Option<String>,
    /// The checkpoint in the store.
    saved: Option<String>,
    saved_at: Instant,
}

impl ShardWorker {
    pub fn new(
        trigger: Arc<Trigger>,
        shard: ShardName,
        from: Checkpoint,
        mandate: Mandate,
    ) -> ShardWorker {
        let definition = &trigger.definition;
        ShardWorker {
            endpoint: Endpoint {
                url: definition.url.clone(),
                timeout: definition.timeout,
                reports_batch_item_failures: definition.reports_batch_item_failures,
            },
            patterns: definition.patterns(),
            reader: ShardReader::new(trigger.streams.clone(), shard.clone(), from),
            news: trigger.engine.stream_notify(&trigger.table()),
            pending: VecDeque::new(),
            batcher: Batcher::new(definition.batch_limits()),
            looked_at: None,
            saved: None,
            saved_at: Instant::now(),
            trigger,
            shard,
            mandate,
        }
    }

    /// Returns once everything in the shard is settled and the checkpoint is stored, or another
    /// node works on it.
    pub async fn run(mut self) {
        if let Err(LeaseLost) = self.work().await {
            let name = &self.trigger.definition.name;
            tracing::info!(
                trigger = name,
                shard = self.shard.shard,
                "another node took over a shard"
            );
        }
        self.trigger.metrics.set_oldest_pending(&self.shard, None);
        let work = self.trigger.work(Some(&self.shard));
        if let Err(error) = self.trigger.engine.release_leases(&work).await {
            // The lease expires by itself.
            tracing::debug!(%error, "a trigger's lease could not be released");
        }
    }

    async fn work(&mut self) -> Result<(), LeaseLost> {
        loop {
            self.fill_batch();
            if self.is_batch_due() {
                self.deliver_batch().await?;
            } else if self.reader.is_at_end() {
                return self.write(Checkpoint::Finished).await;
            } else {
                self.read_or_wait().await?;
            }
        }
    }

    /// Moves pending records into the batch, except those that no pattern matches.
    fn fill_batch(&mut self) {
        while let Some(record) = self.pending.front() {
            // Most triggers have no pattern, and everything passes.
            let passes =
                self.patterns.is_empty() || filter::passes(&self.patterns, &record.event());
            if passes && !self.batcher.fits(record) {
                return;
            }
            let Some(record) = self.pending.pop_front() else { return };
            self.looked_at = Some(record.sequence.clone());
            match passes {
                true => self.batcher.push(record, Instant::now()),
                false => add(&self.trigger.metrics.records_filtered, 1),
            }
        }
    }

    fn is_batch_due(&self) -> bool {
        let is_time_up = self.batcher.time_left(Instant::now()) == Some(Duration::ZERO);
        let waits_for_nothing = !self.pending.is_empty() || self.reader.is_at_end();
        self.batcher.is_full() || (!self.batcher.is_empty() && (is_time_up || waits_for_nothing))
    }

    async fn read_or_wait(&mut self) -> Result<(), LeaseLost> {
        // Commits from now on count as news, even while we read.
        self.news.borrow_and_update();
        match self.reader.read().await {
            Ok(batch) => {
                if batch.trimmed > 0 || batch.is_gone {
                    self.note_trimmed(batch.trimmed, batch.is_gone);
                }
                if let Some(first) = batch.records.first()
                    && self.batcher.is_empty()
                {
                    let created_at_ms = Some(first.created_at_ms);
                    self.trigger.metrics.set_oldest_pending(&self.shard, created_at_ms);
                }
                let is_empty = batch.records.is_empty();
                self.pending.extend(batch.records);
                if is_empty && !self.reader.is_at_end() {
                    self.wait_for_news().await?;
                }
            }
            Err(error) => {
                let name = &self.trigger.definition.name;
                tracing::warn!(
                    trigger = name,
                    shard = self.shard.shard,
                    %error,
                    "a trigger's stream cannot be read"
                );
                let problem = shortened(&format!("cannot read the stream: {error}")).into_owned();
                self.trigger.metrics.set_problem(Some(problem));
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
        Ok(())
    }

    async fn wait_for_news(&mut self) -> Result<(), LeaseLost> {
        if self.batcher.is_empty() {
            self.trigger.metrics.set_oldest_pending(&self.shard, None);
            if self.saved_at.elapsed() >= FILTERED_CHECKPOINT_INTERVAL {
                self.save_looked_at().await?;
            }
        }
        let patience = self.batcher.time_left(Instant::now()).unwrap_or(IDLE_DELAY).min(IDLE_DELAY);
        // A notification and a timeout have the same consequence.
        if let Ok(Ok(())) = tokio::time::timeout(patience, self.news.changed()).await {
            tokio::time::sleep(NEWS_DELAY.min(patience)).await;
        }
        Ok(())
    }

    async fn deliver_batch(&mut self) -> Result<(), LeaseLost> {
        let mut delivery = Delivery::new(self.trigger.definition.rules, self.batcher.take());
        let mut status = None;
        loop {
            let now_ms = self.trigger.engine.clock().now_ms();
            let action = delivery.next(now_ms);
            let oldest = delivery.records().first().map(|record| record.created_at_ms);
            self.trigger.metrics.set_oldest_pending(&self.shard, oldest);
            match action {
                NextAction::Done => break,
                NextAction::GiveUp { records, why, attempts } => {
                    self.give_up(&records, why, attempts, status).await?;
                }
                NextAction::Send => status = self.send(&mut delivery).await?,
            }
        }
        self.save_looked_at().await
    }

    /// Makes one attempt and returns the status of the response.
    async fn send(&self, delivery: &mut Delivery) -> Result<Option<u16>, LeaseLost> {
        // No guard protects the endpoint, so a lease that another node may hold by now is not used.
        if !self.trigger.engine.is_fresh(&self.mandate.lease) {
            return Err(LeaseLost);
        }
        let response = self.endpoint.deliver(delivery.records()).await;
        let metrics = &self.trigger.metrics;
        if let Some(problem) = &response.problem {
            add(&metrics.deliveries_failed, 1);
            self.note_problem(problem);
        }
        let jitter = rand::rng().random();
        match delivery.settle(&response.outcome, jitter) {
            DeliveryVerdict::Delivered { count, last_sequence } => {
                add(&metrics.records_delivered, count as u64);
                if response.problem.is_none() {
                    metrics.set_problem(None);
                }
                // The caller stores the checkpoint at the end of the batch.
                if !delivery.is_settled() {
                    self.write(Checkpoint::After { sequence: last_sequence }).await?;
                }
            }
            DeliveryVerdict::Retry { after } => tokio::time::sleep(after).await,
            DeliveryVerdict::Exhausted => {}
        }
        Ok(response.status)
    }

    /// Gives records up. With a destination, they are durable there before anything else happens.
    async fn give_up(
        &self,
        records: &[DeliveredRecord],
        why: GivenUp,
        attempts: u32,
        status: Option<u16>,
    ) -> Result<(), LeaseLost> {
        let Trigger { definition, metrics, engine, .. } = &*self.trigger;
        let Some(last) = records.last() else { return Ok(()) };
        let count = records.len() as u64;
        let name = &definition.name;
        tracing::error!(
            trigger = name,
            shard = self.shard.shard,
            records = count,
            reason = why.condition(),
            first = records[0].sequence,
            last = last.sequence,
            "giving up records that could not be delivered"
        );
        match &self.trigger.dead_letter {
            None => add(&metrics.records_discarded, count),
            Some(destination) => {
                let failure = Failure {
                    records,
                    why,
                    attempts,
                    request_id: request_id(),
                    url: &definition.url.to_string(),
                    status,
                    stream_arn: &self.shard.stream,
                    shard_id: &self.shard.shard,
                    now_ms: engine.clock().now_ms(),
                };
                let failure = failure.to_json();
                let mut failures = 0;
                while let Err(error) =
                    dead_letter::put_away(destination, &failure, definition.timeout).await
                {
                    self.note_problem(&format!("the dead-letter destination fails: {error}"));
                    let delay = definition.rules.backoff.delay(failures, rand::rng().random());
                    failures += 1;
                    tokio::time::sleep(delay).await;
                }
                add(&metrics.records_dead_lettered, count);
            }
        }
        self.write(Checkpoint::After { sequence: last.sequence.clone() }).await
    }

    fn note_trimmed(&self, count: u64, is_shard_gone: bool) {
        let metrics = &self.trigger.metrics;
        add(&metrics.records_trimmed, count);
        add(&metrics.shards_trimmed, u64::from(is_shard_gone));
        let name = &self.trigger.definition.name;
        tracing::error!(
            trigger = name,
            shard = self.shard.shard,
            records = count,
            is_shard_gone,
            "stream records passed their retention before they were delivered; this trigger has lost them"
        );
    }

    /// An endpoint's message may be anything, so it is shortened.
    fn note_problem(&self, problem: &str) {
        let problem = shortened(problem).into_owned();
        let name = &self.trigger.definition.name;
        tracing::warn!(trigger = name, shard = self.shard.shard, problem, "a delivery failed");
        self.trigger.metrics.set_problem(Some(problem));
    }

    async fn save_looked_at(&mut self) -> Result<(), LeaseLost> {
        if self.looked_at == self.saved {
            return Ok(());
        }
        if let Some(sequence) = self.looked_at.clone() {
            self.write(Checkpoint::After { sequence }).await?;
            self.saved = self.looked_at.clone();
            self.saved_at = Instant::now();
        }
        Ok(())
    }

    /// Writes a checkpoint, however long that takes: continuing without it would repeat deliveries
    /// after a restart for no reason.
    async fn write(&self, checkpoint: Checkpoint) -> Result<(), LeaseLost> {
        let Trigger { engine, definition, .. } = &*self.trigger;
        let checkpoints = [(self.shard.clone(), checkpoint)];
        loop {
            match engine.save_checkpoints(&self.mandate, &checkpoints).await {
                Ok(()) => return Ok(()),
                Err(Error::LeaseLost { .. }) => return Err(LeaseLost),
                Err(error) => {
                    let name = &definition.name;
                    tracing::error!(trigger = name, %error, "a checkpoint cannot be written");
                }
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
}

fn request_id() -> String {
    let id: u128 = rand::rng().random();
    let hexadecimal = format!("{id:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|range| hexadecimal[range].to_owned()).join("-")
}
