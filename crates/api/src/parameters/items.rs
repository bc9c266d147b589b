//! Items and keys in requests.

use zenobe_value::limits::{ATTRIBUTE_NAME_SIZE_BYTES_MAX, ITEM_SIZE_BYTES_MAX};
use zenobe_value::{Attributes, item_size_bytes};

use crate::error::ApiError;
use crate::json::attribute_value::{WireAttributes, WireValue};
use crate::messages::engine::{Subject, engine_error};
use crate::messages::{item, value};

/// The attributes of an item or a key. The first bad one in the order of the request counts.
pub(crate) fn attributes(given: WireAttributes) -> Result<Attributes, ApiError> {
    let checked = |(name, value): (String, WireValue)| {
        let value = value.map_err(|fault| value::value_fault(&fault))?;
        match name.len() {
            0 => Err(item::empty_attribute_name()),
            1..=ATTRIBUTE_NAME_SIZE_BYTES_MAX => Ok((name, value)),
            _ => Err(item::attribute_name_too_long()),
        }
    };
    given.0.into_iter().map(checked).collect()
}

/// Refuses an item that is too large to be put. `request_size_bytes` is the size of the JSON that it came in,
/// which is never smaller than the item: small requests need no measuring.
pub(crate) fn check_size(item: &Attributes, request_size_bytes: usize) -> Result<(), ApiError> {
    if request_size_bytes <= ITEM_SIZE_BYTES_MAX || item_size_bytes(item) <= ITEM_SIZE_BYTES_MAX {
        return Ok(());
    }
    Err(engine_error(zenobe_engine::error::Error::ItemTooLarge, Subject::Items))
}
