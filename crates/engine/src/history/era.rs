//! Eras: the times in which a table's changes are kept.
//!
//! Point-in-time recovery and backups that are being copied need the same undo rows, so they share them. The first of them
//! opens an era. When the last one no longer needs it, the era ends and its rows are deleted. Within an era no change is missing, so any
//! moment of it can be read. A later era knows nothing of the changes between the two.

use crate::Engine;
use crate::catalog::edit::Edit;
use crate::keyspace;
use crate::schema::TableDefinition;

/// The era that the table's changes are kept in: the present one, or a new one.
pub(crate) fn open_era(definition: &mut TableDefinition) -> u32 {
    definition.undo_era().unwrap_or_else(|| {
        definition.history_eras += 1;
        definition.history_eras
    })
}

impl Engine {
    /// Ends an era if nobody needs it any more. The edit's write must declare [`keyspace::trim_progress`], which trimming reads
    /// and writes.
    pub(crate) fn end_unused_era(&self, edit: &mut Edit, era: u32) {
        if edit.definition.undo_era().is_some() {
            return;
        }
        let id = edit.definition.id;
        self.discard(&keyspace::undo_prefix(id, era), &mut edit.batch);
        edit.batch.delete(keyspace::history_size_bytes(id));
        edit.batch.delete(keyspace::history_count(id));
        edit.batch.delete(keyspace::trim_progress(id));
    }
}
