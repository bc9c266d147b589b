//! What a node remembers about leases: those that it holds, and since when those of others have not
//! changed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use zenobe_store::Key;

use super::Lease;
use super::lease_row::{LeaseRow, NodeRow};
use super::takeover::Sighting;

pub(crate) struct Leases {
    node: NodeRow,
    period: Duration,
    is_shared: Arc<AtomicBool>,
    terms: AtomicU64,
    renewals: AtomicU64,
    held: Mutex<BTreeMap<Key, HeldLease>>,
    /// The leases and nodes of others, by the keys of their rows.
    pub(super) seen: Mutex<HashMap<Key, Sighting>>,
}

struct HeldLease {
    lease: Lease,
    row: LeaseRow,
    /// When the last renewal that the store has confirmed was sent.
    renewed_at: Instant,
}

impl Leases {
    pub fn new(
        id: String,
        name: String,
        started_at_ms: u64,
        period: Duration,
        is_shared: bool,
    ) -> Leases {
        let period_ms = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
        let (renewals, clock_ms) = (0, started_at_ms);
        Leases {
            node: NodeRow { id, name, started_at_ms, period_ms, renewals, clock_ms },
            period,
            is_shared: Arc::new(AtomicBool::new(is_shared)),
            terms: AtomicU64::new(0),
            renewals: AtomicU64::new(0),
            held: Mutex::default(),
            seen: Mutex::default(),
        }
    }

    /// The id of this node. Ids are never reused.
    pub fn node_id(&self) -> &str {
        &self.node.id
    }

    pub fn period(&self) -> Duration {
        self.period
    }

    pub fn set_shared(&self, is_shared: bool) {
        self.is_shared.store(is_shared, Ordering::SeqCst);
    }

    /// The right of an engine that has its store for itself, for as long as it has.
    pub fn alone(&self) -> Lease {
        Lease { fence: None, is_shared: Some(Arc::clone(&self.is_shared)) }
    }

    /// The lease, if this node holds it and has renewed it recently enough that no other node can
    /// have it.
    pub fn held(&self, key: &Key) -> Option<Lease> {
        let held = self.held.lock();
        let held = held.get(key).filter(|held| held.renewed_at.elapsed() < self.period)?;
        Some(held.lease.clone())
    }

    pub(super) fn new_row(&self, work: &str, now_ms: u64) -> LeaseRow {
        LeaseRow {
            work: work.to_owned(),
            node: self.node.id.clone(),
            term: self.terms.fetch_add(1, Ordering::Relaxed) + 1,
            renewals: 0,
            period_ms: self.node.period_ms,
            since_ms: now_ms,
        }
    }

    pub(super) fn node_row(&self, now_ms: u64) -> NodeRow {
        let renewals = self.renewals.fetch_add(1, Ordering::Relaxed) + 1;
        NodeRow { renewals, clock_ms: now_ms, ..self.node.clone() }
    }

    pub(super) fn took(&self, key: Key, row: LeaseRow, renewed_at: Instant) -> Lease {
        let lease = Lease::new(&key, &row);
        self.seen.lock().remove(&key);
        self.held.lock().insert(key, HeldLease { lease: lease.clone(), row, renewed_at });
        lease
    }

    pub(super) fn count(&self) -> u64 {
        self.held.lock().len() as u64
    }

    pub(super) fn all(&self) -> Vec<(Key, LeaseRow)> {
        let held = self.held.lock();
        held.iter().map(|(key, held)| (key.clone(), held.row.clone())).collect()
    }

    /// Forgets the lease on some work, or those on all work below a prefix that ends with a slash
    /// or is empty, and returns them.
    pub(super) fn forget(&self, work: &str) -> Vec<(Key, LeaseRow)> {
        let is_prefix = work.is_empty() || work.ends_with('/');
        let is_meant = |held: &str| held == work || is_prefix && held.starts_with(work);
        let mut held = self.held.lock();
        let (forgotten, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut *held).into_iter().partition(|(_, held)| is_meant(&held.row.work));
        *held = kept;
        forgotten.into_iter().map(|(key, held)| (key, held.row)).collect()
    }

    /// Called when the store has confirmed the renewal of all leases in `held` except `lost`.
    pub(super) fn renewed(&self, held: &[(Key, LeaseRow)], lost: &[Key], renewed_at: Instant) {
        let mut leases = self.held.lock();
        for (key, row) in held {
            let Some(lease) = leases.get_mut(key).filter(|now| now.row.term == row.term) else {
                continue;
            };
            if lost.contains(key) {
                tracing::warn!(work = row.work, node = row.node, "this node has lost a lease");
                leases.remove(key);
            } else {
                lease.row = row.next();
                lease.renewed_at = renewed_at;
            }
        }
    }
}
