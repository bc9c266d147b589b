//! Writes the entries of a changed item in the table's local and global indexes.

use std::collections::HashMap;

use zenobe_store::{Batch, Key};

use super::{Change, add_statistics};
use crate::capacity_units::EntryChange;
use crate::catalog::TableIndex;
use crate::indexes::index_entry::{IndexEntry, entry};
use crate::indexes::{is_incomplete, maintained};

/// Which entries of incomplete indexes are stored, read under the locks of their items.
pub(crate) type KnownEntries = HashMap<Key, bool>;

/// Entries of incomplete indexes that the write set must declare before the change can be written:
/// how they count depends on whether the backfill has reached them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NeedsEntries(pub Vec<Key>);

impl Change<'_> {
    /// The entries before and after, for every maintained index.
    pub(super) fn entry_pairs(
        &self,
        known: &KnownEntries,
    ) -> Result<Vec<EntryPair<'_>>, NeedsEntries> {
        let mut unknown = Vec::new();
        let mut pairs = Vec::new();
        for index in maintained(self.table) {
            let entry_of = |item| entry(self.table, index, self.key, item);
            let mut old = self.old.and_then(entry_of);
            let new = self.new.and_then(entry_of);
            if is_incomplete(index.definition)
                && let Some(entry) = &old
            {
                match known.get(&entry.key) {
                    Some(true) => {}
                    Some(false) => old = None,
                    None => unknown.push(entry.key.clone()),
                }
            }
            pairs.push(EntryPair { index, old, new });
        }
        if unknown.is_empty() { Ok(pairs) } else { Err(NeedsEntries(unknown)) }
    }
}

/// An item's entry in an index before and after a change.
pub(super) struct EntryPair<'a> {
    pub index: TableIndex<'a>,
    pub old: Option<IndexEntry>,
    pub new: Option<IndexEntry>,
}

impl EntryPair<'_> {
    pub fn write(&self, batch: &mut Batch) -> EntryChange {
        let change = self.change();
        if matches!(change, EntryChange::Removed { .. } | EntryChange::Moved { .. })
            && let Some(old) = &self.old
        {
            batch.delete(old.key.clone());
        }
        if let Some(new) = &self.new
            && change != EntryChange::Unchanged
        {
            batch.put(new.key.clone(), new.value.as_bytes().clone());
        }
        add_statistics(
            self.index.statistics,
            change.count_delta(),
            change.size_delta_bytes(),
            batch,
        );
        change
    }

    fn change(&self) -> EntryChange {
        match (&self.old, &self.new) {
            (None, None) => EntryChange::Unchanged,
            (None, Some(new)) => EntryChange::Added { new: new.size_bytes() },
            (Some(old), None) => EntryChange::Removed { old: old.size_bytes() },
            (Some(old), Some(new)) if old == new => EntryChange::Unchanged,
            (Some(old), Some(new)) => {
                let (same_key, old, new) = (old.key == new.key, old.size_bytes(), new.size_bytes());
                if same_key {
                    EntryChange::Replaced { old, new }
                } else {
                    EntryChange::Moved { old, new }
                }
            }
        }
    }
}
