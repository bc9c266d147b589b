//! Jobs: work that a request starts and that continues after its answer, such as restores and
//! imports.
//!
//! A job is a row with its parameters and its progress. Background work runs the jobs that have not
//! ended ([`run`]), so they survive a restart. On a shared store, any node continues the jobs of a
//! node that is gone. A handler does the work of each kind of job ([`JobHandler`]). It saves its
//! progress regularly and resumes from there. What it puts into tables belongs in the write that
//! saves the progress ([`Job::load`]), so that it happens once. Anything else that it does must be
//! safe to repeat from the last saved progress.
//!
//! A job may fill a new table. Until it ends, the table is being created: DescribeTable shows it,
//! and no other request finds it. One write ends both, so no request ever sees half a table.

mod copy_progress;
mod fill;
mod job;
mod job_row;
mod run;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use zenobe_store::{Batch, Direction, Key, KeyRange, Value, WriteSet, write_with};
use zenobe_value::Attributes;

use crate::Engine;
use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::keyspace;
use crate::lease::Lease;
use crate::row::Fields;
use crate::schema::Namespace;

pub(crate) use copy_progress::CopyProgress;
pub(crate) use job::JobStep;
pub use job::{FailedTable, Job};
pub use job_row::{JobRow, JobStatus};

/// What jobs of one kind do.
pub trait JobHandler: Send + Sync {
    fn kind(&self) -> &'static str;

    /// Works until the job has ended ([`Job::finish`], [`Job::fail`], [`Job::cancel`]), starting
    /// from its progress.
    ///
    /// # Errors
    /// After an error the job is retried with increasing delays. An error that retries can't fix
    /// must [`Job::fail`] it.
    fn run<'a>(&'a self, engine: &'a Engine, job: &'a mut Job) -> BoxFuture<'a, Result<()>>;
}

/// A job to start.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub namespace: Namespace,
    pub kind: &'static str,
    pub table: Option<String>,
    pub token: Option<String>,
    /// How long the token stands for this job.
    pub token_lifetime_ms: u64,
    pub parameters: Attributes,
    pub progress: Attributes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    New(JobRow),
    /// The job that was started with the same token. Nothing else happened.
    Existing(JobRow),
}

/// How long a job can be described after its end.
const RETENTION_MS: u64 = 90 * 24 * 60 * 60 * 1_000;

#[derive(Default)]
pub(crate) struct Jobs {
    handlers: Mutex<Vec<Arc<dyn JobHandler>>>,
    /// The jobs of this node by id, with the progress that they last saved.
    running: Mutex<BTreeMap<String, JobRow>>,
}

impl Jobs {
    fn handler(&self, kind: &str) -> Option<Arc<dyn JobHandler>> {
        self.handlers.lock().iter().find(|handler| handler.kind() == kind).cloned()
    }

    fn note(&self, row: &JobRow) {
        self.running.lock().insert(row.id.clone(), row.clone());
    }

    /// Shows a job as running here until the result is dropped.
    fn show(&self, row: &JobRow) -> Shown<'_> {
        self.note(row);
        Shown { jobs: self, id: row.id.clone() }
    }
}

struct Shown<'a> {
    jobs: &'a Jobs,
    id: String,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.jobs.running.lock().remove(&self.id);
    }
}

impl Engine {
    /// Adds what jobs of a kind do. Jobs of a kind without a handler wait.
    pub fn add_job_handler(&self, handler: Arc<dyn JobHandler>) {
        self.jobs.handlers.lock().push(handler);
        self.background.wake();
    }

    /// The row of a job that begins now.
    pub(crate) fn new_job_row(&self, new: NewJob) -> JobRow {
        let now_ms = self.clock.now_ms();
        let random = self.random.uuid();
        JobRow {
            id: format!("{now_ms:014}-{}", &random[..8]),
            namespace: new.namespace,
            kind: new.kind.to_owned(),
            status: JobStatus::Running,
            started_at_ms: now_ms,
            ended_at_ms: None,
            table: new.table,
            token: new.token,
            parameters: new.parameters,
            progress: new.progress,
        }
    }

    /// The jobs that this node runs or tries again, with the progress that they last saved. Asks no store.
    pub fn running_jobs(&self) -> Vec<JobRow> {
        self.jobs.running.lock().values().cloned().collect()
    }

    /// Every job that has not ended.
    pub async fn open_jobs(&self) -> Result<Vec<JobRow>> {
        let range = KeyRange::prefix(keyspace::all_jobs_prefix());
        let mut rows = self.job_rows(range, Direction::Forward, usize::MAX).await?;
        rows.retain(|row| !row.status.is_final());
        Ok(rows)
    }

    pub async fn start_job(&self, new: NewJob) -> Result<Started> {
        self.start_job_on(new, None).await
    }

    /// Starts a job, if the table that it was planned with is still as it was.
    ///
    /// # Errors
    /// [`Error::TableChanged`]
    pub(crate) async fn start_job_on(&self, new: NewJob, table: Option<&Table>) -> Result<Started> {
        let token_lifetime_ms = new.token_lifetime_ms;
        let row = self.new_job_row(new);
        match self.begin_job(row, token_lifetime_ms, table, None).await? {
            Begun::Started(started) => Ok(*started),
            Begun::Occupied | Begun::Overtaken => unreachable!("it may run beside others"),
        }
    }

    /// Starts a job that must be the only one of its kind on its table, if the table is still as it was. Returns `None`
    /// while another one runs.
    ///
    /// # Errors
    /// [`Error::TableChanged`]
    pub async fn start_sole_job(&self, new: NewJob, table: &Table) -> Result<Option<Started>> {
        let token_lifetime_ms = new.token_lifetime_ms;
        let row = self.new_job_row(new);
        let name = &table.definition().name;
        let key = keyspace::job_occupying_table_row(&row.namespace, &row.kind, name);
        loop {
            let last = self.store.get(&key).await?.map(|row| id_in(&row)).transpose()?;
            let occupation = Occupation { key: key.clone(), last };
            let begun =
                self.begin_job(row.clone(), token_lifetime_ms, Some(table), Some(&occupation));
            match begun.await? {
                Begun::Started(started) => return Ok(Some(*started)),
                Begun::Occupied => return Ok(None),
                // Another one was faster. It must be looked at first.
                Begun::Overtaken => {}
            }
        }
    }

    /// Stores a new job in one write, if nothing stands against it.
    async fn begin_job(
        &self,
        row: JobRow,
        token_lifetime_ms: u64,
        table: Option<&Table>,
        occupation: Option<&Occupation>,
    ) -> Result<Begun> {
        let now_ms = row.started_at_ms;
        let expires_at_ms = now_ms.saturating_add(token_lifetime_ms);
        let key_of_token = token_key(&row);
        let key_of_table = occupation.map(|occupation| &occupation.key);
        let keys: Vec<Key> = [Some(&key_of(&row)), key_of_token.as_ref(), key_of_table]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let last = occupation.and_then(|occupation| occupation.last.as_ref());
        let version = table.map(|table| table.guard_key().clone());
        let last_row = last.map(|id| keyspace::job_row(&row.namespace, &row.kind, id));
        let guards: Vec<Key> = version.into_iter().chain(last_row).collect();
        let set = WriteSet { guards: &guards, keys: &keys };
        let written = write_with(&*self.store, set, |reads| {
            let (guards, rows) = reads.split_at(guards.len());
            let mut guards = guards.iter();
            let mut rows = rows.iter().skip(1);
            let nothing = |found| Ok::<_, Error>((Batch::new(), found));
            if key_of_token.is_some()
                && let Some(Some(token)) = rows.next()
            {
                let token = JobTokenRow::decode(token)?;
                if token.expires_at_ms > now_ms {
                    return nothing(Found::Token { id: token.id });
                }
            }
            if let (Some(table), Some(version)) = (table, guards.next()) {
                table.check_current(version.as_ref())?;
            }
            if let (Some(_), Some(occupying)) = (occupation, rows.next()) {
                let stored = occupying.as_ref().map(|row| id_in(row)).transpose()?;
                if stored.as_ref() != last {
                    return nothing(Found::Overtaken);
                }
                if let Some(Some(other)) = guards.next()
                    && !JobRow::decode(other)?.status.is_final()
                {
                    return nothing(Found::Occupied);
                }
            }
            let mut batch = Batch::new();
            batch.put(key_of(&row), row.encode());
            if let Some(key) = &key_of_token {
                let token = JobTokenRow { id: row.id.clone(), expires_at_ms };
                batch.put(key.clone(), token.encode());
            }
            if let Some(key) = key_of_table {
                let mut fields = Fields::default();
                fields.text("id", &row.id);
                batch.put(key.clone(), fields.encode());
            }
            Ok((batch, Found::Nothing))
        });
        let (found, _) = written.await??;
        match found {
            Found::Nothing => {
                self.background.wake();
                Ok(Begun::Started(Box::new(Started::New(row))))
            }
            Found::Token { id } => match self.job(&row.namespace, &row.kind, &id).await? {
                Some(existing) => Ok(Begun::Started(Box::new(Started::Existing(existing)))),
                None => Err(Error::Corrupt { detail: format!("a token names the job {id}") }),
            },
            Found::Occupied => Ok(Begun::Occupied),
            Found::Overtaken => Ok(Begun::Overtaken),
        }
    }

    pub async fn job(&self, namespace: &Namespace, kind: &str, id: &str) -> Result<Option<JobRow>> {
        let row = self.store.get(&keyspace::job_row(namespace, kind, id)).await?;
        row.map(|row| JobRow::decode(&row)).transpose()
    }

    /// The job that a token stands for, if it still stands for one.
    pub async fn job_of_token(
        &self,
        namespace: &Namespace,
        kind: &str,
        token: &str,
    ) -> Result<Option<JobRow>> {
        let Some(row) = self.store.get(&keyspace::job_token_row(namespace, kind, token)).await?
        else {
            return Ok(None);
        };
        let token = JobTokenRow::decode(&row)?;
        match token.expires_at_ms > self.clock.now_ms() {
            true => self.job(namespace, kind, &token.id).await,
            false => Ok(None),
        }
    }

    /// The jobs of a kind, newest first, from the one before `before`, and whether there are more.
    pub async fn jobs(
        &self,
        namespace: &Namespace,
        kind: &str,
        before: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<JobRow>, bool)> {
        let mut range = KeyRange::prefix(keyspace::jobs_prefix(namespace, kind));
        if let Some(before) = before {
            range.end = Some(keyspace::job_row(namespace, kind, before));
        }
        let mut rows = self.job_rows(range, Direction::Reverse, limit.saturating_add(1)).await?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        Ok((rows, has_more))
    }

    /// Asks a running job to stop. Returns the job, if there is one.
    pub async fn cancel_job(
        &self,
        namespace: &Namespace,
        kind: &str,
        id: &str,
    ) -> Result<Option<JobRow>> {
        let keys = [keyspace::job_row(namespace, kind, id)];
        let set = WriteSet { guards: &[], keys: &keys };
        let written = write_with(&*self.store, set, |reads| {
            let mut batch = Batch::new();
            let Some(row) = &reads[0] else { return Ok::<_, Error>((batch, None)) };
            let mut row = JobRow::decode(row)?;
            if row.status == JobStatus::Running {
                row.status = JobStatus::Cancelling;
                batch.put(keys[0].clone(), row.encode());
            }
            Ok((batch, Some(row)))
        });
        let (row, _) = written.await??;
        self.background.wake();
        Ok(row)
    }

    async fn job_rows(
        &self,
        range: KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<JobRow>> {
        let mut rows = Vec::new();
        let mut visit = |_: &[u8], row: &[u8]| {
            rows.push(JobRow::decode(row));
            match rows.len() < limit {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        self.store.scan(range, direction, &mut visit).await?;
        // A damaged row must not hide the others.
        let rows = rows.into_iter().filter_map(|row| {
            row.inspect_err(|error| tracing::error!(%error, "a job's row is damaged; skipping it"))
                .ok()
        });
        Ok(rows.collect())
    }

    /// Deletes the rows of jobs that ended long ago.
    async fn forget_old_jobs(&self, rows: &[JobRow], lease: &Lease) -> Result<()> {
        let moment = self.trusted_clock.read();
        if moment.is_paused {
            return Ok(());
        }
        let is_old = |row: &&JobRow| {
            let ended_at_ms = row.ended_at_ms.unwrap_or(u64::MAX);
            ended_at_ms.saturating_add(RETENTION_MS) < moment.now_ms
        };
        for row in rows.iter().filter(is_old) {
            let of_table = row
                .table
                .as_ref()
                .map(|table| keyspace::job_occupying_table_row(&row.namespace, &row.kind, table));
            let keys: Vec<Key> =
                [Some(key_of(row)), token_key(row), of_table].into_iter().flatten().collect();
            let set = WriteSet { guards: lease.guards(), keys: &keys };
            let written = write_with(&*self.store, set, |reads| {
                let (guards, rows) = reads.split_at(lease.guards().len());
                lease.check(guards)?;
                let mut batch = Batch::new();
                batch.delete(keys[0].clone());
                // A later job may have the token or the table by now.
                for (key, stored) in keys.iter().zip(rows).skip(1) {
                    if let Some(stored) = stored
                        && id_in(stored)? == row.id
                    {
                        batch.delete(key.clone());
                    }
                }
                Ok::<_, Error>((batch, ()))
            });
            written.await??;
        }
        Ok(())
    }
}

pub(crate) fn key_of(row: &JobRow) -> Key {
    keyspace::job_row(&row.namespace, &row.kind, &row.id)
}

fn token_key(row: &JobRow) -> Option<Key> {
    let token = row.token.as_ref()?;
    Some(keyspace::job_token_row(&row.namespace, &row.kind, token))
}

/// The id of the job that a row names.
fn id_in(row: &[u8]) -> Result<String> {
    Fields::decode(row, "a row that names a job")?.take_text("id")
}

/// What a job that must be alone on its table depends on.
struct Occupation {
    /// The row that names the last such job of the table.
    key: Key,
    /// That job, as read before. It may have ended.
    last: Option<String>,
}

/// What stands against a new job.
enum Found {
    Nothing,
    /// A job that was started with the same token.
    Token {
        id: String,
    },
    Occupied,
    Overtaken,
}

enum Begun {
    Started(Box<Started>),
    /// Another job runs on the table.
    Occupied,
    /// The last job of the table is not the one that was read before.
    Overtaken,
}

/// Which job a token stands for.
struct JobTokenRow {
    id: String,
    expires_at_ms: u64,
}

impl JobTokenRow {
    fn encode(&self) -> Value {
        let mut fields = Fields::default();
        fields.text("id", &self.id);
        fields.number("expires_at_ms", self.expires_at_ms);
        fields.encode()
    }

    fn decode(row: &[u8]) -> Result<JobTokenRow> {
        let mut fields = Fields::decode(row, "the row of a job's token")?;
        Ok(JobTokenRow {
            id: fields.take_text("id")?,
            expires_at_ms: fields.take_number("expires_at_ms")?,
        })
    }
}

#[cfg(test)]
mod tests;
