//! Texts about searches for vectors.

use super::texts;

texts! {
    Validation, "" => {
        top_out_of_range(given: i32, max: i32) "Provided TopK value '{given}' is out of valid range. \
            The value must be between 1 and {max} inclusive";
        invalid_values() "Search vector contains invalid values. All values in the search vector \
            must be a 32-bit floating-point number attribute";
        invalid_comparator() "Invalid SearchConditionExpression: Invalid comparator used in \
            SearchConditionExpression";
    }
}
