//! Stopping: no new connections, open requests finish, and the wait is bounded.

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::{Connection, ECHO, TestOptions, TestServer, WAIT, api_request, wait_until};

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
    // The connection is gone, and so is the request: nobody waits for the gate any more.
    server.script.gate.add_permits(1);
    assert!(busy.is_closed());
    assert_eq!(server.script.finished_waits.load(Ordering::SeqCst), 0);
    assert_eq!(server.script.gate.available_permits(), 1);
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zenobe"));
    command.args(["serve", "--memory", "--listen", "127.0.0.1:0"]);
    command.args(["--shutdown-timeout-seconds", "3600", "--stall-timeout-seconds", "3600"]);
    for (first, second, code) in [("-TERM", "-INT", 130), ("-INT", "-TERM", 143)] {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut welcome = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut welcome).unwrap();
        let (_, address) = welcome.trim().rsplit_once("http://").unwrap();
        let address: SocketAddr = address.parse().unwrap();
        // Half a request, which the first signal waits for.
        let mut busy = Connection::open(address);
        let request = api_request(ECHO, "Expect: 100-continue\r\n", b"{}");
        assert_eq!(busy.send(&request[..request.len() - 2]).reply().status(), 100);

        let pid = child.id().to_string();
        let send = |signal: &str| Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(send(first).success());
        wait_until(|| TcpStream::connect(address).is_err());
        assert!(child.try_wait().unwrap().is_none());
        assert!(send(second).success());
        let child = RefCell::new(child);
        wait_until(|| child.borrow_mut().try_wait().unwrap().is_some());
        assert_eq!(child.borrow_mut().wait().unwrap().code(), Some(code));
    }
}
