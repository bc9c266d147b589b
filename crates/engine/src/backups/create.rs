//! CreateBackup: one change of the table's definition.

use zenobe_store::Value;
use zenobe_value::Attributes;

use crate::Engine;
use crate::catalog::edit::Edit;
use crate::command::TableName;
use crate::error::{Error, Result, TableBackupError};
use crate::history::era::open_era;
use crate::jobs::{JobRow, NewJob, key_of};
use crate::keyspace;
use crate::lease::Lease;
use crate::schema::{Hold, ItemStatistics, TableDefinition, TableId};

use super::copy_job::{KIND, Task};
use super::{Backup, Content};

/// How many backups of a table may wait for their copies. Each is an entry in the table's definition.
const HOLDS_MAX: usize = 50;

/// How often to choose an id. It is random within a millisecond.
const ATTEMPTS_MAX: usize = 5;

impl Engine {
    /// Backs up a table as it is now. The backup can be restored when this returns.
    pub async fn create_backup(&self, table: &TableName, name: &str) -> Result<Backup> {
        let described = self.describe_table(table).await?;
        if described.definition.filling.is_some() {
            return Err(Error::TableNotFound { name: table.name.clone() });
        }
        for _ in 1..ATTEMPTS_MAX {
            match self.try_create_backup(table, name, described.statistics).await {
                Err(Error::Conflict) => {}
                created => return created,
            }
        }
        self.try_create_backup(table, name, described.statistics).await
    }

    /// Fails with [`Error::Conflict`] if another backup has got the same id.
    async fn try_create_backup(
        &self,
        table: &TableName,
        name: &str,
        statistics: ItemStatistics,
    ) -> Result<Backup> {
        let now_ms = self.trusted_clock.read().plausible_ms;
        let random = self.random.uuid();
        let id = format!("{now_ms:014}-{}", &random[..8]);
        let backup_of = |before: &TableDefinition, era: u32| Backup {
            id: id.clone(),
            name: name.to_owned(),
            definition: TableDefinition { holds: Vec::new(), ..before.clone() },
            created_at_ms: now_ms,
            statistics,
            content: Content::Held { era },
            last_restore: None,
        };
        let job = self.new_copy_job(table);
        let job_of = |before: &TableDefinition| {
            let task = Task { table: table.clone(), table_id: before.id, backup: id.clone() };
            JobRow { parameters: task.encode(), ..job.clone() }
        };
        let row_key = keyspace::backup_row(&table.namespace, &table.name, &id);
        let content = keyspace::backup_content_prefix(&table.namespace, &table.name, &id);
        let decide = |before: &TableDefinition, reads: &[Option<Value>]| {
            if reads.iter().any(Option::is_some) {
                return Err(Error::Conflict);
            }
            if before.holds.len() >= HOLDS_MAX {
                return Err(TableBackupError::TooMany.into());
            }
            let mut edit = Edit::new(before.clone());
            let era = open_era(&mut edit.definition);
            edit.definition.holds.push(Hold { era, backup: id.clone() });
            edit.batch.put(row_key.clone(), backup_of(before, era).encode());
            edit.batch.put(key_of(&job), job_of(before).encode());
            // Every change that is already committed has a smaller stamp, every later one a greater: their writes and this
            // one exclude each other, because all of them declare the table's version row.
            let stamp_key = keyspace::backup_stamp_prefix(&content);
            let clock = keyspace::undo_rows_prefix(before.id);
            edit.batch.put_stamped(clock, now_ms, stamp_key, Value::new());
            Ok(edit)
        };
        let also = |_: TableId| vec![row_key.clone(), key_of(&job)];
        let nobodys = Lease::default();
        let changed =
            self.catalog.change_under(&*self.store, table, &nobodys, also, decide).await?;
        self.background.wake();
        let era = changed.after.definition().holds.last().map_or(0, |hold| hold.era);
        Ok(backup_of(changed.before.definition(), era))
    }

    /// The job that copies a backup, without its parameters.
    fn new_copy_job(&self, table: &TableName) -> JobRow {
        self.new_job_row(NewJob {
            namespace: (*table.namespace).clone(),
            kind: KIND,
            table: Some(table.name.clone()),
            token: None,
            token_lifetime_ms: 0,
            parameters: Attributes::new(),
            progress: Attributes::new(),
        })
    }
}
