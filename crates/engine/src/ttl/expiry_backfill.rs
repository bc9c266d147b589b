//! Gives items older than a table's time-to-live setting their entries in the expiry index, like
//! the backfill of a new index: in key order, in bounded batches, with the progress stored after
//! each.

use std::sync::Arc;

use crate::Engine;
use crate::catalog::Table;
use crate::catalog::edit::Edit;
use crate::change::backfill_entries::{BackfillContext, Backfilled, backfill_expiries};
use crate::error::Result;
use crate::indexes::backfill::items_after;
use crate::keyspace;
use crate::lease::Lease;
use crate::schema::TableDefinition;
use crate::table_round::TableRound;

/// Completes the expiry indexes of all tables. If one table fails, the others still proceed.
pub(crate) async fn finish_pending(engine: &Engine, lease: &Lease) -> Result<()> {
    let mut round = TableRound::new("an expiry index could not be filled");
    for table in engine.catalog.tables().values().filter(|table| is_pending(table.definition())) {
        round.take(table, fill(engine, table, lease).await)?;
    }
    round.finish()
}

fn is_pending(definition: &TableDefinition) -> bool {
    definition.ttl_attribute.is_some() && !definition.ttl_indexed
}

/// Whether both definitions have the setting of the same UpdateTimeToLive.
fn is_same_setting(definition: &TableDefinition, other: &TableDefinition) -> bool {
    definition.id == other.id
        && definition.ttl_attribute == other.ttl_attribute
        && definition.ttl_changed_at_ms == other.ttl_changed_at_ms
}

async fn fill(engine: &Engine, table: &Arc<Table>, lease: &Lease) -> Result<()> {
    let wanted = Arc::clone(table.definition());
    let progress_key = keyspace::expiry_backfill_progress(wanted.id);
    let mut table = Arc::clone(table);
    while is_pending(table.definition()) && is_same_setting(table.definition(), &wanted) {
        let step = engine.background.pace.begin_step();
        let progress = engine.store.get(&progress_key).await?;
        let items = items_after(engine, &table, progress).await?;
        if items.is_empty() {
            return complete(engine, &table, lease).await;
        }
        let context = BackfillContext { store: &*engine.store, lease, progress_key: &progress_key };
        match backfill_expiries(context, &table, &items).await? {
            Backfilled::Done => {}
            Backfilled::Stale => table = engine.refresh(&table).await?,
        }
        step.rest().await;
    }
    Ok(())
}

async fn complete(engine: &Engine, table: &Table, lease: &Lease) -> Result<()> {
    let decide = |before: &TableDefinition| {
        let mut edit = Edit::new(before.clone());
        if is_pending(before) && is_same_setting(before, table.definition()) {
            edit.definition.ttl_indexed = true;
            edit.batch.delete(keyspace::expiry_backfill_progress(before.id));
        }
        Ok(edit)
    };
    engine.catalog.change_leased(&*engine.store, table.name(), lease, decide).await?;
    Ok(())
}
