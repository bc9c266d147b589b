//! What exports read: a table as of a time, or what changed between two times.
//!
//! An export is a job ([`crate::jobs`]) of a handler above the engine, which knows files. It reads its source in bounded steps,
//! *as of a stamp*, like a restore: nothing holds a snapshot for long, and concurrent writes make no difference.

use std::ops::ControlFlow;
use std::sync::Arc;

use zenobe_expression::{Condition, KeyCondition, Projection};
use zenobe_store::{Direction, Key, KeyRange, Reader, Stamp};
use zenobe_value::{Attributes, ItemBuffer, ItemRef};

use crate::Engine;
use crate::catalog::Table;
use crate::command::{PageRequest, TableName};
use crate::error::{Error, ExportSpanError, HistoryError, Result};
use crate::history::{AsOf, Changes, ItemChange, Past, RecoveryWindow};
use crate::jobs::{JobRow, NewJob, Started};
use crate::keyspace;
use crate::read::exported_items;
use crate::restore::{SourceState, is_intact};
use crate::row::Fields;
use crate::schema::TableDefinition;
use crate::write::corrupt_item;

/// The kind of these jobs. Their parameters have the source as [`ExportSource::encode`] encodes it, under this name:
pub const KIND: &str = "export";
pub const SOURCE: &str = "source";

/// AWS's limits for the changes of one export.
const CHANGES_MS_MIN: u64 = 15 * 60 * 1_000;
const CHANGES_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// AWS's limit for an account.
const EXPORTS_MAX: usize = 300;

/// How much one step reads.
const STEP_ITEMS_MAX: usize = 4_000;
const STEP_BYTES_MAX: usize = 1 << 20;

/// What to export.
#[derive(Debug, Clone)]
pub struct ExportRequest {
    pub table: TableName,
    pub span: ExportSpan,
    /// The partition to export, and perhaps a range of its sort keys.
    pub key_conditions: Option<Vec<KeyCondition>>,
    pub filter: Option<Condition>,
    pub projection: Option<Projection>,
}

/// Times in milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportSpan {
    /// All items as of a time, or else of now.
    Full { at_ms: Option<u64> },
    /// What changed from a time until before another one, or else until now.
    Incremental { from_ms: u64, to_ms: Option<u64> },
}

/// An export that may begin.
#[derive(Debug, Clone)]
pub struct Exportable {
    pub definition: Arc<TableDefinition>,
    pub source: ExportSource,
    /// The time of a full export, or the end of an incremental one.
    pub at_ms: u64,
    table: Arc<Table>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportSource {
    source: SourceState,
    /// Changes after this stamp are exported; all items if it is not set.
    since: Option<Stamp>,
    items: KeyRange,
}

/// What one step of an export has read.
#[derive(Debug)]
pub struct ExportStep {
    pub records: ExportRecords,
    /// Where the next step continues; `None` if this was the last one.
    pub position: Option<Vec<u8>>,
}

#[derive(Debug)]
pub enum ExportRecords {
    Items(ItemBuffer),
    Changes(Vec<ItemChange>),
}

impl Engine {
    /// Checks whether a table can be exported, and pins down what that means.
    pub async fn exportable(&self, request: &ExportRequest) -> Result<Exportable> {
        loop {
            let checked = self.check_exportable(request).await;
            if !matches!(checked, Err(Error::TableChanged { .. })) {
                return checked;
            }
        }
    }

    /// Starts the job of an export, for which trimming waits.
    ///
    /// # Errors
    /// [`Error::TableChanged`] if the table has changed since it was checked: a shorter period, for example, may leave out the
    /// time by now.
    pub async fn start_export(&self, new: NewJob, exportable: &Exportable) -> Result<Started> {
        self.start_job_on(new, Some(&exportable.table)).await
    }

    async fn check_exportable(&self, request: &ExportRequest) -> Result<Exportable> {
        let table = self.current_table(&request.table).await?;
        let definition = table.definition();
        if let ExportSpan::Incremental { from_ms, .. } = request.span
            && from_ms / 1_000 < definition.created_at_ms / 1_000
        {
            return Err(ExportSpanError::BeforeCreation { from_ms }.into());
        }
        let (Some(settings), Some(history)) = (&definition.history, table.history()) else {
            return Err(HistoryError::Off { table: definition.name.clone() }.into());
        };
        let window = self.restorable_window(settings);
        let now_ms = self.trusted_clock.read().plausible_ms;
        let resolved = resolve(request.span, window, now_ms)?;
        let page = PageRequest {
            filter: request.filter.clone(),
            projection: request.projection.clone(),
            select: None,
            limit: None,
            start_key: None,
            consistent: true,
        };
        let items = exported_items(&table, request.key_conditions.as_deref(), &page)?;
        self.check_exports(&request.table).await?;
        let at = match resolved.at {
            Some(at) => at.stamp(),
            None => self.latest_stamp(history, now_ms).await?,
        };
        self.pass(&table, history, at).await?;
        let source = SourceState {
            table: request.table.clone(),
            id: definition.id,
            era: Some(settings.era),
            at,
            backup: None,
        };
        Ok(Exportable {
            definition: Arc::clone(definition),
            source: ExportSource { source, since: resolved.since, items },
            at_ms: resolved.at_ms,
            table: Arc::clone(&table),
        })
    }

    async fn check_exports(&self, table: &TableName) -> Result<()> {
        let open = self.open_jobs().await?;
        let own = open.iter().filter(|job| job.kind == KIND && job.namespace == *table.namespace);
        match own.count() < EXPORTS_MAX {
            true => Ok(()),
            false => Err(ExportSpanError::TooMany.into()),
        }
    }

    /// The next records of an export, behind the position of the step before; `None` if the history that it reads is gone.
    pub async fn read_export(
        &self,
        export: &ExportSource,
        behind: Option<&[u8]>,
    ) -> Result<Option<ExportStep>> {
        let now = self.store.snapshot();
        let source = &export.source;
        let era = source.era.unwrap_or_default();
        if !is_intact(&*now, source, era).await? {
            return Ok(None);
        }
        let past = Past {
            now,
            item_prefix: keyspace::item_prefix(source.id),
            undo_prefix: keyspace::undo_prefix(source.id, era),
            at: source.at,
            known: None,
        };
        match export.since {
            None => read_items(&past, &export.items, behind).await.map(Some),
            Some(since) => {
                let step = Changes { past, since }.step(&export.items, behind).await?;
                let position = step.position.map(|position| position.to_vec());
                let records = ExportRecords::Changes(step.changes);
                Ok(Some(ExportStep { records, position }))
            }
        }
    }
}

/// The times of a request, as far as they are given.
struct Resolved {
    at: Option<AsOf>,
    since: Option<Stamp>,
    at_ms: u64,
}

fn resolve(
    span: ExportSpan,
    window: RecoveryWindow,
    now_ms: u64,
) -> Result<Resolved, ExportSpanError> {
    let second = |at_ms: u64| at_ms / 1_000;
    match span {
        ExportSpan::Full { at_ms: None } => Ok(Resolved { at: None, since: None, at_ms: now_ms }),
        ExportSpan::Full { at_ms: Some(at_ms) } => {
            // A time without a fraction means its whole second.
            let at = match at_ms % 1_000 {
                0 => AsOf::second(second(at_ms)),
                _ => AsOf::ms(at_ms),
            };
            if at.at_ms() < window.begins_ms || second(at_ms) > second(now_ms) {
                return Err(ExportSpanError::Time);
            }
            if second(at_ms) > second(window.latest_ms) {
                return Err(ExportSpanError::TooRecent);
            }
            Ok(Resolved { at: Some(at), since: None, at_ms })
        }
        ExportSpan::Incremental { from_ms, to_ms } => {
            let at_ms = to_ms.unwrap_or(now_ms);
            if at_ms > now_ms {
                return Err(ExportSpanError::EndsInFuture { to_ms: at_ms });
            }
            match at_ms.saturating_sub(from_ms) {
                ..CHANGES_MS_MIN => return Err(ExportSpanError::TooShort),
                CHANGES_MS_MIN..=CHANGES_MS_MAX => {}
                _ => return Err(ExportSpanError::TooLong),
            }
            if from_ms < window.earliest_ms {
                return Err(ExportSpanError::Time);
            }
            if to_ms.is_some_and(|to_ms| second(to_ms) > second(window.latest_ms)) {
                return Err(ExportSpanError::TooRecent);
            }
            let before = |at_ms: u64| at_ms.saturating_sub(1);
            Ok(Resolved {
                at: Some(AsOf::ms(before(at_ms))),
                since: Some(AsOf::ms(before(from_ms)).stamp()),
                at_ms,
            })
        }
    }
}

async fn read_items(past: &Past, items: &KeyRange, behind: Option<&[u8]>) -> Result<ExportStep> {
    let mut range = items.clone();
    if let Some(behind) = behind {
        range.start = [behind, &[0]].concat().into();
    }
    let mut read = ItemBuffer::default();
    let mut last: Option<Key> = None;
    let mut damage = None;
    let mut visit = |key: &[u8], value: &[u8]| {
        match ItemRef::parse(value) {
            Ok(item) => read.push(item, STEP_ITEMS_MAX),
            Err(error) => damage = Some(error),
        }
        let is_full = read.len() >= STEP_ITEMS_MAX || read.bytes_len() >= STEP_BYTES_MAX;
        match is_full || damage.is_some() {
            true => {
                last = Some(Key::copy_from_slice(key));
                ControlFlow::Break(())
            }
            false => ControlFlow::Continue(()),
        }
    };
    past.scan(range, Direction::Forward, &mut visit).await?;
    match damage {
        Some(error) => Err(corrupt_item(&error)),
        None => {
            let position = last.map(|last| last.to_vec());
            Ok(ExportStep { records: ExportRecords::Items(read), position })
        }
    }
}

impl ExportSource {
    pub fn is_incremental(&self) -> bool {
        self.since.is_some()
    }

    pub fn encode(&self) -> Attributes {
        let mut fields = Fields(self.source.encode());
        fields.optional_number("since", self.since.map(Stamp::to_bits));
        fields.bytes("start", &self.items.start);
        if let Some(end) = &self.items.end {
            fields.bytes("end", end);
        }
        fields.0
    }

    pub fn decode(parameters: Attributes) -> Result<ExportSource> {
        let mut fields = Fields(parameters);
        let since = fields.take_optional_number("since")?.map(Stamp::from_bits);
        let start = fields.take_bytes("start")?.into();
        let end = match fields.0.contains_key("end") {
            true => Some(fields.take_bytes("end")?.into()),
            false => None,
        };
        let items = KeyRange { start, end };
        Ok(ExportSource { source: SourceState::decode(fields.0)?, since, items })
    }
}

/// What a job reads. The stamp is the earliest one.
pub(crate) fn source_of(job: &JobRow) -> Result<SourceState> {
    let source = Fields(job.parameters.clone()).take_map(SOURCE)?;
    let ExportSource { source, since, .. } = ExportSource::decode(source)?;
    Ok(SourceState { at: since.unwrap_or(source.at), ..source })
}

/// The names of a table's key attributes.
pub fn key_names(definition: &TableDefinition) -> Vec<String> {
    definition.keys.attributes().map(|key| key.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60 * 1_000;

    fn window(earliest_ms: u64, latest_ms: u64) -> RecoveryWindow {
        RecoveryWindow { earliest_ms, latest_ms, begins_ms: earliest_ms }
    }

    #[test]
    fn times_are_checked_in_order() {
        let window = window(100 * MINUTE_MS, 200 * MINUTE_MS);
        let now_ms = 205 * MINUTE_MS;
        let full =
            |at_ms| resolve(ExportSpan::Full { at_ms: Some(at_ms) }, window, now_ms).map(drop);
        assert_eq!(full(100 * MINUTE_MS), Ok(()));
        assert_eq!(full(100 * MINUTE_MS - 1), Err(ExportSpanError::Time));
        let begins_ms = 100 * MINUTE_MS + 700;
        let new = RecoveryWindow { begins_ms, ..window };
        let full_of_new =
            |at_ms| resolve(ExportSpan::Full { at_ms: Some(at_ms) }, new, now_ms).map(drop);
        assert_eq!(full_of_new(100 * MINUTE_MS), Ok(()));
        assert_eq!(full_of_new(begins_ms - 1), Err(ExportSpanError::Time));
        assert_eq!(full(now_ms + 1_000), Err(ExportSpanError::Time));
        assert_eq!(full(201 * MINUTE_MS), Err(ExportSpanError::TooRecent));
        let changes = |from: u64, to: u64| {
            let (from_ms, to_ms) = (from * MINUTE_MS, Some(to * MINUTE_MS));
            resolve(ExportSpan::Incremental { from_ms, to_ms }, window, now_ms).map(drop)
        };
        assert_eq!(changes(100, 115), Ok(()));
        assert_eq!(changes(100, 114), Err(ExportSpanError::TooShort));
        assert_eq!(changes(200, 100), Err(ExportSpanError::TooShort));
        assert_eq!(changes(99, 150), Err(ExportSpanError::Time));
        assert_eq!(changes(150, 204), Err(ExportSpanError::TooRecent));
        let to_ms = 206 * MINUTE_MS;
        assert_eq!(changes(100, 206), Err(ExportSpanError::EndsInFuture { to_ms }));
        let late_ms = 24 * 60 * MINUTE_MS;
        let wide = self::window(0, 2 * late_ms);
        let span = ExportSpan::Incremental { from_ms: 0, to_ms: Some(late_ms + 1) };
        assert_eq!(resolve(span, wide, 2 * late_ms).map(drop), Err(ExportSpanError::TooLong));
    }

    #[test]
    fn changes_include_the_first_moment_and_not_the_last() {
        let window = window(0, 100 * MINUTE_MS);
        let (from_ms, to_ms) = (MINUTE_MS, 31 * MINUTE_MS);
        let span = ExportSpan::Incremental { from_ms, to_ms: Some(to_ms) };
        let resolved = resolve(span, window, 90 * MINUTE_MS).unwrap_or_else(|_| panic!());
        let since = resolved.since.unwrap();
        assert!(since < Stamp::first_of_ms(from_ms) && since.next() == Stamp::first_of_ms(from_ms));
        assert_eq!(resolved.at.unwrap().stamp().next(), Stamp::first_of_ms(to_ms));
    }
}
