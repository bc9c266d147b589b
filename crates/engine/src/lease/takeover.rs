//! When a node may take a lease: if nobody has it, if this node had it, or if its row has not changed for the period that it
//! names.

use std::time::Duration;

use tokio::time::Instant;
use zenobe_store::{Key, Value};

use super::Leases;
use super::lease_row::LeaseRow;
use crate::error::Result;

/// A row of another node as it was found, and since when it has not changed.
pub(super) struct Sighting {
    row: Value,
    since: Instant,
}

impl Leases {
    /// Whether a lease that this node does not hold can be taken, given its row.
    pub fn may_take(&self, key: &Key, row: Option<&Value>) -> Result<bool> {
        let Some(stored) = row else { return Ok(true) };
        let row = LeaseRow::decode(stored)?;
        // This node took it with a write whose response was lost, or could not renew it in time,
        // and nobody else has taken it.
        if row.node == self.node_id() {
            return Ok(true);
        }
        let since = self.sight(key, stored);
        Ok(since.elapsed() >= Duration::from_millis(row.period_ms))
    }

    /// Records another node's row, and returns since when it has not changed.
    pub(super) fn sight(&self, key: &Key, row: &Value) -> Instant {
        let mut seen = self.seen.lock();
        match seen.get(key) {
            Some(sighting) if sighting.row == *row => sighting.since,
            _ => {
                let since = Instant::now();
                seen.insert(key.clone(), Sighting { row: row.clone(), since });
                since
            }
        }
    }
}
