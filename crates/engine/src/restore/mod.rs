//! Restores: new tables with the items of a table as of a time, or of a backup.
//!
//! A restore is a job ([`crate::jobs`]) that fills a new table. It reads its source in bounded steps *as of a stamp*, so
//! it needs no long-lived snapshot and does not see concurrent writes. It writes items through the same gate as every request
//! ([`crate::change`]), so the indexes are complete when the items are.
//!
//! [`overrides`] decides what the new table looks like, [`copy`] does the work.

mod copy;
mod overrides;

use std::sync::Arc;

use zenobe_store::{Batch, Key, Stamp, Value};
use zenobe_value::Attributes;

use crate::Engine;
use crate::backups::Claim;
use crate::catalog::Table;
use crate::command::TableName;
use crate::error::{Error, HistoryError, RestoreError, Result};
use crate::export;
use crate::history::AsOf;
use crate::jobs::{JobRow, NewJob};
use crate::row::Fields;
use crate::schema::{RestoreSource, TableDefinition, TableDescription, TableId};

pub use copy::RestoreHandler;
pub(crate) use copy::is_intact;
pub use overrides::{IndexOverride, RestoreOverrides};

/// How many restores of an account may run at a time.
const RESTORES_MAX: usize = 50;

pub(crate) const KIND: &str = "restore";

#[derive(Debug, Clone)]
pub struct RestoreTable {
    pub source: RestoreFrom,
    pub target: TableName,
    pub overrides: RestoreOverrides,
}

#[derive(Debug, Clone)]
pub enum RestoreFrom {
    Table { name: TableName, time: RestoreTime },
    Backup { table: TableName, id: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreTime {
    Latest,
    /// A second since the epoch.
    Second(u64),
}

/// What a restore copies, as the parameters of its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceState {
    pub table: TableName,
    pub id: TableId,
    /// The era of the history that is read; `None` if the items are read as they are.
    pub era: Option<u32>,
    pub at: Stamp,
    pub backup: Option<String>,
}

impl Engine {
    /// Begins to restore a table. Background work does the rest.
    pub async fn restore_table(&self, request: RestoreTable) -> Result<TableDescription> {
        loop {
            let begun = self.begin_restore(&request).await;
            // A shorter period, for example, may leave the time out by now.
            if !matches!(begun, Err(Error::TableChanged { .. })) {
                return begun;
            }
        }
    }

    async fn begin_restore(&self, request: &RestoreTable) -> Result<TableDescription> {
        let found = match &request.source {
            RestoreFrom::Table { name, time } => self.table_as_of(name, *time).await?,
            RestoreFrom::Backup { table, id } => self.backed_up_table(table, id).await?,
        };
        let ResolvedRestore { source, definition, shown, hold } = found;
        let RestoreTable { target, overrides, .. } = request;
        let create = overrides.target(&definition, target.clone())?;
        self.check_restores(target, &source, &shown).await?;
        let new = NewJob {
            namespace: (*target.namespace).clone(),
            kind: KIND,
            table: Some(target.name.clone()),
            token: None,
            token_lifetime_ms: 0,
            parameters: source.encode(),
            progress: Attributes::new(),
        };
        let from = shown.backup_arn.clone().or(shown.table_arn.clone()).unwrap_or_default();
        let held = [hold.key().clone()];
        let keep = |job: &JobRow, rows: &[Option<Value>], batch: &mut Batch| {
            hold.keep(rows[0].as_ref(), &job.id, batch)
        };
        let started = self.start_filling_job(new, create, Some(shown), &held, keep).await;
        let table = started.map_err(|error| match error {
            Error::TableFilling { name } => RestoreError::AlreadyRestoring { name, from }.into(),
            error => error,
        })?;
        Ok(TableDescription {
            definition: table.definition().clone(),
            statistics: Default::default(),
            index_statistics: Default::default(),
        })
    }

    async fn table_as_of(&self, name: &TableName, time: RestoreTime) -> Result<ResolvedRestore> {
        let table = self.current_table(name).await?;
        let definition = table.definition();
        let (Some(settings), Some(history)) = (&definition.history, table.history()) else {
            return Err(HistoryError::Off { table: definition.name.clone() }.into());
        };
        let window = self.restorable_window(settings);
        let (at, shown_ms) = match time {
            RestoreTime::Latest if self.restorable_lag_ms == 0 => {
                let now_ms = self.trusted_clock.read().plausible_ms;
                (self.latest_stamp(history, now_ms).await?, now_ms)
            }
            RestoreTime::Latest => {
                (AsOf::second(window.latest_ms / 1_000).stamp(), window.latest_ms)
            }
            RestoreTime::Second(second) => {
                let as_of = AsOf::second(second);
                window.check(as_of)?;
                (as_of.stamp(), second.saturating_mul(1_000))
            }
        };
        self.pass(&table, history, at).await?;
        Ok(ResolvedRestore {
            source: SourceState {
                table: name.clone(),
                id: definition.id,
                era: Some(settings.era),
                at,
                backup: None,
            },
            definition: Arc::clone(definition),
            shown: RestoreSource {
                table_arn: Some(definition.arn()),
                backup_arn: None,
                restored_to_ms: shown_ms,
            },
            hold: SourceLock::Table(Arc::clone(&table)),
        })
    }

    async fn check_restores(
        &self,
        target: &TableName,
        source: &SourceState,
        shown: &RestoreSource,
    ) -> Result<()> {
        let open = self.open_jobs().await?;
        let mut count = 0;
        for job in open.iter().filter(|job| job.kind == KIND) {
            count += usize::from(job.namespace == *target.namespace);
            let other = SourceState::decode(job.parameters.clone())?;
            if let Some(arn) = &shown.backup_arn
                && (&other.table, &other.backup) == (&source.table, &source.backup)
            {
                return Err(RestoreError::BackupInUse { arn: arn.clone() }.into());
            }
        }
        match count < RESTORES_MAX {
            true => Ok(()),
            false => Err(RestoreError::TooMany.into()),
        }
    }

    /// The earliest stamp that a running restore or export of a table reads. Nothing after it may be trimmed.
    pub(crate) async fn pinned_by_jobs(&self, id: TableId) -> Result<Option<Stamp>> {
        let sources = self.sources_in_use().await?;
        Ok(sources.iter().filter(|source| source.id == id).map(|source| source.at).min())
    }

    /// What the restores and exports under way read.
    pub(crate) async fn sources_in_use(&self) -> Result<Vec<SourceState>> {
        let mut sources = Vec::new();
        for job in self.open_jobs().await? {
            match job.kind.as_str() {
                KIND => sources.push(SourceState::decode(job.parameters)?),
                export::KIND => sources.push(export::source_of(&job)?),
                _ => {}
            }
        }
        Ok(sources)
    }
}

/// What a request to restore names.
pub(crate) struct ResolvedRestore {
    pub source: SourceState,
    pub definition: Arc<TableDefinition>,
    pub shown: RestoreSource,
    pub hold: SourceLock,
}

/// What keeps the source until the restore's job exists, for which trimming and deletion wait. The write that creates the
/// job locks one row of the source.
pub(crate) enum SourceLock {
    /// The table must not change before that: a shorter period could leave out the time that was checked.
    Table(Arc<Table>),
    Backup(Claim),
}

impl SourceLock {
    fn key(&self) -> &Key {
        match self {
            SourceLock::Table(table) => table.guard_key(),
            SourceLock::Backup(claim) => &claim.key,
        }
    }

    fn keep(&self, row: Option<&Value>, job_id: &str, batch: &mut Batch) -> Result<()> {
        match self {
            SourceLock::Table(table) => table.check_current(row),
            SourceLock::Backup(claim) => claim.put(row, job_id, batch),
        }
    }
}

impl SourceState {
    pub(crate) fn encode(&self) -> Attributes {
        let mut fields = Fields::default();
        fields.text("account", &self.table.namespace.account);
        fields.text("region", &self.table.namespace.region);
        fields.text("table", &self.table.name);
        fields.number("table_id", self.id.0);
        fields.optional_number("era", self.era.map(u64::from));
        fields.number("at", self.at.to_bits());
        fields.optional_text("backup", self.backup.as_deref());
        fields.0
    }

    pub(crate) fn decode(parameters: Attributes) -> Result<SourceState> {
        let mut fields = Fields(parameters);
        let namespace = crate::schema::Namespace {
            account: fields.take_text("account")?,
            region: fields.take_text("region")?,
        };
        Ok(SourceState {
            table: TableName { namespace: Arc::new(namespace), name: fields.take_text("table")? },
            id: TableId(fields.take_number("table_id")?),
            era: match fields.0.contains_key("era") {
                true => Some(fields.take_u32("era")?),
                false => None,
            },
            at: Stamp::from_bits(fields.take_number("at")?),
            backup: fields.take_optional_text("backup")?,
        })
    }
}
