//! The nodes that share a store, as this one sees them.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use zenobe_store::{Batch, Direction, Key, KeyRange, Value, WriteSet, write_with};

use super::lease_row::{LeaseRow, NodeRow};
use crate::Engine;
use crate::error::{Error, Result};
use crate::keyspace;

/// After this many periods without a sign of life a node is forgotten. If it comes back, it
/// registers again.
const FORGOTTEN_AFTER_PERIODS: u32 = 20;

/// A node, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    pub id: String,
    pub name: String,
    pub is_this: bool,
    pub started_at_ms: u64,
    /// What its clock showed at its last sign of life.
    pub clock_ms: u64,
    /// Whether it gave one within its period, as far as this node has observed.
    pub is_alive: bool,
}

/// A lease, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseStatus {
    pub work: String,
    /// The id of the node that holds it.
    pub node: String,
    /// Since when, by that node's clock.
    pub since_ms: u64,
}

impl Engine {
    /// Whether other engines may share the store.
    pub fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    /// Sets whether other engines may share the store. Call this before they can, for example when
    /// a move has put its content where others can open it.
    pub fn set_shared(&self, is_shared: bool) {
        self.is_shared.store(is_shared, Ordering::SeqCst);
        self.catalog.set_shared(is_shared);
        self.leases.set_shared(is_shared);
        self.background.wake();
    }

    /// How far other engines' clocks may differ from this one's; 0 if there are no others.
    pub(crate) fn clock_skew_ms(&self) -> u64 {
        if self.is_shared() { self.clock_skew_ms_max } else { 0 }
    }

    /// The id of this engine among those that share the store. Ids are never reused.
    pub fn node_id(&self) -> &str {
        self.leases.node_id()
    }

    /// How many leases this node holds.
    pub fn held_leases(&self) -> u64 {
        self.leases.count()
    }

    /// All nodes that the store knows, including this one. Empty if the store is not shared.
    pub async fn nodes(&self) -> Result<Vec<NodeStatus>> {
        let status = |(key, stored): (Key, Value)| {
            let row = NodeRow::decode(&stored)?;
            let is_this = row.id == self.leases.node_id();
            let silence = self.leases.sight(&key, &stored).elapsed();
            Ok(NodeStatus {
                is_this,
                is_alive: is_this || silence < Duration::from_millis(row.period_ms),
                id: row.id,
                name: row.name,
                started_at_ms: row.started_at_ms,
                clock_ms: row.clock_ms,
            })
        };
        let rows = self.rows(keyspace::nodes_prefix()).await?;
        rows.into_iter().map(status).collect()
    }

    /// Which node does which work. Empty if the store is not shared.
    pub async fn leases(&self) -> Result<Vec<LeaseStatus>> {
        let rows = self.rows(keyspace::leases_prefix()).await?;
        let status = |(_, stored): (Key, Value)| {
            let LeaseRow { work, node, since_ms, .. } = LeaseRow::decode(&stored)?;
            Ok(LeaseStatus { work, node, since_ms })
        };
        rows.into_iter().map(status).collect()
    }

    /// Leaves the other nodes, so that they can take over this one's work at once. Call this after
    /// background work has ended, before the store is closed.
    pub async fn leave(&self) -> Result<()> {
        self.release_leases("").await?;
        if !self.is_shared() {
            return Ok(());
        }
        let keys = [keyspace::node_row(self.leases.node_id())];
        let left = write_with(&*self.store, WriteSet { guards: &[], keys: &keys }, |_| {
            let mut batch = Batch::new();
            batch.delete(keys[0].clone());
            Ok::<_, Error>((batch, ()))
        });
        left.await??;
        Ok(())
    }

    /// Watches the other nodes and their leases, and forgets those that have been silent for long: the
    /// work that a lease was for may be gone, so that nobody takes it over.
    pub(super) async fn observe_nodes(&self) -> Result<()> {
        let nodes = self.rows(keyspace::nodes_prefix()).await?;
        let leases = self.rows(keyspace::leases_prefix()).await?;
        let present: HashSet<&Key> = nodes.iter().chain(&leases).map(|(key, _)| key).collect();
        self.leases.seen.lock().retain(|key, _| present.contains(key));
        for (key, stored) in &nodes {
            let row = NodeRow::decode(stored);
            self.observe(key, stored, row.map(|row| (row.id, row.period_ms))).await?;
        }
        for (key, stored) in &leases {
            let row = LeaseRow::decode(stored);
            self.observe(key, stored, row.map(|row| (row.node, row.period_ms))).await?;
        }
        Ok(())
    }

    /// Watches one row of a node, of which its id and its period are given.
    async fn observe(&self, key: &Key, stored: &Value, row: Result<(String, u64)>) -> Result<()> {
        let (node, period_ms) = match row {
            Ok(row) => row,
            Err(error) => {
                tracing::error!(%error, "a row about a node is damaged; skipping it");
                return Ok(());
            }
        };
        if node == self.leases.node_id() {
            return Ok(());
        }
        let silence_max = Duration::from_millis(period_ms) * FORGOTTEN_AFTER_PERIODS;
        match self.leases.sight(key, stored).elapsed() > silence_max {
            true => self.forget_row(key, stored).await,
            false => Ok(()),
        }
    }

    async fn forget_row(&self, key: &Key, seen: &Value) -> Result<()> {
        let keys = std::slice::from_ref(key);
        let forgotten = write_with(&*self.store, WriteSet { guards: &[], keys }, |reads| {
            let mut batch = Batch::new();
            if reads[0].as_ref() == Some(seen) {
                batch.delete(key.clone());
            }
            Ok::<_, Error>((batch, ()))
        });
        forgotten.await??;
        self.leases.seen.lock().remove(key);
        Ok(())
    }

    async fn rows(&self, prefix: Key) -> Result<Vec<(Key, Value)>> {
        let mut rows = Vec::new();
        let mut visit = |key: &[u8], value: &[u8]| {
            rows.push((Key::copy_from_slice(key), Value::copy_from_slice(value)));
            ControlFlow::Continue(())
        };
        self.store.scan(KeyRange::prefix(prefix), Direction::Forward, &mut visit).await?;
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use zenobe_store::Store;
    use zenobe_store::memory::MemoryStore;

    use super::*;
    use crate::EngineOptions;

    /// A trigger that was removed while its node was dead leaves a lease that nobody wants.
    #[tokio::test(start_paused = true)]
    async fn leases_that_nobody_takes_over_are_forgotten() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::shared());
        let options = EngineOptions::default();
        let period = options.lease_period;
        let dead = Engine::open(store.clone(), options.clone()).await.unwrap();
        let living = Engine::open(store, options).await.unwrap();
        dead.lease("trigger/gone").await.unwrap().expect("nobody has it");
        let kept = living.lease("kept").await.unwrap().expect("nobody has it");
        dead.renew_leases().await.unwrap();
        for _ in 0..FORGOTTEN_AFTER_PERIODS * 4 {
            living.renew_leases().await.unwrap();
            tokio::time::advance(period / 3).await;
        }
        let leases = living.leases().await.unwrap();
        assert_eq!(leases.iter().map(|lease| &lease.work[..]).collect::<Vec<_>>(), ["kept"]);
        assert!(living.is_fresh(&kept));
        living.renew_leases().await.unwrap();
        assert_eq!(
            living.leases.seen.lock().len(),
            0,
            "nothing is remembered of rows that are gone"
        );
    }
}
