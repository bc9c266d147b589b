//! Clients that stall, vanish, crowd or break things: nothing leaks, and other clients don't
//! notice.

use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use zenobe::http::{BODIES_SIZE_BYTES_MAX, BODY_SIZE_BYTES_MAX};
use zenobe_testing::{api_request, wait_until};

use crate::support::{ECHO, LARGE, PANIC, TestOptions, TestServer, WAIT, assert_from_service};

/// Longer than a busy machine takes to send a request on a connection that it has opened.
const SHORT: Duration = Duration::from_secs(1);

fn impatient_server() -> TestServer {
    let mut options = TestOptions::default();
    options.connections.idle_timeout = SHORT;
    options.connections.stall_timeout = SHORT;
    TestServer::start_with(options)
}

#[test]
fn a_connection_serves_many_requests() {
    let server = TestServer::start();
    let mut connection = server.connect();
    for index in 0..100 {
        let body = format!("{{\"a\":{index}}}");
        assert_eq!(connection.call(ECHO, body.as_bytes()).text(), body);
    }
    // Pipelined requests are answered in order.
    let both = [api_request(ECHO, "", b"[1]"), api_request(ECHO, "", b"[2]")].concat();
    connection.send(&both);
    assert_eq!(
        (connection.reply().text(), connection.reply().text()),
        ("[1]".into(), "[2]".into())
    );
    let last = connection.send(&api_request(ECHO, "Connection: close\r\n", b"{}")).reply();
    assert_eq!(last.header("connection"), Some("close"));
    assert!(connection.is_closed());
    server.wait_for_open_connections(0);
}

#[test]
fn silent_and_half_sent_heads_are_closed() {
    let server = impatient_server();
    for sent in ["", "POST / HTTP/1.1\r\nHost:", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
        let mut connection = server.connect();
        connection.send(sent.as_bytes());
        if sent.ends_with("\r\n\r\n") {
            assert_eq!(connection.reply().status, 200);
        }
        let started = Instant::now();
        assert!(connection.is_closed(), "{sent}");
        assert!(started.elapsed() < SHORT * 20, "{sent}");
    }
    server.wait_for_open_connections(0);
}

#[test]
fn half_sent_bodies_time_out() {
    let server = impatient_server();
    let request = api_request(ECHO, "", b"{\"a\":1}");
    let mut connection = server.connect();
    connection.send(&request[..request.len() - 3]);
    let reply = connection.reply();
    assert_eq!((reply.status, reply.header("connection")), (408, Some("close")));
    assert!(connection.is_closed());
    server.wait_for_open_connections(0);
}

#[test]
fn clients_that_do_not_read_are_cut_off() {
    let server = impatient_server();
    let mut connection = server.connect();
    // Far more than the socket's buffers hold.
    connection.send(&api_request(LARGE, "", b"64000000"));
    server.wait_for_open_connections(0);
    drop(connection);
}

#[test]
fn slow_uploads_yield_to_others() {
    let server = TestServer::start();
    let head = String::from_utf8(api_request(ECHO, "", b"")).unwrap();
    let head = head.replace("Content-Length: 0", &format!("Content-Length: {BODY_SIZE_BYTES_MAX}"));
    let almost_all = vec![b'1'; BODY_SIZE_BYTES_MAX - 1];
    let mut slow: Vec<_> = (0..BODIES_SIZE_BYTES_MAX / BODY_SIZE_BYTES_MAX)
        .map(|_| {
            let mut connection = server.connect();
            connection.send(head.as_bytes()).send(&almost_all);
            connection
        })
        .collect();
    let used = || {
        let reply = server.connect().send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").reply();
        let line = format!("zenobe_body_memory_bytes {BODIES_SIZE_BYTES_MAX}");
        reply.text().lines().any(|found| found == line)
    };
    wait_until(used);
    // No memory is left for another body until a silent client has lost its share.
    let body = vec![b'1'; 1 << 20];
    let reply = server.call(ECHO, &body);
    assert_eq!((reply.status, reply.bytes.len()), (200, body.len()));
    let answers: Vec<u16> = slow.iter_mut().map(|slow| slow.send(b"1").reply().status).collect();
    assert!(
        answers.contains(&503) && answers.iter().all(|it| [200, 503].contains(it)),
        "{answers:?}"
    );
}

#[test]
fn unread_responses_yield_to_others() {
    let server = TestServer::start();
    let size = BODY_SIZE_BYTES_MAX.to_string();
    let unread: Vec<_> = (0..BODIES_SIZE_BYTES_MAX / BODY_SIZE_BYTES_MAX + 4)
        .map(|_| {
            let mut connection = server.connect();
            connection.send(&api_request(LARGE, "", size.as_bytes()));
            connection
        })
        .collect();
    // The last requests are answered only when the first clients are cut off, and so is this one.
    assert_eq!(server.call(LARGE, b"1000000").bytes.len(), 1_000_000);
    assert_eq!(server.call(ECHO, b"{}").status, 200);
    drop(unread);
    server.wait_for_open_connections(0);
}

#[test]
fn vanished_clients_leave_nothing_behind() {
    let server = TestServer::start();
    let request = api_request(ECHO, "", b"{\"a\":1}");
    for sent in [0, 10, request.len() - 3, request.len()] {
        let mut connection = server.connect();
        connection.send(&request[..sent]);
        drop(connection);
    }
    server.wait_for_open_connections(0);
    assert_eq!(server.call(ECHO, b"{}").status, 200);
}

#[test]
fn a_request_that_was_read_whole_runs_to_its_end() {
    let server = TestServer::start();
    let mut connection = server.connect();
    connection.send(&api_request(WAIT, "", b"{}"));
    wait_until(|| server.open_connections() == 1);
    drop(connection);
    server.script.gate.add_permits(1);
    wait_until(|| server.script.finished_waits.load(Ordering::SeqCst) == 1);
    server.wait_for_open_connections(0);
}

#[test]
fn a_client_that_closes_its_side_still_gets_its_answer() {
    let server = TestServer::start();
    let mut connection = server.connect();
    connection.send(&api_request(WAIT, "", b"{}"));
    connection.stream().shutdown(Shutdown::Write).unwrap();
    server.script.gate.add_permits(1);
    assert_eq!(connection.reply().status, 200);
}

#[test]
fn a_panic_fails_its_request_and_nothing_else() {
    let server = TestServer::start();
    let mut connection = server.connect();
    let reply = connection.call(PANIC, b"{}");
    assert_eq!(reply.status, 500);
    assert_eq!(
        reply.text(),
        "{\"__type\":\"com.amazonaws.dynamodb.v20120810#InternalServerError\",\
         \"message\":\"Internal server error\"}"
    );
    assert_from_service(&reply);
    assert_eq!(connection.call(ECHO, b"{}").status, 200);
}

#[test]
fn connections_beyond_the_limit_wait_their_turn() {
    let mut options = TestOptions::default();
    options.connections.connections_max = 2;
    let server = TestServer::start_with(options);
    let mut first = server.connect();
    let mut second = server.connect();
    assert_eq!(first.call(ECHO, b"{}").status, 200);
    assert_eq!(second.call(ECHO, b"{}").status, 200);
    let mut third = server.connect();
    third.send(&api_request(ECHO, "", b"[3]"));
    third.stream().set_read_timeout(Some(SHORT)).unwrap();
    assert!(third.stream().peek(&mut [0]).is_err(), "nobody serves the third connection yet");
    third.stream().set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    drop(first);
    assert_eq!(third.reply().text(), "[3]");
}

#[test]
fn anything_but_http_is_rejected() {
    let server = TestServer::start();
    for sent in ["\x16\x03\x01\x02\0\x01\0", "hello\r\n\r\n"] {
        let mut connection = server.connect();
        let reply = connection.send(sent.as_bytes()).reply();
        assert_eq!(reply.status, 400, "{sent:?}");
        assert!(connection.is_closed());
    }
    // A client that starts with HTTP/2 could not read an HTTP/1.1 response.
    assert!(server.connect().send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").is_closed());
}
