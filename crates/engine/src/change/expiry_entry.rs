//! An item's entry in its table's expiry index.

use zenobe_store::{Batch, Key, Value};
use zenobe_value::EncodedItem;

use super::Change;
use crate::catalog::Table;
use crate::keyspace;
use crate::ttl::expires_at_s;

impl Change<'_> {
    /// Moves the item's entry to its new position.
    pub(super) fn write_expiry(&self, batch: &mut Batch) {
        let old = self.old.and_then(|item| expiry_entry(self.table, self.item_key, item));
        let new = self.new.and_then(|item| expiry_entry(self.table, self.item_key, item));
        // An index that is still being filled may lack the old item's entry.
        if old == new && self.table.definition().ttl_indexed {
            return;
        }
        if let Some(old) = old {
            batch.delete(old);
        }
        if let Some(new) = new {
            batch.put(new, Value::new());
        }
    }
}

/// The key of an item's entry, if the item expires.
pub(crate) fn expiry_entry(table: &Table, item_key: &[u8], item: &EncodedItem) -> Option<Key> {
    let expires_at_s = expires_at_s(table.definition(), item.as_item())?;
    Some(keyspace::expiry_entry(table.expiry_prefix(), expires_at_s, item_key))
}
