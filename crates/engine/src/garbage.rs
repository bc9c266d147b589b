//! The remains of deleted tables, indexes and shards.
//!
//! On a store of this process a range is deleted at once, whatever its size. On a shared store that
//! could be a transaction of any size. There, the write that turns a range into garbage adds a row
//! that says so, and background work deletes the entries in bounded steps. Nobody reads them in the
//! meantime. Ids are never reused, except that of an expiry index, whose garbage ends with the next
//! one.

use std::ops::ControlFlow;

use zenobe_store::{Batch, Direction, Key, KeyRange, Mutation, Value, WriteSet, write_with};

use crate::Engine;
use crate::error::{Error, Result};
use crate::keyspace;
use crate::lease::Lease;

/// How many entries to delete at once.
const ENTRIES_AT_ONCE_MAX: usize = 1_000;

impl Engine {
    /// Adds to `batch` that everything with this prefix must be deleted.
    pub(crate) fn discard(&self, prefix: &Key, batch: &mut Batch) {
        match self.is_shared() {
            true => batch.put(keyspace::garbage_row(prefix), Value::new()),
            false => batch.delete_range(KeyRange::prefix(prefix.clone())),
        }
    }

    /// Adds to `batch` that a log must be deleted, with its numbering.
    pub(crate) fn discard_log(&self, log: &Key, batch: &mut Batch) {
        match self.is_shared() {
            true => {
                self.discard(log, batch);
                batch.mutations.push(Mutation::ForgetLog { log: log.clone() });
            }
            false => batch.drop_log(log.clone()),
        }
    }

    /// Deletes all garbage. If one row fails, the others still proceed.
    pub(crate) async fn collect_garbage(&self, lease: &Lease) -> Result<()> {
        let mut outcome = Ok(());
        for row in self.keys_of(KeyRange::prefix(keyspace::garbage_prefix()), usize::MAX).await? {
            let collected = self.collect(&row, lease).await;
            if let Err(error @ Error::LeaseLost { .. }) = collected {
                return Err(error);
            }
            outcome = outcome.and(collected);
        }
        outcome
    }

    async fn collect(&self, row: &Key, lease: &Lease) -> Result<()> {
        let all = KeyRange::prefix(keyspace::prefix_of_garbage(row));
        loop {
            let step = self.background.pace.begin_step();
            let entries = self.keys_of(all.clone(), ENTRIES_AT_ONCE_MAX).await?;
            let is_last = entries.len() < ENTRIES_AT_ONCE_MAX;
            let range = match entries.last().filter(|_| !is_last) {
                Some(last) => KeyRange::new(all.start.clone(), [last, &[0][..]].concat()),
                None => all.clone(),
            };
            if !self.delete_garbage(row, range, is_last, lease).await? || is_last {
                return Ok(());
            }
            step.rest().await;
        }
    }

    /// Deletes a part, and with the last part the row, if it is still garbage.
    async fn delete_garbage(
        &self,
        row: &Key,
        range: KeyRange,
        is_last: bool,
        lease: &Lease,
    ) -> Result<bool> {
        let set = WriteSet { guards: lease.guards(), keys: std::slice::from_ref(row) };
        let deleted = write_with(&*self.store, set, |reads| {
            let (guards, rows) = reads.split_at(lease.guards().len());
            lease.check(guards)?;
            let mut batch = Batch::new();
            let is_garbage = rows[0].is_some();
            if is_garbage {
                batch.delete_range(range.clone());
            }
            if is_garbage && is_last {
                batch.delete(row.clone());
            }
            Ok::<_, Error>((batch, is_garbage))
        });
        let (is_garbage, _) = deleted.await??;
        Ok(is_garbage)
    }

    async fn keys_of(&self, range: KeyRange, count_max: usize) -> Result<Vec<Key>> {
        let mut keys = Vec::new();
        let mut visit = |key: &[u8], _: &[u8]| {
            keys.push(Key::copy_from_slice(key));
            match keys.len() < count_max {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        self.store.scan(range, Direction::Forward, &mut visit).await?;
        Ok(keys)
    }
}
