//! What a client receives when a request fails: an exception type, a text, and additional data.

use bytes::Bytes;
use zenobe_value::EncodedItem;

use crate::Response;
use crate::json::{Writer, write_item};
use crate::messages::{self, NewerPrefix};

/// An error response. The catalogue in `messages` holds the texts; nothing else in the crate words
/// errors.
#[derive(Debug, Clone)]
pub struct ApiError {
    exception: Exception,
    message: Option<String>,
    extras: Extras,
    /// What the newer front end puts before this text, in those operations that have the prefix
    /// at all.
    newer_prefix: Option<NewerPrefix>,
}

#[derive(Debug, Clone, Default)]
enum Extras {
    #[default]
    None,
    Item(EncodedItem),
    CancellationReasons(Vec<CancellationEntry>),
    ThrottlingReasons(Vec<ThrottlingEntry>),
}

/// One entry of `ThrottlingReasons`.
#[derive(Debug, Clone)]
pub struct ThrottlingEntry {
    pub reason: &'static str,
    /// The ARN of the table or index.
    pub resource: String,
}

/// One entry of `CancellationReasons`.
#[derive(Debug, Clone)]
pub struct CancellationEntry {
    pub code: &'static str,
    /// Absent for the code `None`.
    pub message: Option<String>,
    pub item: Option<EncodedItem>,
}

impl CancellationEntry {
    /// The entry of an action that did not cause the cancellation.
    pub(crate) fn none() -> CancellationEntry {
        CancellationEntry { code: "None", message: None, item: None }
    }

    /// A reason with the text of an error.
    pub(crate) fn new(code: &'static str, error: &ApiError) -> CancellationEntry {
        CancellationEntry { code, message: error.message().map(str::to_owned), item: None }
    }
}

/// The exception types of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exception {
    Validation,
    Serialization,
    UnknownOperation,
    AccessDenied,
    MissingAuthenticationToken,
    IncompleteSignature,
    InvalidSignature,
    UnrecognizedClient,
    ExpiredToken,
    Throttling,
    InternalFailure,
    InternalServerError,
    ServiceUnavailable,
    BackupInUse,
    BackupNotFound,
    ConditionalCheckFailed,
    DuplicateItem,
    ExpiredIterator,
    ExportConflict,
    ExportNotFound,
    GlobalTableNotFound,
    IdempotentParameterMismatch,
    ImportConflict,
    ImportNotFound,
    InvalidExportTime,
    InvalidRestoreTime,
    ItemCollectionSizeLimitExceeded,
    LimitExceeded,
    /// A ThrottlingException of an on-demand table, which is part of the API's model.
    OnDemandThroughputExceeded,
    PointInTimeRecoveryUnavailable,
    ProvisionedThroughputExceeded,
    RequestLimitExceeded,
    ResourceInUse,
    ResourceNotFound,
    TableAlreadyExists,
    TableInUse,
    TableNotFound,
    TransactionCanceled,
    TransactionConflict,
    TransactionInProgress,
    TrimmedDataAccess,
}

const SERVICE: &str = "com.amazon.coral.service#";
const VALIDATE: &str = "com.amazon.coral.validate#";
const MODEL: &str = "com.amazonaws.dynamodb.v20120810#";

/// Most responses to failed requests fit in.
const USUAL_SIZE_BYTES: usize = 512;

impl Exception {
    pub fn name(self) -> &'static str {
        self.parts().1
    }

    pub fn status(self) -> u16 {
        match self {
            Exception::InternalFailure | Exception::InternalServerError => 500,
            Exception::ServiceUnavailable => 503,
            _ => 400,
        }
    }

    /// The namespace before the name in `__type`, and the name.
    fn parts(self) -> (&'static str, &'static str) {
        match self {
            Exception::Validation => (VALIDATE, "ValidationException"),
            Exception::Serialization => (SERVICE, "SerializationException"),
            Exception::UnknownOperation => (SERVICE, "UnknownOperationException"),
            Exception::AccessDenied => (SERVICE, "AccessDeniedException"),
            Exception::MissingAuthenticationToken => {
                (SERVICE, "MissingAuthenticationTokenException")
            }
            Exception::IncompleteSignature => (SERVICE, "IncompleteSignatureException"),
            Exception::InvalidSignature => (SERVICE, "InvalidSignatureException"),
            Exception::UnrecognizedClient => (SERVICE, "UnrecognizedClientException"),
            Exception::ExpiredToken => (SERVICE, "ExpiredTokenException"),
            Exception::Throttling => (SERVICE, "ThrottlingException"),
            Exception::InternalFailure => (SERVICE, "InternalFailure"),
            Exception::InternalServerError => (MODEL, "InternalServerError"),
            Exception::ServiceUnavailable => (SERVICE, "ServiceUnavailable"),
            Exception::BackupInUse => (MODEL, "BackupInUseException"),
            Exception::BackupNotFound => (MODEL, "BackupNotFoundException"),
            Exception::ConditionalCheckFailed => (MODEL, "ConditionalCheckFailedException"),
            Exception::DuplicateItem => (MODEL, "DuplicateItemException"),
            Exception::ExpiredIterator => (MODEL, "ExpiredIteratorException"),
            Exception::ExportConflict => (MODEL, "ExportConflictException"),
            Exception::ExportNotFound => (MODEL, "ExportNotFoundException"),
            Exception::GlobalTableNotFound => (MODEL, "GlobalTableNotFoundException"),
            Exception::IdempotentParameterMismatch => {
                (MODEL, "IdempotentParameterMismatchException")
            }
            Exception::ImportConflict => (MODEL, "ImportConflictException"),
            Exception::ImportNotFound => (MODEL, "ImportNotFoundException"),
            Exception::InvalidExportTime => (MODEL, "InvalidExportTimeException"),
            Exception::InvalidRestoreTime => (MODEL, "InvalidRestoreTimeException"),
            Exception::ItemCollectionSizeLimitExceeded => {
                (MODEL, "ItemCollectionSizeLimitExceededException")
            }
            Exception::LimitExceeded => (MODEL, "LimitExceededException"),
            Exception::OnDemandThroughputExceeded => (MODEL, "ThrottlingException"),
            Exception::PointInTimeRecoveryUnavailable => {
                (MODEL, "PointInTimeRecoveryUnavailableException")
            }
            Exception::ProvisionedThroughputExceeded => {
                (MODEL, "ProvisionedThroughputExceededException")
            }
            Exception::RequestLimitExceeded => (MODEL, "RequestLimitExceeded"),
            Exception::ResourceInUse => (MODEL, "ResourceInUseException"),
            Exception::ResourceNotFound => (MODEL, "ResourceNotFoundException"),
            Exception::TableAlreadyExists => (MODEL, "TableAlreadyExistsException"),
            Exception::TableInUse => (MODEL, "TableInUseException"),
            Exception::TableNotFound => (MODEL, "TableNotFoundException"),
            Exception::TransactionCanceled => (MODEL, "TransactionCanceledException"),
            Exception::TransactionConflict => (MODEL, "TransactionConflictException"),
            Exception::TransactionInProgress => (MODEL, "TransactionInProgressException"),
            Exception::TrimmedDataAccess => (MODEL, "TrimmedDataAccessException"),
        }
    }

    fn message_member(self) -> &'static str {
        match self {
            Exception::Serialization
            | Exception::AccessDenied
            | Exception::TransactionCanceled
            | Exception::IdempotentParameterMismatch
            | Exception::TransactionInProgress => "Message",
            _ => "message",
        }
    }
}

impl ApiError {
    /// An error with a text. Inside this crate, only the message catalogue calls it.
    pub fn new(exception: Exception, message: impl Into<String>) -> ApiError {
        ApiError { message: Some(message.into()), ..ApiError::bare(exception) }
    }

    /// A body that is not JSON, or has wrong types (then with a text).
    pub fn serialization(message: Option<String>) -> ApiError {
        ApiError { message, ..ApiError::bare(Exception::Serialization) }
    }

    /// A target that names no operation.
    pub fn unknown_operation() -> ApiError {
        ApiError::bare(Exception::UnknownOperation)
    }

    /// A fault of the server, of any kind; the log says more.
    pub fn internal_server_error() -> ApiError {
        messages::request::internal_server_error()
    }

    /// More requests than the server can serve, whatever they are about.
    pub fn rate_exceeded() -> ApiError {
        messages::throughput::rate_exceeded()
    }

    pub fn exception(&self) -> Exception {
        self.exception
    }

    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    pub fn into_response(self) -> Response {
        let mut writer = Writer::with_capacity(USUAL_SIZE_BYTES);
        writer.object(|writer| self.write_members(writer));
        Response {
            status: self.exception.status(),
            body: Bytes::from(writer.finish()),
            error: Some(self.exception.name()),
            plan: None,
            facts: None,
        }
    }

    pub(crate) fn with_item(mut self, item: Option<EncodedItem>) -> ApiError {
        if let Some(item) = item {
            self.extras = Extras::Item(item);
        }
        self
    }

    pub(crate) fn with_cancellation_reasons(mut self, reasons: Vec<CancellationEntry>) -> ApiError {
        self.extras = Extras::CancellationReasons(reasons);
        self
    }

    pub(crate) fn with_throttling_reasons(mut self, reasons: Vec<ThrottlingEntry>) -> ApiError {
        self.extras = Extras::ThrottlingReasons(reasons);
        self
    }

    /// Marks a text that the newer front end puts into the envelope.
    pub(crate) fn prefixed_in_newer_wording(self) -> ApiError {
        self.with_newer_prefix(NewerPrefix::Envelope)
    }

    /// Marks a text that the newer front end prefixes.
    pub(crate) fn with_newer_prefix(mut self, prefix: NewerPrefix) -> ApiError {
        self.newer_prefix = Some(prefix);
        self
    }

    /// The error in the newer front end's wording, for operations that have this prefix.
    pub(crate) fn in_newer_wording(mut self, prefix: NewerPrefix) -> ApiError {
        if let (true, Some(message)) = (self.newer_prefix == Some(prefix), &mut self.message) {
            message.insert_str(0, prefix.text());
        }
        self
    }

    fn bare(exception: Exception) -> ApiError {
        ApiError { exception, message: None, extras: Extras::None, newer_prefix: None }
    }

    fn write_members(&self, writer: &mut Writer) {
        let (namespace, name) = self.exception.parts();
        writer.name("__type").string(&format!("{namespace}{name}"));
        if let Some(message) = &self.message {
            writer.name(self.exception.message_member()).string(message);
        }
        match &self.extras {
            Extras::None => {}
            Extras::Item(item) => write_item(writer.name("Item"), item.as_item()),
            Extras::CancellationReasons(reasons) => {
                writer.name("CancellationReasons").array(reasons, write_cancellation_entry);
            }
            Extras::ThrottlingReasons(reasons) => {
                // This member alone begins with a small letter in one of the exceptions.
                let member = match self.exception {
                    Exception::OnDemandThroughputExceeded => "throttlingReasons",
                    _ => "ThrottlingReasons",
                };
                writer.name(member).array(reasons, write_throttling_entry);
            }
        }
    }
}

fn write_cancellation_entry(writer: &mut Writer, entry: &CancellationEntry) {
    writer.object(|writer| {
        writer.name("Code").string(entry.code);
        if let Some(message) = &entry.message {
            writer.name("Message").string(message);
        }
        if let Some(item) = &entry.item {
            write_item(writer.name("Item"), item.as_item());
        }
    });
}

fn write_throttling_entry(writer: &mut Writer, entry: &ThrottlingEntry) {
    writer.object(|writer| {
        writer.name("reason").string(entry.reason);
        writer.name("resource").string(&entry.resource);
    });
}

#[cfg(test)]
mod tests {
    use zenobe_value::{AttributeValue, Attributes};

    use super::*;

    #[track_caller]
    fn check(error: ApiError, status: u16, expected: &str) {
        let response = error.into_response();
        assert_eq!(std::str::from_utf8(&response.body).unwrap(), expected);
        assert_eq!(response.status, status);
    }

    fn item() -> EncodedItem {
        let attributes = [("pk".to_owned(), AttributeValue::S("a".to_owned()))];
        EncodedItem::encode(&Attributes::from(attributes))
    }

    #[test]
    fn wire_level_errors_have_their_bodies() {
        // The lengths are recorded on DynamoDB.
        let body = ApiError::serialization(None).into_response().body;
        assert_eq!(body.len(), 60);
        check(
            ApiError::unknown_operation(),
            400,
            r#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#,
        );
        check(
            ApiError::serialization(Some("x".to_owned())),
            400,
            r#"{"__type":"com.amazon.coral.service#SerializationException","Message":"x"}"#,
        );
        check(
            ApiError::new(Exception::InvalidSignature, "x"),
            400,
            r#"{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"x"}"#,
        );
        check(
            messages::request::internal_server_error(),
            500,
            concat!(
                r#"{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","#,
                r#""message":"Internal server error"}"#
            ),
        );
    }

    #[test]
    fn failed_conditions_may_carry_the_item() {
        let bare = concat!(
            r#"{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","#,
            r#""message":"The conditional request failed""#
        );
        check(messages::item::condition_failed(None), 400, &format!("{bare}}}"));
        let with_item = format!(r#"{bare},"Item":{{"pk":{{"S":"a"}}}}}}"#);
        check(messages::item::condition_failed(Some(item())), 400, &with_item);
    }

    #[test]
    fn cancelled_transactions_list_their_reasons() {
        use zenobe_engine::error::{CancellationReason, Error, KeyError};
        let reasons = vec![
            CancellationReason::None,
            CancellationReason::ConditionFailed { item: Some(item()) },
            CancellationReason::ConditionFailed { item: Some(item()) },
            CancellationReason::Invalid(Box::new(Error::Key(KeyError::SchemaMismatch))),
        ];
        check(
            messages::engine::transaction_cancelled(reasons, |position| position == 2),
            400,
            concat!(
                r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","#,
                r#""Message":"Transaction cancelled, please refer cancellation reasons for specific "#,
                r#"reasons [None, ConditionalCheckFailed, ConditionalCheckFailed, ValidationError]","#,
                r#""CancellationReasons":[{"Code":"None"},"#,
                r#"{"Code":"ConditionalCheckFailed","Message":"The conditional request failed"},"#,
                r#"{"Code":"ConditionalCheckFailed","Message":"The conditional request failed","#,
                r#""Item":{"pk":{"S":"a"}}},"#,
                r#"{"Code":"ValidationError","#,
                r#""Message":"The provided key element does not match the schema"}]}"#
            ),
        );
    }

    #[test]
    fn the_newer_wording_prefixes_marked_errors_only() {
        let error = || ApiError::new(Exception::Validation, "x");
        let in_envelope = |error: ApiError| error.in_newer_wording(NewerPrefix::Envelope);
        assert_eq!(in_envelope(error()).message(), Some("x"));
        let marked = error().prefixed_in_newer_wording();
        assert_eq!(marked.message(), Some("x"));
        assert_eq!(in_envelope(marked).message(), Some("1 validation error detected: x"));
        let otherwise_marked = error().with_newer_prefix(NewerPrefix::KeyCondition);
        assert_eq!(in_envelope(otherwise_marked).message(), Some("x"));
    }
}
