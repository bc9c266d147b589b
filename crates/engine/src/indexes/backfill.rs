//! How a global index joins or leaves a table that is in use.
//!
//! Joining: once the index is in the table's definition, every change of an item writes its entry.
//! That leaves the items that have not changed since. The backfill walks them in key order, in bounded
//! batches; [`crate::change::backfill_entries`] writes the missing entries under the items' locks. It
//! stores its progress after each batch, so it continues after a restart. At the end of the table
//! the index is complete and becomes active.
//!
//! Leaving: once the index is marked as being deleted, no change writes to it. Then one write
//! removes its entries, its counters and its place in the definition.

use std::ops::ControlFlow;
use std::sync::Arc;

use zenobe_store::{Direction, Key, KeyRange, Value};

use crate::Engine;
use crate::catalog::edit::Edit;
use crate::catalog::{Table, TableIndex};
use crate::change::backfill_entries::{BackfillContext, Backfilled, backfill};
use crate::error::{Error, Result};
use crate::keyspace;
use crate::lease::Lease;
use crate::schema::{IndexDefinition, IndexId, IndexStatus, TableDefinition, TableId};
use crate::table_round::TableRound;
use crate::tables::prune_attribute_types;

/// How much to read, write and record as done at once.
const BATCH_ITEMS_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Does all pending work on indexes. If one table fails, the others still proceed.
pub(crate) async fn finish_pending(engine: &Engine, lease: &Lease) -> Result<()> {
    let mut round = TableRound::new("building or deleting an index failed; retrying");
    for table in engine.catalog.tables().values() {
        let definition = table.definition();
        let pending = definition.global_indexes.iter();
        for index in pending.filter(|index| index.status != IndexStatus::Active) {
            round.take_index(table, index, finish(engine, table, index, lease).await)?;
        }
    }
    round.finish()
}

/// Finishes an index, so that it is active or gone, unless its status must be held.
async fn finish(
    engine: &Engine,
    table: &Arc<Table>,
    index: &IndexDefinition,
    lease: &Lease,
) -> Result<()> {
    let hold = engine.index_status_delay(table.name());
    let may_leave =
        |status| engine.status_delay.is_over((table.definition().id, index.id, status), hold);
    if let IndexStatus::Creating { backfilling } = index.status {
        if !backfilling && !may_leave(index.status) {
            return Ok(());
        }
        start(engine, table, index.id, lease).await?;
        fill(engine, table, index.id, lease).await?;
        if !may_leave(IndexStatus::Creating { backfilling: true }) {
            return Ok(());
        }
        activate(engine, table, index.id, lease).await?;
    } else if !may_leave(index.status) {
        return Ok(());
    }
    remove(engine, table, index.id, lease).await
}

async fn start(engine: &Engine, table: &Table, id: IndexId, lease: &Lease) -> Result<()> {
    edit_index(engine, table, id, lease, |edit, position| {
        let index = &mut edit.definition.global_indexes[position];
        if index.status == (IndexStatus::Creating { backfilling: false }) {
            index.status = IndexStatus::Creating { backfilling: true };
        }
    })
    .await
}

/// Walks the table until every item has its entry, or the index is no longer being created.
async fn fill(engine: &Engine, table: &Arc<Table>, id: IndexId, lease: &Lease) -> Result<()> {
    let table_id = table.definition().id;
    let progress_key = keyspace::backfill_progress(table_id, id);
    let mut table = engine.table(table.name()).await?;
    while let Some(index) = index_to_fill(&table, table_id, id) {
        let step = engine.background.pace.begin_step();
        let progress = engine.store.get(&progress_key).await?;
        let items = items_after(engine, &table, progress).await?;
        if items.is_empty() {
            return Ok(());
        }
        let context = BackfillContext { store: &*engine.store, lease, progress_key: &progress_key };
        match backfill(context, &table, index, &items).await? {
            Backfilled::Done => {}
            Backfilled::Stale => table = engine.refresh(&table).await?,
        }
        step.rest().await;
    }
    Ok(())
}

async fn activate(engine: &Engine, table: &Table, id: IndexId, lease: &Lease) -> Result<()> {
    edit_index(engine, table, id, lease, |edit, position| {
        let index = &mut edit.definition.global_indexes[position];
        if index.status == (IndexStatus::Creating { backfilling: true }) {
            index.status = IndexStatus::Active;
            edit.batch.delete(keyspace::backfill_progress(edit.definition.id, id));
        }
    })
    .await
}

/// Removes the index if it is being deleted.
async fn remove(engine: &Engine, table: &Table, id: IndexId, lease: &Lease) -> Result<()> {
    let table_id = table.definition().id;
    let entries = keyspace::global_index_prefix(table_id, id);
    let statistics = keyspace::index_statistics_prefix(table_id, id);
    let mut removed = false;
    edit_index(engine, table, id, lease, |edit, position| {
        removed = edit.definition.global_indexes[position].status == IndexStatus::Deleting;
        if removed {
            edit.definition.global_indexes.remove(position);
            prune_attribute_types(&mut edit.definition);
            engine.discard(&entries, &mut edit.batch);
            engine.discard(&statistics, &mut edit.batch);
            edit.batch.delete(keyspace::backfill_progress(table_id, id));
            edit.batch.delete(keyspace::partition_map_row(table_id, Some(id)));
        }
    })
    .await?;
    if removed {
        engine.background.reclaim(vec![KeyRange::prefix(entries)]);
    }
    Ok(())
}

/// Changes the definition of one index, if it still exists. The index is looked up again under the
/// lock, and so is the table, by its id: the name may belong to another table by now.
async fn edit_index(
    engine: &Engine,
    table: &Table,
    id: IndexId,
    lease: &Lease,
    mut edit: impl FnMut(&mut Edit, usize) + Send,
) -> Result<()> {
    let table_id = table.definition().id;
    let decide = |before: &TableDefinition| {
        let mut edited = Edit::new(before.clone());
        let position = before.global_indexes.iter().position(|index| index.id == id);
        if let Some(position) = position.filter(|_| before.id == table_id) {
            edit(&mut edited, position);
        }
        Ok(edited)
    };
    engine.catalog.change_leased(&*engine.store, table.name(), lease, decide).await?;
    Ok(())
}

fn index_to_fill(table: &Table, table_id: TableId, id: IndexId) -> Option<TableIndex<'_>> {
    let backfilling = IndexStatus::Creating { backfilling: true };
    let wanted = |index: &IndexDefinition| index.id == id && index.status == backfilling;
    let mut indexes = table.indexes().filter(|_| table.definition().id == table_id);
    indexes.find(|index| wanted(index.definition))
}

/// The next batch of items, with their keys.
pub(crate) async fn items_after(
    engine: &Engine,
    table: &Table,
    progress: Option<Value>,
) -> Result<Vec<(Key, Value)>> {
    let mut range = KeyRange::prefix(table.item_prefix().clone());
    if let Some(last_key) = progress {
        range.start = [&last_key[..], &[0]].concat().into();
    }
    let (mut items, mut size_bytes, mut damaged) = (Vec::new(), 0, false);
    let mut visit = |key: &[u8], value: &[u8]| {
        if keyspace::parts_of_suffix(&key[table.item_prefix().len()..]).is_none() {
            damaged = true;
            return ControlFlow::Break(());
        }
        items.push((Key::copy_from_slice(key), Value::copy_from_slice(value)));
        size_bytes += value.len();
        if items.len() < BATCH_ITEMS_MAX && size_bytes < BATCH_BYTES_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    engine.store.scan(range, Direction::Forward, &mut visit).await?;
    if damaged {
        return Err(Error::Corrupt { detail: "the key of an item is too short".to_owned() });
    }
    Ok(items)
}
