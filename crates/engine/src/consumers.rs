//! What the store keeps for consumers of streams: each consumer's definition, which only its owner
//! interprets, and its progress in each shard.
//!
//! Rows repeat everything in their keys, so nobody has to parse a key.
//!
//! On a shared store any node may work for a consumer. The node that works on a shard writes its
//! checkpoints, under a lease and only while the consumer's definition is unchanged. Checkpoints
//! only move forward.

use std::ops::ControlFlow;
use std::sync::Arc;

use zenobe_store::{Batch, Direction, Key, KeyRange, Value, WriteSet, write_with};

use crate::Engine;
use crate::error::{Error, Result};
use crate::keyspace;
use crate::lease::Lease;
use crate::row::{Fields, corrupt};
use crate::schema::Namespace;

const WHAT: &str = "the row of a stream's consumer";

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConsumerName {
    pub namespace: Arc<Namespace>,
    pub name: String,
}

/// One shard of one stream, as clients name them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShardName {
    pub stream: String,
    pub shard: String,
}

/// A consumer's progress in a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checkpoint {
    /// Nothing is done yet; start with the oldest record.
    Oldest,
    /// Nothing is done yet; start with the first record written at this time or later.
    From { timestamp_ms: u64 },
    /// Everything up to this sequence number is done.
    After { sequence: String },
    /// The shard is closed and everything in it is done.
    Finished,
}

impl Checkpoint {
    /// Whether it comes after `stored`: only then is there progress to store.
    fn is_ahead_of(&self, stored: &Checkpoint) -> bool {
        match (self, stored) {
            (_, Checkpoint::Finished) | (Checkpoint::Oldest | Checkpoint::From { .. }, _) => false,
            (Checkpoint::Finished, _) => true,
            (Checkpoint::After { sequence: new }, Checkpoint::After { sequence: old }) => {
                // Decimal numbers without leading zeros, of any length.
                (new.len(), new) > (old.len(), old)
            }
            (Checkpoint::After { .. }, Checkpoint::Oldest | Checkpoint::From { .. }) => true,
        }
    }
}

/// The right of a node to store a consumer's progress: for which consumer, and under which lease.
#[derive(Debug, Clone)]
pub struct Mandate {
    pub consumer: ConsumerName,
    /// The definition that the store must have. `None` for a consumer defined elsewhere.
    pub definition: Option<String>,
    pub lease: Lease,
}

impl Mandate {
    /// The guards that a write under the mandate declares.
    fn guards(&self) -> Vec<Key> {
        let ConsumerName { namespace, name } = &self.consumer;
        let row = self.definition.iter().map(|_| keyspace::consumer_row(namespace, name));
        self.lease.guards().iter().cloned().chain(row).collect()
    }

    /// Checks that the mandate holds, given the values of its guards.
    fn check(&self, guards: &[Option<Value>]) -> Result<()> {
        let (lease, row) = guards.split_at(self.lease.guards().len());
        self.lease.check(lease)?;
        let (Some(expected), Some(row)) = (&self.definition, row.first()) else { return Ok(()) };
        let is_same = match row.as_ref().map(|row| decode_consumer(row)) {
            Some(Ok((_, definition))) => definition == *expected,
            None => false,
            // Damage is neither a removal nor a change. Without checkpoints, everything would be delivered
            // again and again.
            Some(Err(error)) => {
                let consumer = &self.consumer.name;
                tracing::error!(consumer, %error, "a stream consumer's row is damaged; add the trigger again");
                true
            }
        };
        match is_same {
            true => Ok(()),
            false => Err(Error::LeaseLost { work: self.consumer.name.clone() }),
        }
    }
}

impl Engine {
    /// Every consumer and its definition. A row that does not decode is logged and does not hide
    /// the others.
    pub async fn consumers(&self) -> Result<Vec<(ConsumerName, String)>> {
        let rows = self.rows_of_consumers(keyspace::consumers_prefix()).await?;
        let consumers = rows.into_iter().filter_map(|row| {
            let consumer = decode_consumer(&row);
            if let Err(error) = &consumer {
                tracing::error!(%error, "a stream consumer's row is damaged; skipping it");
            }
            consumer.ok()
        });
        Ok(consumers.collect())
    }

    /// Stores a consumer and replaces any with the same name. Its checkpoints stay.
    pub async fn save_consumer(&self, consumer: &ConsumerName, definition: &str) -> Result<()> {
        let key = keyspace::consumer_row(&consumer.namespace, &consumer.name);
        let mut row = encode_name(consumer);
        row.text("definition", definition);
        self.write_consumer_rows(vec![(key, Some(row))], None).await
    }

    /// Deletes a consumer and its progress.
    pub async fn remove_consumer(&self, consumer: &ConsumerName) -> Result<()> {
        let key = keyspace::consumer_row(&consumer.namespace, &consumer.name);
        let checkpoints = keyspace::checkpoints_prefix(&consumer.namespace, &consumer.name);
        let checkpoints = KeyRange::prefix(checkpoints);
        self.write_consumer_rows(vec![(key, None)], Some(checkpoints)).await
    }

    pub async fn checkpoints(
        &self,
        consumer: &ConsumerName,
    ) -> Result<Vec<(ShardName, Checkpoint)>> {
        let prefix = keyspace::checkpoints_prefix(&consumer.namespace, &consumer.name);
        let rows = self.rows_of_consumers(prefix).await?;
        rows.iter().map(|row| decode_checkpoint(row)).collect()
    }

    /// A consumer's progress in a shard; `None` if none is stored.
    pub async fn checkpoint(
        &self,
        consumer: &ConsumerName,
        shard: &ShardName,
    ) -> Result<Option<Checkpoint>> {
        let row = self.store.get(&checkpoint_key(consumer, shard)).await?;
        row.as_ref().map(stored_checkpoint).transpose()
    }

    /// Stores a consumer's progress in some shards atomically, where it is ahead of the stored one.
    /// Durable when it returns.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] if another node has taken over.
    pub async fn save_checkpoints(
        &self,
        mandate: &Mandate,
        checkpoints: &[(ShardName, Checkpoint)],
    ) -> Result<()> {
        let consumer = &mandate.consumer;
        let key = |(shard, _): &(ShardName, Checkpoint)| checkpoint_key(consumer, shard);
        let keys: Vec<Key> = checkpoints.iter().map(key).collect();
        self.write_under(mandate, &keys, |rows, batch| {
            for (((shard, checkpoint), key), row) in checkpoints.iter().zip(&keys).zip(rows) {
                let stored = row.as_ref().map(stored_checkpoint).transpose()?;
                if stored.is_none_or(|stored| checkpoint.is_ahead_of(&stored)) {
                    let row = encode_checkpoint(consumer, shard, checkpoint);
                    batch.put(key.clone(), row.encode());
                }
            }
            Ok(())
        })
        .await
    }

    /// Deletes a consumer's progress in shards that no longer exist.
    ///
    /// # Errors
    /// [`Error::LeaseLost`] if another node has taken over.
    pub async fn forget_checkpoints(&self, mandate: &Mandate, shards: &[ShardName]) -> Result<()> {
        let key = |shard: &ShardName| checkpoint_key(&mandate.consumer, shard);
        let keys: Vec<Key> = shards.iter().map(key).collect();
        self.write_under(mandate, &keys, |_, batch| {
            keys.iter().for_each(|key| batch.delete(key.clone()));
            Ok(())
        })
        .await
    }

    async fn write_under(
        &self,
        mandate: &Mandate,
        keys: &[Key],
        fill: impl Fn(&[Option<Value>], &mut Batch) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let guards = mandate.guards();
        let written = write_with(&*self.store, WriteSet { guards: &guards, keys }, |reads| {
            let (guards, rows) = reads.split_at(guards.len());
            mandate.check(guards)?;
            let mut batch = Batch::new();
            fill(rows, &mut batch)?;
            Ok::<_, Error>((batch, ()))
        });
        written.await??;
        Ok(())
    }

    async fn rows_of_consumers(&self, prefix: Key) -> Result<Vec<Value>> {
        let mut rows = Vec::new();
        let mut visit = |_: &[u8], row: &[u8]| {
            rows.push(Value::copy_from_slice(row));
            ControlFlow::Continue(())
        };
        self.store.scan(KeyRange::prefix(prefix), Direction::Forward, &mut visit).await?;
        Ok(rows)
    }

    async fn write_consumer_rows(
        &self,
        rows: Vec<(Key, Option<Fields>)>,
        deleted: Option<KeyRange>,
    ) -> Result<()> {
        let keys: Vec<Key> = rows.iter().map(|(key, _)| key.clone()).collect();
        let set = WriteSet { guards: &[], keys: &keys };
        let decision = write_with(&*self.store, set, |_| {
            let mut batch = Batch::new();
            if let Some(range) = &deleted {
                batch.delete_range(range.clone());
            }
            for (key, row) in &rows {
                match row {
                    Some(row) => batch.put(key.clone(), row.encode()),
                    None => batch.delete(key.clone()),
                }
            }
            Ok::<_, Error>((batch, ()))
        });
        decision.await??;
        Ok(())
    }
}

mod state {
    pub const OLDEST: &str = "oldest";
    pub const FROM: &str = "from";
    pub const AFTER: &str = "after";
    pub const FINISHED: &str = "finished";
}

fn checkpoint_key(consumer: &ConsumerName, shard: &ShardName) -> Key {
    let ConsumerName { namespace, name } = consumer;
    keyspace::checkpoint_row(namespace, name, &shard.stream, &shard.shard)
}

fn encode_name(consumer: &ConsumerName) -> Fields {
    let mut fields = Fields::default();
    fields.text("account", &consumer.namespace.account);
    fields.text("region", &consumer.namespace.region);
    fields.text("name", &consumer.name);
    fields
}

fn encode_checkpoint(
    consumer: &ConsumerName,
    shard: &ShardName,
    checkpoint: &Checkpoint,
) -> Fields {
    let mut fields = encode_name(consumer);
    fields.text("stream", &shard.stream);
    fields.text("shard", &shard.shard);
    let state = match checkpoint {
        Checkpoint::Oldest => state::OLDEST,
        Checkpoint::From { timestamp_ms } => {
            fields.number("timestamp_ms", *timestamp_ms);
            state::FROM
        }
        Checkpoint::After { sequence } => {
            fields.text("sequence", sequence);
            state::AFTER
        }
        Checkpoint::Finished => state::FINISHED,
    };
    fields.text("state", state);
    fields
}

fn decode_consumer(row: &[u8]) -> Result<(ConsumerName, String)> {
    let mut fields = Fields::decode(row, WHAT)?;
    let account = fields.take_text("account")?;
    let region = fields.take_text("region")?;
    let namespace = Arc::new(Namespace { account, region });
    let consumer = ConsumerName { namespace, name: fields.take_text("name")? };
    Ok((consumer, fields.take_text("definition")?))
}

fn decode_checkpoint(row: &[u8]) -> Result<(ShardName, Checkpoint)> {
    let mut fields = Fields::decode(row, WHAT)?;
    let stream = fields.take_text("stream")?;
    let shard = fields.take_text("shard")?;
    let checkpoint = match fields.take_text("state")?.as_str() {
        state::OLDEST => Checkpoint::Oldest,
        state::FROM => Checkpoint::From { timestamp_ms: fields.take_number("timestamp_ms")? },
        state::AFTER => Checkpoint::After { sequence: fields.take_text("sequence")? },
        state::FINISHED => Checkpoint::Finished,
        other => return Err(corrupt(format!("the state {other:?} in {WHAT}"))),
    };
    Ok((ShardName { stream, shard }, checkpoint))
}

fn stored_checkpoint(row: &Value) -> Result<Checkpoint> {
    let (_, checkpoint) = decode_checkpoint(row)?;
    Ok(checkpoint)
}

#[cfg(test)]
mod tests {
    use zenobe_store::Store;
    use zenobe_store::memory::MemoryStore;

    use super::*;
    use crate::EngineOptions;

    fn consumer(name: &str) -> ConsumerName {
        let namespace = Namespace { account: "1".into(), region: "r".into() };
        ConsumerName { namespace: Arc::new(namespace), name: name.into() }
    }

    fn mandate(consumer: &ConsumerName, definition: &str) -> Mandate {
        let (consumer, definition) = (consumer.clone(), Some(definition.to_owned()));
        Mandate { consumer, definition, lease: Lease::default() }
    }

    /// This holds whatever a node believes, and however often it repeats it.
    #[tokio::test]
    async fn checkpoints_only_move_forward() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let engine = Engine::open(store, EngineOptions::default()).await.unwrap();
        let mandate = Mandate { definition: None, ..mandate(&consumer("c"), "") };
        let after = |sequence: &str| Checkpoint::After { sequence: sequence.into() };
        let steps = [
            (Checkpoint::Oldest, Checkpoint::Oldest),
            (Checkpoint::From { timestamp_ms: 7 }, Checkpoint::Oldest),
            (after("9"), after("9")),
            (after("10"), after("10")),
            (after("9"), after("10")),
            (Checkpoint::Oldest, after("10")),
            (Checkpoint::Finished, Checkpoint::Finished),
            (after("11"), Checkpoint::Finished),
        ];
        for (saved, expected) in steps {
            engine.save_checkpoints(&mandate, &[(shard("s"), saved)]).await.unwrap();
            let stored = engine.checkpoint(&mandate.consumer, &shard("s")).await.unwrap();
            assert_eq!(stored, Some(expected));
        }
    }

    /// Neither for a removed consumer nor for one that has another definition by now.
    #[tokio::test]
    async fn nothing_is_noted_for_a_consumer_that_is_another() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let engine = Engine::open(store, EngineOptions::default()).await.unwrap();
        let consumer = consumer("c");
        engine.save_consumer(&consumer, "first").await.unwrap();
        let first = mandate(&consumer, "first");
        let checkpoints = [(shard("s"), Checkpoint::Finished)];
        engine.remove_consumer(&consumer).await.unwrap();
        for _ in 0..2 {
            let saved = engine.save_checkpoints(&first, &checkpoints).await;
            assert!(matches!(saved, Err(Error::LeaseLost { .. })), "{saved:?}");
            assert_eq!(engine.checkpoints(&consumer).await.unwrap(), []);
            engine.save_consumer(&consumer, "second").await.unwrap();
        }
        engine.save_checkpoints(&mandate(&consumer, "second"), &checkpoints).await.unwrap();
    }

    /// A definition that does not decode any more must not keep the consumer from noting its progress.
    #[tokio::test]
    async fn progress_is_noted_though_the_definition_is_damaged() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let engine = Engine::open(store, EngineOptions::default()).await.unwrap();
        let consumer = consumer("c");
        engine.save_consumer(&consumer, "first").await.unwrap();
        let keys = [keyspace::consumer_row(&consumer.namespace, &consumer.name)];
        let damage = write_with(&*engine.store, WriteSet { guards: &[], keys: &keys }, |_| {
            let mut batch = Batch::new();
            batch.put(keys[0].clone(), Key::from_static(b"no item"));
            Ok::<_, Error>((batch, ()))
        });
        damage.await.unwrap().unwrap();
        let progress = Checkpoint::After { sequence: "7".into() };
        let checkpoints = [(shard("s"), progress.clone())];
        engine.save_checkpoints(&mandate(&consumer, "first"), &checkpoints).await.unwrap();
        assert_eq!(engine.checkpoint(&consumer, &shard("s")).await.unwrap(), Some(progress));
    }

    fn shard(shard: &str) -> ShardName {
        ShardName { stream: "arn:stream".into(), shard: shard.into() }
    }

    #[tokio::test]
    async fn consumers_and_their_checkpoints_survive_and_are_forgotten_together() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let engine = Engine::open(store.clone(), EngineOptions::default()).await.unwrap();
        let (one, two) = (consumer("one"), consumer("one-and-more"));
        engine.save_consumer(&one, "first").await.unwrap();
        engine.save_consumer(&one, "second").await.unwrap();
        engine.save_consumer(&two, "other").await.unwrap();
        let checkpoints = vec![
            (shard("a"), Checkpoint::Oldest),
            (shard("b"), Checkpoint::From { timestamp_ms: 7 }),
            (shard("c"), Checkpoint::After { sequence: "123456789012345678901".into() }),
            (shard("d"), Checkpoint::Finished),
        ];
        engine.save_checkpoints(&mandate(&one, "second"), &checkpoints).await.unwrap();
        engine.save_checkpoints(&mandate(&two, "other"), &checkpoints[..1]).await.unwrap();

        let engine = Engine::open(store, EngineOptions::default()).await.unwrap();
        let expected = [(one.clone(), "second".to_owned()), (two.clone(), "other".to_owned())];
        assert_eq!(engine.consumers().await.unwrap(), expected);
        assert_eq!(engine.checkpoints(&one).await.unwrap(), checkpoints);
        let forgotten = [shard("a"), shard("d")];
        engine.forget_checkpoints(&mandate(&one, "second"), &forgotten).await.unwrap();
        assert_eq!(engine.checkpoints(&one).await.unwrap(), checkpoints[1..3]);

        let damaged = keyspace::consumer_row(&one.namespace, "damaged");
        let set = WriteSet { guards: &[], keys: std::slice::from_ref(&damaged) };
        let damage = write_with(&*engine.store, set, |_| {
            let mut batch = Batch::new();
            batch.put(damaged.clone(), Key::from_static(b"no item"));
            Ok::<_, Error>((batch, ()))
        });
        damage.await.unwrap().unwrap();
        assert_eq!(engine.consumers().await.unwrap(), expected);

        engine.remove_consumer(&one).await.unwrap();
        assert_eq!(engine.consumers().await.unwrap(), expected[1..]);
        assert_eq!(engine.checkpoints(&one).await.unwrap(), []);
        assert_eq!(engine.checkpoints(&two).await.unwrap(), checkpoints[..1]);
    }
}
