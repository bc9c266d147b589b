//! How a request fails, with the names that each protocol has for it.

use std::fmt::Display;

use zenobe_engine::error::Error;
use zenobe_engine::failed_requests;

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudWatchError {
    pub kind: CloudWatchErrorKind,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloudWatchErrorKind {
    InvalidParameterValue,
    InvalidParameterCombination,
    MissingParameter,
    InvalidNextToken,
    InvalidFormat,
    LimitExceeded,
    /// An alarm does not exist.
    ResourceNotFound,
    /// An ARN or a rule names nothing that exists.
    ResourceNotFoundException,
    Validation,
    Serialization,
    TooLarge,
    UnknownOperation,
    Internal,
    /// A stored row does not decode. Other rows may still be read.
    Corrupt,
}

impl CloudWatchErrorKind {
    /// The name of the shape in the model, for CBOR and JSON.
    pub fn shape(self) -> &'static str {
        match self {
            CloudWatchErrorKind::InvalidParameterValue => "InvalidParameterValueException",
            CloudWatchErrorKind::InvalidParameterCombination => {
                "InvalidParameterCombinationException"
            }
            CloudWatchErrorKind::MissingParameter => "MissingRequiredParameterException",
            CloudWatchErrorKind::InvalidNextToken => "InvalidNextToken",
            CloudWatchErrorKind::InvalidFormat => "InvalidFormatFault",
            CloudWatchErrorKind::LimitExceeded => "LimitExceededFault",
            CloudWatchErrorKind::ResourceNotFound => "ResourceNotFound",
            CloudWatchErrorKind::ResourceNotFoundException => "ResourceNotFoundException",
            CloudWatchErrorKind::Validation => "ValidationException",
            CloudWatchErrorKind::Serialization => "SerializationException",
            CloudWatchErrorKind::TooLarge => "RequestEntityTooLargeException",
            CloudWatchErrorKind::UnknownOperation => "UnknownOperationException",
            CloudWatchErrorKind::Internal | CloudWatchErrorKind::Corrupt => "InternalServiceFault",
        }
    }

    /// The code in the query protocol.
    pub fn query_code(self) -> &'static str {
        match self {
            CloudWatchErrorKind::InvalidParameterValue => "InvalidParameterValue",
            CloudWatchErrorKind::InvalidParameterCombination => "InvalidParameterCombination",
            CloudWatchErrorKind::MissingParameter => "MissingParameter",
            CloudWatchErrorKind::InvalidFormat => "InvalidFormat",
            CloudWatchErrorKind::LimitExceeded => "LimitExceeded",
            CloudWatchErrorKind::Validation => "ValidationError",
            CloudWatchErrorKind::Serialization => "MalformedInput",
            CloudWatchErrorKind::TooLarge => "RequestEntityTooLarge",
            CloudWatchErrorKind::UnknownOperation => "InvalidAction",
            CloudWatchErrorKind::Internal | CloudWatchErrorKind::Corrupt => "InternalServiceError",
            CloudWatchErrorKind::InvalidNextToken
            | CloudWatchErrorKind::ResourceNotFound
            | CloudWatchErrorKind::ResourceNotFoundException => self.shape(),
        }
    }

    pub fn status(self) -> u16 {
        match self {
            CloudWatchErrorKind::ResourceNotFound
            | CloudWatchErrorKind::ResourceNotFoundException => 404,
            CloudWatchErrorKind::TooLarge => 413,
            CloudWatchErrorKind::Internal | CloudWatchErrorKind::Corrupt => 500,
            _ => 400,
        }
    }

    /// Whose fault it is, as the query protocol says it.
    pub fn who(self) -> &'static str {
        if self.status() == 500 { "Receiver" } else { "Sender" }
    }
}

impl CloudWatchError {
    pub fn new(kind: CloudWatchErrorKind, message: impl Into<String>) -> CloudWatchError {
        CloudWatchError { kind, message: message.into() }
    }

    pub fn missing(name: &str) -> CloudWatchError {
        CloudWatchError::new(
            CloudWatchErrorKind::MissingParameter,
            format!("The parameter {name} is required."),
        )
    }

    pub fn invalid(message: impl Into<String>) -> CloudWatchError {
        CloudWatchError::new(CloudWatchErrorKind::InvalidParameterValue, message)
    }

    pub fn combination(message: impl Into<String>) -> CloudWatchError {
        CloudWatchError::new(CloudWatchErrorKind::InvalidParameterCombination, message)
    }

    pub fn validation(message: impl Into<String>) -> CloudWatchError {
        CloudWatchError::new(CloudWatchErrorKind::Validation, message)
    }

    /// A value that does not satisfy a constraint.
    pub fn violation(member: &str, value: impl Display, constraint: &str) -> CloudWatchError {
        CloudWatchError::validation(format!(
            "1 validation error detected: Value '{value}' at '{member}' failed to satisfy constraint: Member must {constraint}"
        ))
    }

    /// A value outside of an enumeration.
    pub fn not_in_set(member: &str, value: &str, set: &[&str]) -> CloudWatchError {
        let set = set.join(", ");
        let constraint = format!("satisfy enum value set: [{set}]");
        CloudWatchError::violation(member, value, &constraint)
    }

    /// A feature of AWS that this server lacks.
    pub fn unsupported(what: &str) -> CloudWatchError {
        CloudWatchError::validation(format!("{what} is not supported by Zenobe"))
    }

    pub fn serialization(message: impl Into<String>) -> CloudWatchError {
        CloudWatchError::new(CloudWatchErrorKind::Serialization, message)
    }

    pub fn next_token() -> CloudWatchError {
        CloudWatchError::new(CloudWatchErrorKind::InvalidNextToken, "Invalid nextToken")
    }
}

impl From<Error> for CloudWatchError {
    fn from(error: Error) -> CloudWatchError {
        failed_requests::log(&error);
        let kind = match error {
            Error::Corrupt { .. } => CloudWatchErrorKind::Corrupt,
            _ => CloudWatchErrorKind::Internal,
        };
        CloudWatchError::new(kind, "Internal service error")
    }
}
