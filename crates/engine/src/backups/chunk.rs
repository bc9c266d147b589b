//! The items of a copied backup, many to a row.
//!
//! A backup is only ever read as a whole, in the order of its keys. So its items share rows of about a quarter of a megabyte: on
//! PostgreSQL each row costs a header and an entry in an index, in RocksDB a place in the memtable and later a tombstone. A row
//! per item would cost small items more than they hold.
//!
//! A chunk is a version byte and items, each behind its length in four bytes (big-endian). Its key is that of its first item, so
//! a reader can continue after any item, wherever chunks begin.

use std::ops::ControlFlow;

use zenobe_store::{Direction, Key, KeyRange, Reader, Value};
use zenobe_value::EncodedItem;

use crate::error::Result;
use crate::keys::PrimaryKey;
use crate::keyspace;
use crate::row::corrupt;
use crate::schema::KeySchema;
use crate::write::decode_stored;

const VERSION: u8 = 1;

/// A chunk that has grown to this size is complete.
const CHUNK_BYTES_FULL: usize = 256 << 10;

/// How much a read takes at once. It is more than any chunk, so that no read finds only what it already had.
const READ_BYTES_MAX: usize = 2 << 20;

/// Packs items, which must come in key order, into chunks.
pub(super) struct Packer<'a> {
    content: &'a Key,
    chunks: Vec<(Key, Value)>,
    open: Option<(Key, Vec<u8>)>,
}

impl<'a> Packer<'a> {
    /// `content` is the prefix of what belongs to the backup.
    pub(super) fn new(content: &'a Key) -> Packer<'a> {
        Packer { content, chunks: Vec::new(), open: None }
    }

    /// `key` is the item's key in the table.
    pub(super) fn add(&mut self, key: &Key, item: &EncodedItem) {
        let begin = || (keyspace::backup_chunk(self.content, key), vec![VERSION]);
        let (chunk_key, mut bytes) = self.open.take().unwrap_or_else(begin);
        let item = item.as_bytes();
        let length = u32::try_from(item.len()).expect("an item has less than a megabyte");
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(item);
        match bytes.len() < CHUNK_BYTES_FULL {
            true => self.open = Some((chunk_key, bytes)),
            false => self.chunks.push((chunk_key, bytes.into())),
        }
    }

    pub(super) fn finish(mut self) -> Vec<(Key, Value)> {
        self.chunks.extend(self.open.map(|(key, bytes)| (key, bytes.into())));
        self.chunks
    }
}

/// Where the chunks of a backup are, and how to tell the keys of their items.
pub(crate) struct Chunks<'a> {
    pub content: Key,
    pub keys: &'a KeySchema,
    /// The prefix of the items' keys in the table.
    pub item_prefix: Key,
}

impl Chunks<'_> {
    /// The next items after one with this key, with their keys in the table; none if there are no more.
    pub(crate) async fn after(
        &self,
        now: &dyn Reader,
        position: Option<&[u8]>,
    ) -> Result<Vec<(Key, EncodedItem)>> {
        let mut range = KeyRange::prefix(keyspace::backup_chunks_prefix(&self.content));
        if let Some(position) = position {
            range.start = self.chunk_of(now, position, &range.start).await?;
        }
        let (mut chunks, mut size_bytes) = (Vec::new(), 0);
        let mut visit = |_: &[u8], chunk: &[u8]| {
            chunks.push(Value::copy_from_slice(chunk));
            size_bytes += chunk.len();
            match size_bytes < READ_BYTES_MAX {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        now.scan(range, Direction::Forward, &mut visit).await?;
        let mut items = Vec::new();
        for chunk in &chunks {
            for item in unpack(chunk)? {
                let key = PrimaryKey::from_stored(self.keys, item.as_item())?;
                let key = key.item_key_below(&self.item_prefix);
                if position.is_none_or(|position| key[..] > *position) {
                    items.push((key, item));
                }
            }
        }
        Ok(items)
    }

    /// The key of the chunk with the item at `position`, or the first one if that is not the first item.
    async fn chunk_of(&self, now: &dyn Reader, position: &[u8], first: &Key) -> Result<Key> {
        let behind = [&keyspace::backup_chunk(&self.content, position)[..], &[0]].concat();
        let mut found = first.clone();
        let mut visit = |key: &[u8], _: &[u8]| {
            found = Key::copy_from_slice(key);
            ControlFlow::Break(())
        };
        let range = KeyRange::new(first.clone(), behind);
        now.scan_then_get(range, Direction::Reverse, Some(1), &mut visit, &[]).await?;
        Ok(found)
    }
}

fn unpack(chunk: &Value) -> Result<Vec<EncodedItem>> {
    let damaged = || corrupt("a chunk of a backup".to_owned());
    if chunk.first() != Some(&VERSION) {
        return Err(damaged());
    }
    let mut items = Vec::new();
    let mut at = 1;
    while at < chunk.len() {
        let length: &[u8; 4] = chunk[at..].first_chunk().ok_or_else(damaged)?;
        let start = at + length.len();
        let end = start + u32::from_be_bytes(*length) as usize;
        if end > chunk.len() {
            return Err(damaged());
        }
        items.push(decode_stored(&chunk.slice(start..end))?);
        at = end;
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use zenobe_store::memory::MemoryStore;
    use zenobe_store::put_or_delete;
    use zenobe_value::{AttributeValue, Attributes};

    use super::*;
    use crate::error::Error;
    use crate::schema::{KeyAttribute, Namespace, ScalarType, TableId};

    fn item(number: usize, size_bytes: usize) -> EncodedItem {
        EncodedItem::encode(&Attributes::from([
            ("pk".to_owned(), AttributeValue::S(format!("{number}"))),
            ("pad".to_owned(), AttributeValue::B(vec![7; size_bytes])),
        ]))
    }

    fn keys() -> KeySchema {
        let partition = KeyAttribute { name: "pk".into(), scalar_type: ScalarType::S };
        KeySchema { partition: vec![partition], sort: Vec::new() }
    }

    /// So many items, in the order of their keys.
    fn items(count: usize, size_bytes: usize) -> Vec<(Key, EncodedItem)> {
        let prefix = keyspace::item_prefix(TableId(1));
        let keyed = |number| {
            let item = item(number, size_bytes);
            let key = PrimaryKey::from_stored(&keys(), item.as_item()).unwrap();
            (key.item_key_below(&prefix), item)
        };
        let mut items: Vec<_> = (0..count).map(keyed).collect();
        items.sort_by(|one, other| one.0.cmp(&other.0));
        items
    }

    fn content() -> Key {
        let namespace = Namespace { account: "1".into(), region: "r".into() };
        keyspace::backup_content_prefix(&namespace, "t", "id")
    }

    #[test]
    fn the_stored_form_is_pinned() {
        let (content, items) = (content(), items(2, 0));
        let mut packer = Packer::new(&content);
        items.iter().for_each(|(key, item)| packer.add(key, item));
        let chunks = packer.finish();
        assert_eq!(chunks.len(), 1);
        let (key, chunk) = &chunks[0];
        assert_eq!(*key, keyspace::backup_chunk(&content, &items[0].0));
        let mut expected = vec![1];
        for (_, item) in &items {
            expected.extend_from_slice(&(item.as_bytes().len() as u32).to_be_bytes());
            expected.extend_from_slice(item.as_bytes());
        }
        assert_eq!(chunk[..], expected);
    }

    #[test]
    fn damaged_chunks_are_errors() {
        let (content, items) = (content(), items(3, 10));
        let mut packer = Packer::new(&content);
        items.iter().for_each(|(key, item)| packer.add(key, item));
        let chunk = packer.finish().remove(0).1;
        assert_eq!(unpack(&chunk).unwrap().len(), 3);
        let whole: Vec<usize> = std::iter::once(1)
            .chain(items.iter().scan(1, |end, (_, item)| {
                *end += 4 + item.as_bytes().len();
                Some(*end)
            }))
            .collect();
        for length in 0..chunk.len() {
            let cut = unpack(&chunk.slice(..length));
            match whole.iter().position(|end| *end == length) {
                Some(count) => assert_eq!(cut.unwrap().len(), count),
                None => assert!(matches!(cut, Err(Error::Corrupt { .. })), "{length}: {cut:?}"),
            }
        }
        let other = [&[2][..], &chunk[1..]].concat();
        assert!(unpack(&other.into()).is_err(), "another version");
    }

    /// A restore that began by reading the table may continue with the chunks at any item.
    #[tokio::test]
    async fn reading_can_begin_after_any_item() {
        let store = MemoryStore::new();
        let (content, items) = (content(), items(120, 40_000));
        let mut packer = Packer::new(&content);
        items.iter().for_each(|(key, item)| packer.add(key, item));
        let packed = packer.finish();
        assert!(packed.len() > 10, "several chunks, and more than one read");
        for (key, chunk) in packed {
            put_or_delete(&store, key, Some(chunk)).await.unwrap();
        }
        let (keys, item_prefix) = (keys(), keyspace::item_prefix(TableId(1)));
        let chunks = Chunks { content, keys: &keys, item_prefix };
        for begin in [0, 1, 5, 6, 7, 60, 119, 120] {
            let mut position = items[..begin].last().map(|(key, _)| key.clone());
            let mut read = Vec::new();
            loop {
                let more = chunks.after(&store, position.as_deref()).await.unwrap();
                let Some((last, _)) = more.last() else { break };
                position = Some(last.clone());
                read.extend(more);
            }
            assert_eq!(read, items[begin..], "from {begin}");
        }
    }
}
