//! Texts about what requests for single items may return.

use super::texts;
use crate::error::ApiError;

/// PutItem and DeleteItem return the old item or nothing.
pub(crate) fn return_values_not_old() -> ApiError {
    return_values_only_old_or_none().prefixed_in_newer_wording()
}

texts! {
    Validation, "" => {
        return_values_only_old_or_none() "ReturnValues can only be ALL_OLD or NONE";
    }
}
