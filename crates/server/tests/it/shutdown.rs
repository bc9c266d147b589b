//! Stopping: no new connections, open requests finish, and the wait is bounded.

use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;
use zenobe_testing::{Connection, ServerProcess, Signal, api_request, wait_until};

use crate::commands::zenobe;
use crate::support::{ECHO, TestOptions, TestServer, WAIT};

/// On a busy machine, but before any of the test server's other timeouts has passed.
const SOON: Duration = Duration::from_secs(15);

#[test]
fn open_requests_finish_and_idle_connections_close() {
    let mut server = TestServer::start();
    let mut untouched = server.connect();
    let mut idle = server.connect();
    assert_eq!(idle.call(ECHO, b"{}").status, 200);
    let mut busy = server.connect();
    busy.send(&api_request(WAIT, "", b"{\"a\":1}"));
    wait_until(|| server.open_connections() == 3);

    server.stop();
    assert!(idle.is_closed());
    assert!(untouched.is_closed());
    wait_until(|| TcpStream::connect(server.address).is_err());
    server.script.gate.add_permits(1);
    let reply = busy.reply();
    assert_eq!((reply.status, reply.text().as_str()), (200, "{\"a\":1}"));
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
    // The connection is gone, and so is the request: nobody waits for the gate any more.
    server.script.gate.add_permits(1);
    assert!(busy.is_closed());
    assert_eq!(server.script.finished_waits.load(Ordering::SeqCst), 0);
    assert_eq!(server.script.gate.available_permits(), 1);
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let arguments = ["serve", "--memory", "--listen", "127.0.0.1:0"];
    let patient = ["--shutdown-timeout-seconds", "3600", "--stall-timeout-seconds", "3600"];
    let mut command = zenobe(&[&arguments[..], &patient].concat());
    for (first, second, code) in
        [(Signal::TERM, Signal::INT, 130), (Signal::INT, Signal::TERM, 143)]
    {
        let mut server = ServerProcess::launch(&mut command);
        let address = server.address();
        // Half a request, which the first signal waits for.
        let mut busy = Connection::open(address);
        let request = api_request(ECHO, "Expect: 100-continue\r\n", b"{}");
        assert_eq!(busy.send(&request[..request.len() - 2]).reply().status, 100);

        server.signal(first);
        wait_until(|| TcpStream::connect(address).is_err());
        assert!(server.is_running());
        server.signal(second);
        assert_eq!(server.wait().code(), Some(code));
    }
}
