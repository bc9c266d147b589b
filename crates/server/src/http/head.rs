//! What a request's head says about the request and its response.

use hyper::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
    ORIGIN, TRANSFER_ENCODING,
};
use hyper::http::request;
use hyper::{Method, Version};
use zenobe_api::Operation;

use super::HEAD_SIZE_BYTES_MAX;

/// The purpose of a request, by method and path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    Api,
    /// Another AWS service, which has its own paths.
    Service,
    Health,
    Metrics,
    Admin,
    /// A health probe.
    Probe,
    Preflight,
    Unknown,
}

impl Route {
    pub fn of(parts: &request::Parts) -> Route {
        match (&parts.method, parts.uri.path()) {
            (&Method::POST, "/") => Route::Api,
            (&Method::POST, path) if path.starts_with("/service/") => Route::Service,
            (&Method::GET | &Method::HEAD, "/") => Route::Health,
            (&Method::GET, "/metrics") => Route::Metrics,
            (&Method::OPTIONS, _) if parts.headers.contains_key(ORIGIN) => Route::Preflight,
            (_, path) if path.starts_with(crate::admin::HEALTH_PATH) => Route::Probe,
            (_, path) if path.starts_with(crate::admin::PATH) => Route::Admin,
            _ => Route::Unknown,
        }
    }
}

/// The address by which the client reached the server, for clients that ask for an endpoint: given
/// DynamoDB's own host, an SDK would call AWS. SDKs assume HTTPS unless the endpoint says
/// otherwise.
pub fn endpoint(headers: &HeaderMap) -> Option<String> {
    let host = headers.get(HOST)?.to_str().ok()?;
    let is_behind_tls = headers.get("x-forwarded-proto").is_some_and(|value| value == "https");
    Some(if is_behind_tls { host.to_owned() } else { format!("http://{host}") })
}

/// The two content types of the protocol. A response has its request's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentType {
    AmzJson,
    Json,
}

impl ContentType {
    /// `None` for any other type. Parameters after a semicolon don't matter.
    pub fn of(headers: &HeaderMap) -> Option<ContentType> {
        let value = headers.get(CONTENT_TYPE)?;
        // Nearly all clients send exactly this.
        if value == ContentType::AmzJson.name() {
            return Some(ContentType::AmzJson);
        }
        let value = value.to_str().ok()?;
        match value.split(';').next().unwrap_or_default().trim() {
            "application/x-amz-json-1.0" => Some(ContentType::AmzJson),
            "application/json" => Some(ContentType::Json),
            _ => None,
        }
    }

    pub fn header_value(self) -> HeaderValue {
        HeaderValue::from_static(self.name())
    }

    fn name(self) -> &'static str {
        match self {
            ContentType::AmzJson => "application/x-amz-json-1.0",
            ContentType::Json => "application/json",
        }
    }
}

/// The encoding of a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentEncoding {
    Identity,
    Gzip,
    Deflate,
}

impl ContentEncoding {
    /// `None` for any other encoding.
    pub fn of(headers: &HeaderMap) -> Option<ContentEncoding> {
        let Some(value) = headers.get(CONTENT_ENCODING) else {
            return Some(ContentEncoding::Identity);
        };
        match value.to_str().ok()?.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(ContentEncoding::Identity),
            "gzip" => Some(ContentEncoding::Gzip),
            "deflate" => Some(ContentEncoding::Deflate),
            _ => None,
        }
    }
}

pub fn operation(headers: &HeaderMap) -> Option<Operation> {
    static TARGET: HeaderName = HeaderName::from_static("x-amz-target");
    Operation::from_target(headers.get(&TARGET)?.to_str().ok()?)
}

/// The time to read tables as of. A value that is not text is refused later, as an invalid time.
pub fn as_of(headers: &HeaderMap) -> Option<String> {
    static AS_OF: HeaderName = HeaderName::from_static("x-zenobe-as-of");
    let given = headers.get(&AS_OF)?;
    Some(String::from_utf8_lossy(given.as_bytes()).into_owned())
}

/// The body's declared size. Chunked bodies declare none.
pub fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

pub fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING) || content_length(headers).is_some_and(|size| size > 0)
}

/// Compares the approximate size of the head on the wire. The parser has its own, higher limit.
pub fn is_too_large(parts: &request::Parts) -> bool {
    const PER_HEADER: usize = ": \r\n".len();
    let query = parts.uri.query().map_or(0, |query| query.len() + 1);
    let line = parts.method.as_str().len() + parts.uri.path().len() + query;
    let headers = parts.headers.iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + PER_HEADER);
    line + headers.sum::<usize>() > HEAD_SIZE_BYTES_MAX
}

/// Whether the client expects the connection to stay open.
pub fn keeps_alive(parts: &request::Parts) -> bool {
    let stays_open_by_default = parts.version == Version::HTTP_11;
    // Most requests have no such header.
    let Some(connection) = parts.headers.get(hyper::header::CONNECTION) else {
        return stays_open_by_default;
    };
    let words = connection.to_str().unwrap_or_default().split(',').map(str::trim);
    let says = |word: &str| words.clone().any(|given| given.eq_ignore_ascii_case(word));
    if stays_open_by_default { !says("close") } else { says("keep-alive") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn content_types_are_exact_but_for_parameters() {
        let check = |value: &str, expected| {
            assert_eq!(ContentType::of(&headers("content-type", value)), expected, "{value}");
        };
        check("application/x-amz-json-1.0", Some(ContentType::AmzJson));
        check("application/json; charset=utf-8", Some(ContentType::Json));
        check("application/x-amz-json-1.0;asdf", Some(ContentType::AmzJson));
        check("application/x-amz-json-1.1", None);
        check("application/x-amz-json-1.0asdf", None);
        check("text/plain", None);
        assert_eq!(ContentType::of(&HeaderMap::new()), None);
    }
}
