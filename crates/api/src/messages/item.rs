//! Texts about single items: their sizes, failed conditions, and what requests may return.

use zenobe_value::EncodedItem;

use super::texts;
use crate::error::ApiError;

/// A failed condition, with the item if the request asked for it and there is one.
pub(crate) fn condition_failed(item: Option<EncodedItem>) -> ApiError {
    conditional_request_failed().with_item(item)
}

/// PutItem and DeleteItem return the old item or nothing.
pub(crate) fn return_values_not_old() -> ApiError {
    return_values_only_old_or_none().prefixed_in_newer_wording()
}

texts! {
    Validation, "" => {
        item_too_large() "Item size has exceeded the maximum allowed size";
        update_too_large() "Item size to update has exceeded the maximum allowed size";
        return_values_only_old_or_none() "ReturnValues can only be ALL_OLD or NONE";
    }
    ConditionalCheckFailed, "" => {
        conditional_request_failed() "The conditional request failed";
    }
    ItemCollectionSizeLimitExceeded, "" => {
        collection_too_large() "Collection size exceeded.";
    }
}
