//! The three protocols of CloudWatch, over one tree of values.
//!
//! | protocol | who speaks it | request | response |
//! |---|---|---|---|
//! | [`Protocol::Cbor`] | current SDKs | CBOR | CBOR |
//! | [`Protocol::Json`] | SDKs that chose awsJson1.0 | JSON | JSON |
//! | [`Protocol::Query`] | older SDKs and scripts | a form | XML |
//!
//! Operations read a request through [`Members`] and answer with a [`Value`], and never learn which
//! protocol it was.

pub mod cbor;
mod form;
mod json;
mod members;
mod value;
mod xml;

use super::error::{CloudWatchError, CloudWatchErrorKind};

pub use members::Members;
pub use value::{Structure, Value};

/// How large a request may be, as on AWS.
const BODY_SIZE_BYTES_MAX: usize = 1 << 20;
/// How deep values may be nested. The deepest request of CloudWatch has eight levels.
const DEPTH_MAX: usize = 32;
/// How many values a request may have: PutMetricData's 1,000 metrics, with 150 values and counts each.
const VALUES_MAX: usize = 400_000;

/// How a request and its response are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// JSON; a header names the operation.
    Json,
    /// A form, whose field `Action` names the operation; the response is XML.
    Query,
    /// Smithy's RPC v2 in CBOR; the path names the operation.
    Cbor,
}

/// A response, without HTTP's types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudWatchResponse {
    pub status: u16,
    pub content_type: &'static str,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

/// The members of a request. An empty body has none.
pub fn decode(protocol: Protocol, body: &[u8]) -> Result<Value, CloudWatchError> {
    if body.len() > BODY_SIZE_BYTES_MAX {
        let message =
            format!("the request has {} bytes; {BODY_SIZE_BYTES_MAX} are allowed", body.len());
        return Err(CloudWatchError::new(CloudWatchErrorKind::TooLarge, message));
    }
    let decoded = match protocol {
        Protocol::Query => form::decode(body),
        _ if body.is_empty() => Ok(Value::Structure(Vec::new())),
        Protocol::Json => json::decode(body),
        Protocol::Cbor => cbor::decode(body),
    };
    match decoded {
        Ok(value @ Value::Structure(_)) => Ok(value),
        Ok(_) => Err(CloudWatchError::serialization("the request is not a structure")),
        Err(malformed) => Err(CloudWatchError::serialization(malformed.0)),
    }
}

/// The request does not decode in its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

pub fn answer(
    protocol: Protocol,
    operation: &str,
    request_id: &str,
    result: Result<Option<Structure>, CloudWatchError>,
) -> CloudWatchResponse {
    match result {
        Ok(result) => succeeded(protocol, operation, request_id, result),
        Err(fault) => failed(protocol, request_id, &fault),
    }
}

fn succeeded(
    protocol: Protocol,
    operation: &str,
    request_id: &str,
    result: Option<Structure>,
) -> CloudWatchResponse {
    let (content_type, headers) = head(protocol);
    let body = match protocol {
        Protocol::Query => xml::response(operation, request_id, result.as_ref()),
        Protocol::Json => json::encode(&Value::Structure(result.unwrap_or_default())),
        Protocol::Cbor => cbor::encode(&Value::Structure(result.unwrap_or_default())),
    };
    CloudWatchResponse { status: 200, content_type, headers, body }
}

/// A refusal by the HTTP layer, such as for a wrong signature.
pub fn refuse(protocol: Protocol, status: u16, code: &str, message: &str) -> CloudWatchResponse {
    let failure = Failure { shape: code, code, who: "Sender", status, message };
    failure.render(protocol, "")
}

/// An error, with its names in all protocols.
struct Failure<'f> {
    shape: &'f str,
    code: &'f str,
    who: &'f str,
    status: u16,
    message: &'f str,
}

fn failed(protocol: Protocol, request_id: &str, fault: &CloudWatchError) -> CloudWatchResponse {
    let CloudWatchError { kind, message } = fault;
    let (shape, code) = (kind.shape(), kind.query_code());
    let failure = Failure { shape, code, who: kind.who(), status: kind.status(), message };
    failure.render(protocol, request_id)
}

impl Failure<'_> {
    fn render(&self, protocol: Protocol, request_id: &str) -> CloudWatchResponse {
        let (content_type, mut headers) = head(protocol);
        let error = || {
            let shape = format!("com.amazonaws.cloudwatch#{}", self.shape);
            let message = Value::from(self.message);
            Value::Structure(vec![
                ("__type".into(), Value::Text(shape)),
                ("message".into(), message),
            ])
        };
        let body = match protocol {
            Protocol::Query => xml::error(request_id, self),
            Protocol::Json => json::encode(&error()),
            Protocol::Cbor => cbor::encode(&error()),
        };
        if protocol != Protocol::Query {
            // Clients that once spoke the query protocol go on matching its codes.
            headers.push(("x-amzn-query-error", format!("{};{}", self.code, self.who)));
        }
        CloudWatchResponse { status: self.status, content_type, headers, body }
    }
}

fn head(protocol: Protocol) -> (&'static str, Vec<(&'static str, String)>) {
    match protocol {
        Protocol::Json => ("application/x-amz-json-1.0", Vec::new()),
        Protocol::Query => ("text/xml", Vec::new()),
        Protocol::Cbor => ("application/cbor", vec![("smithy-protocol", "rpc-v2-cbor".to_owned())]),
    }
}

/// Counts what a decoder builds, so that a small request can't become a large tree.
struct DecodeBudget {
    values: usize,
}

impl DecodeBudget {
    fn new() -> DecodeBudget {
        DecodeBudget { values: 0 }
    }

    fn take(&mut self, depth: usize) -> Result<(), Malformed> {
        self.values += 1;
        match self.values > VALUES_MAX || depth > DEPTH_MAX {
            true => Err(Malformed("the request has too many values, or nests them too deeply")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
