//! Renders a response: the headers that every DynamoDB response has, the checksum, compression.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use http_body_util::Full;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, DATE, HeaderMap,
    HeaderName, HeaderValue, SERVER, VARY,
};
use hyper::http::request;
use hyper::{Response, StatusCode};
use tokio::sync::OwnedSemaphorePermit;

use super::accept_encoding::{self, Coding};
use super::{BodyMemory, COMPRESSION_SIZE_BYTES_MIN, date, head};
use crate::request_id;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amzn-requestid");
const CRC32: HeaderName = HeaderName::from_static("x-amz-crc32");

/// The headers that scripts may read. We have no recording of DynamoDB's value; this is what
/// other AWS services send.
const EXPOSED_HEADERS: &str = "x-amzn-RequestId,x-amzn-ErrorType,x-amzn-ErrorMessage,Date";

/// Enough for the headers of most responses.
const HEADERS_USUAL: usize = 8;

/// A response without the headers that all responses have.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: StatusCode,
    pub body: Bytes,
    pub content_type: Option<HeaderValue>,
    /// Headers of this kind of response only.
    pub headers: HeaderMap,
    /// Whether the service itself responds, with a request id and a checksum, or the layer in front
    /// of it.
    pub from_service: bool,
    pub close: bool,
    /// The memory that was reserved for the body before it was built.
    pub reserved: Option<OwnedSemaphorePermit>,
}

impl HttpAnswer {
    pub fn new(status: StatusCode, body: impl Into<Bytes>) -> HttpAnswer {
        HttpAnswer {
            status,
            body: body.into(),
            content_type: None,
            headers: HeaderMap::with_capacity(HEADERS_USUAL),
            from_service: true,
            close: false,
            reserved: None,
        }
    }

    /// The response of DynamoDB's front end, which doesn't speak JSON, to anything but an API
    /// request.
    pub fn unknown_operation() -> HttpAnswer {
        HttpAnswer::new(StatusCode::NOT_FOUND, &b"<UnknownOperationException/>\n"[..])
    }

    /// DynamoDB Local's response to anything but an API request, byte for byte.
    pub fn dynamodb_local_root() -> HttpAnswer {
        const BODY: &[u8] = b"{\"__type\":\"com.amazonaws.dynamodb.v20120810#MissingAuthenticationToken\",\
            \"Message\":\"Request must contain either a valid (registered) AWS access key ID or X.509 \
            certificate.\"}";
        let content_type = Some(HeaderValue::from_static("application/x-amz-json-1.0"));
        HttpAnswer { content_type, ..HttpAnswer::new(StatusCode::BAD_REQUEST, BODY) }
    }

    pub fn text(body: String) -> HttpAnswer {
        let content_type = Some(HeaderValue::from_static("text/plain"));
        HttpAnswer { content_type, ..HttpAnswer::new(StatusCode::OK, body) }
    }

    pub fn json(status: StatusCode, value: &serde_json::Value) -> HttpAnswer {
        let content_type = Some(HeaderValue::from_static("application/json"));
        HttpAnswer { content_type, ..HttpAnswer::new(status, format!("{value}\n")) }
    }

    /// The bare status for something that never became a request. The connection is useless
    /// afterwards.
    pub fn rejection(status: StatusCode) -> HttpAnswer {
        HttpAnswer { from_service: false, close: true, ..HttpAnswer::new(status, Bytes::new()) }
    }

    /// Grants a page with an allowed origin everything that it asks for.
    pub fn preflight(request_headers: &HeaderMap) -> HttpAnswer {
        let mut answer = HttpAnswer::new(StatusCode::OK, Bytes::new());
        answer.headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("172800"));
        for (asked, granted) in [
            (ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_ALLOW_HEADERS),
            (ACCESS_CONTROL_REQUEST_METHOD, ACCESS_CONTROL_ALLOW_METHODS),
        ] {
            if let Some(value) = request_headers.get(asked) {
                answer.headers.insert(granted, value.clone());
            }
        }
        answer
    }

    /// The id of the request, which the rendered response has too.
    pub fn request_id(&mut self) -> &str {
        let id = self.headers.entry(REQUEST_ID).or_insert_with(request_id::header);
        id.to_str().unwrap_or_default()
    }

    /// Adds what all responses to `request` have. `granted` is the origin whose pages may read this
    /// one.
    pub fn render(
        self,
        request: &request::Parts,
        granted: Option<HeaderValue>,
        memory: &BodyMemory,
    ) -> Response<Full<Bytes>> {
        let HttpAnswer {
            status,
            mut body,
            content_type,
            mut headers,
            from_service,
            close,
            reserved,
        } = self;
        headers.insert(SERVER, HeaderValue::from_static("Server"));
        headers.insert(DATE, date::now());
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, content_type);
        }
        if let Some(origin) = granted {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers
                .insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED_HEADERS));
            headers.insert(VARY, HeaderValue::from_static("origin"));
        }
        if body.len() > COMPRESSION_SIZE_BYTES_MIN
            && let Some(coding) = accept_encoding::accepted(&request.headers)
        {
            body = packed(&body, coding);
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        }
        if from_service {
            headers.entry(REQUEST_ID).or_insert_with(request_id::header);
            // Computed over the bytes as sent: clients check before they decompress.
            headers.insert(CRC32, decimal(crc32fast::hash(&body)));
        }
        let keep_alive = !close && head::keeps_alive(request);
        let connection = if keep_alive { "keep-alive" } else { "close" };
        headers.insert(CONNECTION, HeaderValue::from_static(connection));

        let mut response = Response::new(Full::new(memory.hold(body, reserved)));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}

fn decimal(number: u32) -> HeaderValue {
    HeaderValue::from_str(itoa::Buffer::new().format(number)).expect("digits are plain ASCII")
}

fn packed(body: &[u8], coding: Coding) -> Bytes {
    // The fastest level: JSON compresses well at any, and the client is waiting.
    let (buffer, level) = (Vec::with_capacity(body.len() / 4), Compression::fast());
    let compressed = match coding {
        Coding::Gzip => {
            let mut encoder = GzEncoder::new(buffer, level);
            encoder.write_all(body).and_then(|()| encoder.finish())
        }
        Coding::Deflate => {
            let mut encoder = ZlibEncoder::new(buffer, level);
            encoder.write_all(body).and_then(|()| encoder.finish())
        }
    };
    compressed.expect("writing to memory cannot fail").into()
}
