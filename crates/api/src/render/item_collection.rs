//! ItemCollectionMetrics.

use std::borrow::Cow;

use zenobe_engine::command::ItemCollection;

use crate::json::{Writer, write_attributes};

const GIGABYTE: u64 = 1 << 30;

/// Shows the size as a range between two whole gigabytes.
pub(crate) fn write_item_collection(writer: &mut Writer, collection: &ItemCollection) {
    let low = collection.size_bytes / GIGABYTE;
    writer.object(|writer| {
        write_attributes(writer.name("ItemCollectionKey"), &collection.key);
        writer
            .name("SizeEstimateRangeGB")
            .array([low, low + 1], |writer, gigabytes| writer.halves(gigabytes * 2));
    });
}

/// The member `ItemCollectionMetrics` of operations on several items: the collections by what
/// the request calls their table, each once. Writes no member if there are none.
pub(crate) fn write_item_collections_member<'c>(
    writer: &mut Writer,
    collections: impl Iterator<Item = (Cow<'c, str>, &'c ItemCollection)>,
) {
    let mut tables: Vec<(Cow<'_, str>, Vec<&ItemCollection>)> = Vec::new();
    for (name, collection) in collections {
        let position = tables.iter().position(|(other, _)| *other == name);
        let position = position.unwrap_or_else(|| {
            tables.push((name, Vec::new()));
            tables.len() - 1
        });
        let listed = &mut tables[position].1;
        match listed.iter_mut().find(|other| other.key == collection.key) {
            // The later size is the more recent one.
            Some(earlier) => *earlier = collection,
            None => listed.push(collection),
        }
    }
    if tables.is_empty() {
        return;
    }
    writer.name("ItemCollectionMetrics").object(|writer| {
        for (name, collections) in tables {
            writer.name(&name).array(collections, write_item_collection);
        }
    });
}
