//! Texts about Query and Scan.

use zenobe_engine::error::PageError;
use zenobe_value::{AttributeType, AttributeValue};

use super::expression::printed_value;
use super::{INVALID, NEWER_PREFIX, key_value, texts, value};
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

/// What does not fit the table's schema.
pub(super) fn page_error(error: PageError) -> ApiError {
    match error {
        PageError::ConsistentReadOnGlobalIndex => consistent_read_on_global_index(),
        PageError::Backfilling { index } => index_backfilling(&index),
        PageError::StartKeyInvalid => start_key_invalid(),
        PageError::StartKeyMismatch { table_key: true } => start_key_does_not_match(),
        PageError::StartKeyMismatch { table_key: false } => key_value::key_does_not_match(),
        PageError::StartKeyOutsideQuery => start_key_outside_query(),
        PageError::StartKeyOutsideSortCondition => start_key_outside_sort_condition(),
        PageError::QueryNotRestartable => query_not_restartable(),
        PageError::StartKeyOutsideSegment { total, segment } => {
            start_key_outside_segment(total, segment)
        }
        PageError::TooManyKeyConditions { given, attributes } => {
            too_many_key_conditions(given, attributes)
        }
        PageError::PartitionConditionsNotEqual { attributes } => {
            partition_conditions_not_equal(&attributes.join(", "))
        }
        PageError::SortConditionsNotEqual { attributes, behind } => {
            sort_conditions_not_equal(&attributes.join(", "), &behind)
        }
        PageError::StartKeyOfSingleItem { key } => {
            let printed = |(name, value): (&String, &AttributeValue)| {
                format!("{name}={}", printed_value(value))
            };
            let key: Vec<String> = key.iter().map(printed).collect();
            start_key_of_single_item(&key.join(", "))
        }
        PageError::FilterNotProjected { index, attributes } => {
            filter_not_projected(&index, &attributes.join(", "))
        }
        PageError::MissingKeyCondition { attribute } => missing_key_condition(&attribute),
        PageError::KeyConditionNotSupported => key_condition_not_supported(),
        PageError::ConditionTypeMismatch => condition_type_mismatch(),
        PageError::NotIndexable => not_indexable(),
        PageError::EmptyKeyValue { attribute, scalar_type } => {
            key_value::empty_key(key_value::empty_kind(scalar_type), &attribute)
        }
        PageError::FilterOnKey { attribute } => filter_on_key(&attribute),
        PageError::SelectAllNotProjected { index } => select_all_not_projected(&index),
        PageError::NotProjected { index, attributes } => {
            not_projected(&index, &attributes.join(", "))
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

    // Against the table's schema.
    Validation, "" => {
        consistent_read_on_global_index()
            "Consistent reads are not supported on global secondary indexes";
        index_backfilling(index: &str)
            "Cannot read from backfilling global secondary index: {index}";
        start_key_outside_query() "The provided starting key is outside query boundaries based on \
            provided conditions";
        start_key_outside_sort_condition()
            "The provided starting key does not match the range key predicate";
        query_not_restartable()
            "The query can return at most one row and cannot be restarted";
        too_many_key_conditions(given: usize, attributes: usize) "The number of query conditions \
            ({given}) exceeds the number of key attributes defined in the schema ({attributes})";
        partition_conditions_not_equal(attributes: &str) "HASH key attributes {attributes} must \
            have equality conditions specified in the query";
        sort_conditions_not_equal(attributes: &str, behind: &str) "RANGE key attributes \
            {attributes} must have equality conditions specified in the query because a condition \
            is present on key attribute {behind}";
        start_key_of_single_item(key: &str) "The provided exclusive start key is invalid: \
            ExclusiveStartKey: {{{key}}}";
        missing_key_condition(attribute: &str)
            "Query condition missed key schema element: {attribute}";
        key_condition_not_supported() "Query key condition not supported";
        filter_on_key(attribute: &str) "Filter Expression can only contain non-primary key \
            attributes: Primary key attribute: {attribute}";
    }
    Validation, "The provided starting key is invalid" => {
        start_key_invalid() "";
        start_key_does_not_match() ": The provided key element does not match the schema";
        start_key_outside_segment(total: u32, segment: u32) ": Invalid ExclusiveStartKey. Please \
            use ExclusiveStartKey with correct Segment. TotalSegments: {total} Segment: {segment}";
    }
    Validation, INVALID => {
        condition_type_mismatch() "Condition parameter type does not match schema type";
        select_all_not_projected(index: &str) "Select type ALL_ATTRIBUTES is not supported for \
            global secondary index {index} because its projection type is not ALL";
        filter_not_projected(index: &str, attributes: &str) "Secondary index {index} does not \
            project one or more filter attributes: [{attributes}]";
        not_projected(index: &str, attributes: &str)
            "Global secondary index {index} does not project [{attributes}]";
    }
}
