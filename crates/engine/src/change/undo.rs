//! The undo row of a change, on tables with point-in-time recovery or a backup that is being copied:
//! the image that the change replaced, stamped in the commit order. [`crate::history`] reads them.

use zenobe_store::{Batch, Stamp, Value};

use super::Change;
use crate::catalog::HistoryKeys;
use crate::keyspace;

impl Change<'_> {
    pub(super) fn write_undo(&self, history: &HistoryKeys, batch: &mut Batch) {
        let key = keyspace::undo_key(&history.prefix, self.item_key);
        // Empty means that there was no item: an encoded item is never empty.
        let image = self.old.map_or_else(Value::new, |old| old.as_bytes().clone());
        batch.add(history.count.clone(), 1);
        batch.add(history.size_bytes.clone(), row_size_bytes(key.len() + Stamp::LENGTH, &image));
        batch.put_stamped(history.clock.clone(), self.cause.history_at_ms, key, image);
    }
}

/// What an undo row counts for, given the length of its whole key.
pub(crate) fn row_size_bytes(key_length: usize, image: &[u8]) -> i64 {
    (key_length + image.len()) as i64
}
