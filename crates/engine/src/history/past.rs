//! The items of a table as they were, read as if they were the store's.
//!
//! An undo row holds the image that a change replaced, under the change's stamp. So an item as of a stamp is the image in
//! its first undo row after that stamp, or the item itself if it has not changed since. A table as of a stamp is a merge of
//! its items with these images, in key order: no replay, no base snapshot, and no long-lived snapshot of the store, because
//! every page can be read from another state of the store.

use std::ops::ControlFlow;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use zenobe_store::stamp::{parts_of_stamped_key, stamped_key};
use zenobe_store::{
    Direction, Error, Key, KeyRange, Reader, Result, Stamp, Value, Visitor, prefix_end,
};

use super::known_rows::KnownRows;
use super::walk::Walk;
use crate::keyspace;

const CHUNK_BYTES_MAX: usize = 1 << 20;
/// Most rows of a long history are older than the time that is read and give no image, so a chunk also ends after this many
/// rows for each image that it may have, and never holds more than the maximum.
const CHUNK_ROWS_PER_IMAGE: usize = 16;
const CHUNK_ROWS_MAX: usize = 4_096;

/// After this many rows of one item, the scan seeks past the rest instead of reading them: the history of a hot item is long.
pub(super) const ROWS_BEFORE_SEEK: usize = 16;

/// More than any stamp.
pub(super) const AFTER_STAMPS: [u8; Stamp::LENGTH + 1] = [0xFF; Stamp::LENGTH + 1];

/// Reads a table's items as of a stamp, from one state of the store. Other keys are read as they are.
pub(crate) struct Past {
    pub now: Arc<dyn Reader>,
    pub item_prefix: Key,
    pub undo_prefix: Key,
    pub at: Stamp,
    /// Where images were found before. `None` for reads of whole tables, which have no use for it.
    pub known: Option<Arc<KnownRows>>,
}

/// An item that has changed since: its key, and its image back then, if there was one.
pub(super) type Image = (Key, Option<Value>);

/// The history of the first items of a range, in the order of the scan.
pub(super) struct ImageChunk {
    /// Of those that have changed since.
    pub images: Vec<Image>,
    /// The last item that it covers; `None` if it covers the whole range.
    pub end: Option<Key>,
}

impl Past {
    async fn item(&self, key: &[u8]) -> Result<Option<Value>> {
        let undo_key = keyspace::undo_key(&self.undo_prefix, key);
        let from = stamped_key(&undo_key, self.at.next());
        if let Some(stamp) = self.known.as_ref().and_then(|known| known.get(&from))
            && let Some(image) = self.now.get(&stamped_key(&undo_key, stamp)).await?
        {
            return Ok(Some(image).filter(|image| !image.is_empty()));
        }
        match self.first_row(&undo_key, from.clone()).await? {
            Some((stamp, image)) => {
                if let Some(known) = &self.known {
                    known.insert(&from, stamp);
                }
                Ok(image)
            }
            None => self.now.get(key).await,
        }
    }

    /// The image that an item's first change since has replaced; `None` if it has not changed.
    async fn image(&self, undo_key: &[u8]) -> Result<Option<Option<Value>>> {
        let from = stamped_key(undo_key, self.at.next());
        Ok(self.first_row(undo_key, from).await?.map(|(_, image)| image))
    }

    /// The stamp and the image of an item's first undo row at or after a key.
    async fn first_row(
        &self,
        undo_key: &[u8],
        from: Key,
    ) -> Result<Option<(Stamp, Option<Value>)>> {
        let range = KeyRange::new(from, [undo_key, &AFTER_STAMPS].concat());
        let mut found = None;
        let mut visit = |row: &[u8], image: &[u8]| {
            let stamp = parts_of_stamped_key(row).map(|(_, stamp)| stamp);
            found = stamp.map(|stamp| (stamp, decode_image(image)));
            ControlFlow::Break(())
        };
        self.now.scan_then_get(range, Direction::Forward, Some(1), &mut visit, &[]).await?;
        Ok(found)
    }

    /// A scan of the items that can be interrupted.
    pub fn walk(&self, range: KeyRange, direction: Direction) -> Walk<'_> {
        Walk::new(self, range, direction)
    }

    /// The undo rows of a range of items, and perhaps of a few more: a range that ends right after an item ends before the
    /// item's rows.
    pub(super) fn undo_range(&self, items: &KeyRange) -> KeyRange {
        let start = keyspace::undo_key(&self.undo_prefix, &items.start);
        let end = items.end.as_ref().filter(|end| end.starts_with(&self.item_prefix));
        let end = match end {
            None => prefix_end(&self.undo_prefix),
            Some(end) => Some(match end.strip_suffix(&[0]) {
                Some(item) if item.len() >= self.item_prefix.len() => {
                    let undo_key = keyspace::undo_key(&self.undo_prefix, item);
                    [&undo_key[..], &AFTER_STAMPS].concat().into()
                }
                _ => keyspace::undo_key(&self.undo_prefix, end),
            }),
        };
        KeyRange { start, end }
    }

    /// Reads undo rows until there are enough images, or enough rows.
    pub(super) async fn chunk(
        &self,
        items: &KeyRange,
        mut rows: KeyRange,
        direction: Direction,
        images_max: usize,
    ) -> Result<ImageChunk> {
        let mut collector = Collector::new(self, items, direction, images_max);
        loop {
            collector.rows_of_item = 0;
            let mut visit = |key: &[u8], image: &[u8]| collector.visit(key, image);
            self.now.scan(rows.clone(), direction, &mut visit).await?;
            match collector.stop.take() {
                None => return Ok(ImageChunk { images: collector.images, end: None }),
                Some(Stop::Damaged) => return Err(damaged()),
                Some(Stop::Full) => {
                    return Ok(ImageChunk { images: collector.images, end: collector.item });
                }
                Some(Stop::Seek(item)) => self.seek(&item, &mut collector, &mut rows).await?,
            }
        }
    }

    /// Decides about an item with many rows, and moves `rows` past them.
    async fn seek(
        &self,
        item: &Key,
        collector: &mut Collector<'_>,
        rows: &mut KeyRange,
    ) -> Result<()> {
        let undo_key = keyspace::undo_key(&self.undo_prefix, item);
        if collector.items.contains(item)
            && let Some(image) = self.image(&undo_key).await?
        {
            collector.replace(item, image);
        }
        self.skip_rows(item, collector.direction, rows);
        Ok(())
    }

    /// Moves `rows` past those of an item.
    pub(super) fn skip_rows(&self, item: &Key, direction: Direction, rows: &mut KeyRange) {
        let undo_key = keyspace::undo_key(&self.undo_prefix, item);
        match direction {
            Direction::Forward => rows.start = [&undo_key[..], &AFTER_STAMPS].concat().into(),
            Direction::Reverse => rows.end = Some(undo_key),
        }
    }
}

/// Why a walk over undo rows stopped before their end.
pub(super) enum Stop {
    /// The next item is for the next chunk or step.
    Full,
    /// This item has many rows.
    Seek(Key),
    /// The key of a row does not decode.
    Damaged,
}

/// Turns undo rows, in the order of a scan, into images.
struct Collector<'a> {
    past: &'a Past,
    items: &'a KeyRange,
    direction: Direction,
    images_max: usize,
    images: Vec<Image>,
    size_bytes: usize,
    rows: usize,
    /// The item of the last row, and how many rows of it have been visited in a row.
    item: Option<Key>,
    rows_of_item: usize,
    stop: Option<Stop>,
}

impl<'a> Collector<'a> {
    fn new(
        past: &'a Past,
        items: &'a KeyRange,
        direction: Direction,
        images_max: usize,
    ) -> Collector<'a> {
        Collector {
            past,
            items,
            direction,
            images_max,
            images: Vec::new(),
            size_bytes: 0,
            rows: 0,
            item: None,
            rows_of_item: 0,
            stop: None,
        }
    }

    fn visit(&mut self, row: &[u8], image: &[u8]) -> ControlFlow<()> {
        let Some((item, stamp)) = keyspace::parts_of_undo(&self.past.item_prefix, row) else {
            self.stop = Some(Stop::Damaged);
            return ControlFlow::Break(());
        };
        if self.item.as_ref() == Some(&item) {
            self.rows_of_item += 1;
        } else if self.is_behind_range(&item) {
            return ControlFlow::Break(());
        } else if self.is_full() {
            self.stop = Some(Stop::Full);
            return ControlFlow::Break(());
        } else {
            self.rows_of_item = 1;
            self.item = Some(item.clone());
        }
        self.rows += 1;
        if self.rows_of_item > ROWS_BEFORE_SEEK {
            self.stop = Some(Stop::Seek(item));
            return ControlFlow::Break(());
        }
        if stamp > self.past.at && self.items.contains(&item) {
            let is_known = self.images.last().is_some_and(|(known, _)| *known == item);
            // Forward, an item's first row after the stamp is the one that counts; in reverse, its last.
            if !is_known || self.direction == Direction::Reverse {
                self.replace(&item, decode_image(image));
            }
        }
        ControlFlow::Continue(())
    }

    fn is_full(&self) -> bool {
        let rows_max = (CHUNK_ROWS_PER_IMAGE * self.images_max).min(CHUNK_ROWS_MAX);
        self.images.len() >= self.images_max
            || self.size_bytes >= CHUNK_BYTES_MAX
            || self.rows >= rows_max
    }

    /// Whether the range ends before this item, in the order of the scan.
    fn is_behind_range(&self, item: &Key) -> bool {
        match self.direction {
            Direction::Forward => self.items.end.as_ref().is_some_and(|end| item >= end),
            Direction::Reverse => *item < self.items.start,
        }
    }

    fn replace(&mut self, item: &Key, image: Option<Value>) {
        self.size_bytes += item.len() + image.as_ref().map_or(0, Value::len);
        if self.images.last().is_some_and(|(last, _)| last == item) {
            self.images.pop();
        }
        self.images.push((item.clone(), image));
    }
}

pub(super) fn damaged() -> Error {
    Error::Corrupt { detail: "the key of an undo row".to_owned() }
}

pub(super) fn decode_image(image: &[u8]) -> Option<Value> {
    (!image.is_empty()).then(|| Value::copy_from_slice(image))
}

impl Reader for Past {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        match key.starts_with(&self.item_prefix) {
            true => self.item(key).boxed(),
            false => self.now.get(key),
        }
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move {
            let mut values = Vec::with_capacity(keys.len());
            for key in keys {
                values.push(self.get(key).await?);
            }
            Ok(values)
        }
        .boxed()
    }

    fn scan<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        visit: &'a mut Visitor<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        match range.start.starts_with(&self.item_prefix) {
            true => async move { self.walk(range, direction).run(visit).await }.boxed(),
            false => self.now.scan(range, direction, visit),
        }
    }
}

#[cfg(test)]
mod tests {
    use zenobe_store::memory::MemoryStore;
    use zenobe_store::{Batch, Store, WriteSet, write_with};

    use super::*;
    use crate::keyspace::KeyHash;
    use crate::schema::TableId;

    async fn commit(store: &MemoryStore, fill: impl Fn(&mut Batch) + Send + Sync) {
        let decide = |_: &[Option<Value>]| {
            let mut batch = Batch::new();
            fill(&mut batch);
            Ok::<_, Error>((batch, ()))
        };
        let nothing = WriteSet { guards: &[], keys: &[] };
        write_with(store, nothing, decide).await.unwrap().unwrap();
    }

    /// Trimming deletes rows, and so may another engine on the store.
    #[tokio::test]
    async fn a_row_that_was_deleted_is_not_missed() {
        let store = MemoryStore::new();
        let (item_prefix, undo_prefix) =
            (keyspace::item_prefix(TableId(1)), keyspace::undo_prefix(TableId(1), 1));
        let hash = KeyHash::from_bytes([7; KeyHash::LENGTH]);
        let item = keyspace::entry_key(&item_prefix, hash, b"item");
        let row = |second: u64| {
            let undo_key = keyspace::undo_key(&undo_prefix, &item);
            stamped_key(&undo_key, Stamp::first_of_ms(1_000 * second))
        };
        commit(&store, |batch| {
            batch.put(item.clone(), "now");
            batch.put(row(2), "");
            batch.put(row(3), "then");
        })
        .await;
        let known = Some(Arc::new(KnownRows::new(1)));
        let read = async || {
            let past = Past {
                now: store.snapshot(),
                item_prefix: item_prefix.clone(),
                undo_prefix: undo_prefix.clone(),
                at: Stamp::last_of_ms(1_000),
                known: known.clone(),
            };
            past.get(&item).await.unwrap()
        };
        for (deleted, expected) in
            [(None, None), (Some(2), Some("then")), (Some(3), Some("now")), (None, Some("now"))]
        {
            if let Some(second) = deleted {
                commit(&store, |batch| batch.delete(row(second))).await;
            }
            // The second time, where the row is known by now.
            for _ in 0..2 {
                assert_eq!(read().await, expected.map(Value::from));
            }
        }
    }
}
