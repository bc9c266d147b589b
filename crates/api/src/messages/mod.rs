//! The catalogue of the texts that a client can see, except for those about signatures and web pages,
//! which are where they are decided. Everywhere else errors are typed. They get their texts here, and
//! nothing inspects a text afterwards.
//!
//! The odd spellings, double spaces and missing spaces are DynamoDB's own.

pub(crate) mod backup;
pub(crate) mod batch;
pub(crate) mod constraint;
mod date;
pub(crate) mod engine;
pub(crate) mod export;
pub(crate) mod expression;
pub(crate) mod insights;
pub(crate) mod item;
pub(crate) mod key_value;
pub(crate) mod kinesis;
mod language;
pub(crate) mod legacy;
pub(crate) mod page;
pub(crate) mod partiql;
pub(crate) mod request;
pub(crate) mod serialization;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod tag;
pub(crate) mod throughput;
pub(crate) mod transaction;
pub(crate) mod transfer;
pub(crate) mod value;
pub(crate) mod vector;

use std::fmt::{self, Write as _};

use crate::error::{ApiError, Exception};

/// Which of DynamoDB's two recorded wordings to use where they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wording {
    #[default]
    Classic,
    /// The front end that AWS has been rolling out since 2026.
    Newer,
}

/// What the newer front end puts before some of the classic texts, in operations that it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewerPrefix {
    /// Before request-level errors of PutItem, UpdateItem and DeleteItem.
    Envelope,
    /// Before errors of Query about a key condition that is an expression but not a key condition.
    KeyCondition,
}

impl NewerPrefix {
    pub(crate) fn text(self) -> &'static str {
        match self {
            NewerPrefix::Envelope => NEWER_PREFIX,
            NewerPrefix::KeyCondition => "Invalid KeyConditionExpression: ",
        }
    }
}

/// How a constraint envelope with one fault begins.
pub(crate) const NEWER_PREFIX: &str = "1 validation error detected: ";

/// The prefix of many ValidationExceptions.
pub(crate) const INVALID: &str = "One or more parameter values were invalid: ";
/// The prefix of most LimitExceededExceptions.
pub(crate) const SUBSCRIBER: &str = "Subscriber limit exceeded: ";

/// Declares catalogue entries: functions that return the error with its text. The heading gives the
/// exception and the common prefix of its texts.
macro_rules! texts {
    ($($exception:ident, $prefix:expr => {$(
        $(#[$attribute:meta])*
        $name:ident($($argument:ident: $type:ty),*) $text:literal;
    )*})*) => {$($(
        $(#[$attribute])*
        pub(crate) fn $name($($argument: $type),*) -> $crate::error::ApiError {
            $crate::error::ApiError::new(
                $crate::error::Exception::$exception,
                $crate::messages::prefixed($prefix, format_args!($text)),
            )
        }
    )*)*};
}
pub(crate) use texts;

/// A text behind its prefix, usually in one allocation.
pub(crate) fn prefixed(prefix: &str, text: fmt::Arguments<'_>) -> String {
    const USUAL_SIZE_BYTES: usize = 256;
    let mut whole = String::with_capacity(USUAL_SIZE_BYTES);
    whole.push_str(prefix);
    // Writing to a string cannot fail.
    let _ = whole.write_fmt(text);
    whole
}

/// The error for an operation that DynamoDB has and this server lacks.
pub(crate) fn operation_not_supported(operation: &str) -> ApiError {
    ApiError::new(
        Exception::UnknownOperation,
        format!("{operation} is not supported by Zenobe yet"),
    )
}

/// The error for a request member that DynamoDB has and this server lacks.
pub(crate) fn parameter_not_supported(parameter: &str) -> ApiError {
    ApiError::new(Exception::Validation, format!("{parameter} is not supported by Zenobe yet"))
}
