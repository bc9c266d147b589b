//! Renders the records of an export into compressed data files. That takes most of an export's time, so steps are rendered on
//! several threads at once, each to a part of the file.

use bytes::Bytes;
use zenobe_engine::export::{ExportRecords, ExportStep};
use zenobe_engine::history::ItemChange;
use zenobe_expression::{Condition, Projection};
use zenobe_transfer::compression::{GzipPart, GzipPartWriter, GzipParts};
use zenobe_transfer::{Format, ion};
use zenobe_value::{EncodedItem, ItemRef};

use super::ExportView;
use crate::json::lines::{append_change_line, append_line};

/// When a data file is large enough, compressed. One is in memory while it is filled, and one while it is stored.
const FILE_SIZE_BYTES: usize = 16 << 20;
/// How much is rendered before it is compressed. It fits into a processor's cache.
const TEXT_SIZE_BYTES: usize = 64 << 10;

/// How to write records.
pub(super) struct Rendering {
    pub(super) format: Format,
    pub(super) view: ExportView,
    /// The names of the table's key attributes.
    pub(super) keys: Vec<String>,
    pub(super) filter: Option<Condition>,
    pub(super) projection: Option<Projection>,
}

/// A step of an export, as a part of a data file.
pub(super) struct Part {
    compressed: GzipPart,
    items: u64,
    size_bytes: u64,
    /// Where the next step continues; `None` if this is the last one.
    pub(super) position: Option<Vec<u8>>,
}

/// A whole data file.
pub(super) struct WholeFile {
    pub(super) bytes: Bytes,
    pub(super) items: u64,
    /// The size of what was read for it.
    pub(super) size_bytes: u64,
    /// Where the next file begins; `None` if this is the last one.
    pub(super) position: Option<Vec<u8>>,
}

/// A data file that is not full yet.
#[derive(Default)]
pub(super) struct OpenFile {
    compressed: GzipParts,
    items: u64,
    size_bytes: u64,
}

impl OpenFile {
    pub(super) fn add(&mut self, part: &Part) {
        self.compressed.add(&part.compressed);
        self.items += part.items;
        self.size_bytes += part.size_bytes;
    }

    pub(super) fn is_full(&self) -> bool {
        self.compressed.size_bytes() >= FILE_SIZE_BYTES
    }

    pub(super) fn close(self, position: Option<Vec<u8>>) -> WholeFile {
        let bytes = self.compressed.finish().into();
        WholeFile { bytes, items: self.items, size_bytes: self.size_bytes, position }
    }
}

/// Text on its way into a part.
struct TextWriter {
    compressed: GzipPartWriter,
    text: Vec<u8>,
}

impl TextWriter {
    fn compress_if_full(&mut self) {
        if self.text.len() >= TEXT_SIZE_BYTES {
            self.compress();
        }
    }

    fn compress(&mut self) {
        self.compressed.write(&self.text);
        self.text.clear();
    }
}

impl Rendering {
    /// Renders and compresses a step. This may take milliseconds, so it is for a thread that may block.
    pub(super) fn render(&self, step: ExportStep) -> Part {
        let text = Vec::with_capacity(2 * TEXT_SIZE_BYTES);
        let mut writer = TextWriter { compressed: GzipPartWriter::default(), text };
        let (mut items, mut size_bytes) = (0, 0);
        match &step.records {
            ExportRecords::Items(records) => {
                for item in records.iter() {
                    size_bytes += item.size_bytes() as u64;
                    items += u64::from(self.append_item(&mut writer.text, item));
                    writer.compress_if_full();
                }
            }
            ExportRecords::Changes(changes) => {
                for change in changes {
                    let images = [&change.old, &change.new].into_iter().flatten();
                    let sizes = images.map(|image| image.as_item().size_bytes() as u64);
                    size_bytes += sizes.sum::<u64>();
                    items += u64::from(self.append_change(&mut writer.text, change));
                    writer.compress_if_full();
                }
            }
        }
        writer.compress();
        let compressed = writer.compressed.end();
        Part { compressed, items, size_bytes, position: step.position }
    }

    fn is_exported(&self, item: ItemRef<'_>) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.evaluate(Some(item)))
    }

    /// Appends an item, if it passes the filter.
    fn append_item(&self, out: &mut Vec<u8>, item: ItemRef<'_>) -> bool {
        if !self.is_exported(item) {
            return false;
        }
        let projected = self.projection.as_ref().map(|projection| projection.apply(item));
        let item = projected.as_ref().map_or(item, EncodedItem::as_item);
        match self.format {
            Format::Ion => ion::write_item(out, item),
            _ => append_line(out, item),
        }
        true
    }

    /// Appends a change, if either of its images passes the filter: who follows the exports must learn of items that leave it.
    fn append_change(&self, out: &mut Vec<u8>, change: &ItemChange) -> bool {
        let [old, new] =
            [&change.old, &change.new].map(|image| image.as_ref().map(EncodedItem::as_item));
        let Some(any) = new.or(old) else { return false };
        if ![old, new].into_iter().flatten().any(|image| self.is_exported(image)) {
            return false;
        }
        let keys = any.retain(|name| self.keys.iter().any(|key| key == name));
        let old = old.filter(|_| self.view == ExportView::NewAndOldImages);
        let projected = [old, new].map(|image| match (&self.projection, image) {
            (Some(projection), Some(image)) => Some(projection.apply(image)),
            _ => None,
        });
        let [old, new] = match &self.projection {
            Some(_) => {
                [&projected[0], &projected[1]].map(|image| image.as_ref().map(EncodedItem::as_item))
            }
            None => [old, new],
        };
        let written_at_micros = change.stamp.at_ms() * 1_000;
        match self.format {
            Format::Ion => ion::write_change(out, written_at_micros, keys.as_item(), old, new),
            _ => append_change_line(out, written_at_micros, keys.as_item(), old, new),
        }
        true
    }
}
