//! Secondary indexes: their entries, and how an index joins or leaves a table that is in use.

pub(crate) mod backfill;
pub(crate) mod index_entry;
mod status_delay;

use crate::catalog::{Table, TableIndex};
use crate::schema::{IndexDefinition, IndexProjection, IndexStatus, KeySchema};

pub(crate) use status_delay::StatusDelay;

/// The indexes that a change of an item must maintain: all except those being deleted.
pub(crate) fn maintained(table: &Table) -> impl Iterator<Item = TableIndex<'_>> {
    table.indexes().filter(|index| index.definition.status != IndexStatus::Deleting)
}

/// Whether items older than the index may still lack their entry.
pub(crate) fn is_incomplete(index: &IndexDefinition) -> bool {
    matches!(index.status, IndexStatus::Creating { .. })
}

/// Whether the entries of `index`, on a table with these keys, carry the attribute `name`.
pub(crate) fn projects(table_keys: &KeySchema, index: &IndexDefinition, name: &str) -> bool {
    let included = match &index.projection {
        IndexProjection::All => true,
        IndexProjection::KeysOnly => false,
        IndexProjection::Include(names) => names.iter().any(|included| included == name),
    };
    included || table_keys.contains(name) || index.keys.contains(name)
}
