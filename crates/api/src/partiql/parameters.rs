//! The parameters of a statement as a request carries them.

use zenobe_expression::limits::STATEMENT_LENGTH_MAX;
use zenobe_value::AttributeValue;

use crate::error::ApiError;
use crate::json::JsonReader;
use crate::json::attribute_value::{ValueFault, WireValue};
use crate::json::decode::{Decode, JsonError, JsonPosition, begin_list, element};
use crate::messages;

/// Values in order. All are checked, but only as many are kept as the longest statement could use.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParameterList {
    values: Vec<AttributeValue>,
    /// The first fault in request order.
    fault: Option<ValueFault>,
    is_empty: bool,
}

impl ParameterList {
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    pub(crate) fn into_values(self) -> Result<Vec<AttributeValue>, ApiError> {
        match self.fault {
            Some(fault) => Err(messages::partiql::parameter_fault(&fault)),
            None => Ok(self.values),
        }
    }
}

impl Decode for ParameterList {
    fn collection_type() -> String {
        Vec::<WireValue>::collection_type()
    }

    fn decode(reader: &mut JsonReader<'_>, position: JsonPosition) -> Result<Self, JsonError> {
        begin_list(reader, position)?;
        let mut list = ParameterList { is_empty: true, ..ParameterList::default() };
        while reader.next_element(list.is_empty)? {
            list.is_empty = false;
            match element::<WireValue>(reader)? {
                Ok(value) if list.values.len() < STATEMENT_LENGTH_MAX => list.values.push(value),
                Ok(_) => {}
                Err(fault) => drop(list.fault.get_or_insert(fault)),
            }
        }
        Ok(list)
    }
}
