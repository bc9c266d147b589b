//! Copies a table's past into a new table.

use std::ops::ControlFlow;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, join};
use zenobe_store::{Direction, Key, KeyRange, Reader};
use zenobe_value::{DecodeError, EncodedItem, ItemBuffer, ItemRef};

use super::{KIND, SourceState};
use crate::Engine;
use crate::backups::chunk::Chunks;
use crate::backups::{Backup, Content, HeldTable, has_remains, stored_backup};
use crate::catalog::definition_row;
use crate::error::Result;
use crate::history::Past;
use crate::jobs::{CopyProgress, FailedTable, Job, JobHandler};
use crate::keyspace;
use crate::schema::TableDefinition;
use crate::write::corrupt_item;

/// How much is read, and written in one atomic write.
const STEP_ITEMS_MAX: usize = 2_000;
const STEP_BYTES_MAX: usize = 2 << 20;
/// How many chunks of the history a step reads. If no item existed at the time in this part, the step ends without any.
const STEP_CHUNKS_MAX: usize = 8;

/// Runs restores.
pub struct RestoreHandler;

impl JobHandler for RestoreHandler {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn run<'a>(&'a self, engine: &'a Engine, job: &'a mut Job) -> BoxFuture<'a, Result<()>> {
        run(engine, job).boxed()
    }
}

async fn run(engine: &Engine, job: &mut Job) -> Result<()> {
    let source = SourceState::decode(job.row().parameters.clone())?;
    let mut progress = CopyProgress::decode(&job.row().progress)?;
    let name = crate::command::TableName {
        namespace: Arc::new(job.row().namespace.clone()),
        name: job.row().table.clone().unwrap_or_default(),
    };
    let id = job.row().id.clone();
    let Some(table) = engine.filling_table(&name, &id).await? else {
        let message = "The table to restore to is gone.";
        return job
            .fail(engine, "TargetGone", message, progress.encode(), FailedTable::Delete)
            .await;
    };
    let mut step = read(engine, &source, &progress).await?;
    loop {
        let (items, passed) = match step {
            Step::Items { items, passed } => (items, passed),
            Step::End => return job.finish(engine, progress.encode()).await,
            Step::Gone => {
                let message =
                    "The history or the backup that the table was being restored from is gone.";
                let progress = progress.encode();
                return job
                    .fail(engine, "SourceGone", message, progress, FailedTable::Delete)
                    .await;
            }
        };
        let paced = engine.background.pace.begin_step();
        progress = progress.after(items.iter().map(|(_, item)| item), &passed);
        let encoded = progress.encode();
        // The next items are read while these are written.
        let written = job.insert(engine, &table, &items, &encoded);
        let (written, next) = join(written, read(engine, &source, &progress)).await;
        written?;
        step = next?;
        paced.rest().await;
    }
}

/// What the next step copies.
enum Step {
    Items {
        /// With their keys in the source.
        items: Vec<(Key, EncodedItem)>,
        /// Everything up to this key of the source is copied then.
        passed: Key,
    },
    End,
    Gone,
}

async fn read(engine: &Engine, source: &SourceState, progress: &CopyProgress) -> Result<Step> {
    let now = engine.store.snapshot();
    let position = progress.position.as_deref();
    match (&source.backup, source.era) {
        (Some(id), _) => match stored_backup(&*now, &source.table, id).await? {
            Some(backup) => read_backup(now, &backup, position).await,
            None => Ok(Step::Gone),
        },
        (None, Some(era)) if is_intact(&*now, source, era).await? => {
            let item_prefix = keyspace::item_prefix(source.id);
            let undo_prefix = keyspace::undo_prefix(source.id, era);
            let past = Past { now, item_prefix, undo_prefix, at: source.at, known: None };
            walk(&past, position).await
        }
        (None, _) => Ok(Step::Gone),
    }
}

/// A backup may be copied while it is restored, so each step reads it from wherever it is at that moment. The keys are the same.
async fn read_backup(
    now: Arc<dyn Reader>,
    backup: &Backup,
    position: Option<&[u8]>,
) -> Result<Step> {
    let TableDefinition { id, keys, .. } = &backup.definition;
    match (backup.content, HeldTable::of(backup)) {
        (Content::Copied { .. }, _) => {
            let item_prefix = keyspace::item_prefix(*id);
            let chunks = Chunks { content: backup.content_prefix(), keys, item_prefix };
            let items = chunks.after(&*now, position).await?;
            let Some((passed, _)) = items.last() else { return Ok(Step::End) };
            let passed = passed.clone();
            Ok(Step::Items { items, passed })
        }
        (_, Some(held)) => walk(&held.open(now).await?, position).await,
        (_, None) => {
            let mut gathered = Gathered::default();
            let range = after(KeyRange::prefix(keyspace::item_prefix(*id)), position);
            let mut visit = |key: &[u8], value: &[u8]| gathered.add(key, value);
            now.scan(range, Direction::Forward, &mut visit).await?;
            gathered.step(None)
        }
    }
}

/// The next items of a table's past.
async fn walk(past: &Past, position: Option<&[u8]>) -> Result<Step> {
    let mut gathered = Gathered::default();
    let range = after(KeyRange::prefix(past.item_prefix.clone()), position);
    let mut walk = past.walk(range, Direction::Forward);
    for _ in 0..STEP_CHUNKS_MAX {
        let mut visit = |key: &[u8], value: &[u8]| gathered.add(key, value);
        if walk.is_finished() || walk.step(&mut visit).await?.is_break() {
            break;
        }
    }
    let unfinished = walk.passed().filter(|_| !walk.is_finished()).cloned();
    gathered.step(unfinished)
}

fn after(mut range: KeyRange, position: Option<&[u8]>) -> KeyRange {
    if let Some(position) = position {
        range.start = [position, &[0]].concat().into();
    }
    range
}

/// What a step has read so far.
#[derive(Default)]
struct Gathered {
    items: ItemBuffer,
    keys: Vec<Key>,
    damage: Option<DecodeError>,
}

impl Gathered {
    fn add(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        match ItemRef::parse(value) {
            Ok(item) => self.items.push(item, STEP_ITEMS_MAX),
            Err(error) => {
                self.damage = Some(error);
                return ControlFlow::Break(());
            }
        }
        self.keys.push(Key::copy_from_slice(key));
        match self.items.len() < STEP_ITEMS_MAX && self.items.bytes_len() < STEP_BYTES_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    /// `unfinished` is how far a walk has come, if it has not reached its end.
    fn step(self, unfinished: Option<Key>) -> Result<Step> {
        if let Some(error) = &self.damage {
            return Err(corrupt_item(error));
        }
        let last = self.keys.last().cloned();
        let Some(passed) = unfinished.or(last) else { return Ok(Step::End) };
        let items = self.keys.into_iter().zip(self.items.into_items()).collect();
        Ok(Step::Items { items, passed })
    }
}

/// Whether this state of the store still has the history that a restore to a point in time, or an export, reads. A deleted
/// table leaves its items and its history to its backup.
pub(crate) async fn is_intact(now: &dyn Reader, source: &SourceState, era: u32) -> Result<bool> {
    let key = keyspace::table_row(&source.table.namespace, &source.table.name);
    if let Some(row) = now.get(&key).await? {
        let definition = definition_row::decode_row(&row)?;
        let history = definition.history.filter(|_| definition.id == source.id);
        if history.is_some_and(|history| history.era == era) {
            return Ok(true);
        }
    }
    has_remains(now, &source.table, source.id).await
}
