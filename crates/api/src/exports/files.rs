//! Renders the records of an export into compressed data files, on a thread of its own: that takes most of an export's time, and
//! other background work needs the thread that reads.

use std::io::Write;

use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use zenobe_engine::export::{ExportRecords, ExportStep};
use zenobe_engine::history::ItemChange;
use zenobe_expression::{Condition, Projection};
use zenobe_transfer::compression::{Gzip, gzip};
use zenobe_transfer::{Format, ion};
use zenobe_value::{EncodedItem, ItemRef};

use super::ExportView;
use crate::json::lines::{append_change_line, append_line};

/// When a data file is large enough, compressed. One is in memory while it is filled, and one while it is stored.
const FILE_SIZE_BYTES: usize = 16 << 20;
/// How much is rendered before it is compressed.
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

/// A whole data file.
pub(super) struct DataFile {
    pub(super) bytes: Bytes,
    pub(super) items: u64,
    /// The size of what was read for it.
    pub(super) size_bytes: u64,
    /// Where the next file begins; `None` if this is the last one.
    pub(super) position: Option<Vec<u8>>,
}

/// A step to render, and whom to tell when it is done.
pub(super) type Order = (ExportStep, oneshot::Sender<()>);

/// Starts the thread. It ends with the last step, or when nobody sends steps or takes files any more.
pub(super) fn start(rendering: Rendering) -> (Sender<Order>, Receiver<DataFile>) {
    let (orders, incoming) = channel(1);
    let (outgoing, files) = channel(1);
    tokio::task::spawn_blocking(move || work(&rendering, incoming, &outgoing));
    (orders, files)
}

fn work(rendering: &Rendering, mut orders: Receiver<Order>, files: &Sender<DataFile>) {
    let mut file = OpenFile::new();
    while let Some((step, done)) = orders.blocking_recv() {
        file.add(rendering, &step.records);
        // Nobody waits if the export has been interrupted.
        let _ = done.send(());
        let is_last = step.position.is_none();
        if is_last || file.is_full() {
            let full = std::mem::replace(&mut file, OpenFile::new());
            if files.blocking_send(full.close(step.position)).is_err() || is_last {
                return;
            }
        }
    }
}

struct OpenFile {
    compressed: Gzip<Vec<u8>>,
    text: Vec<u8>,
    items: u64,
    size_bytes: u64,
}

impl OpenFile {
    fn new() -> OpenFile {
        let text = Vec::with_capacity(2 * TEXT_SIZE_BYTES);
        OpenFile { compressed: gzip(Vec::new()), text, items: 0, size_bytes: 0 }
    }

    fn is_full(&self) -> bool {
        self.compressed.get_ref().len() >= FILE_SIZE_BYTES
    }

    fn add(&mut self, rendering: &Rendering, records: &ExportRecords) {
        match records {
            ExportRecords::Items(items) => {
                for item in items.iter() {
                    self.size_bytes += item.size_bytes() as u64;
                    self.items += u64::from(rendering.append_item(&mut self.text, item));
                    self.compress_if_full();
                }
            }
            ExportRecords::Changes(changes) => {
                for change in changes {
                    let images = [&change.old, &change.new].into_iter().flatten();
                    let sizes = images.map(|image| image.as_item().size_bytes() as u64);
                    self.size_bytes += sizes.sum::<u64>();
                    self.items += u64::from(rendering.append_change(&mut self.text, change));
                    self.compress_if_full();
                }
            }
        }
    }

    fn compress_if_full(&mut self) {
        if self.text.len() >= TEXT_SIZE_BYTES {
            self.compress();
        }
    }

    fn compress(&mut self) {
        self.compressed.write_all(&self.text).expect("memory takes everything");
        self.text.clear();
    }

    fn close(mut self, position: Option<Vec<u8>>) -> DataFile {
        self.compress();
        let bytes = self.compressed.finish().expect("memory takes everything").into();
        DataFile { bytes, items: self.items, size_bytes: self.size_bytes, position }
    }
}

impl Rendering {
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
