//! The fixed responses of DynamoDB's front end, byte for byte with their checksums, and the order
//! of its checks.

use std::io::Read;

use zenobe::http::allowed_hosts_and_origins::{CorsOrigin, CrossSitePolicy, KnownHosts};
use zenobe_testing::{AUTHORIZATION, Reply};

use crate::support::{ECHO, TestOptions, TestServer, assert_from_service};

const UNKNOWN_XML: (&str, &str) = ("<UnknownOperationException/>\n", "3552371480");
const SERIALIZATION: (&str, &str) =
    (r#"{"__type":"com.amazon.coral.service#SerializationException"}"#, "3948637019");
const UNKNOWN_JSON: (&str, &str) =
    (r#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#, "1368724161");

const JSON: &str = "Content-Type: application/x-amz-json-1.0\r\n";

fn request(server: &TestServer, line: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    let text =
        format!("{line} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
    server.connect().send(text.as_bytes()).reply()
}

fn check(line: &str, headers: &str, body: &str, status: u16, expected: (&str, &str)) {
    let reply = request(&TestServer::start(), line, headers, body);
    let given = format!("{line} {headers} {body}");
    assert_eq!(reply.status, status, "{given}");
    assert_eq!((reply.text().as_str(), reply.header("x-amz-crc32").unwrap()), expected, "{given}");
    assert_eq!(reply.header("access-control-allow-origin"), None, "{given}");
    assert_from_service(&reply);
}

#[test]
fn a_get_of_the_root_is_a_health_check() {
    let healthy = ("healthy: dynamodb.us-east-1.amazonaws.com ", "3128867991");
    check("GET /", "", "", 200, healthy);
    let reply = request(&TestServer::start(), "GET /", "", "");
    assert_eq!(reply.header("content-type"), Some("text/plain"));
    assert_eq!(reply.header("content-length"), Some("42"));
    assert_eq!(reply.header("connection"), Some("keep-alive"));
}

#[test]
fn a_head_of_the_root_is_one_too_but_for_the_body() {
    let server = TestServer::start();
    let mut connection = server.connect();
    connection.send(b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut text = String::new();
    connection.stream().read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.contains("content-length: 42\r\n") && text.ends_with("\r\n\r\n"), "{text}");
}

#[test]
fn bodies_that_nobody_reads_end_their_connection() {
    let server = TestServer::start();
    let mut connection = server.connect();
    let request =
        |line: &str, headers: &str| format!("{line} HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
    for (line, status) in [("PUT /", 404), ("GET /other", 404), ("GET /", 200)] {
        let reply = connection.send(request(line, "").as_bytes()).reply();
        assert_eq!((reply.status, reply.header("connection")), (status, Some("keep-alive")));
        for body in ["Content-Length: 2\r\n", "Transfer-Encoding: chunked\r\n"] {
            let mut connection = server.connect();
            let reply = connection.send(request(line, body).as_bytes()).reply();
            assert_eq!((reply.status, reply.header("connection")), (status, Some("close")));
            assert!(connection.is_closed());
        }
    }
}

#[test]
fn other_methods_paths_and_content_types_are_unknown_operations() {
    check("GET /other", "", "", 404, UNKNOWN_XML);
    check("PUT /", JSON, "{}", 404, UNKNOWN_XML);
    check("DELETE /", "", "", 404, UNKNOWN_XML);
    check("OPTIONS /", "", "", 404, UNKNOWN_XML);
    check("POST /other", JSON, "{}", 404, UNKNOWN_XML);
    check("POST /", "", "{}", 404, UNKNOWN_XML);
    check("POST /", "Content-Type: text/plain\r\n", "{}", 404, UNKNOWN_XML);
    check("POST /", "Content-Type: application/x-amz-json-1.1\r\n", "{}", 404, UNKNOWN_XML);
    check("POST /", "Content-Type: application/x-amz-json-1.0asdf\r\n", "{}", 404, UNKNOWN_XML);
}

#[test]
fn the_body_is_checked_before_the_target_and_the_target_before_the_signature() {
    let target = format!("{JSON}X-Amz-Target: {ECHO}\r\n");
    check("POST /", JSON, "{", 400, SERIALIZATION);
    check("POST /", &target, "hello", 400, SERIALIZATION);
    check("POST /", JSON, "{}", 400, UNKNOWN_JSON);
    // Without a body neither its type nor its content matters yet.
    check("POST /", "", "", 400, UNKNOWN_JSON);
    for target in ["DynamoDB_20120810", "PutItem", "DynamoDB_20120810.putItem", "A.B", "."] {
        check("POST /", &format!("{JSON}X-Amz-Target: {target}\r\n"), "{}", 400, UNKNOWN_JSON);
    }
    let missing = (
        "{\"__type\":\"com.amazon.coral.service#MissingAuthenticationTokenException\",\
         \"message\":\"Request is missing Authentication Token\"}",
        "2088342776",
    );
    check("POST /", &target, "{}", 400, missing);
    check("POST /", &target, "", 400, missing);
    let signed =
        format!("{target}Authorization: {AUTHORIZATION}\r\nX-Amz-Date: 20260101T000000Z\r\n");
    check("POST /", &signed, "", 400, SERIALIZATION);
}

#[test]
fn answers_have_the_content_type_of_their_request() {
    for content_type in ["application/x-amz-json-1.0", "application/json"] {
        let headers = format!("Content-Type: {content_type}; charset=utf-8\r\n");
        let reply = request(&TestServer::start(), "POST /", &headers, "{}");
        assert_eq!(reply.header("content-type"), Some(content_type));
    }
}

/// Recorded on AWS: without a body the type may be absent, and all answers, errors included, are
/// plain JSON. A body of no type is not looked at, whatever else the request has.
#[test]
fn a_request_without_a_content_type_gets_plain_json_if_it_has_no_body() {
    let server = TestServer::start();
    let target = format!("X-Amz-Target: {ECHO}\r\n");
    let incomplete = format!("{target}Authorization: AWS4-\r\n");
    let signed =
        format!("{target}Authorization: {AUTHORIZATION}\r\nX-Amz-Date: 20260101T000000Z\r\n");
    for (headers, exception) in [
        ("", "UnknownOperationException"),
        (&target, "MissingAuthenticationTokenException"),
        (&incomplete, "IncompleteSignatureException"),
        (&signed, "SerializationException"),
    ] {
        let reply = request(&server, "POST /", headers, "");
        assert_eq!(reply.status, 400, "{headers}");
        assert!(reply.text().contains(exception), "{headers}: {}", reply.text());
        assert_eq!(reply.header("content-type"), Some("application/json"), "{headers}");
        check("POST /", headers, "{}", 404, UNKNOWN_XML);
    }
}

#[test]
fn a_signed_request_reaches_its_handler() {
    let reply = TestServer::start().call(ECHO, br#"{"a":1}"#);
    assert_eq!((reply.status, reply.text().as_str()), (200, r#"{"a":1}"#));
    assert_from_service(&reply);
}

#[test]
fn preflight_requests_of_allowed_pages_are_granted_what_they_ask_for() {
    let cross_site =
        CrossSitePolicy::new(KnownHosts::AnyUnlessConfigured, Vec::new(), vec![CorsOrigin::Any]);
    let server = TestServer::start_with(TestOptions { cross_site, ..TestOptions::default() });
    let reply = request(
        &server,
        "OPTIONS /",
        "Origin: http://a\r\nAccess-Control-Request-Headers: x-amz-target, b\r\n\
         Access-Control-Request-Method: POST\r\n",
        "",
    );
    assert_eq!((reply.status, reply.header("content-length")), (200, Some("0")));
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    assert_eq!(reply.header("access-control-max-age"), Some("172800"));
    assert_eq!(reply.header("access-control-allow-headers"), Some("x-amz-target, b"));
    assert_eq!(reply.header("access-control-allow-methods"), Some("POST"));
    let reply = request(&server, "POST /", &format!("Origin: http://a\r\n{JSON}"), "{}");
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    for preflight_only in
        ["access-control-max-age", "access-control-allow-headers", "access-control-allow-methods"]
    {
        assert_eq!(reply.header(preflight_only), None);
    }
    assert_eq!(
        reply.header("access-control-expose-headers"),
        Some("x-amzn-RequestId,x-amzn-ErrorType,x-amzn-ErrorMessage,Date")
    );
    let without_origin = request(&server, "POST /", JSON, "{}");
    assert_eq!(without_origin.header("access-control-expose-headers"), None);
}

#[test]
fn heads_above_16_kib_are_refused() {
    let server = TestServer::start();
    let filler = |size: usize| format!("X-Filler: {}\r\n", "a".repeat(size));
    assert_eq!(request(&server, "GET /", &filler(15_000), "").status, 200);
    let reply = request(&server, "GET /", &filler(17_000), "");
    assert_eq!((reply.status, reply.header("connection")), (400, Some("close")));
    assert_eq!(reply.header("x-amzn-requestid"), None);
    let path = format!("GET /{}", "a".repeat(17_000));
    assert_eq!(request(&server, &path, "", "").status, 400);
    // Beyond its own buffer the parser rejects the head without reading it.
    let status = request(&server, "GET /", &filler(100_000), "").status;
    assert!((400..500).contains(&status), "{status}");
}

#[test]
fn the_store_and_the_requests_are_in_the_metrics() {
    let server = TestServer::start();
    server.call(ECHO, b"{}");
    let text = request(&server, "GET /metrics", "", "").text();
    assert!(
        text.contains("zenobe_requests_total{operation=\"PutItem\",code=\"OK\"} 1\n"),
        "{text}"
    );
    assert!(text.contains("zenobe_store_size_bytes 4242\n"), "{text}");
}
