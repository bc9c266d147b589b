//! The job that copies a backup's items out of its table.
//!
//! It reads the table as of the backup's stamp in bounded steps. Each step writes its chunks and how far the job has come in one
//! write, so no item is ever stored twice, wherever the process dies. The backup's row guards these writes: once the
//! backup is deleted, nothing is added to it.

use std::ops::ControlFlow;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use zenobe_store::{Direction, Key, KeyRange, Reader, Value};
use zenobe_value::{Attributes, EncodedItem};

use crate::Engine;
use crate::command::TableName;
use crate::error::{Error, Result, TableBackupError};
use crate::history::Past;
use crate::jobs::{CopyProgress, Job, JobHandler};
use crate::keyspace;
use crate::row::{Fields, corrupt};
use crate::schema::{Namespace, TableId};
use crate::write::decode_stored;

use super::chunk::Packer;
use super::{Backup, Content, not_found, stamp_of_backup, stored_backup};

pub(super) const KIND: &str = "backup";

/// How much is read, and written in one atomic write.
const STEP_ITEMS_MAX: usize = 10_000;
const STEP_BYTES_MAX: usize = 2 << 20;

/// Copies backups.
pub struct BackupHandler;

impl JobHandler for BackupHandler {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn run<'a>(&'a self, engine: &'a Engine, job: &'a mut Job) -> BoxFuture<'a, Result<()>> {
        run(engine, job).boxed()
    }
}

async fn run(engine: &Engine, job: &mut Job) -> Result<()> {
    let task = Task::decode(job.row().parameters.clone())?;
    loop {
        let progress = CopyProgress::decode(&job.row().progress)?;
        let now = engine.store.snapshot();
        let Some(backup) = stored_backup(&*now, &task.table, &task.backup).await? else {
            // It has been deleted.
            return engine.end_copy(job, &task, None).await;
        };
        let held = HeldTable::of(&backup);
        let held = held.ok_or_else(|| corrupt("the job of a backup that is copied".to_owned()))?;
        let paced = engine.background.pace.begin_step();
        let items = held.read(now, progress.position.as_deref()).await?;
        if items.is_empty() {
            return engine.end_copy(job, &task, Some(progress)).await;
        }
        held.write(engine, job, &task, &progress, &items).await?;
        paced.rest().await;
    }
}

/// What a job copies.
pub(super) struct Task {
    pub table: TableName,
    /// Another table may get the name before the copy is complete.
    pub table_id: TableId,
    /// The backup's id.
    pub backup: String,
}

impl Task {
    pub(super) fn encode(&self) -> Attributes {
        let mut fields = Fields::default();
        fields.text("account", &self.table.namespace.account);
        fields.text("region", &self.table.namespace.region);
        fields.text("table", &self.table.name);
        fields.number("table_id", self.table_id.0);
        fields.text("backup", &self.backup);
        fields.0
    }

    fn decode(parameters: Attributes) -> Result<Task> {
        let mut fields = Fields(parameters);
        let namespace = Namespace {
            account: fields.take_text("account")?,
            region: fields.take_text("region")?,
        };
        let table = TableName { namespace: Arc::new(namespace), name: fields.take_text("table")? };
        Ok(Task {
            table,
            table_id: TableId(fields.take_number("table_id")?),
            backup: fields.take_text("backup")?,
        })
    }
}

/// The table of a backup that has not been copied, as of the backup's stamp.
pub(crate) struct HeldTable {
    backup_key: Key,
    content: Key,
    item_prefix: Key,
    undo_prefix: Key,
}

impl HeldTable {
    /// `None` if the backup does not read its table.
    pub(crate) fn of(backup: &Backup) -> Option<HeldTable> {
        let Content::Held { era } = backup.content else { return None };
        let id = backup.definition.id;
        Some(HeldTable {
            backup_key: backup.key(),
            content: backup.content_prefix(),
            item_prefix: keyspace::item_prefix(id),
            undo_prefix: keyspace::undo_prefix(id, era),
        })
    }

    /// The items, from this state of the store.
    pub(crate) async fn open(&self, now: Arc<dyn Reader>) -> Result<Past> {
        let at = stamp_of_backup(&*now, &self.content).await?;
        let at = at.ok_or_else(|| corrupt("a backup without a stamp".to_owned()))?;
        let (item_prefix, undo_prefix) = (self.item_prefix.clone(), self.undo_prefix.clone());
        Ok(Past { now, item_prefix, undo_prefix, at, known: None })
    }

    async fn read(
        &self,
        now: Arc<dyn Reader>,
        position: Option<&[u8]>,
    ) -> Result<Vec<(Key, EncodedItem)>> {
        let past = self.open(now).await?;
        let mut range = KeyRange::prefix(self.item_prefix.clone());
        if let Some(position) = position {
            range.start = [position, &[0]].concat().into();
        }
        let (mut rows, mut size_bytes) = (Vec::new(), 0);
        let mut visit = |key: &[u8], value: &[u8]| {
            rows.push((Key::copy_from_slice(key), Value::copy_from_slice(value)));
            size_bytes += value.len();
            match rows.len() < STEP_ITEMS_MAX && size_bytes < STEP_BYTES_MAX {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        past.scan(range, Direction::Forward, &mut visit).await?;
        rows.into_iter().map(|(key, value)| Ok((key, decode_stored(&value)?))).collect()
    }

    /// Stores items as chunks of the backup, unless it has been deleted in the meantime.
    async fn write(
        &self,
        engine: &Engine,
        job: &mut Job,
        task: &Task,
        progress: &CopyProgress,
        items: &[(Key, EncodedItem)],
    ) -> Result<()> {
        let mut packer = Packer::new(&self.content);
        items.iter().for_each(|(key, item)| packer.add(key, item));
        let chunks = packer.finish();
        let stored_bytes: usize = chunks.iter().map(|(key, chunk)| key.len() + chunk.len()).sum();
        let Some((passed, _)) = items.last() else { return Ok(()) };
        let mut progress = progress.after(items.iter().map(|(_, item)| item), passed);
        progress.stored_bytes += stored_bytes as u64;
        let progress = progress.encode();
        let guards = std::slice::from_ref(&self.backup_key);
        let saved = job.save_with(engine, progress, guards, |rows, batch| {
            if rows[0].is_none() {
                return Err(not_found(&task.table, &task.backup));
            }
            chunks.iter().for_each(|(key, chunk)| batch.put(key.clone(), chunk.clone()));
            Ok(())
        });
        match saved.await {
            Err(Error::Backup(TableBackupError::NotFound { .. })) => Ok(()),
            saved => saved,
        }
    }
}
