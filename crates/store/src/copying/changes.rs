//! What has changed in a source while it is copied.

use std::collections::BTreeSet;

use super::CopyResult;
use crate::stamp::stamped_key;
use crate::{CommitOutcome, Key, KeyRange, Mutation, log_entry_key};

/// How many changes between two looks are remembered: some hundred megabytes at most.
pub const CHANGES_MAX: usize = 500_000;

/// Tells which keys have changed.
pub trait ChangeTracker: Send + Sync {
    /// What has changed since the last call, or since the tracker began. A read of the source that
    /// starts later sees all of these changes.
    ///
    /// # Errors
    /// If changes may have been missed.
    fn take(&self) -> CopyResult<ChangedKeys>;
}

/// Changed keys. Their values are to be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangedKeys {
    pub keys: BTreeSet<Key>,
    pub ranges: Vec<KeyRange>,
    /// Logs whose end has changed.
    pub logs: BTreeSet<Key>,
}

impl ChangedKeys {
    /// Adds what a committed batch has changed.
    pub fn add(&mut self, mutations: &[Mutation], outcome: &CommitOutcome) {
        let mut sequences = outcome.sequences.iter();
        for mutation in mutations {
            match mutation {
                Mutation::Put { key, .. }
                | Mutation::Delete { key }
                | Mutation::Add { key, .. } => {
                    self.keys.insert(key.clone());
                }
                Mutation::DeleteRange { range } => self.ranges.push(range.clone()),
                Mutation::Append { log, .. } => {
                    let sequence = sequences.next().expect("every append has a number");
                    self.keys.insert(log_entry_key(log, *sequence));
                    self.logs.insert(log.clone());
                }
                Mutation::ForgetLog { log } | Mutation::SetLogEnd { log, .. } => {
                    self.logs.insert(log.clone());
                }
                Mutation::PutStamped(put) => {
                    let stamp = outcome.stamp.expect("a store with a tracker tells its stamps");
                    self.keys.insert(stamped_key(&put.key, stamp));
                    self.logs.insert(put.clock.clone());
                }
                // A clock is a log without entries.
                Mutation::Advance { clock, .. } => {
                    self.logs.insert(clock.clone());
                }
            }
        }
    }

    pub fn len(&self) -> usize {
        self.keys.len() + self.ranges.len() + self.logs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
