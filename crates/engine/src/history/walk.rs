//! A scan of a table's past that can stop at any item and continue after it.
//!
//! It alternates between reading a bounded part of the history (a chunk) and visiting the items that this part covers. What it
//! has read of the history is not read again when it goes on.

use std::iter::Peekable;
use std::ops::ControlFlow;
use std::vec;

use zenobe_store::{Direction, Key, KeyRange, Result, Visitor};

use super::past::{Image, ImageChunk, Past};

/// How many images the first chunk fetches. Each later chunk fetches twice as many.
const CHUNK_IMAGES_MIN: usize = 16;
const CHUNK_IMAGES_MAX: usize = 1_024;

pub(crate) struct Walk<'a> {
    past: &'a Past,
    direction: Direction,
    /// The items that no chunk has covered yet, and their undo rows.
    left: KeyRange,
    rows: KeyRange,
    images_max: usize,
    /// What is left of the items that the last chunk covers, and their images.
    covered: KeyRange,
    images: Peekable<vec::IntoIter<Image>>,
    /// Everything up to this item, in the order of the walk, is done when a step ends.
    passed: Option<Key>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(past: &'a Past, items: KeyRange, direction: Direction) -> Walk<'a> {
        Walk {
            past,
            direction,
            rows: past.undo_range(&items),
            left: items,
            images_max: CHUNK_IMAGES_MIN,
            covered: nothing(),
            images: Vec::new().into_iter().peekable(),
            passed: None,
        }
    }

    pub fn is_finished(&self) -> bool {
        self.covered.is_empty() && self.left.is_empty()
    }

    /// The item up to which everything is done, after a step. It need not be an item that was visited.
    pub fn passed(&self) -> Option<&Key> {
        self.passed.as_ref()
    }

    /// Visits items until none is left or the visitor breaks.
    pub async fn run(&mut self, visit: &mut Visitor<'_>) -> Result<()> {
        while !self.is_finished() {
            if self.step(visit).await?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Like [`Walk::run`], but goes no further than the next chunk reaches. There may be no item to visit so far.
    pub async fn step(&mut self, visit: &mut Visitor<'_>) -> Result<ControlFlow<()>> {
        if self.covered.is_empty() {
            self.read_chunk().await?;
        }
        match self.merge(visit).await? {
            Some(stopped_at) => {
                self.pass(&stopped_at);
                Ok(ControlFlow::Break(()))
            }
            None => {
                self.covered = nothing();
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    async fn read_chunk(&mut self) -> Result<()> {
        let (rows, images_max) = (self.rows.clone(), self.images_max);
        let ImageChunk { images, end } =
            self.past.chunk(&self.left, rows, self.direction, images_max).await?;
        self.images = images.into_iter().peekable();
        self.images_max = (2 * images_max).min(CHUNK_IMAGES_MAX);
        let Some(end) = end else {
            self.covered = std::mem::replace(&mut self.left, nothing());
            return Ok(());
        };
        self.past.skip_rows(&end, self.direction, &mut self.rows);
        // A chunk may also end before the first item of the range.
        if self.left.contains(&end) {
            let left = std::mem::replace(&mut self.left, nothing());
            (self.covered, self.left) = split(left, &end, self.direction);
            self.passed = Some(end);
        }
        Ok(())
    }

    /// Everything up to this item has been visited.
    fn pass(&mut self, item: &Key) {
        let covered = std::mem::replace(&mut self.covered, nothing());
        (_, self.covered) = split(covered, item, self.direction);
        self.passed = Some(item.clone());
    }

    /// Visits the covered items, or their images where there are any. Returns the item at which the visitor broke.
    async fn merge(&mut self, visit: &mut Visitor<'_>) -> Result<Option<Key>> {
        let direction = self.direction;
        let is_before = |left: &[u8], right: &[u8]| match direction {
            Direction::Forward => left < right,
            Direction::Reverse => left > right,
        };
        let images = &mut self.images;
        let mut stopped_at = None;
        let mut show = |key: &[u8], item: Option<&[u8]>| {
            let flow = item.map_or(ControlFlow::Continue(()), |item| visit(key, item));
            if flow.is_break() {
                stopped_at = Some(Key::copy_from_slice(key));
            }
            flow
        };
        let mut visit_item = |key: &[u8], value: &[u8]| {
            // Items that have been deleted since.
            while let Some((deleted, image)) = images.next_if(|it| is_before(&it.0, key)) {
                show(&deleted, image.as_deref())?;
            }
            match images.next_if(|it| it.0 == key) {
                Some((_, image)) => show(key, image.as_deref()),
                None => show(key, Some(value)),
            }
        };
        self.past.now.scan(self.covered.clone(), direction, &mut visit_item).await?;
        if stopped_at.is_some() {
            return Ok(stopped_at);
        }
        for (deleted, image) in images.by_ref() {
            if let Some(image) = image
                && visit(&deleted, &image).is_break()
            {
                return Ok(Some(deleted));
            }
        }
        Ok(None)
    }
}

fn nothing() -> KeyRange {
    KeyRange::new("", "")
}

/// The part of a range up to an item, in the order of the walk, and the rest.
fn split(range: KeyRange, last: &Key, direction: Direction) -> (KeyRange, KeyRange) {
    let KeyRange { start, end } = range;
    match direction {
        Direction::Forward => {
            let behind: Key = [&last[..], &[0]].concat().into();
            (KeyRange::new(start, behind.clone()), KeyRange { start: behind, end })
        }
        Direction::Reverse => {
            (KeyRange { start: last.clone(), end }, KeyRange::new(start, last.clone()))
        }
    }
}
