//! Named snapshots of the database, shared by the server and its forks.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use zenobe_database::MemorySnapshot;

use super::ControlError;

/// Each keeps in memory what has changed since.
const SNAPSHOTS_MAX: usize = 64;
const NAME_LENGTH_MAX: usize = 64;

/// A database as it was, and the time that it showed, if its clock is driven.
pub struct TimedSnapshot {
    pub snapshot: MemorySnapshot,
    pub clock_ms: Option<u64>,
}

impl TimedSnapshot {
    pub fn empty() -> TimedSnapshot {
        TimedSnapshot { snapshot: MemorySnapshot::empty(), clock_ms: None }
    }
}

#[derive(Default)]
pub struct Snapshots {
    by_name: Mutex<BTreeMap<String, Arc<TimedSnapshot>>>,
}

impl Snapshots {
    /// Keeps a snapshot; an earlier one of that name is replaced.
    pub fn keep(&self, name: &str, snapshot: TimedSnapshot) -> Result<(), ControlError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !(1..=NAME_LENGTH_MAX).contains(&name.len()) || !name.bytes().all(is_allowed) {
            return Err(ControlError::SnapshotName { name: name.to_owned() });
        }
        let mut by_name = self.by_name.lock();
        if by_name.len() >= SNAPSHOTS_MAX && !by_name.contains_key(name) {
            return Err(ControlError::TooManySnapshots { max: SNAPSHOTS_MAX });
        }
        by_name.insert(name.to_owned(), Arc::new(snapshot));
        Ok(())
    }

    pub fn get(&self, name: &str) -> Result<Arc<TimedSnapshot>, ControlError> {
        let found = self.by_name.lock().get(name).cloned();
        found.ok_or_else(|| ControlError::NoSnapshot { name: name.to_owned() })
    }

    pub fn remove(&self, name: &str) -> Result<(), ControlError> {
        match self.by_name.lock().remove(name) {
            Some(_) => Ok(()),
            None => Err(ControlError::NoSnapshot { name: name.to_owned() }),
        }
    }

    pub fn describe(&self) -> Value {
        let by_name = self.by_name.lock();
        json!({"snapshots": by_name.keys().collect::<Vec<_>>(), "max": SNAPSHOTS_MAX})
    }
}
