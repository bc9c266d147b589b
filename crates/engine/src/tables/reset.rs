//! Emptying a table at once, for tests.

use crate::Engine;
use crate::catalog::edit::Edit;
use crate::command::TableName;
use crate::error::{Error, Result};
use crate::schema::{IndexStatus, TableDefinition};
use crate::tables::prefixes_of_table;

/// What came of emptying a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableReset {
    Emptied,
    /// The table has point-in-time recovery, and its past would be lost.
    HasHistory,
    /// Other engines use the store. They collect what is discarded by its prefix, and would delete new items as well.
    IsShared,
}

impl Engine {
    /// Deletes everything in a table and its indexes in one write, whatever its size. The definition
    /// stays, with its settings and its stream. The stream gets no records of this.
    ///
    /// # Errors
    /// If the table is missing, or if one of its indexes is being created or deleted.
    pub async fn reset_table(&self, name: &TableName) -> Result<TableReset> {
        if self.is_shared() {
            return Ok(TableReset::IsShared);
        }
        let mut has_history = false;
        let decide = |before: &TableDefinition| {
            if before.indexes().any(|index| index.status != IndexStatus::Active) {
                return Err(Error::IndexesInFlux);
            }
            let mut edit = Edit::new(before.clone());
            has_history = before.history.is_some();
            if !has_history {
                // The new version makes writes that were decided before start over.
                for prefix in prefixes_of_table(before.id) {
                    self.discard(&prefix, &mut edit.batch);
                }
            }
            Ok(edit)
        };
        self.catalog.change(&*self.store, name, decide).await?;
        Ok(if has_history { TableReset::HasHistory } else { TableReset::Emptied })
    }
}
