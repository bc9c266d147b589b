//! Request and response bodies: compressed, chunked, and too large.

use std::io::{Read, Write};
use std::time::Duration;

use flate2::Compression;
use flate2::read::{GzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use zenobe::http::BODY_SIZE_BYTES_MAX;
use zenobe_testing::{Reply, api_request};

use crate::support::{ECHO, LARGE, TestOptions, TestServer, assert_from_service};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn send(headers: &str, body: &[u8]) -> Reply {
    TestServer::start().connect().send(&api_request(ECHO, headers, body)).reply()
}

#[test]
fn compressed_requests_are_unpacked() {
    let check = |encoding: &str, body: &[u8]| {
        let reply = send(&format!("Content-Encoding: {encoding}\r\n"), body);
        assert_eq!((reply.status, reply.text().as_str()), (200, r#"{"a":1}"#), "{encoding}");
    };
    check("gzip", &gzip(br#"{"a":1}"#));
    check("GZIP", &[gzip(br#"{"a""#), gzip(br#":1}"#)].concat());
    check("deflate", &deflate(br#"{"a":1}"#));
    check("identity", br#"{"a":1}"#);
}

#[test]
fn broken_compression_and_unknown_encodings_are_internal_errors() {
    let broken = send("Content-Encoding: gzip\r\n", b"{}");
    assert_eq!(broken.status, 500);
    assert!(broken.text().contains("#InternalServerError\""), "{}", broken.text());
    let truncated = &gzip(&vec![b'a'; 10_000])[..20];
    assert_eq!(send("Content-Encoding: gzip\r\n", truncated).status, 500);
    let unknown = send("Content-Encoding: br\r\n", b"{}");
    assert_eq!((unknown.status, unknown.text()), (500, broken.text()));
    // Gzip members add up to one body, deflate streams don't.
    let two_streams = [deflate(br#"{"a""#), deflate(br#":1}"#)].concat();
    assert_eq!(send("Content-Encoding: deflate\r\n", &two_streams).status, 500);
}

#[test]
fn large_answers_are_compressed_for_those_who_accept_it() {
    let server = TestServer::start();
    let ask = |headers: &str, size: &str| {
        server.connect().send(&api_request(LARGE, headers, size.as_bytes())).reply()
    };
    let accepts = "Accept-Encoding: deflate;q=0.5, gzip\r\n";

    let compressed = ask(accepts, "100000");
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    assert!(compressed.bytes.len() < 10_000);
    // The checksum covers the compressed bytes.
    assert_from_service(&compressed);
    let mut text = String::new();
    GzDecoder::new(&compressed.bytes[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text.len(), 100_000);

    let deflated = ask("Accept-Encoding: deflate, gzip\r\n", "100000");
    assert_eq!(deflated.header("content-encoding"), Some("deflate"));
    assert_from_service(&deflated);
    let mut text = String::new();
    ZlibDecoder::new(&deflated.bytes[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text.len(), 100_000);

    for plain in [ask(accepts, "4096"), ask("", "100000")] {
        assert_eq!(plain.header("content-encoding"), None);
        assert_from_service(&plain);
    }
}

#[test]
fn bodies_of_16_mib_pass_and_larger_ones_do_not() {
    let server = TestServer::start();
    let largest = vec![b'1'; BODY_SIZE_BYTES_MAX];
    let reply = server.call(ECHO, &largest);
    assert_eq!((reply.status, reply.bytes.len()), (200, BODY_SIZE_BYTES_MAX));

    let too_large = vec![b'1'; BODY_SIZE_BYTES_MAX + 1];
    let mut connection = server.connect();
    let reply = connection.send(&api_request(ECHO, "", &too_large)).reply();
    assert_eq!((reply.status, reply.header("connection")), (413, Some("close")));
    assert_eq!((reply.header("x-amzn-requestid"), reply.bytes.len()), (None, 0));
    assert!(connection.is_closed());

    let compressed = gzip(&too_large);
    assert!(compressed.len() < 100_000);
    let request = api_request(ECHO, "Content-Encoding: gzip\r\n", &compressed);
    assert_eq!(server.connect().send(&request).reply().status, 413);
}

#[test]
fn a_declared_size_is_rejected_without_waiting_for_the_body() {
    let server = TestServer::start();
    let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n";
    assert_eq!(server.connect().send(head.as_bytes()).reply().status, 413);
    let head =
        "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 20000000\r\n\r\n";
    assert_eq!(server.connect().send(head.as_bytes()).reply().status, 413);
}

#[test]
fn chunked_bodies_are_read_and_bounded() {
    let server = TestServer::start();
    let head = String::from_utf8(api_request(ECHO, "", b"")).unwrap();
    let head = head.replace("Content-Length: 0", "Transfer-Encoding: chunked");
    let mut connection = server.connect();
    connection.send(head.as_bytes());
    connection.send(b"3\r\n{\"a\r\n").send(b"4\r\n\":1}\r\n0\r\n\r\n");
    assert_eq!(connection.reply().text(), r#"{"a":1}"#);

    let mut connection = server.connect();
    connection.send(head.as_bytes());
    let chunk = [&b"100000\r\n"[..], &[b'1'; 0x10_0000], b"\r\n"].concat();
    for _ in 0..17 {
        connection.send(&chunk);
    }
    connection.send(b"0\r\n\r\n");
    assert_eq!(connection.reply().status, 413);
    assert!(connection.is_closed());

    let mut malformed = server.connect();
    malformed.send(head.as_bytes()).send(b"zz\r\n");
    assert_eq!(malformed.reply().status, 400);
    assert!(malformed.is_closed());
}

#[test]
fn idle_bodies_take_no_memory_from_others() {
    let mut options = TestOptions::default();
    // Longer than the others wait for their response.
    options.connections.stall_timeout = Duration::from_secs(60);
    let server = TestServer::start_with(options);
    let head = String::from_utf8(api_request(ECHO, "", b"")).unwrap();
    let mut idle = Vec::new();
    for announced in [
        "Transfer-Encoding: chunked",
        "Content-Encoding: gzip\r\nContent-Length: 16000000",
        "Content-Length: 16000000",
    ] {
        let head = head.replace("Content-Length: 0", announced);
        for _ in 0..20 {
            let mut connection = server.connect();
            connection.send(head.as_bytes());
            idle.push(connection);
        }
    }
    server.wait_for_open_connections(60);
    let body = vec![b'1'; 8_000_000];
    assert_eq!(server.call(ECHO, &body).bytes.len(), body.len());
    let packed = api_request(ECHO, "Content-Encoding: gzip\r\n", &gzip(&body));
    assert_eq!(server.connect().send(&packed).reply().bytes.len(), body.len());
}

#[test]
fn a_client_may_ask_before_it_sends() {
    let server = TestServer::start();
    let request = api_request(ECHO, "Expect: 100-continue\r\n", b"{}");
    let (head, body) = request.split_at(request.len() - 2);
    let mut connection = server.connect();
    connection.send(head);
    assert_eq!(connection.reply().status, 100);
    assert_eq!(connection.send(body).reply().text(), "{}");
}
