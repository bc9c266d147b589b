//! Texts of the constraint envelope: `1 validation error detected: Value 'x' at 'y' failed to satisfy …`.

use crate::error::{ApiError, Exception};

/// One constraint of the API model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Constraint<'a> {
    NotNull,
    LengthMin(usize),
    LengthMax(usize),
    ValueMin(i64),
    ValueMax(i64),
    Pattern(&'a str),
    Enumeration(&'a [&'a str]),
    /// For every string in a list.
    MemberLength {
        min: usize,
        max: usize,
    },
    /// For every string in a list.
    MemberPattern {
        min: usize,
        max: usize,
        pattern: &'a str,
    },
    /// For every key of a map: a table's name.
    MapKeys {
        min: usize,
        max: usize,
        pattern: &'a str,
    },
    /// For every list in a map.
    MapValues {
        min: usize,
        max: usize,
    },
}

/// A violated constraint. `value` is the value as DynamoDB prints it; `None` prints as null.
pub(crate) fn violation(value: Option<&str>, path: &str, constraint: Constraint<'_>) -> String {
    let value = match value {
        Some(value) => format!("'{value}'"),
        None => "null".to_owned(),
    };
    let constraint = constraint_text(constraint);
    format!("Value {value} at '{path}' failed to satisfy constraint: {constraint}")
}

/// The envelope around one or more violations.
pub(crate) fn envelope(violations: &[String]) -> ApiError {
    let count = violations.len();
    let plural = if count == 1 { "" } else { "s" };
    let list = violations.join("; ");
    ApiError::new(
        Exception::Validation,
        format!("{count} validation error{plural} detected: {list}"),
    )
}

/// A structure inside a printed value. DynamoDB prints Java objects with a hash that varies.
pub(crate) fn java_object(shape: &str) -> String {
    format!("com.amazonaws.dynamodb.v20120810.{shape}@1")
}

fn constraint_text(constraint: Constraint<'_>) -> String {
    match constraint {
        Constraint::NotNull => "Member must not be null".to_owned(),
        Constraint::LengthMin(length) => {
            format!("Member must have length greater than or equal to {length}")
        }
        Constraint::LengthMax(length) => {
            format!("Member must have length less than or equal to {length}")
        }
        Constraint::ValueMin(value) => {
            format!("Member must have value greater than or equal to {value}")
        }
        Constraint::ValueMax(value) => {
            format!("Member must have value less than or equal to {value}")
        }
        Constraint::Pattern(pattern) => {
            format!("Member must satisfy regular expression pattern: {pattern}")
        }
        Constraint::Enumeration(values) => {
            format!("Member must satisfy enum value set: [{}]", values.join(", "))
        }
        Constraint::MemberLength { min, max } => format!(
            "Member must satisfy constraint: [Member must have length less than or equal to {max}, \
            Member must have length greater than or equal to {min}]"
        ),
        Constraint::MemberPattern { min, max, pattern } => format!(
            "Member must satisfy constraint: [Member must have length less than or equal to {max}, \
            Member must have length greater than or equal to {min}, Member must satisfy regular \
            expression pattern: {pattern}]"
        ),
        Constraint::MapKeys { min, max, pattern } => format!(
            "Map keys must satisfy constraint: [Member must have length less than or equal to \
            {max}, Member must have length greater than or equal to {min}, Member must satisfy \
            regular expression pattern: {pattern}]"
        ),
        Constraint::MapValues { min, max } => format!(
            "Map value must satisfy constraint: [Member must have length less than or equal to \
            {max}, Member must have length greater than or equal to {min}]"
        ),
    }
}
