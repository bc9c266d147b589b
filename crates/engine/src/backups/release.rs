//! Ends the copying of a backup, or the backup itself, and releases the rows of its table that nothing else needs.

use std::sync::Arc;

use zenobe_store::{Batch, Key, KeyRange, Stamp, Value, WriteSet, write_with};

use crate::Engine;
use crate::catalog::edit::Edit;
use crate::command::TableName;
use crate::error::{Error, RestoreError, Result, TableBackupError};
use crate::jobs::{CopyProgress, Job};
use crate::keyspace;
use crate::lease::Lease;
use crate::row::corrupt;
use crate::schema::{ItemStatistics, TableDefinition, TableId};

use super::copy_job::Task;
use super::{Backup, Claim, Content, stamp_of_backup, stored_backups};

impl Engine {
    /// Deletes a user's backup. Its rows go in the background where they can't go at once, and a copy that is running ends.
    pub async fn delete_backup(&self, table: &TableName, id: &str) -> Result<Backup> {
        let backup = self.backup(table, id).await?;
        let arn = backup.arn();
        if let Some(expires_at_ms) = backup.expires_at_ms() {
            return Err(TableBackupError::OfTheSystem { arn, expires_at_ms }.into());
        }
        if self.is_in_use(&backup).await? {
            return Err(TableBackupError::BeingRestored { arn }.into());
        }
        let claim = Claim::new(&backup);
        let content = backup.content_prefix();
        let keys = [claim.key.clone()];
        let set = WriteSet { guards: &[], keys: &keys };
        let deleted = write_with(&*self.store, set, |reads| {
            claim.check(reads[0].as_ref())?;
            let mut batch = Batch::new();
            self.discard(&content, &mut batch);
            batch.delete(keys[0].clone());
            Ok::<_, Error>((batch, ()))
        });
        deleted.await?.map_err(|error| match error {
            Error::Restore(RestoreError::BackupInUse { arn }) => {
                TableBackupError::BeingRestored { arn }.into()
            }
            error => error,
        })?;
        self.background.reclaim(vec![KeyRange::prefix(content)]);
        Ok(backup)
    }

    /// Ends a copy: it is complete, or the backup is gone (`copied` is `None`). The table holds nothing for it any more.
    pub(super) async fn end_copy(
        &self,
        job: &mut Job,
        task: &Task,
        copied: Option<CopyProgress>,
    ) -> Result<()> {
        let end = CopyEnd { job: &*job, task, copied };
        match self.end_hold(&end).await {
            // Another table may have the name by now. One that is being filled has never been backed up.
            Err(Error::TableNotFound { .. } | Error::TableFilling { .. }) => {
                let put = |rows: &[Option<Value>], batch: &mut Batch| end.put(rows, batch);
                let (keys, lease) = (end.keys(), job.lease());
                self.end_need(&task.table, task.table_id, &keys, lease, put).await?;
            }
            ended => ended?,
        }
        job.set_removed();
        Ok(())
    }

    /// Ends a copy while the table is there.
    async fn end_hold(&self, end: &CopyEnd<'_>) -> Result<()> {
        let name = &end.task.table;
        let also = |id: TableId| [&end.keys()[..], &[keyspace::trim_progress(id)]].concat();
        let decide = |before: &TableDefinition, reads: &[Option<Value>]| {
            if before.id != end.task.table_id {
                return Err(Error::TableNotFound { name: name.name.clone() });
            }
            let hold = before.holds.iter().find(|hold| hold.backup == end.task.backup);
            let hold = hold.ok_or_else(|| corrupt("a table without a backup's hold".to_owned()))?;
            let mut edit = Edit::new(before.clone());
            edit.definition.holds.retain(|other| other != hold);
            self.end_unused_era(&mut edit, hold.era);
            end.put(reads, &mut edit.batch)?;
            Ok(edit)
        };
        let lease = end.job.lease();
        let changed = self.catalog.change_under(&*self.store, name, lease, also, decide).await?;
        let (before, after) = (changed.before.definition(), changed.after.definition());
        if let (Some(era), None) = (before.undo_era(), after.undo_era()) {
            let rows = keyspace::undo_prefix(before.id, era);
            self.background.reclaim_later(vec![KeyRange::prefix(rows)]);
        }
        Ok(())
    }

    /// Removes backups that have expired, unless they are just being restored or exported.
    pub(crate) async fn forget_expired_backups(&self, lease: &Lease) -> Result<()> {
        let moment = self.trusted_clock.read();
        if moment.is_paused {
            return Ok(());
        }
        let horizon_ms = moment.past_ms.saturating_sub(self.clock_skew_ms());
        let is_expired =
            |backup: &Backup| backup.expires_at_ms().is_some_and(|at| at <= horizon_ms);
        let prefix = keyspace::backups_prefix();
        for backup in stored_backups(&*self.store, prefix, is_expired).await? {
            let claim = Claim::new(&backup);
            if self.is_in_use(&backup).await? {
                continue;
            }
            let TableDefinition { namespace, name, id, .. } = &backup.definition;
            let table = TableName { namespace: Arc::new(namespace.clone()), name: name.clone() };
            let keys = [backup.key()];
            let delete = |rows: &[Option<Value>], batch: &mut Batch| {
                claim.check(rows[0].as_ref())?;
                batch.delete(keys[0].clone());
                Ok(())
            };
            match self.end_need(&table, *id, &keys, lease, delete).await {
                // A restore has just begun; the next round looks again.
                Err(Error::Restore(_)) => {}
                forgotten => forgotten?,
            }
        }
        Ok(())
    }

    /// The stamp of the oldest backup that is being copied. Nothing after it may be trimmed.
    pub(crate) async fn pinned_by_backups(
        &self,
        definition: &TableDefinition,
    ) -> Result<Option<Stamp>> {
        let mut pinned: Option<Stamp> = None;
        for hold in &definition.holds {
            let TableDefinition { namespace, name, .. } = definition;
            let content = keyspace::backup_content_prefix(namespace, name, &hold.backup);
            // A backup that has been deleted needs nothing.
            let stamp = stamp_of_backup(&*self.store, &content).await?;
            pinned = pinned.into_iter().chain(stamp).min();
        }
        Ok(pinned)
    }

    /// Ends a backup's need for the rows of a deleted table, and discards them if no other backup needs them. `keys` are
    /// the rows that `put` changes, and gets; the backup's own comes first.
    async fn end_need(
        &self,
        table: &TableName,
        id: TableId,
        keys: &[Key],
        lease: &Lease,
        put: impl Fn(&[Option<Value>], &mut Batch) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let prefixes = [keyspace::item_prefix(id), keyspace::undo_rows_prefix(id)];
        let needs = |backup: &Backup| backup.definition.id == id && backup.needs_table_rows();
        let backups = keyspace::table_backups_prefix(&table.namespace, &table.name);
        // No backup of a deleted table can be added, so these are all there will ever be.
        let needing = stored_backups(&*self.store, backups, needs).await?;
        let others = needing.iter().map(Backup::key);
        let others: Vec<Key> = others.filter(|key| *key != keys[0]).collect();
        let all = [keys, &others].concat();
        let set = WriteSet { guards: lease.guards(), keys: &all };
        let written = write_with(&*self.store, set, |reads| {
            let (guards, reads) = reads.split_at(lease.guards().len());
            lease.check(guards)?;
            let (own, others) = reads.split_at(keys.len());
            let mut batch = Batch::new();
            let mut is_needed = false;
            for other in others.iter().flatten() {
                is_needed |= needs(&Backup::decode(other)?);
            }
            if !is_needed {
                prefixes.iter().for_each(|prefix| self.discard(prefix, &mut batch));
            }
            put(own, &mut batch)?;
            Ok::<_, Error>((batch, is_needed))
        });
        let (is_needed, _) = written.await??;
        if !is_needed {
            self.background.reclaim_later(prefixes.map(KeyRange::prefix).to_vec());
        }
        Ok(())
    }
}

/// The end of a copy, for the write that also ends the hold.
struct CopyEnd<'a> {
    job: &'a Job,
    task: &'a Task,
    /// `None` if the backup is gone.
    copied: Option<CopyProgress>,
}

impl CopyEnd<'_> {
    /// The rows of the backup and of the job.
    fn keys(&self) -> [Key; 2] {
        let Task { table, backup, .. } = self.task;
        [keyspace::backup_row(&table.namespace, &table.name, backup), self.job.key()]
    }

    /// Adds the end to `batch`, given the values of [`CopyEnd::keys`].
    fn put(&self, rows: &[Option<Value>], batch: &mut Batch) -> Result<()> {
        self.job.remove(rows[1].as_ref(), batch)?;
        // It may have been deleted since its last item was read.
        let Some(row) = &rows[0] else { return Ok(()) };
        let Some(copied) = &self.copied else {
            return Err(corrupt("a backup that was gone is there again".to_owned()));
        };
        let backup = Backup {
            content: Content::Copied { size_bytes: copied.stored_bytes },
            // What was counted when the backup was made may have been a moment old.
            statistics: ItemStatistics { item_count: copied.items, size_bytes: copied.size_bytes },
            ..Backup::decode(row)?
        };
        batch.put(backup.key(), backup.encode());
        Ok(())
    }
}
