//! Servers to load.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use zenobe_load::{Plan, Target, Workload};

/// A small plan that ends by count.
pub fn small_plan(endpoint: &str, workload: Workload) -> Plan {
    let target = Target::new(endpoint, "us-east-1", None).unwrap();
    let mut plan = Plan::new(target, workload);
    plan.items = 250;
    plan.connections = 4;
    plan.threads = 2;
    plan.operations_max = Some(300);
    // On a busy machine a server may take long; no test waits this long.
    plan.timeout = Duration::from_secs(120);
    plan
}

/// What a scripted server does with one request.
pub enum Reply {
    Send(Vec<u8>),
    SendAndClose(Vec<u8>),
    Close,
    /// Neither responds nor closes.
    Hang,
}

/// A server that gives `script`'s reply to the n-th request over all connections, without reading
/// it.
pub fn start_script(script: impl Fn(usize) -> Reply + Send + Sync + 'static) -> SocketAddr {
    start_script_over(script, |stream| stream)
}

/// Like [`start_script`], over streams that `wrap` creates from the accepted ones.
pub fn start_script_over<S: Read + Write>(
    script: impl Fn(usize) -> Reply + Send + Sync + 'static,
    wrap: impl Fn(TcpStream) -> S + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let shared = Arc::new((script, wrap, AtomicUsize::new(0)));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let shared = shared.clone();
            thread::spawn(move || {
                let (script, wrap, count) = &*shared;
                serve(wrap(stream.unwrap()), script, count);
            });
        }
    });
    address
}

fn serve(mut stream: impl Read + Write, script: &dyn Fn(usize) -> Reply, count: &AtomicUsize) {
    while read_request(&mut stream) {
        let number = count.fetch_add(1, Ordering::SeqCst);
        match script(number) {
            Reply::Send(bytes) => stream.write_all(&bytes).unwrap(),
            Reply::SendAndClose(bytes) => return stream.write_all(&bytes).unwrap(),
            Reply::Close => return,
            Reply::Hang => {
                // Until the client gives up.
                let _ = stream.read(&mut [0]);
                return;
            }
        }
    }
}

/// Reads one request to the end of its body. Returns false if the client is gone.
fn read_request(stream: &mut impl Read) -> bool {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return false;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.split("content-length:").nth(1).unwrap().lines().next().unwrap().trim();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).is_ok()
}

pub fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub fn error(status: u16, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
