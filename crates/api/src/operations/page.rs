//! What Query and Scan share: which attributes they return, where they start, and their response.

use zenobe_engine::command::{PageOutcome, Select};
use zenobe_value::Attributes;

use super::enumerations::{ReturnCapacity, SELECT};
use crate::Reply;
use crate::error::ApiError;
use crate::json::attribute_value::WireAttributes;
use crate::json::{Writer, write_attributes, write_item};
use crate::messages::page;
use crate::render::write_consumed_member;

/// The parameters that decide which attributes a page returns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Selected {
    pub(crate) select: Option<Select>,
    pub(crate) attributes_to_get: bool,
    pub(crate) projection_expression: bool,
    pub(crate) index: bool,
}

impl Selected {
    /// Rejects parameters that contradict each other. `projection_required` is the operation's text
    /// for a missing projection.
    pub(crate) fn check(
        &self,
        projection_required: impl FnOnce() -> ApiError,
    ) -> Result<(), ApiError> {
        let Some(select) = self.select else {
            return Ok(());
        };
        match (select, self.projection_parameter()) {
            (Select::SpecificAttributes, None) => Err(projection_required()),
            (Select::SpecificAttributes, Some(_)) => Ok(()),
            (Select::Count, Some(parameter)) => {
                Err(page::projection_with_select(parameter, "only the Count"))
            }
            (_, Some(parameter)) => {
                Err(page::projection_with_select(parameter, SELECT.name_of(&select)))
            }
            (Select::AllProjectedAttributes, None) if !self.index => {
                Err(page::all_projected_without_index())
            }
            (_, None) => Ok(()),
        }
    }

    fn projection_parameter(&self) -> Option<&'static str> {
        if self.projection_expression {
            Some("ProjectionExpression")
        } else {
            self.attributes_to_get.then_some("AttributesToGet")
        }
    }
}

/// The values of an ExclusiveStartKey.
pub(crate) fn start_key(given: Option<WireAttributes>) -> Result<Option<Attributes>, ApiError> {
    let attributes = given.map(WireAttributes::into_attributes).transpose();
    attributes.map_err(|fault| page::start_key_value(&fault))
}

/// `table` is what the request calls its table.
pub(crate) fn render(
    table: &str,
    outcome: &PageOutcome,
    select: Option<Select>,
    capacity: ReturnCapacity,
) -> Reply {
    // The JSON takes somewhat more space than the items, so the buffer rarely grows more than once.
    let mut writer = Writer::with_capacity(2 * outcome.items.bytes_len() + 256);
    writer.object(|writer| {
        writer.name("Count").integer(outcome.count);
        if select != Some(Select::Count) {
            writer.name("Items").array(outcome.items.iter(), write_item);
        }
        if let Some(key) = &outcome.last_evaluated_key {
            write_attributes(writer.name("LastEvaluatedKey"), key);
        }
        writer.name("ScannedCount").integer(outcome.scanned_count);
        write_consumed_member(writer, table, &outcome.consumed, capacity);
    });
    Reply(writer.finish())
}
