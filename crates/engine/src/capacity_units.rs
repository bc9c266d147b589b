//! What operations cost: capacity units, counted in halves so that eventually consistent reads stay exact.

use std::collections::BTreeMap;

use zenobe_value::EncodedItem;

use crate::change::size_bytes;
use crate::command::{Consumed, TableName, TransactionalUnits};
use crate::schema::IndexKind;

const READ_UNIT_SIZE_BYTES: u64 = 4096;
const WRITE_UNIT_SIZE_BYTES: u64 = 1024;
const HALVES_PER_UNIT: u64 = 2;

/// The factor on the table's cost outside of transactions.
pub(crate) const PLAIN_FACTOR: u64 = 1;
/// The factor on the table's cost in a transaction, for reads and writes. Indexes cost the same as outside.
pub(crate) const TRANSACTION_FACTOR: u64 = 2;

/// The cost of reading `size_bytes` (one item, or everything that a page evaluated). Reading
/// nothing costs as much as reading one byte.
pub(crate) fn read_halves(size_bytes: u64, consistent: bool) -> u64 {
    let units = size_bytes.div_ceil(READ_UNIT_SIZE_BYTES).max(1);
    if consistent { units * HALVES_PER_UNIT } else { units }
}

/// The cost of writing an item or an index entry of `size_bytes`, in half units.
pub fn write_halves(size_bytes: u64) -> u64 {
    size_bytes.div_ceil(WRITE_UNIT_SIZE_BYTES).max(1) * HALVES_PER_UNIT
}

/// What a write of one item costs the table: `table_factor` is [`PLAIN_FACTOR`] or [`TRANSACTION_FACTOR`].
pub(crate) fn item_write_halves(charged_size_bytes: u64, table_factor: u64) -> u64 {
    table_factor * write_halves(charged_size_bytes)
}

/// A transactional read costs twice a consistent one.
pub(crate) fn transactional_read_halves(size_bytes: u64) -> u64 {
    TRANSACTION_FACTOR * read_halves(size_bytes, true)
}

/// What it costs to read an item in a transaction.
pub(crate) fn transactional_get_halves(item: Option<&EncodedItem>) -> u64 {
    transactional_read_halves(size_bytes(item))
}

/// The cost of changing one index entry, by its sizes before and after.
pub(crate) fn entry_halves(change: EntryChange) -> u64 {
    match change {
        EntryChange::Unchanged => 0,
        EntryChange::Added { new } => write_halves(new),
        EntryChange::Removed { old } => write_halves(old),
        EntryChange::Replaced { old, new } => write_halves(old).max(write_halves(new)),
        EntryChange::Moved { old, new } => write_halves(old) + write_halves(new),
    }
}

/// How an item's entry in an index changes, with its sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryChange {
    Unchanged,
    Added {
        new: u64,
    },
    Removed {
        old: u64,
    },
    /// Same key, different content.
    Replaced {
        old: u64,
        new: u64,
    },
    /// Under another key.
    Moved {
        old: u64,
        new: u64,
    },
}

impl EntryChange {
    pub(crate) fn count_delta(self) -> i64 {
        match self {
            EntryChange::Added { .. } => 1,
            EntryChange::Removed { .. } => -1,
            EntryChange::Unchanged | EntryChange::Replaced { .. } | EntryChange::Moved { .. } => 0,
        }
    }

    pub(crate) fn size_delta_bytes(self) -> i64 {
        match self {
            EntryChange::Unchanged => 0,
            EntryChange::Added { new } => new as i64,
            EntryChange::Removed { old } => -(old as i64),
            EntryChange::Replaced { old, new } | EntryChange::Moved { old, new } => {
                new as i64 - old as i64
            }
        }
    }
}

impl Consumed {
    pub(crate) fn none(table: &TableName, transactional: Option<TransactionalUnits>) -> Consumed {
        Consumed {
            table: table.clone(),
            transactional,
            table_halves: 0,
            local_index_halves: BTreeMap::new(),
            global_index_halves: BTreeMap::new(),
        }
    }

    pub(crate) fn add_index(&mut self, kind: IndexKind, name: &str, halves: u64) {
        let indexes = match kind {
            IndexKind::Local => &mut self.local_index_halves,
            IndexKind::Global => &mut self.global_index_halves,
        };
        *indexes.entry(name.to_owned()).or_default() += halves;
    }

    pub fn add(&mut self, other: &Consumed) {
        self.table_halves += other.table_halves;
        for (name, halves) in &other.local_index_halves {
            self.add_index(IndexKind::Local, name, *halves);
        }
        for (name, halves) in &other.global_index_halves {
            self.add_index(IndexKind::Global, name, *halves);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_round_up_to_four_kilobytes() {
        for (size_bytes, consistent, expected) in [
            (0, false, 1),
            (0, true, 2),
            (1, false, 1),
            (4096, false, 1),
            (4097, false, 2),
            (4097, true, 4),
            (1_048_576, true, 512),
        ] {
            assert_eq!(read_halves(size_bytes, consistent), expected, "{size_bytes} {consistent}");
        }
        assert_eq!(transactional_read_halves(0), 4);
        assert_eq!(transactional_read_halves(4097), 8);
    }

    #[test]
    fn writes_round_up_to_one_kilobyte() {
        for (size_bytes, expected) in [(0, 2), (1, 2), (1024, 2), (1025, 4), (409_600, 800)] {
            assert_eq!(write_halves(size_bytes), expected, "{size_bytes}");
        }
    }

    #[test]
    fn an_entry_is_charged_by_its_change() {
        for (change, expected) in [
            (EntryChange::Unchanged, 0),
            (EntryChange::Added { new: 1500 }, 4),
            (EntryChange::Removed { old: 10 }, 2),
            (EntryChange::Replaced { old: 3000, new: 10 }, 6),
            (EntryChange::Moved { old: 3000, new: 10 }, 8),
        ] {
            assert_eq!(entry_halves(change), expected, "{change:?}");
        }
    }
}
