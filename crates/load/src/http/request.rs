//! Renders requests: the head once per operation, then the body after it in the same buffer.

use std::time::SystemTime;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue};
use zenobe_auth::{Credential, Signer, Timestamp};

use crate::target::Target;

/// The operations of the API that workloads call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    GetItem,
    PutItem,
    UpdateItem,
    Query,
    Scan,
    BatchGetItem,
    BatchWriteItem,
    TransactWriteItems,
    ExecuteStatement,
}

impl Call {
    pub const ALL: [Call; 9] = [
        Call::GetItem,
        Call::PutItem,
        Call::UpdateItem,
        Call::Query,
        Call::Scan,
        Call::BatchGetItem,
        Call::BatchWriteItem,
        Call::TransactWriteItems,
        Call::ExecuteStatement,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Call::GetItem => "GetItem",
            Call::PutItem => "PutItem",
            Call::UpdateItem => "UpdateItem",
            Call::Query => "Query",
            Call::Scan => "Scan",
            Call::BatchGetItem => "BatchGetItem",
            Call::BatchWriteItem => "BatchWriteItem",
            Call::TransactWriteItems => "TransactWriteItems",
            Call::ExecuteStatement => "ExecuteStatement",
        }
    }
}

/// A buffer that each request reuses.
pub struct Request {
    bytes: Vec<u8>,
    body_start: usize,
    heads: Heads,
}

enum Heads {
    /// One head per call of [`Call::ALL`]. A loopback server checks no signature, so a constant one
    /// will do.
    Fixed(Vec<Vec<u8>>),
    /// The signature depends on the body and the time, so the head is rendered last.
    Signed(Box<Signed>),
}

struct Signed {
    target: Target,
    credential: Credential,
    operation: &'static str,
    body: Vec<u8>,
}

/// Placeholder that the length overwrites once it is known. Spaces before a header's value have no
/// meaning.
const LENGTH_WIDTH: usize = 8;
const HEAD_END: &[u8] = b"\r\n\r\n";
const AS_OF: &str = "x-zenobe-as-of";
const CONTENT: &str = "application/x-amz-json-1.0";

impl Request {
    pub fn new(target: &Target) -> Request {
        let heads = match &target.credential {
            None => Heads::Fixed(Call::ALL.map(|call| unsigned_head(target, call.name())).to_vec()),
            Some(credential) => Heads::Signed(Box::new(Signed {
                target: target.clone(),
                credential: credential.clone(),
                operation: "",
                body: Vec::new(),
            })),
        };
        Request { bytes: Vec::with_capacity(4096), body_start: 0, heads }
    }

    /// A single request to any operation.
    pub fn once(target: &Target, operation: &str, body: &[u8]) -> Vec<u8> {
        match &target.credential {
            None => {
                let mut bytes = unsigned_head(target, operation);
                let body_start = bytes.len();
                bytes.extend_from_slice(body);
                write_length(&mut bytes, body_start);
                bytes
            }
            Some(credential) => {
                let mut bytes = Vec::new();
                write_signed(target, credential, operation, body, &mut bytes);
                bytes
            }
        }
    }

    /// Starts a request. The caller appends the body to the returned buffer.
    #[inline]
    pub fn begin(&mut self, call: Call) -> &mut Vec<u8> {
        match &mut self.heads {
            Heads::Fixed(heads) => {
                self.bytes.clear();
                self.bytes.extend_from_slice(&heads[call as usize]);
                self.body_start = self.bytes.len();
                &mut self.bytes
            }
            Heads::Signed(signed) => {
                signed.operation = call.name();
                signed.body.clear();
                &mut signed.body
            }
        }
    }

    /// Completes the request with its length or signature.
    #[inline]
    pub fn finish(&mut self) {
        match &self.heads {
            Heads::Fixed(_) => write_length(&mut self.bytes, self.body_start),
            Heads::Signed(signed) => {
                let Signed { target, credential, operation, body } = &**signed;
                self.bytes.clear();
                write_signed(target, credential, operation, body, &mut self.bytes);
            }
        }
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

fn write_length(bytes: &mut [u8], body_start: usize) {
    let mut length = bytes.len() - body_start;
    let mut at = body_start - HEAD_END.len();
    let first = at - LENGTH_WIDTH;
    // Each request starts with a fresh head, so no digits of the last one remain.
    while at > first {
        at -= 1;
        bytes[at] = b'0' + (length % 10) as u8;
        length /= 10;
        if length == 0 {
            return;
        }
    }
    debug_assert_eq!(length, 0, "no body has more digits in its length");
}

fn unsigned_head(target: &Target, operation: &str) -> Vec<u8> {
    let as_of = target.as_of(operation).map(|as_of| format!("{AS_OF}: {as_of}\r\n"));
    format!(
        "POST / HTTP/1.1\r\n\
         Host: {}\r\n\
         Content-Type: {CONTENT}\r\n\
         X-Amz-Target: DynamoDB_20120810.{operation}\r\n\
         X-Amz-Date: 20260101T000000Z\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=bench/20260101/{}/dynamodb/aws4_request, \
         SignedHeaders=host;x-amz-date;x-amz-target, Signature={:064}\r\n\
         {}Content-Length: {:LENGTH_WIDTH$}\r\n\r\n",
        target.authority,
        target.region,
        0,
        as_of.unwrap_or_default(),
        ""
    )
    .into_bytes()
}

fn write_signed(
    target: &Target,
    credential: &Credential,
    operation: &str,
    body: &[u8],
    bytes: &mut Vec<u8>,
) {
    let date = Timestamp::from_system_time(SystemTime::now()).to_string();
    let value =
        |text: &str| HeaderValue::from_str(text).expect("a target's texts fit into headers");
    let mut headers = HeaderMap::with_capacity(6);
    headers.insert(HOST, value(&target.authority));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(CONTENT));
    headers.insert(
        HeaderName::from_static("x-amz-target"),
        value(&format!("DynamoDB_20120810.{operation}")),
    );
    headers.insert(HeaderName::from_static("x-amz-date"), value(&date));
    if let Some(as_of) = target.as_of(operation) {
        headers.insert(HeaderName::from_static(AS_OF), value(as_of));
    }
    if let Some(token) = &credential.session_token {
        headers.insert(HeaderName::from_static("x-amz-security-token"), value(token));
    }
    let signer = Signer { credential, region: &target.region, service: "dynamodb", date: &date };
    let authorization = signer.authorization("POST", "/", "", &headers, body);
    headers.insert(AUTHORIZATION, value(&authorization));
    bytes.extend_from_slice(b"POST / HTTP/1.1\r\n");
    for (name, value) in &headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_each_request_is_its_own() {
        let target = Target::new("http://127.0.0.1:8000", "us-east-1", None).unwrap();
        let mut request = Request::new(&target);
        for (call, size) in
            [(Call::PutItem, 12_345_678), (Call::Query, 7), (Call::Query, 0), (Call::Scan, 1000)]
        {
            let body = vec![b'x'; size];
            request.begin(call).extend_from_slice(&body);
            request.finish();
            let head = &request.bytes()[..request.bytes().len() - size];
            let head = std::str::from_utf8(head).unwrap();
            let length = head.split("Content-Length:").nth(1).unwrap().trim();
            assert_eq!(length, size.to_string());
            assert!(head.ends_with("\r\n\r\n"));
            assert!(head.contains(&format!("X-Amz-Target: DynamoDB_20120810.{}\r\n", call.name())));
            assert_eq!(Request::once(&target, call.name(), &body), request.bytes());
        }
    }
}
