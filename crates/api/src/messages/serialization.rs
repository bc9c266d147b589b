//! Texts of SerializationException.

use crate::json::Kind;
use crate::json::decode::TypeFault;

pub(crate) fn type_fault(fault: &TypeFault) -> String {
    match fault {
        TypeFault::NotConvertible { given, target } => {
            format!("{} cannot be converted to {target}", token(*given))
        }
        TypeFault::NotBoolean => "Unexpected token received from parser".to_owned(),
        TypeFault::StructureNotExpected => {
            "Start of structure or map found where not expected".to_owned()
        }
        TypeFault::CollectionNotExpected { expected } => {
            format!("Unrecognized collection type {expected}")
        }
        TypeFault::UnexpectedMember => "Unexpected field type".to_owned(),
        TypeFault::UnexpectedElement => "Unexpected value type in payload".to_owned(),
        TypeFault::NestedGeneric => NESTED_GENERIC.to_owned(),
        TypeFault::BlobNotString => {
            "only base-64-encoded strings are convertible to bytes".to_owned()
        }
        TypeFault::Base64Length(length) => {
            format!("Base64 encoded length is expected a multiple of 4 bytes but found: {length}")
        }
        TypeFault::Base64Character => "Invalid last non-pad Base64 character dectected".to_owned(),
    }
}

const NESTED_GENERIC: &str = "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl \
    cannot be cast to class java.lang.Class (sun.reflect.generics.reflectiveObjects.\
    ParameterizedTypeImpl and java.lang.Class are in module java.base of loader 'bootstrap')";

/// The parser token that DynamoDB names in conversion errors.
fn token(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "NULL_VALUE",
        Kind::True => "TRUE_VALUE",
        Kind::False => "FALSE_VALUE",
        Kind::Integer => "NUMBER_VALUE",
        Kind::Decimal => "DECIMAL_VALUE",
        Kind::String => "STRING_VALUE",
        Kind::Array => "START_ARRAY",
        Kind::Object => "START_OBJECT",
    }
}
