//! An HTTP server inside a test that treats each request as the test's script says.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::connection::{find_header, read_body, read_headers, read_line};

/// A request as the server received it.
#[derive(Clone, Debug)]
pub struct ScriptedRequest {
    /// How many requests came before it, over all connections.
    pub number: usize,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ScriptedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }

    /// The operation of the API that it calls, such as `PutItem`.
    pub fn operation(&self) -> Option<&str> {
        self.header("x-amz-target")?.rsplit('.').next()
    }
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub enum ScriptedReply {
    /// Sends exactly these bytes.
    Send(Vec<u8>),
    SendAndClose(Vec<u8>),
    Close,
    /// Neither responds nor closes, until the client closes.
    Hang,
}

impl ScriptedReply {
    /// A complete response.
    pub fn response(status: u16, body: &str) -> ScriptedReply {
        ScriptedReply::Send(http_response(status, body))
    }
}

/// The bytes of a complete response.
pub fn http_response(status: u16, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Starts a server on loopback that runs until the test ends.
///
/// # Panics
/// If it can't listen.
pub fn start_scripted_server(
    script: impl Fn(&ScriptedRequest) -> ScriptedReply + Send + Sync + 'static,
) -> SocketAddr {
    start_scripted_server_over(script, |stream| stream)
}

/// Like [`start_scripted_server`], over streams that `wrap` makes of the accepted ones.
///
/// # Panics
/// If it can't listen.
pub fn start_scripted_server_over<S: Read + Write>(
    script: impl Fn(&ScriptedRequest) -> ScriptedReply + Send + Sync + 'static,
    wrap: impl Fn(TcpStream) -> S + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("the address of a listener");
    let shared = Arc::new((script, wrap, AtomicUsize::new(0)));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (script, wrap, count) = &*shared;
                // A client may close whenever it likes.
                let _ = serve(wrap(stream), script, count);
            });
        }
    });
    address
}

/// Serves one connection until either side closes it.
fn serve(
    stream: impl Read + Write,
    script: &dyn Fn(&ScriptedRequest) -> ScriptedReply,
    count: &AtomicUsize,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let request_line = read_line(&mut stream)?;
        let path = request_line.split(' ').nth(1).unwrap_or_default().to_owned();
        let headers = read_headers(&mut stream)?;
        let body = read_body(&mut stream, &headers)?.unwrap_or_default();
        let number = count.fetch_add(1, Ordering::SeqCst);
        match script(&ScriptedRequest { number, path, headers, body }) {
            ScriptedReply::Send(bytes) => stream.get_mut().write_all(&bytes)?,
            ScriptedReply::SendAndClose(bytes) => return stream.get_mut().write_all(&bytes),
            ScriptedReply::Close => return Ok(()),
            ScriptedReply::Hang => return stream.read(&mut [0]).map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Client;

    #[test]
    fn each_request_is_numbered_and_answered_by_the_script() {
        let address = start_scripted_server(|request| match request.number {
            0 => ScriptedReply::response(400, &request.body.len().to_string()),
            1 => ScriptedReply::Close,
            _ => ScriptedReply::response(200, &format!("{:?}", request.operation())),
        });
        let mut client = Client::new(address);
        let mut call =
            || client.call("PutItem", &json!({})).map(|reply| (reply.status, reply.text()));
        assert_eq!(call().unwrap(), (400, "2".to_owned()));
        assert!(call().is_err());
        assert_eq!(call().unwrap(), (200, r#"Some("PutItem")"#.to_owned()));
    }
}
