//! A server that has more requests than it can serve refuses some of them, and serves the others.

use std::sync::atomic::Ordering;
use std::time::Duration;

use zenobe::http::overload::Shedding;
use zenobe_testing::{Connection, Reply, api_request, wait_until};

use crate::support::{BLOCK, ECHO, TestOptions, TestServer, assert_from_service};

const HEALTH: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const METRICS: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

/// Each turn of the only worker serves one request.
fn server() -> TestServer {
    let shedding = Shedding {
        turn_max: Duration::ZERO,
        crowd_min: 1,
        served_min: 1,
        untimed_requests: 0,
        standing_min: Duration::ZERO,
        hold_min: Duration::from_millis(1),
        hold_per_client: Duration::ZERO,
    };
    let options = TestOptions { shedding: Some(shedding), workers: Some(1), ..Default::default() };
    TestServer::start_with(options)
}

#[test]
fn what_a_turn_cannot_serve_is_throttled() {
    let server = server();
    let mut busy = server.connect();
    let mut others: Vec<Connection> = (0..10).map(|_| server.connect()).collect();
    for connection in &mut others {
        assert_eq!(connection.send(HEALTH).reply().status, 200);
    }
    // While the worker is occupied, everybody else sends a request.
    busy.send(&api_request(BLOCK, "", b"{}"));
    wait_until(|| server.script.is_blocked.load(Ordering::SeqCst));
    for connection in &mut others {
        connection.send(&api_request(ECHO, "", b"{}"));
    }
    server.script.is_blocked.store(false, Ordering::SeqCst);
    assert_eq!(busy.reply().status, 200);
    let replies: Vec<Reply> = others.iter_mut().map(Connection::reply).collect();
    let (served, shed): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 200);
    assert_eq!((served.len(), shed.len()), (1, 9));
    for reply in shed {
        assert_from_service(reply);
        assert_eq!(reply.status, 400);
        let name = reply.body["__type"].as_str().unwrap();
        assert!(name.ends_with("#ThrottlingException"), "{name}");
        assert_eq!(reply.body["message"], "Rate exceeded");
    }
    // Their connections live, and operators are never refused.
    for connection in &mut others {
        assert_eq!(connection.send(HEALTH).reply().status, 200);
    }
    let metrics = server.connect().send(METRICS).reply().text();
    for expected in [
        "zenobe_requests_shed_total 9",
        "zenobe_requests_total{operation=\"PutItem\",code=\"ThrottlingException\"} 9",
        "zenobe_requests_total{operation=\"PutItem\",code=\"OK\"} 1",
    ] {
        assert!(metrics.lines().any(|line| line == expected), "{expected} in\n{metrics}");
    }
    assert_eq!(server.call(ECHO, b"{}").status, 200);
}
