//! Backups: tables as they were at one moment, which outlive the tables.
//!
//! **A user's backup** is made by one change of the table's definition ([`create`]). Its commit has a stamp, and the table as of
//! that stamp is the backup: whole transactions, nothing in between. From then on the table writes undo rows, so the backup can be
//! restored at once, however large the table is and whatever happens to it. A job copies the items as of the stamp into
//! rows of the backup's own ([`copy`], [`chunk`]), in bounded steps. Then the table no longer holds them ([`release`]).
//!
//! **The database makes a backup** when a table with point-in-time recovery is deleted: the items and the undo rows stay where
//! they are, without a table, until the backup expires.
//!
//! **Who needs the rows of a deleted table** is written in the rows of its backups. A backup that no longer needs them
//! declares the other backups' rows in the same write, so exactly the last one discards them.

mod backup_row;
pub(crate) mod chunk;
mod copy_job;
mod create;
mod list;
mod release;

use std::ops::ControlFlow;
use std::sync::Arc;

use zenobe_store::stamp::parts_of_stamped_key;
use zenobe_store::{Batch, Direction, Key, KeyRange, Reader, Stamp, Value};

use crate::Engine;
use crate::command::TableName;
use crate::error::{Error, RestoreError, Result, TableBackupError};
use crate::keyspace;
use crate::restore::{ResolvedRestore, SourceLock, SourceState};
use crate::schema::{
    Namespace, RestoreSource, TableDefinition, TableDescription, TableId, table_arn,
};

pub use backup_row::{Backup, Content};
pub use copy_job::BackupHandler;
pub(crate) use copy_job::HeldTable;
pub use list::{BackupList, BackupSize, ListBackups};

use backup_row::name_of_remains;

/// How long the backup of a deleted table is kept.
const RETENTION_MS: u64 = 35 * 24 * 60 * 60 * 1_000;

/// The ids of backups that the database makes by itself end like this.
const SYSTEM_SUFFIX: &str = "-00000000";

/// The ARN of a backup, whether or not it exists.
pub fn backup_arn(namespace: &Namespace, table: &str, id: &str) -> String {
    format!("{}/backup/{id}", table_arn(namespace, table))
}

impl Engine {
    /// Adds to `batch` that the rows of a table with point-in-time recovery stay, as its backup.
    pub(crate) fn keep_as_backup(
        &self,
        definition: &TableDefinition,
        last_seen: &TableDescription,
        now_ms: u64,
        batch: &mut Batch,
    ) {
        let backup = Backup {
            id: format!("{now_ms:014}{SYSTEM_SUFFIX}"),
            name: name_of_remains(definition),
            definition: TableDefinition { holds: Vec::new(), ..definition.clone() },
            created_at_ms: now_ms,
            statistics: last_seen.statistics,
            content: Content::Remains { expires_at_ms: now_ms.saturating_add(RETENTION_MS) },
            last_restore: None,
        };
        batch.put(backup.key(), backup.encode());
    }

    pub async fn backup(&self, table: &TableName, id: &str) -> Result<Backup> {
        let found = stored_backup(&*self.store, table, id).await?;
        let now_ms = self.trusted_clock.read().past_ms;
        let is_there = |backup: &Backup| backup.expires_at_ms().is_none_or(|at| at > now_ms);
        found.filter(is_there).ok_or_else(|| not_found(table, id))
    }

    /// What restoring a backup copies.
    pub(crate) async fn backed_up_table(
        &self,
        table: &TableName,
        id: &str,
    ) -> Result<ResolvedRestore> {
        let backup = self.backup(table, id).await?;
        let hold = SourceLock::Backup(Claim::new(&backup));
        let source = SourceState {
            table: table.clone(),
            id: backup.definition.id,
            era: None,
            at: Stamp::from_bits(i64::MAX as u64),
            backup: Some(backup.id.clone()),
        };
        let shown = RestoreSource {
            table_arn: Some(backup.definition.arn()),
            backup_arn: Some(backup.arn()),
            restored_to_ms: backup.created_at_ms,
        };
        Ok(ResolvedRestore { source, definition: Arc::new(backup.definition), shown, hold })
    }

    /// Whether a restore of a backup, or an export of the table that it is of, is running.
    pub(crate) async fn is_in_use(&self, backup: &Backup) -> Result<bool> {
        let sources = self.sources_in_use().await?;
        Ok(sources.iter().any(|source| {
            // A restore or export to a point in time continues with the rows that the deleted table has left.
            let reads_backup = match &source.backup {
                Some(id) => *id == backup.id,
                None => backup.expires_at_ms().is_some(),
            };
            reads_backup && source.id == backup.definition.id
        }))
    }
}

/// A claim to a backup that nobody was restoring: only one restore runs at a time, and none while the backup is deleted.
pub(crate) struct Claim {
    /// The key of the backup's row.
    pub key: Key,
    arn: String,
    /// The last restore when it was known that none was running.
    last_restore: Option<String>,
}

impl Claim {
    /// To be made before looking for running restores.
    fn new(backup: &Backup) -> Claim {
        let last_restore = backup.last_restore.clone();
        Claim { key: backup.key(), arn: backup.arn(), last_restore }
    }

    /// Adds to `batch` that a job restores the backup, given the value of the backup's row.
    pub(crate) fn put(&self, row: Option<&Value>, job_id: &str, batch: &mut Batch) -> Result<()> {
        let mut backup = self.check(row)?;
        backup.last_restore = Some(job_id.to_owned());
        batch.put(self.key.clone(), backup.encode());
        Ok(())
    }

    /// The backup, unless it is gone or another restore has begun.
    fn check(&self, row: Option<&Value>) -> Result<Backup> {
        let arn = || self.arn.clone();
        let backup = row.map(|row| Backup::decode(row)).transpose()?;
        let backup = backup.ok_or_else(|| TableBackupError::NotFound { arn: arn() })?;
        match backup.last_restore == self.last_restore {
            true => Ok(backup),
            false => Err(RestoreError::BackupInUse { arn: arn() }.into()),
        }
    }
}

fn not_found(table: &TableName, id: &str) -> Error {
    TableBackupError::NotFound { arn: backup_arn(&table.namespace, &table.name, id) }.into()
}

/// A backup in some state of the store.
pub(crate) async fn stored_backup(
    reader: &dyn Reader,
    table: &TableName,
    id: &str,
) -> Result<Option<Backup>> {
    let key = keyspace::backup_row(&table.namespace, &table.name, id);
    let row = reader.get(&key).await?;
    row.map(|row| Backup::decode(&row)).transpose()
}

/// The stamp of the commit that made a user's backup, given the prefix of what belongs to it; `None` if the backup is gone.
pub(crate) async fn stamp_of_backup(reader: &dyn Reader, content: &Key) -> Result<Option<Stamp>> {
    let mut found = None;
    let mut visit = |key: &[u8], _: &[u8]| {
        found = parts_of_stamped_key(key).map(|(_, stamp)| stamp);
        ControlFlow::Break(())
    };
    let range = KeyRange::prefix(keyspace::backup_stamp_prefix(content));
    reader.scan_then_get(range, Direction::Forward, Some(1), &mut visit, &[]).await?;
    Ok(found)
}

/// Whether the backup of a deleted table keeps its rows, in some state of the store.
pub(crate) async fn has_remains(
    reader: &dyn Reader,
    table: &TableName,
    id: TableId,
) -> Result<bool> {
    let is_its = |backup: &Backup| backup.definition.id == id && backup.expires_at_ms().is_some();
    let prefix = keyspace::table_backups_prefix(&table.namespace, &table.name);
    Ok(!stored_backups(reader, prefix, is_its).await?.is_empty())
}

/// The backups whose keys have a prefix, as far as `is_wanted`.
async fn stored_backups(
    reader: &dyn Reader,
    prefix: Key,
    is_wanted: impl Fn(&Backup) -> bool + Send + Sync,
) -> Result<Vec<Backup>> {
    let (mut found, mut failure) = (Vec::new(), None);
    let mut visit = |_: &[u8], row: &[u8]| match Backup::decode(row) {
        Ok(backup) => {
            found.extend(Some(backup).filter(&is_wanted));
            ControlFlow::Continue(())
        }
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    };
    reader.scan(KeyRange::prefix(prefix), Direction::Forward, &mut visit).await?;
    failure.map_or(Ok(found), Err)
}
