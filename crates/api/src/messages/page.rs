//! Texts about Query and Scan that need no table.

use zenobe_value::AttributeType;

use super::{NEWER_PREFIX, texts, value};
use crate::error::{ApiError, Exception};
use crate::json::attribute_value::ValueFault;

const START_KEY_INVALID: &str = "The provided starting key is invalid: ";

/// A bad value in an ExclusiveStartKey. Texts about numbers and duplicates don't say where they
/// are.
pub(crate) fn start_key_value(fault: &ValueFault) -> ApiError {
    match fault {
        ValueFault::Number { .. }
        | ValueFault::EmptySet(AttributeType::Ns)
        | ValueFault::DuplicateStrings(_)
        | ValueFault::DuplicateNumbers
        | ValueFault::DuplicateBinaries(_) => value::value_fault(fault),
        _ => {
            let text = value::value_fault_text(fault);
            ApiError::new(Exception::Validation, format!("{START_KEY_INVALID}{text}"))
        }
    }
}

texts! {
    Validation, "" => {
        key_conditions_required() "Either the KeyConditions or KeyConditionExpression parameter \
            must be specified in the request.";
        key_conditions_count() "Conditions can be of length 1 or 2 only";
        not_indexable() "Attempted conditional constraint is not an indexable operation";
        query_filter_on_key(attribute: &str) "QueryFilter can only contain non-primary key \
            attributes: Primary key attribute: {attribute}";
        projection_with_select(parameter: &str, select: &str)
            "Cannot specify the {parameter} when choosing to get {select}";
        scan_projection_required() "Must specify the AttributesToGet or ProjectionExpression when \
            choosing to get SPECIFIC_ATTRIBUTES";
        all_projected_without_index()
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName";
        total_segments_required() "The TotalSegments parameter is required but was not present in \
            the request when Segment parameter is present";
        segment_required() "The Segment parameter is required but was not present in the request \
            when parameter TotalSegments is present";
        segment_too_large(segment: i32, total: i32) "The Segment parameter is zero-based and must \
            be less than parameter TotalSegments: Segment: {segment} is not less than \
            TotalSegments: {total}";
    }
    // These texts contain the envelope's words in both wordings.
    Validation, NEWER_PREFIX => {
        query_limit() "Value at 'Limit' failed to satisfy constraint: Member must have value \
            greater than or equal to 1";
        query_projection_required() "Must specify the AttributesToGet or ProjectionExpression \
            when choosing to get SPECIFIC_ATTRIBUTES";
    }
}
