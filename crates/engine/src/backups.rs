//! Backups that outlive their tables. Deleting a table with point-in-time recovery leaves one: the items and the undo rows
//! stay where they are, without a table, until the backup expires.

use std::ops::ControlFlow;
use std::sync::Arc;

use zenobe_store::{Batch, Direction, Key, KeyRange, Reader, Stamp, Value, WriteSet, write_with};

use crate::Engine;
use crate::catalog::definition_row;
use crate::command::TableName;
use crate::error::{Error, HistoryError, Result};
use crate::keyspace;
use crate::lease::Lease;
use crate::restore::{Found, KIND, Source};
use crate::row::Fields;
use crate::schema::{
    ItemStatistics, Namespace, RestoreSource, TableDefinition, TableDescription, TableId, table_arn,
};

/// How long the backup of a deleted table is kept.
const RETENTION_MS: u64 = 35 * 24 * 60 * 60 * 1_000;

/// The ids of backups that the database makes by itself end like this.
const SYSTEM_SUFFIX: &str = "-00000000";

/// A backup of a deleted table.
#[derive(Debug, Clone, PartialEq)]
pub struct Backup {
    pub id: String,
    /// As it was when it was deleted.
    pub definition: TableDefinition,
    pub created_at_ms: u64,
    pub expires_at_ms: u64,
    pub statistics: ItemStatistics,
}

const FORMAT: u64 = 1;
const WHAT: &str = "a backup's row";

impl Backup {
    pub fn name(&self) -> String {
        format!("{}$DeletedTableBackup", self.definition.name)
    }

    pub fn arn(&self) -> String {
        backup_arn(&self.definition.namespace, &self.definition.name, &self.id)
    }

    fn key(&self) -> Key {
        keyspace::backup_row(&self.definition.namespace, &self.definition.name, &self.id)
    }

    fn encode(&self) -> Value {
        let mut fields = Fields::default();
        fields.number("format", FORMAT);
        fields.text("id", &self.id);
        fields.map("table", definition_row::encode(&self.definition).0);
        fields.number("created_at_ms", self.created_at_ms);
        fields.number("expires_at_ms", self.expires_at_ms);
        fields.number("item_count", self.statistics.item_count);
        fields.number("size_bytes", self.statistics.size_bytes);
        fields.encode()
    }

    fn decode(row: &[u8]) -> Result<Backup> {
        let mut fields = Fields::decode(row, WHAT)?;
        fields.check_format(WHAT, FORMAT)?;
        Ok(Backup {
            id: fields.take_text("id")?,
            definition: definition_row::decode(Fields(fields.take_map("table")?))?,
            created_at_ms: fields.take_number("created_at_ms")?,
            expires_at_ms: fields.take_number("expires_at_ms")?,
            statistics: ItemStatistics {
                item_count: fields.take_number("item_count")?,
                size_bytes: fields.take_number("size_bytes")?,
            },
        })
    }

    /// What a backup keeps of its table.
    fn prefixes(&self) -> [Key; 2] {
        let id = self.definition.id;
        [keyspace::item_prefix(id), keyspace::undo_rows_prefix(id)]
    }
}

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
            definition: definition.clone(),
            created_at_ms: now_ms,
            expires_at_ms: now_ms.saturating_add(RETENTION_MS),
            statistics: last_seen.statistics,
        };
        batch.put(backup.key(), backup.encode());
    }

    /// The backups of an account, by table, oldest first.
    pub async fn backups(&self, namespace: &Namespace) -> Result<Vec<Backup>> {
        let prefix = keyspace::namespace_backups_prefix(namespace);
        let now_ms = self.trusted_clock.read().past_ms;
        let mut backups = rows(&*self.store, KeyRange::prefix(prefix)).await?;
        backups.retain(|backup| backup.expires_at_ms > now_ms);
        Ok(backups)
    }

    pub async fn backup(&self, table: &TableName, id: &str) -> Result<Backup> {
        let key = keyspace::backup_row(&table.namespace, &table.name, id);
        let found = self.store.get(&key).await?;
        let backup = found.as_ref().map(|row| Backup::decode(row)).transpose()?;
        let now_ms = self.trusted_clock.read().past_ms;
        let backup = backup.filter(|backup| backup.expires_at_ms > now_ms);
        backup.ok_or_else(|| HistoryError::BackupNotFound { id: id.to_owned() }.into())
    }

    /// What restoring a backup copies.
    pub(crate) async fn backed_up_table(&self, table: &TableName, id: &str) -> Result<Found> {
        let backup = self.backup(table, id).await?;
        let source = Source {
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
        Ok(Found { source, definition: Arc::new(backup.definition), shown })
    }

    /// Removes backups that have expired, unless they are just being restored.
    pub(crate) async fn forget_expired_backups(&self, lease: &Lease) -> Result<()> {
        let moment = self.trusted_clock.read();
        if moment.is_paused {
            return Ok(());
        }
        let horizon_ms = moment.past_ms.saturating_sub(self.clock_skew_ms());
        for backup in rows(&*self.store, KeyRange::prefix(keyspace::backups_prefix())).await? {
            let is_expired = backup.expires_at_ms <= horizon_ms;
            if is_expired && !self.is_being_restored(backup.definition.id).await? {
                self.forget_backup(&backup, lease).await?;
            }
        }
        Ok(())
    }

    async fn is_being_restored(&self, id: TableId) -> Result<bool> {
        for job in self.open_jobs().await?.iter().filter(|job| job.kind == KIND) {
            if Source::decode(job.parameters.clone())?.id == id {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn forget_backup(&self, backup: &Backup, lease: &Lease) -> Result<()> {
        let keys = [backup.key()];
        let set = WriteSet { guards: lease.guards(), keys: &keys };
        let forgotten = write_with(&*self.store, set, |reads| {
            lease.check(&reads[..lease.guards().len()])?;
            let mut batch = Batch::new();
            backup.prefixes().iter().for_each(|prefix| self.discard(prefix, &mut batch));
            batch.delete(keys[0].clone());
            Ok::<_, Error>((batch, ()))
        });
        forgotten.await??;
        self.background.reclaim_later(backup.prefixes().map(KeyRange::prefix).to_vec());
        Ok(())
    }
}

/// Whether a backup keeps the rows of a deleted table, in this state of the store.
pub(crate) async fn is_backed_up(
    reader: &dyn Reader,
    table: &TableName,
    id: TableId,
) -> Result<bool> {
    let prefix = keyspace::table_backups_prefix(&table.namespace, &table.name);
    let backups = rows(reader, KeyRange::prefix(prefix)).await?;
    Ok(backups.iter().any(|backup| backup.definition.id == id))
}

async fn rows(reader: &dyn Reader, range: KeyRange) -> Result<Vec<Backup>> {
    let mut rows = Vec::new();
    let mut visit = |_: &[u8], row: &[u8]| {
        rows.push(Backup::decode(row));
        ControlFlow::Continue(())
    };
    reader.scan(range, Direction::Forward, &mut visit).await?;
    rows.into_iter().collect()
}
