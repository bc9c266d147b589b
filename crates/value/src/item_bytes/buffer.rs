//! Many items in one buffer.

use std::fmt;

use bytes::Bytes;

use super::value_ref::trusted;
use super::{EncodedItem, ItemRef};

/// Copies of items, back to back. A reader of many items allocates and frees once for all of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ItemBuffer {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl ItemBuffer {
    /// Copies an item. The first call reserves space for `expected` items of about this size,
    /// within limits.
    pub fn push(&mut self, item: ItemRef<'_>, expected: usize) {
        let length = item.as_bytes().len();
        if self.bytes.capacity() == 0 {
            // Items of one table rarely have exactly the same size.
            let like_it = length + length / 8;
            self.bytes.reserve(like_it.saturating_mul(expected).min(FIRST_BYTES_MAX).max(length));
            self.ends.reserve(expected.min(FIRST_ITEMS_MAX));
        }
        self.bytes.extend_from_slice(item.as_bytes());
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of all items together.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// The items in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = ItemRef<'_>> {
        let ranges = self.ranges();
        ranges.map(|(start, end)| trusted(ItemRef::read_header(&self.bytes[start..end])))
    }

    /// The items one by one. They share the buffer, which lives as long as any of them.
    pub fn into_items(mut self) -> Vec<EncodedItem> {
        let bytes = Bytes::from(std::mem::take(&mut self.bytes));
        self.ranges().map(|(start, end)| EncodedItem(bytes.slice(start..end))).collect()
    }

    fn ranges(&self) -> impl Iterator<Item = (usize, usize)> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(self.ends.iter().copied())
    }
}

impl fmt::Debug for ItemBuffer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

const FIRST_BYTES_MAX: usize = 64 * 1024;
const FIRST_ITEMS_MAX: usize = 1024;
