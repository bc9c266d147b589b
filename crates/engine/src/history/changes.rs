//! What changed between two stamps, item by item.
//!
//! The net change of an item is the difference between its images as of both stamps. Only items with an undo row in between can
//! have one, so a walk over the undo rows finds them all: the first row after the earlier stamp holds the old image; the first
//! row after the later stamp holds the new one, or else the item itself is it.

use std::ops::ControlFlow;

use zenobe_store::stamp::stamped_key;
use zenobe_store::{Direction, Key, KeyRange, Stamp, Value};
use zenobe_value::EncodedItem;

use crate::error::Result;
use crate::keyspace;
use crate::write::decode_stored;

use super::past::{AFTER_STAMPS, Past, ROWS_BEFORE_SEEK, Stop, damaged, decode_image};

/// How much one step reads. Most rows may lie outside the time that is asked for.
const STEP_ROWS_MAX: usize = 20_000;
const STEP_ITEMS_MAX: usize = 1_000;
const STEP_BYTES_MAX: usize = 2 << 20;
/// How many items are fetched at a time, for those that have not changed since.
const FETCHED_ITEMS_MAX: usize = 16;

/// The net change of one item.
#[derive(Debug, Clone)]
pub struct ItemChange {
    /// When the last of its changes was committed.
    pub stamp: Stamp,
    /// `None` if it was inserted.
    pub old: Option<EncodedItem>,
    /// `None` if it was deleted.
    pub new: Option<EncodedItem>,
}

/// Reads changes after `since`, up to the past's own stamp.
pub(crate) struct Changes {
    pub past: Past,
    pub since: Stamp,
}

pub(crate) struct ChangesStep {
    pub changes: Vec<ItemChange>,
    /// The last item that was looked at; `None` if there are no more.
    pub position: Option<Key>,
}

impl Changes {
    /// The changes of the first items of a range, behind a position that an earlier step returned.
    pub async fn step(&self, items: &KeyRange, behind: Option<&[u8]>) -> Result<ChangesStep> {
        let mut walk = UndoRowWalk::new(self, items);
        let mut rows = self.past.undo_range(items);
        if let Some(item) = behind {
            rows.start = self.rows_end(item);
        }
        loop {
            let mut visit = |row: &[u8], image: &[u8]| walk.visit(row, image);
            self.past.now.scan(rows.clone(), Direction::Forward, &mut visit).await?;
            match walk.stop.take() {
                Some(Stop::Damaged) => return Err(damaged().into()),
                Some(Stop::Seek(item)) => {
                    rows.start = self.rows_end(&item);
                    walk.current = Some(self.seek(item).await?);
                    walk.is_decided = true;
                }
                Some(Stop::Full) => return self.finish(walk.found, walk.last).await,
                None => {
                    walk.keep_current();
                    return self.finish(walk.found, None).await;
                }
            }
        }
    }

    /// The end of an item's undo rows.
    fn rows_end(&self, item: &[u8]) -> Key {
        [&keyspace::undo_key(&self.past.undo_prefix, item)[..], &AFTER_STAMPS].concat().into()
    }

    /// Decides about an item with many rows without reading them all.
    async fn seek(&self, item: Key) -> Result<ItemImages> {
        let undo_key = keyspace::undo_key(&self.past.undo_prefix, &item);
        let row = |stamp: Stamp| stamped_key(&undo_key, stamp);
        let (since, at) = (self.since, self.past.at);
        let between = KeyRange::new(row(since.next()), row(at.next()));
        let after = KeyRange::new(row(at.next()), self.rows_end(&item));
        let first = self.edge(between.clone(), Direction::Forward).await?;
        let last = self.edge(between, Direction::Reverse).await?;
        let after = self.edge(after, Direction::Forward).await?;
        Ok(ItemImages {
            item,
            old: first.map(|(_, image)| image),
            stamp: last.map_or(since, |(stamp, _)| stamp),
            new: after.map(|(_, image)| image),
        })
    }

    /// The first undo row of a range, in a direction.
    async fn edge(
        &self,
        rows: KeyRange,
        direction: Direction,
    ) -> Result<Option<(Stamp, Option<Value>)>> {
        let mut found = Ok(None);
        let mut visit = |row: &[u8], image: &[u8]| {
            let parts = keyspace::parts_of_undo(&self.past.item_prefix, row);
            let parts = parts.map(|(_, stamp)| (stamp, decode_image(image)));
            found = parts.map(Some).ok_or_else(|| damaged().into());
            ControlFlow::Break(())
        };
        self.past.now.scan(rows, direction, &mut visit).await?;
        found
    }

    /// Fetches the new images that no undo row has. The step ends early if they are large.
    async fn finish(&self, found: Vec<ItemImages>, position: Option<Key>) -> Result<ChangesStep> {
        let mut step = ChangesStep { changes: Vec::new(), position };
        let mut size_bytes = 0;
        let mut chunks = found.chunks(FETCHED_ITEMS_MAX).peekable();
        while let Some(chunk) = chunks.next() {
            let missing = chunk.iter().filter(|found| found.new.is_none());
            let keys: Vec<Key> = missing.map(|found| found.item.clone()).collect();
            let mut fetched = self.past.now.get_many(&keys).await?.into_iter();
            for found in chunk {
                let new = match &found.new {
                    Some(image) => image.clone(),
                    None => fetched.next().flatten(),
                };
                let old = found.old.clone().flatten();
                let length = |image: &Option<Value>| image.as_ref().map_or(0, Value::len);
                size_bytes += length(&old) + length(&new);
                // Equal values have equal bytes.
                if old != new {
                    step.changes.push(ItemChange {
                        stamp: found.stamp,
                        old: old.as_ref().map(decode_stored).transpose()?,
                        new: new.as_ref().map(decode_stored).transpose()?,
                    });
                }
            }
            if size_bytes >= STEP_BYTES_MAX && chunks.peek().is_some() {
                step.position = chunk.last().map(|found| found.item.clone());
                break;
            }
        }
        Ok(step)
    }
}

/// An item with a change in the time that is asked for.
struct ItemImages {
    item: Key,
    /// The image before the first change; `None` while there is no change.
    old: Option<Option<Value>>,
    stamp: Stamp,
    /// The image that the first later change has replaced, if there is one.
    new: Option<Option<Value>>,
}

/// Sorts undo rows by item and time.
struct UndoRowWalk<'a> {
    changes: &'a Changes,
    items: &'a KeyRange,
    current: Option<ItemImages>,
    /// Whether more rows of the current item make no difference.
    is_decided: bool,
    rows_of_item: usize,
    rows: usize,
    size_bytes: usize,
    found: Vec<ItemImages>,
    /// The last item of which every row has been visited.
    last: Option<Key>,
    stop: Option<Stop>,
}

impl<'a> UndoRowWalk<'a> {
    fn new(changes: &'a Changes, items: &'a KeyRange) -> UndoRowWalk<'a> {
        UndoRowWalk {
            changes,
            items,
            current: None,
            is_decided: false,
            rows_of_item: 0,
            rows: 0,
            size_bytes: 0,
            found: Vec::new(),
            last: None,
            stop: None,
        }
    }

    fn visit(&mut self, row: &[u8], image: &[u8]) -> ControlFlow<()> {
        let parts = keyspace::parts_of_undo(&self.changes.past.item_prefix, row);
        let Some((item, stamp)) = parts else {
            self.stop = Some(Stop::Damaged);
            return ControlFlow::Break(());
        };
        // The range of rows may be a little wider than that of items.
        if !self.items.contains(&item) {
            return ControlFlow::Continue(());
        }
        self.rows += 1;
        if self.current.as_ref().is_none_or(|current| current.item != item) {
            self.keep_current();
            if self.is_full() {
                self.stop = Some(Stop::Full);
                return ControlFlow::Break(());
            }
            let stamp = self.changes.since;
            self.current = Some(ItemImages { item: item.clone(), old: None, stamp, new: None });
        }
        self.rows_of_item += 1;
        if self.rows_of_item > ROWS_BEFORE_SEEK && !self.is_decided {
            self.stop = Some(Stop::Seek(item));
            return ControlFlow::Break(());
        }
        self.add(stamp, image);
        ControlFlow::Continue(())
    }

    fn add(&mut self, stamp: Stamp, image: &[u8]) {
        let (since, at) = (self.changes.since, self.changes.past.at);
        let Some(current) = self.current.as_mut().filter(|_| !self.is_decided) else { return };
        let image_of = if stamp <= since {
            return;
        } else if stamp <= at {
            current.stamp = stamp;
            &mut current.old
        } else {
            &mut current.new
        };
        if image_of.is_none() {
            self.size_bytes += image.len();
            *image_of = Some(decode_image(image));
        }
    }

    fn keep_current(&mut self) {
        if let Some(current) = self.current.take() {
            self.last = Some(current.item.clone());
            self.found.extend(Some(current).filter(|current| current.old.is_some()));
        }
        self.rows_of_item = 0;
        self.is_decided = false;
    }

    fn is_full(&self) -> bool {
        self.last.is_some()
            && (self.rows >= STEP_ROWS_MAX
                || self.found.len() >= STEP_ITEMS_MAX
                || self.size_bytes >= STEP_BYTES_MAX)
    }
}
