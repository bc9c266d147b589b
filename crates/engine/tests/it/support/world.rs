//! A script with its store and its clock, for tests that look into the store and move the time.

use std::sync::Arc;

use zenobe_engine::Engine;
use zenobe_engine::clock::ManualClock;
use zenobe_store::memory::MemoryStore;

use super::commands::Script;
use super::{count_keys, open};

pub const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
pub const START_MS: u64 = 100 * DAY_MS;

pub struct World {
    pub store: Arc<MemoryStore>,
    pub clock: Arc<ManualClock>,
    pub script: Script,
}

impl World {
    pub async fn new(store: MemoryStore) -> World {
        let clock = Arc::new(ManualClock::new(START_MS));
        let store = Arc::new(store);
        let script = open(store.clone(), &clock).await;
        World { store, clock, script }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        self.script.engine()
    }

    /// Switches recovery of table `t` on or off.
    pub async fn recover(&self, is_on: bool, days: Option<u32>) {
        let table = self.script.table("t");
        self.engine().update_continuous_backups(&table, is_on, days).await.unwrap();
    }

    /// How many keys of the store begin with this byte.
    pub async fn count(&self, kind: u8) -> usize {
        count_keys(&*self.store, kind).await
    }
}
