//! Texts about BatchGetItem and BatchWriteItem.

use super::{NEWER_PREFIX, texts, value};
use crate::error::ApiError;
use crate::json::attribute_value::ValueFault;

/// A WriteRequest with neither or both of its members. DynamoDB words it as if it were an attribute value.
pub(crate) fn not_one_write() -> ApiError {
    value::value_fault(&ValueFault::MultipleTypes)
}

texts! {
    Validation, "" => {
        request_items_required(operation: &str)
            "The requestItems parameter is required for {operation}";
        too_many_items(operation: &str) "Too many items requested for the {operation} call";
        duplicate_keys() "Provided list of item keys contains duplicates";
    }
    // This text contains the envelope's words in both wordings.
    Validation, NEWER_PREFIX => {
        too_many_keys(table: &str) "Value at 'RequestItems.{table}.member.Keys' failed to satisfy \
            constraint: Member must have length less than or equal to 100";
    }
}
