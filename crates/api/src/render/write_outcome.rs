//! The response to a write of one item.

use zenobe_engine::command::WriteOutcome;

use super::{write_consumed_member, write_item_collection};
use crate::Reply;
use crate::json::{Writer, write_item};
use crate::operations::enumerations::ReturnValues;
use crate::parameters::returns::WriteReturns;

/// Shows the item that was there before, if the request asks for it. `table` is what the request
/// calls its table.
pub(crate) fn write_reply_with_old(
    table: &str,
    outcome: &WriteOutcome,
    returns: &WriteReturns,
) -> Reply {
    write_reply(table, outcome, returns, |writer| {
        if let (ReturnValues::AllOld, Some(old)) = (returns.values, &outcome.old) {
            write_item(writer.name("Attributes"), old.as_item());
        }
    })
}

/// `write_attributes` writes the member `Attributes`, or nothing.
pub(crate) fn write_reply(
    table: &str,
    outcome: &WriteOutcome,
    returns: &WriteReturns,
    write_attributes: impl FnOnce(&mut Writer),
) -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| {
        write_attributes(writer);
        write_consumed_member(writer, table, &outcome.consumed, returns.capacity);
        if let Some(collection) = outcome.collection.as_ref().filter(|_| returns.collection_metrics)
        {
            write_item_collection(writer.name("ItemCollectionMetrics"), collection);
        }
    });
    Reply(writer.finish())
}
