//! The items that a transaction has read.

use zenobe_value::EncodedItem;

use crate::json::{Writer, write_item};

/// `Responses`: an object for each key, in the request's order, with the item if there is one.
pub(crate) fn write_item_responses_member(writer: &mut Writer, items: &[Option<EncodedItem>]) {
    writer.name("Responses").array(items, |writer, item| {
        writer.object(|writer| {
            if let Some(item) = item {
                write_item(writer.name("Item"), item.as_item());
            }
        });
    });
}
