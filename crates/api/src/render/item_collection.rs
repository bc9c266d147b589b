//! ItemCollectionMetrics.

use zenobe_engine::command::ItemCollection;

use crate::json::{Writer, write_attributes};

const GIGABYTE: u64 = 1 << 30;

/// The size is shown as the two whole numbers of gigabytes that it lies between.
pub(crate) fn write_item_collection(writer: &mut Writer, collection: &ItemCollection) {
    let low = collection.size_bytes / GIGABYTE;
    writer.object(|writer| {
        write_attributes(writer.name("ItemCollectionKey"), &collection.key);
        writer
            .name("SizeEstimateRangeGB")
            .array([low, low + 1], |writer, gigabytes| writer.halves(gigabytes * 2));
    });
}
