//! The exceptions of Application Auto Scaling.

use serde_json::json;
use zenobe_engine::error::Error;
use zenobe_engine::failed_requests;

use crate::ScalingResponse;

pub(crate) type Result<T, E = ScalingError> = std::result::Result<T, E>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exception {
    Validation,
    ObjectNotFound,
    LimitExceeded,
    InvalidNextToken,
    ResourceNotFound,
    TooManyTags,
    ConcurrentUpdate,
    Serialization,
    UnknownOperation,
    Internal,
    Unavailable,
}

impl Exception {
    pub fn name(self) -> &'static str {
        match self {
            Exception::Validation => "ValidationException",
            Exception::ObjectNotFound => "ObjectNotFoundException",
            Exception::LimitExceeded => "LimitExceededException",
            Exception::InvalidNextToken => "InvalidNextTokenException",
            Exception::ResourceNotFound => "ResourceNotFoundException",
            Exception::TooManyTags => "TooManyTagsException",
            Exception::ConcurrentUpdate => "ConcurrentUpdateException",
            Exception::Serialization => "SerializationException",
            Exception::UnknownOperation => "UnknownOperationException",
            Exception::Internal => "InternalServiceException",
            Exception::Unavailable => "ServiceUnavailable",
        }
    }

    fn status(self) -> u16 {
        match self {
            Exception::Internal => 500,
            Exception::Unavailable => 503,
            _ => 400,
        }
    }
}

/// What a client is told about a request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalingError {
    pub exception: Exception,
    pub message: String,
    /// The ARN in exceptions that name one.
    pub resource: Option<String>,
}

impl ScalingError {
    pub(crate) fn new(exception: Exception, message: impl Into<String>) -> ScalingError {
        ScalingError { exception, message: message.into(), resource: None }
    }

    pub(crate) fn validation(message: impl Into<String>) -> ScalingError {
        ScalingError::new(Exception::Validation, message)
    }

    pub(crate) fn into_answer(self) -> ScalingResponse {
        let mut body = json!({"__type": self.exception.name(), "Message": self.message});
        if let Some(resource) = self.resource {
            body["ResourceName"] = resource.into();
        }
        ScalingResponse { status: self.exception.status(), body: body.to_string().into_bytes() }
    }
}

impl From<Error> for ScalingError {
    fn from(error: Error) -> ScalingError {
        if !matches!(error, Error::Conflict) {
            failed_requests::log(&error);
        }
        match error {
            Error::Conflict => ScalingError::new(
                Exception::ConcurrentUpdate,
                "Concurrent updates of the scalable target. Try the request again.",
            ),
            Error::Unavailable { .. } => ScalingError::new(
                Exception::Unavailable,
                "The service is temporarily unavailable. Try the request again.",
            ),
            _ => {
                ScalingError::new(Exception::Internal, "The service encountered an internal error.")
            }
        }
    }
}
