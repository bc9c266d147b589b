//! Texts about attribute values and numbers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zenobe_value::{AttributeType, NumberError};

use super::INVALID;
use crate::error::{ApiError, Exception};
use crate::json::attribute_value::{NameFault, ValueFault};

pub(crate) fn value_fault(fault: &ValueFault) -> ApiError {
    let error = ApiError::new(Exception::Validation, value_fault_text(fault));
    match fault {
        ValueFault::NullNotTrue
        | ValueFault::EmptySet(_)
        | ValueFault::NullInSet(_)
        | ValueFault::DuplicateStrings(_)
        | ValueFault::DuplicateNumbers
        | ValueFault::DuplicateBinaries(_) => error.prefixed_in_newer_wording(),
        _ => error,
    }
}

/// Only the text, for operations that add a prefix.
pub(crate) fn value_fault_text(fault: &ValueFault) -> String {
    match fault {
        ValueFault::Empty => "Supplied AttributeValue is empty, must contain exactly one of the \
            supported datatypes"
            .to_owned(),
        ValueFault::Number { error, text } => number_error_text(*error, text),
        ValueFault::NullNotTrue => {
            format!("{INVALID}Null attribute value types must have the value of true")
        }
        ValueFault::EmptySet(AttributeType::Ns) => {
            format!("{INVALID}An number set  may not be empty")
        }
        ValueFault::EmptySet(AttributeType::Bs) => {
            format!("{INVALID}Binary sets should not be empty")
        }
        ValueFault::EmptySet(_) => format!("{INVALID}An string set  may not be empty"),
        ValueFault::NullInSet(AttributeType::Ns) => {
            format!("{INVALID}An number set may not have a null string as a member")
        }
        ValueFault::NullInSet(AttributeType::Bs) => {
            format!("{INVALID}Binary sets may not contain null values")
        }
        ValueFault::NullInSet(_) => {
            format!("{INVALID}An string set may not have a null string as a member")
        }
        ValueFault::DuplicateStrings(members) => {
            format!("{INVALID}Input collection [{}] contains duplicates.", members.join(", "))
        }
        ValueFault::DuplicateNumbers => "Input collection contains duplicates".to_owned(),
        ValueFault::DuplicateBinaries(members) => {
            let members: Vec<String> = members.iter().map(|bytes| STANDARD.encode(bytes)).collect();
            format!(
                "{INVALID}Input collection [{}]of type BS contains duplicates.",
                members.join(", ")
            )
        }
        ValueFault::MultipleTypes => "Supplied AttributeValue has more than one datatypes set, \
            must contain exactly one of the supported datatypes"
            .to_owned(),
        ValueFault::NestedTooDeeply => NESTED_TOO_DEEPLY.to_owned(),
        ValueFault::Name(fault) => name_fault_text(*fault).to_owned(),
    }
}

pub(crate) fn name_fault(fault: NameFault) -> ApiError {
    ApiError::new(Exception::Validation, name_fault_text(fault))
}

pub(crate) fn name_fault_text(fault: NameFault) -> &'static str {
    match fault {
        NameFault::Empty => "Empty attribute name",
        NameFault::TooLong => "Attribute name is too large, must be less than 65536 bytes",
    }
}

pub(crate) const NESTED_TOO_DEEPLY: &str = "Nesting Levels have exceeded supported limits: \
    Attributes in the item have nested levels beyond supported limit";

pub(crate) const NUMBER_OVERFLOW: &str = "Number overflow. Attempting to store a number with \
    magnitude larger than supported range";

pub(crate) const NUMBER_UNDERFLOW: &str = "Number underflow. Attempting to store a number with \
    magnitude smaller than supported range";

pub(crate) fn number_error_text(error: NumberError, text: &str) -> String {
    match error {
        NumberError::Empty => "The parameter cannot be converted to a numeric value".to_owned(),
        NumberError::NotNumeric => {
            format!("The parameter cannot be converted to a numeric value: {text}")
        }
        NumberError::Overflow => NUMBER_OVERFLOW.to_owned(),
        NumberError::Underflow => NUMBER_UNDERFLOW.to_owned(),
        NumberError::TooManyDigits => {
            "Attempting to store more than 38 significant digits in a Number".to_owned()
        }
    }
}
