//! Texts about the values of key attributes, of tables and of indexes.

use zenobe_engine::error::{IndexKeyError, KeyError};
use zenobe_engine::schema::ScalarType;

use super::{INVALID, texts};
use crate::error::ApiError;

pub(super) fn key_error(error: &KeyError) -> ApiError {
    match error {
        KeyError::SchemaMismatch => key_does_not_match(),
        KeyError::Missing { attribute } => missing_key(attribute),
        KeyError::TypeMismatch { attribute, expected, actual } => {
            let expected = expected.attribute_type().to_string();
            key_type_mismatch(attribute, &expected, &actual.to_string())
        }
        KeyError::Empty { attribute, scalar_type } => {
            empty_key(empty_kind(*scalar_type), attribute)
        }
        KeyError::PartitionKeyTooLong => partition_key_too_long(),
        KeyError::SortKeyTooLong => sort_key_too_long(),
    }
}

pub(super) fn index_key_error(index: &str, attribute: &str, error: &IndexKeyError) -> ApiError {
    match error {
        IndexKeyError::TypeMismatch { expected, actual } => {
            let expected = expected.attribute_type().to_string();
            index_key_type_mismatch(attribute, &expected, &actual.to_string(), index)
        }
        IndexKeyError::Empty { scalar_type } => {
            empty_index_key(empty_kind(*scalar_type), index, attribute)
        }
        IndexKeyError::PartitionKeyTooLong => partition_key_too_long(),
        IndexKeyError::SortKeyTooLong => sort_key_too_long(),
        IndexKeyError::UpdatedEmpty { scalar_type } => {
            updated_index_key_empty(empty_kind(*scalar_type))
        }
        IndexKeyError::UpdatedTypeMismatch => index_key_unsupported_type(),
        IndexKeyError::UpdatedTooLong => index_key_too_long(),
    }
}

/// What DynamoDB calls an empty value of this type.
pub(super) fn empty_kind(scalar_type: ScalarType) -> &'static str {
    match scalar_type {
        ScalarType::B => "binary",
        ScalarType::S | ScalarType::N => "string",
    }
}

texts! {
    Validation, "" => {
        key_does_not_match() "The provided key element does not match the schema";
        index_key_unsupported_type() "The update expression attempted to update the secondary \
            index key to unsupported type";
        index_key_too_long() "The update expression attempted to update the secondary index key \
            beyond allowed size limits";
    }
    Validation, INVALID => {
        missing_key(attribute: &str) "Missing the key {attribute} in the item";
        key_type_mismatch(attribute: &str, expected: &str, actual: &str)
            "Type mismatch for key {attribute} expected: {expected} actual: {actual}";
        partition_key_too_long()
            "Size of hashkey has exceeded the maximum size limit of2048 bytes";
        sort_key_too_long()
            "Aggregated size of all range keys has exceeded the size limit of 1024 bytes";
        index_key_type_mismatch(attribute: &str, expected: &str, actual: &str, index: &str)
            "Type mismatch for Index Key {attribute} Expected: {expected} Actual: {actual} \
            IndexName: {index}";
    }
    Validation, "One or more parameter values are not valid. " => {
        empty_key(kind: &str, attribute: &str) "The AttributeValue for a key attribute cannot \
            contain an empty {kind} value. Key: {attribute}";
        empty_index_key(kind: &str, index: &str, attribute: &str) "A value specified for a \
            secondary index key is not supported. The AttributeValue for a key attribute cannot \
            contain an empty {kind} value. IndexName: {index}, IndexKey: {attribute}";
        updated_index_key_empty(kind: &str) "The update expression attempted to update a \
            secondary index key to a value that is not supported. The AttributeValue for a key \
            attribute cannot contain an empty {kind} value.";
    }
}
