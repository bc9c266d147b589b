//! How a test makes the engine lag as DynamoDB does. Otherwise it is off: each place that could lag
//! checks one `Option`.

use std::sync::Arc;
use std::time::Duration;

use zenobe_store::recent::{RecentStates, Retention};
use zenobe_store::{Replica, Store};

use crate::Engine;
use crate::clock::Clock;
use crate::command::TableName;

/// How late the engine is, asked whenever it matters. Answers may change at any time.
pub trait Lateness: Send + Sync {
    /// No answer of [`Lateness::read_lag_ms`] is greater; 0 while no read lags.
    fn read_lag_ms_max(&self) -> u64;

    /// How far behind the next eventually consistent read of a table or an index is.
    fn read_lag_ms(&self, table: &TableName, index: Option<&str>) -> u64;

    /// How long each status of a global index of the table lasts at least.
    fn index_status_delay(&self, table: &TableName) -> Duration;

    /// How long after its time an item of the table is deleted.
    fn expiry_delay_ms(&self, table: &TableName) -> u64;

    /// How long after its commit a record of the table's stream shows. The same for the same record.
    fn record_delay_ms(&self, table: &TableName, shard: u32, entry: u64) -> u64;
}

/// The lateness of an engine, and the past states to read from.
pub(crate) struct EngineLateness {
    pub rules: Arc<dyn Lateness>,
    recent: Arc<RecentStates>,
}

impl EngineLateness {
    /// Returns also the store to use from now on: the same one, with a memory.
    pub fn new(
        rules: Arc<dyn Lateness>,
        store: Arc<dyn Store>,
        clock: &Arc<dyn Clock>,
    ) -> (EngineLateness, Arc<dyn Store>) {
        let retention = ReadWindow { rules: rules.clone(), clock: clock.clone() };
        let recent = Arc::new(RecentStates::new(store, retention));
        (EngineLateness { rules, recent: recent.clone() }, recent)
    }

    /// The state that an eventually consistent read sees, unless it is the present one.
    pub fn replica(
        &self,
        now_ms: u64,
        table: &TableName,
        index: Option<&str>,
    ) -> Option<Arc<dyn Replica>> {
        match self.rules.read_lag_ms(table, index) {
            0 => None,
            lag_ms => self.recent.as_of(now_ms.saturating_sub(lag_ms)),
        }
    }
}

struct ReadWindow {
    rules: Arc<dyn Lateness>,
    clock: Arc<dyn Clock>,
}

impl Retention for ReadWindow {
    fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    fn window_ms(&self) -> u64 {
        self.rules.read_lag_ms_max()
    }
}

impl Engine {
    /// How long an index of the table keeps each status at least.
    pub(crate) fn index_status_delay(&self, table: &TableName) -> Duration {
        let asked = self.lateness.as_ref().map(|late| late.rules.index_status_delay(table));
        asked.unwrap_or_default().max(self.index_status_delay)
    }

    /// How much later than due an item of the table expires.
    pub(crate) fn expiry_delay_ms(&self, table: &TableName) -> u64 {
        self.lateness.as_ref().map_or(0, |late| late.rules.expiry_delay_ms(table))
    }
}
