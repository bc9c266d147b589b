//! Items assembled from other items: encoded attributes are copied as slices, and no tree is built.

use bytes::{Buf, Bytes};

use super::containers::{Entry, NameSet};
use super::{EncodedItem, HEADER_BYTES_MAX, ItemRef, VERSION, encode};
use crate::reader::LengthBytes;
use crate::{AttributeValue, Attributes};

pub(super) fn retained(item: &ItemRef<'_>, keep: impl Fn(&str) -> bool) -> EncodedItem {
    let mut assembly = Assembly::with_capacity(item.bytes.len());
    let mut size_bytes = 0;
    for entry in item.attributes.entries().filter(|entry| keep(entry.name())) {
        assembly.copy(&entry);
        size_bytes += entry.size_bytes();
    }
    assembly.finish(size_bytes)
}

pub(super) fn spliced(item: &ItemRef<'_>, replaced: &[&str], with: &Attributes) -> EncodedItem {
    let replaced = NameSet::new(replaced);
    let mut added_size_bytes = 0;
    let mut removed_size_bytes = 0;
    let mut assembly = Assembly::with_capacity(item.bytes.len() + ADDED_BYTES_EXPECTED);
    let mut added = with.iter().peekable();
    for entry in item.attributes.entries() {
        if entry.is_one_of(&replaced) {
            removed_size_bytes += entry.size_bytes();
            continue;
        }
        while let Some((name, value)) = added.next_if(|(name, _)| name.as_bytes() < entry.name) {
            added_size_bytes += assembly.encode(name, value);
        }
        assembly.copy(&entry);
    }
    for (name, value) in added {
        added_size_bytes += assembly.encode(name, value);
    }
    assembly.finish(item.size_bytes - removed_size_bytes + added_size_bytes)
}

/// What an update usually adds. Reserving it spares the buffer from growing.
const ADDED_BYTES_EXPECTED: usize = 64;

/// The attributes of an item under construction, ascending by name.
struct Assembly {
    /// The header depends on the attributes, so space for the longest one stays free in front. What
    /// the header does not need is cut off.
    out: Vec<u8>,
    count: usize,
}

impl Assembly {
    fn with_capacity(attributes_bytes: usize) -> Assembly {
        let mut out = Vec::with_capacity(HEADER_BYTES_MAX + attributes_bytes);
        out.resize(HEADER_BYTES_MAX, 0);
        Assembly { out, count: 0 }
    }

    fn copy(&mut self, entry: &Entry<'_>) {
        self.out.extend_from_slice(entry.encoded);
        self.count += 1;
    }

    /// Returns the attribute's size as DynamoDB measures it.
    fn encode(&mut self, name: &str, value: &AttributeValue) -> usize {
        encode::member(name, value, &mut self.out);
        self.count += 1;
        name.len() + value.size_bytes()
    }

    fn finish(mut self, size_bytes: usize) -> EncodedItem {
        let (size, count) = (LengthBytes::new(size_bytes), LengthBytes::new(self.count));
        let count_at = HEADER_BYTES_MAX - count.as_slice().len();
        let size_at = count_at - size.as_slice().len();
        let start = size_at - 1;
        self.out[start] = VERSION;
        self.out[size_at..count_at].copy_from_slice(size.as_slice());
        self.out[count_at..HEADER_BYTES_MAX].copy_from_slice(count.as_slice());
        let mut bytes = Bytes::from(self.out);
        bytes.advance(start);
        EncodedItem(bytes)
    }
}
