//! Stopping: no new connections, open requests finish, and there is an end to waiting.

use std::net::TcpStream;
use std::time::Duration;

use crate::support::{ECHO, TestOptions, TestServer, WAIT, api_request, wait_until};

const SOON: Duration = Duration::from_secs(5);

#[test]
fn open_requests_finish_and_idle_connections_close() {
    let mut server = TestServer::start();
    let mut untouched = server.connect();
    let mut idle = server.connect();
    assert_eq!(idle.call(ECHO, b"{}").status(), 200);
    let mut busy = server.connect();
    busy.send(&api_request(WAIT, "", b"{\"a\":1}"));
    wait_until(|| server.open_connections() == 3);

    server.stop();
    assert!(idle.is_closed());
    assert!(untouched.is_closed());
    wait_until(|| TcpStream::connect(server.address).is_err());
    server.script.gate.add_permits(1);
    let reply = busy.reply();
    assert_eq!((reply.status(), reply.text().as_str()), (200, "{\"a\":1}"));
    assert!(busy.is_closed());
    server.join(SOON);
}

#[test]
fn requests_that_never_finish_are_cut() {
    let mut options = TestOptions::default();
    options.connections.shutdown_timeout = Duration::from_millis(200);
    let mut server = TestServer::start_with(options);
    let mut busy = server.connect();
    busy.send(&api_request(WAIT, "", b"{}"));
    wait_until(|| server.open_connections() == 1);
    server.stop();
    server.join(SOON);
}
