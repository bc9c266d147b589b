//! Many items in one buffer.

use bytes::Bytes;

use super::{EncodedItem, ItemRef};

/// Copies of items, one after the other. Whoever reads many at once allocates and frees once for all of them.
#[derive(Default)]
pub struct ItemBuffer {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl ItemBuffer {
    /// Copies an item. With the first one, room is made for as many like it as are `expected`, within limits.
    pub fn push(&mut self, item: ItemRef<'_>, expected: usize) {
        let length = item.as_bytes().len();
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(length.saturating_mul(expected).min(FIRST_BYTES_MAX).max(length));
        }
        self.bytes.extend_from_slice(item.as_bytes());
        self.ends.push(self.bytes.len());
    }

    /// The items in their order, all of which share the buffer and keep it as long as one of them lives.
    pub fn into_items(self) -> Vec<EncodedItem> {
        let bytes = Bytes::from(self.bytes);
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends);
        ranges.map(|(start, &end)| EncodedItem(bytes.slice(start..end))).collect()
    }
}

const FIRST_BYTES_MAX: usize = 64 * 1024;
