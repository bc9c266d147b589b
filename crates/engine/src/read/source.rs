//! What a Query or Scan reads: a table or one of its indexes.

use zenobe_store::Key;

use crate::catalog::{Table, TableIndex};
use crate::error::{Error, PageError, Result};
use crate::schema::{IndexKind, IndexStatus, KeyAttribute, KeySchema};

#[derive(Clone, Copy)]
pub(super) struct ReadSource<'t> {
    pub table: &'t Table,
    pub index: Option<TableIndex<'t>>,
}

impl<'t> ReadSource<'t> {
    pub fn resolve(
        table: &'t Table,
        index: Option<&str>,
        consistent: bool,
    ) -> Result<ReadSource<'t>> {
        let Some(name) = index else {
            return Ok(ReadSource { table, index: None });
        };
        let not_found = || Error::IndexNotFound { index: name.to_owned() };
        let index = table.index(name).ok_or_else(not_found)?;
        match index.definition.status {
            IndexStatus::Active => {}
            IndexStatus::Creating { .. } => {
                return Err(PageError::Backfilling { index: name.to_owned() }.into());
            }
            IndexStatus::Deleting => return Err(not_found()),
        }
        if consistent && index.definition.kind == IndexKind::Global {
            return Err(PageError::ConsistentReadOnGlobalIndex.into());
        }
        Ok(ReadSource { table, index: Some(index) })
    }

    /// The common prefix of everything to read.
    pub fn prefix(self) -> &'t Key {
        self.index.map_or(self.table.item_prefix(), |index| index.prefix)
    }

    /// The keys that conditions apply to and that order the entries.
    pub fn keys(self) -> &'t KeySchema {
        self.index.map_or(self.table_keys(), |index| &index.definition.keys)
    }

    pub fn table_keys(self) -> &'t KeySchema {
        &self.table.definition().keys
    }

    /// The attributes of a page's start key: the index's keys and the table's, each once.
    pub fn page_keys(self) -> impl Iterator<Item = &'t KeyAttribute> {
        let keys = self.keys();
        let others = self.table_keys().attributes();
        keys.attributes().chain(others.filter(move |other| !keys.contains(&other.name)))
    }

    /// Whether a partition holds at most one item.
    pub fn has_single_items(self) -> bool {
        self.index.is_none() && self.keys().sort.is_empty()
    }

    pub fn is_local_index(self) -> bool {
        self.index.is_some_and(|index| index.definition.kind == IndexKind::Local)
    }
}
