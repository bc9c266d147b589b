//! How a request fails, with the names that each protocol has for it.

use zenobe_engine::error::Error;

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
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

impl FaultKind {
    /// The name of the shape in the model, for CBOR and JSON.
    pub fn shape(self) -> &'static str {
        match self {
            FaultKind::InvalidParameterValue => "InvalidParameterValueException",
            FaultKind::InvalidParameterCombination => "InvalidParameterCombinationException",
            FaultKind::MissingParameter => "MissingRequiredParameterException",
            FaultKind::InvalidNextToken => "InvalidNextToken",
            FaultKind::InvalidFormat => "InvalidFormatFault",
            FaultKind::LimitExceeded => "LimitExceededFault",
            FaultKind::ResourceNotFound => "ResourceNotFound",
            FaultKind::ResourceNotFoundException => "ResourceNotFoundException",
            FaultKind::Validation => "ValidationException",
            FaultKind::Serialization => "SerializationException",
            FaultKind::TooLarge => "RequestEntityTooLargeException",
            FaultKind::UnknownOperation => "UnknownOperationException",
            FaultKind::Internal | FaultKind::Corrupt => "InternalServiceFault",
        }
    }

    /// The code in the query protocol.
    pub fn query_code(self) -> &'static str {
        match self {
            FaultKind::InvalidParameterValue => "InvalidParameterValue",
            FaultKind::InvalidParameterCombination => "InvalidParameterCombination",
            FaultKind::MissingParameter => "MissingParameter",
            FaultKind::InvalidFormat => "InvalidFormat",
            FaultKind::LimitExceeded => "LimitExceeded",
            FaultKind::Validation => "ValidationError",
            FaultKind::Serialization => "MalformedInput",
            FaultKind::TooLarge => "RequestEntityTooLarge",
            FaultKind::UnknownOperation => "InvalidAction",
            FaultKind::Internal | FaultKind::Corrupt => "InternalServiceError",
            FaultKind::InvalidNextToken
            | FaultKind::ResourceNotFound
            | FaultKind::ResourceNotFoundException => self.shape(),
        }
    }

    pub fn status(self) -> u16 {
        match self {
            FaultKind::ResourceNotFound | FaultKind::ResourceNotFoundException => 404,
            FaultKind::TooLarge => 413,
            FaultKind::Internal | FaultKind::Corrupt => 500,
            _ => 400,
        }
    }

    /// Whose fault it is, as the query protocol says it.
    pub fn who(self) -> &'static str {
        if self.status() == 500 { "Receiver" } else { "Sender" }
    }
}

impl Fault {
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Fault {
        Fault { kind, message: message.into() }
    }

    pub fn missing(name: &str) -> Fault {
        Fault::new(FaultKind::MissingParameter, format!("The parameter {name} is required."))
    }

    pub fn invalid(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::InvalidParameterValue, message)
    }

    pub fn combination(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::InvalidParameterCombination, message)
    }

    pub fn validation(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::Validation, message)
    }

    /// A value outside of an enumeration.
    pub fn not_in_set(member: &str, value: &str, set: &[&str]) -> Fault {
        let set = set.join(", ");
        Fault::validation(format!(
            "1 validation error detected: Value '{value}' at '{member}' failed to satisfy constraint: Member must satisfy enum value set: [{set}]"
        ))
    }

    /// A feature of AWS that this server lacks.
    pub fn unsupported(what: &str) -> Fault {
        Fault::validation(format!("{what} is not supported by Zenobe"))
    }

    pub fn serialization(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::Serialization, message)
    }

    pub fn next_token() -> Fault {
        Fault::new(FaultKind::InvalidNextToken, "Invalid nextToken")
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        tracing::error!(%error, "a request to CloudWatch failed");
        let kind = match error {
            Error::Corrupt { .. } => FaultKind::Corrupt,
            _ => FaultKind::Internal,
        };
        Fault::new(kind, "Internal service error")
    }
}
