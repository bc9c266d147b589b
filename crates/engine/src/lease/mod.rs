//! Leases: which of the engines that share a store does which background work.
//!
//! A lease is a row with its holder and a number that the holder increments for as long as it
//! lives. Any other node that wants the work watches the row. It takes the lease over once the row
//! has not changed for the period that it names, by the observer's own monotonic clock. No node's
//! clock is ever compared with another's.
//!
//! **Invariant:** every write of work under a lease declares the lease's row as a guard and checks
//! it in its decision ([`Lease::check`]). A node that was paused or cut off, and has lost its lease
//! in the meantime, writes nothing more, whatever it believes.
//!
//! A store that is not shared has no other nodes to exclude: leases have no rows there, and cost
//! nothing.

mod known_leases;
mod lease_row;
mod nodes;
mod takeover;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use zenobe_store::{Batch, Key, Value, WriteSet, write_with};

use crate::Engine;
use crate::error::{Error, Result};
use crate::keyspace;

use self::lease_row::LeaseRow;

pub(crate) use known_leases::Leases;
pub use nodes::{LeaseStatus, NodeStatus};

/// The right to do some work, while the store agrees. The default is the right of an engine that
/// does not share its store.
#[derive(Debug, Clone, Default)]
pub struct Lease {
    fence: Option<Arc<Fence>>,
    /// For a lease without a row: set once other engines share the store, which voids the lease.
    is_shared: Option<Arc<AtomicBool>>,
}

#[derive(Debug)]
struct Fence {
    work: String,
    guards: [Key; 1],
    node: String,
    /// Distinguishes the times at which the same node took the same lease.
    term: u64,
}

impl Lease {
    fn new(key: &Key, row: &LeaseRow) -> Lease {
        let LeaseRow { work, node, term, .. } = row.clone();
        let fence = Fence { work, guards: [key.clone()], node, term };
        Lease { fence: Some(Arc::new(fence)), is_shared: None }
    }

    fn is_same_term(&self, other: &Lease) -> bool {
        let term = |lease: &Lease| lease.fence.as_ref().map(|fence| fence.term);
        term(self) == term(other)
    }

    /// Whether it was given to an engine that no longer has its store to itself.
    fn is_outdated(&self) -> bool {
        self.is_shared.as_ref().is_some_and(|is_shared| is_shared.load(Ordering::SeqCst))
    }

    /// The guards that a write under this lease declares: one key or none.
    pub(crate) fn guards(&self) -> &[Key] {
        self.fence.as_ref().map_or(&[], |fence| &fence.guards)
    }

    /// Checks that the lease holds, given the values of [`Lease::guards`]. Every decision of the
    /// work must call this.
    pub(crate) fn check(&self, guards: &[Option<Value>]) -> Result<()> {
        let Some(fence) = &self.fence else {
            return match self.is_outdated() {
                true => Err(Error::LeaseLost { work: "work of an engine alone".to_owned() }),
                false => Ok(()),
            };
        };
        let row = guards.first().and_then(Option::as_ref).map(LeaseRow::decode).transpose()?;
        match row {
            Some(row) if row.is_held_by(&fence.node, fence.term) => Ok(()),
            _ => Err(Error::LeaseLost { work: fence.work.clone() }),
        }
    }
}

impl Engine {
    /// The lease for some work, if this engine holds it or can take it now.
    pub async fn lease(&self, work: &str) -> Result<Option<Lease>> {
        if !self.is_shared() {
            return Ok(Some(self.leases.alone()));
        }
        let key = keyspace::lease_row(work);
        if let Some(lease) = self.leases.held(&key) {
            return Ok(Some(lease));
        }
        let seen = self.store.get(&key).await?;
        match self.leases.may_take(&key, seen.as_ref())? {
            true => self.take_lease(work, key, seen).await,
            false => Ok(None),
        }
    }

    /// Whether the lease was valid a moment ago: renewed less than its period ago, so that nobody
    /// can have taken it over. For effects outside the store, which no guard protects.
    pub fn is_fresh(&self, lease: &Lease) -> bool {
        let is_held = |key| self.leases.held(key).is_some_and(|held| held.is_same_term(lease));
        !lease.is_outdated() && lease.guards().iter().all(is_held)
    }

    /// Takes the lease unless its row has changed since it was seen.
    async fn take_lease(&self, work: &str, key: Key, seen: Option<Value>) -> Result<Option<Lease>> {
        let row = self.leases.new_row(work, self.clock.now_ms());
        let taken_at = Instant::now();
        let keys = std::slice::from_ref(&key);
        let taken = write_with(&*self.store, WriteSet { guards: &[], keys }, |reads| {
            if reads[0] != seen {
                return Err(TakenByAnother);
            }
            let mut batch = Batch::new();
            batch.put(key.clone(), row.encode());
            Ok((batch, ()))
        });
        match taken.await? {
            Err(TakenByAnother) => Ok(None),
            Ok(_) => {
                tracing::info!(work, node = row.node, "this node has taken a lease");
                Ok(Some(self.leases.took(key, row, taken_at)))
            }
        }
    }

    /// Releases the lease on some work, or those on all work below a prefix that ends with a slash
    /// or is empty, so that others need not wait for their period to pass.
    pub async fn release_leases(&self, work: &str) -> Result<()> {
        let held = self.leases.forget(work);
        if held.is_empty() {
            return Ok(());
        }
        let keys: Vec<Key> = held.iter().map(|(key, _)| key.clone()).collect();
        let set = WriteSet { guards: &[], keys: &keys };
        let released = write_with(&*self.store, set, |reads| {
            let mut batch = Batch::new();
            for ((key, row), read) in held.iter().zip(reads) {
                if row.is_still_in(read.as_ref())? {
                    batch.delete(key.clone());
                }
            }
            Ok::<_, Error>((batch, ()))
        });
        released.await??;
        Ok(())
    }

    /// Shows that this node is alive, and renews its leases: those that the store still assigns to
    /// it.
    pub(crate) async fn renew_leases(&self) -> Result<()> {
        let held = self.leases.all();
        let node = self.leases.node_row(self.clock.now_ms());
        let mut keys: Vec<Key> = held.iter().map(|(key, _)| key.clone()).collect();
        keys.push(keyspace::node_row(&node.id));
        let renewed_at = Instant::now();
        let set = WriteSet { guards: &[], keys: &keys };
        let renewed = write_with(&*self.store, set, |reads| {
            let mut batch = Batch::new();
            let mut lost = Vec::new();
            for ((key, row), read) in held.iter().zip(reads) {
                match row.is_still_in(read.as_ref())? {
                    true => batch.put(key.clone(), row.next().encode()),
                    false => lost.push(key.clone()),
                }
            }
            batch.put(keys[held.len()].clone(), node.encode());
            Ok::<_, Error>((batch, lost))
        });
        let (lost, _) = renewed.await??;
        self.leases.renewed(&held, &lost, renewed_at);
        self.observe_nodes().await
    }

    /// How often to renew leases, and to check those of others.
    pub(crate) fn lease_interval(&self) -> Duration {
        self.leases.period() / RENEWALS_PER_PERIOD
    }
}

/// Two renewals in a row may fail before others take over.
const RENEWALS_PER_PERIOD: u32 = 3;

/// Another node was faster and has taken the lease.
struct TakenByAnother;
