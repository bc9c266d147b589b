//! Handing a store over to another while it is in use: the last step of a *move*.
//!
//! A move copies the store, and meanwhile holds a [`ChangeTapGuard`], which names what changes. When little is left, it
//! pauses writes ([`PausedWrites`]): they wait, and reads continue. What is in flight is finished and copied. Then the
//! store is sealed (a row says where its content has gone) and handed over. From then on its handle passes everything
//! to its successor, and the waiting writes continue there as if nothing had happened. Until then, no read or write
//! pays for any of this: both look for a successor only when they find the store closed.

use std::future::poll_fn;
use std::sync::Arc;

use zenobe_store::copying::{self, ChangeTracker, ChangedKeys, Seal};
use zenobe_store::{Batch, Decision, Error, Key, LogEnd, Result, Store, Value, WriteSet};

use crate::commit;
use crate::inner::Inner;
use crate::numbers::decode_log_end;
use crate::rocks_database::rocksdb_error;
use crate::{CommitThread, EmbeddedStore, finish, spawn};

impl EmbeddedStore {
    /// Begins to record what changes. There may be one at a time.
    ///
    /// # Errors
    /// If the store has failed and not recovered yet: it may then find writes that are not recorded.
    pub fn track_changes(&self) -> Result<ChangeTapGuard> {
        self.inner.change_tap.open();
        let tap = ChangeTapGuard { inner: Arc::clone(&self.inner) };
        // A failure that comes later finds the tap open.
        match self.inner.queue.failure() {
            Some(detail) => Err(Error::WritesRefused { detail }),
            None => Ok(tap),
        }
    }

    /// Makes writes wait, until the result is dropped, and finishes those in flight.
    pub async fn pause_writes(&self) -> Result<PausedWrites> {
        self.inner.queue.pause();
        let paused = PausedWrites {
            inner: Arc::clone(&self.inner),
            commit_thread: Arc::clone(&self.commit_thread),
        };
        poll_fn(|context| self.inner.queue.poll_drained(context)).await?;
        Ok(paused)
    }

    /// Whether another store has taken over.
    pub fn is_handed_over(&self) -> bool {
        self.successor().is_some()
    }

    pub(crate) fn successor(&self) -> Option<&Arc<dyn Store>> {
        self.inner.successor.get()
    }
}

/// Records changes until it is dropped.
pub struct ChangeTapGuard {
    inner: Arc<Inner>,
}

impl ChangeTracker for ChangeTapGuard {
    fn take(&self) -> copying::CopyResult<ChangedKeys> {
        self.inner.change_tap.take()
    }
}

impl Drop for ChangeTapGuard {
    fn drop(&mut self) {
        self.inner.change_tap.close();
    }
}

/// Writes wait for as long as this exists.
pub struct PausedWrites {
    inner: Arc<Inner>,
    commit_thread: Arc<CommitThread>,
}

impl PausedWrites {
    /// Writes the row that says where the content goes, or has gone.
    pub async fn seal(&self, seal: &Seal) -> Result<()> {
        self.write_seal(Some(seal.encode())).await
    }

    /// Removes that row: the content stays.
    pub async fn unseal(&self) -> Result<()> {
        self.write_seal(None).await
    }

    async fn write_seal(&self, value: Option<Value>) -> Result<()> {
        let keys = [Seal::key()];
        let mut decide = |_: &[Option<Value>]| {
            let mut batch = Batch::new();
            match &value {
                Some(value) => batch.put(Seal::key(), value.clone()),
                None => batch.delete(Seal::key()),
            }
            Decision::Commit(batch)
        };
        let set = WriteSet { guards: &[], keys: &keys };
        commit::write_in_pause(&self.inner, set, &mut decide).await.map(drop)
    }

    /// Has `successor` answer everything from now on, and closes the files in the background.
    pub fn hand_over(self, successor: Arc<dyn Store>) {
        self.inner.hand_over(successor);
        let (inner, commit_thread) = (Arc::clone(&self.inner), Arc::clone(&self.commit_thread));
        if let Err(error) = spawn("zenobe-close", move || finish(&inner, &commit_thread)) {
            tracing::warn!(
                "cannot close the files in the background; they stay open until the process ends: {error}"
            );
        }
    }
}

impl Drop for PausedWrites {
    fn drop(&mut self) {
        self.inner.queue.resume();
    }
}

/// The ends of append logs, as the last commit left them.
pub(crate) async fn log_ends(
    inner: &Inner,
    start: &[u8],
    count_max: usize,
) -> Result<Vec<(Key, LogEnd)>> {
    let snapshot = inner.published.wait().await?;
    let database = snapshot.database();
    let mut entries = database.rocks().raw_iterator_cf(database.log_ends());
    entries.seek(start);
    let mut found = Vec::new();
    while found.len() < count_max
        && let Some((log, end)) = entries.item()
    {
        let end = decode_log_end(end).ok_or_else(|| Error::Corrupt {
            detail: format!("the end of a log in {} bytes, expected 16", end.len()),
        })?;
        found.push((Key::copy_from_slice(log), end));
        entries.next();
    }
    entries.status().map_err(|error| rocksdb_error(&error))?;
    Ok(found)
}
