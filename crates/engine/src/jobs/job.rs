//! A job in the hands of its handler.

use std::sync::Arc;

use parking_lot::Mutex;
use zenobe_store::{Batch, Key, Value, WriteSet, write_with};
use zenobe_value::{Attributes, EncodedItem};

use super::{JobRow, JobStatus, key_of};
use crate::Engine;
use crate::bulk_load::{ItemLoad, inserts};
use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::lease::Lease;
use crate::write::commit::{Committed, Terms, commit};

/// What becomes of the table that a failed job was filling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedTable {
    Keep,
    Delete,
}

/// A job that runs here, under a lease.
#[derive(Debug)]
pub struct Job {
    row: JobRow,
    lease: Lease,
}

impl Job {
    pub(super) fn new(row: JobRow, lease: Lease) -> Job {
        Job { row, lease }
    }

    pub fn row(&self) -> &JobRow {
        &self.row
    }

    /// The lease that every write of the job depends on.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Whether a request to stop had arrived when it last saved its progress.
    pub fn is_cancelled(&self) -> bool {
        self.row.status == JobStatus::Cancelling
    }

    /// Stores the progress.
    pub async fn save(&mut self, engine: &Engine, progress: Attributes) -> Result<()> {
        self.save_with(engine, progress, &[], |_, _| Ok(())).await
    }

    /// Stores the progress in the write that makes it, so that nothing is ever done twice. `add` gets
    /// the values of `guards`, further rows that the write depends on.
    pub(crate) async fn save_with(
        &mut self,
        engine: &Engine,
        progress: Attributes,
        guards: &[Key],
        add: impl Fn(&[Option<Value>], &mut Batch) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let keys = [key_of(&self.row)];
        let (lease, new) = (&self.lease, &progress);
        let all_guards = [lease.guards(), guards].concat();
        let set = WriteSet { guards: &all_guards, keys: &keys };
        let written = write_with(&*engine.store, set, |reads| {
            let (lease_guards, reads) = reads.split_at(lease.guards().len());
            lease.check(lease_guards)?;
            let (guards, rows) = reads.split_at(guards.len());
            let mut row = continued(rows[0].as_ref(), &self.row.progress)?;
            row.progress = new.clone();
            let mut batch = Batch::new();
            add(guards, &mut batch)?;
            batch.put(keys[0].clone(), row.encode());
            Ok::<_, Error>((batch, row))
        });
        let (row, _) = written.await??;
        engine.jobs.note(&row);
        self.row = row;
        Ok(())
    }

    /// Puts the items of `load` and stores the new progress in one write, so that nothing is ever put twice. Returns
    /// whether that was done. If not, nothing was written: `load` has further errors, or other indexes, by which `progress`
    /// may change.
    ///
    /// # Errors
    /// [`Error::TableNotFound`] if the table is gone. Nothing is written then. If an error leaves open whether the write has
    /// happened, the stored job tells.
    pub async fn load(
        &mut self,
        engine: &Engine,
        load: &mut ItemLoad<'_>,
        progress: &Attributes,
    ) -> Result<bool> {
        if load.is_empty() {
            self.save(engine, progress.clone()).await?;
            return Ok(true);
        }
        let step = self.step(progress);
        let is_done = load.commit(engine, Terms::Job(&step)).await?;
        let saved = step.saved.into_inner().filter(|_| is_done);
        self.note_saved(engine, saved);
        Ok(is_done)
    }

    /// Copies items of another table, given with their keys there, into the new table that the job fills, and stores the new progress
    /// in the same write. So no item is ever put twice, and no item is read.
    ///
    /// # Errors
    /// [`Error::TableNotFound`] if the table is gone. Nothing is written then. If an error leaves open whether the write has
    /// happened, the stored job tells.
    pub(crate) async fn insert(
        &mut self,
        engine: &Engine,
        table: &Arc<Table>,
        items: &[(Key, EncodedItem)],
        progress: &Attributes,
    ) -> Result<()> {
        if items.is_empty() {
            return self.save(engine, progress.clone()).await;
        }
        let step = self.step(progress);
        match commit(engine, &inserts(table, items)?, Terms::Job(&step)).await? {
            Committed::Written(_) => {}
            Committed::Refused(errors) => {
                // They were items of a table with the same keys.
                let error = errors.into_iter().flatten().next();
                let error = error.map(|error| error.to_string()).unwrap_or_default();
                let detail = format!("an item cannot be copied: {error}");
                return Err(Error::Corrupt { detail });
            }
            // Only its owner changes it, and that would be us.
            Committed::Stale(_) => {
                return Err(Error::TableNotFound { name: table.name().name.clone() });
            }
            Committed::Replayed(_) => unreachable!("there is no token"),
        }
        let saved = step.saved.into_inner();
        self.note_saved(engine, saved);
        Ok(())
    }

    fn step<'a>(&'a self, progress: &'a Attributes) -> JobStep<'a> {
        let (before, saved) = (&self.row.progress, Mutex::default());
        JobStep { key: key_of(&self.row), lease: &self.lease, before, progress, saved }
    }

    fn note_saved(&mut self, engine: &Engine, saved: Option<JobRow>) {
        if let Some(row) = saved {
            engine.jobs.note(&row);
            self.row = row;
        }
    }

    /// Ends the job with success, and makes its table ready.
    pub async fn finish(&mut self, engine: &Engine, progress: Attributes) -> Result<()> {
        self.end(engine, JobStatus::Completed, progress, FailedTable::Keep).await
    }

    /// Ends the job without success.
    pub async fn fail(
        &mut self,
        engine: &Engine,
        code: &str,
        message: &str,
        progress: Attributes,
        table: FailedTable,
    ) -> Result<()> {
        let status = JobStatus::Failed { code: code.to_owned(), message: message.to_owned() };
        self.end(engine, status, progress, table).await
    }

    /// Ends a job that was asked to stop.
    pub async fn cancel(
        &mut self,
        engine: &Engine,
        progress: Attributes,
        table: FailedTable,
    ) -> Result<()> {
        self.end(engine, JobStatus::Cancelled, progress, table).await
    }

    /// The key of the job's row, for writes that end it themselves.
    pub(crate) fn key(&self) -> Key {
        key_of(&self.row)
    }

    /// Adds the end of a job that leaves no row to `batch`. `stored` is the value of [`Job::key`].
    pub(crate) fn remove(&self, stored: Option<&Value>, batch: &mut Batch) -> Result<()> {
        running(stored)?;
        batch.delete(self.key());
        Ok(())
    }

    /// The write that removed the job has succeeded.
    pub(crate) fn set_removed(&mut self) {
        self.row.status = JobStatus::Completed;
    }

    async fn end(
        &mut self,
        engine: &Engine,
        status: JobStatus,
        progress: Attributes,
        table: FailedTable,
    ) -> Result<()> {
        let ended_at_ms = Some(engine.clock.now_ms());
        let row = JobRow { status, ended_at_ms, progress, ..self.row.clone() };
        engine.end_job(&self.row.progress, &row, table, &self.lease).await?;
        self.row = row;
        Ok(())
    }
}

impl Engine {
    /// Rests after a bounded step of a job, so that requests go first.
    pub async fn paced<T>(&self, step: impl Future<Output = T>) -> T {
        self.paced_on(1, step).await
    }

    /// Like [`Engine::paced`], for a step that keeps several processors busy: it rests as if one had done all of it.
    pub async fn paced_on<T>(&self, processors: u32, step: impl Future<Output = T>) -> T {
        let paced = self.background.pace.begin_step();
        let outcome = step.await;
        paced.rest_from(processors).await;
        outcome
    }
}

/// A step of a job: a write of items that also stores the job's progress.
pub(crate) struct JobStep<'a> {
    key: Key,
    lease: &'a Lease,
    /// What had been done before the step.
    before: &'a Attributes,
    progress: &'a Attributes,
    /// The job's row as the last decision left it.
    saved: Mutex<Option<JobRow>>,
}

impl<'a> JobStep<'a> {
    /// The key of the job's row, which the write declares.
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    pub(crate) fn lease(&self) -> &'a Lease {
        self.lease
    }

    /// Adds the progress to the batch. `stored` is the job's row.
    pub(crate) fn save(&self, stored: Option<&Value>, batch: &mut Batch) -> Result<()> {
        let mut row = continued(stored, self.before)?;
        row.progress = self.progress.clone();
        batch.put(self.key.clone(), row.encode());
        *self.saved.lock() = Some(row);
        Ok(())
    }
}

/// The stored row of a job that continues where this step begins. After an error that left open whether a step was written, a node may
/// read an old state of the row while it still has the lease: only the row itself shows whether the step was done.
pub(super) fn continued(row: Option<&Value>, before: &Attributes) -> Result<JobRow> {
    let row = running(row)?;
    match row.progress == *before {
        true => Ok(row),
        false => {
            let detail = "a step of the job was written after all".to_owned();
            Err(Error::Unavailable { detail })
        }
    }
}

/// The stored row of a job that has not ended.
pub(super) fn running(row: Option<&Value>) -> Result<JobRow> {
    let row = row.map(|row| JobRow::decode(row)).transpose()?;
    row.filter(|row| !row.status.is_final())
        .ok_or_else(|| Error::LeaseLost { work: "a job that has ended".to_owned() })
}
