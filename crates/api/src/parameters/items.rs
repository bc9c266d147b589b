//! Items and keys in requests.

use zenobe_value::limits::ITEM_SIZE_BYTES_MAX;
use zenobe_value::{Attributes, item_size_bytes};

use crate::error::ApiError;
use crate::json::attribute_value::{NameFault, ValueFault, WireAttributes, keep_first};
use crate::messages::engine::{Subject, engine_error};
use crate::messages::value;

/// The attributes of an item or a key. An empty name comes first, then the first bad value in
/// request order; names inside values come last.
pub(crate) fn attributes(given: WireAttributes) -> Result<Attributes, ApiError> {
    given.0.iter().try_for_each(|(name, _)| match NameFault::of(name) {
        Some(NameFault::Empty) => check_name(name),
        _ => Ok(()),
    })?;
    let mut attributes = Attributes::new();
    let mut fault = None;
    for (name, value) in given.0 {
        if let Some(found) = NameFault::of(&name) {
            keep_first(&mut fault, ValueFault::Name(found));
        }
        match value {
            Ok(value) => drop(attributes.insert(name, value)),
            Err(found @ (ValueFault::Name(_) | ValueFault::NestedTooDeeply)) => {
                keep_first(&mut fault, found);
            }
            Err(found) => return Err(value::value_fault(&found)),
        }
    }
    fault.map_or(Ok(attributes), |fault| Err(value::value_fault(&fault)))
}

/// Rejects a name that no attribute can have.
pub(crate) fn check_name(name: &str) -> Result<(), ApiError> {
    NameFault::of(name).map_or(Ok(()), |fault| Err(value::name_fault(fault)))
}

/// Rejects an item that is too large to put. `request_size_bytes` is the size of its JSON, which is
/// never smaller than the item, so small requests need no measuring.
pub(crate) fn check_size(item: &Attributes, request_size_bytes: usize) -> Result<(), ApiError> {
    if request_size_bytes <= ITEM_SIZE_BYTES_MAX || item_size_bytes(item) <= ITEM_SIZE_BYTES_MAX {
        return Ok(());
    }
    Err(engine_error(zenobe_engine::error::Error::ItemTooLarge, Subject::Items))
}
