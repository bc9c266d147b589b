//! One HTTP/1.1 connection: sends exactly the given bytes, and reads whole responses.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::client::api_request;

/// A server that stays silent this long has failed.
const REPLY_TIME_MAX: Duration = Duration::from_secs(60);

pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// # Panics
    /// If nobody listens there.
    pub fn open(address: SocketAddr) -> Connection {
        Connection::connect(address)
            .unwrap_or_else(|error| panic!("cannot connect to {address}: {error}"))
    }

    /// # Errors
    /// If nobody listens there.
    pub fn connect(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_TIME_MAX))?;
        stream.set_write_timeout(Some(REPLY_TIME_MAX))?;
        Ok(Connection { stream: BufReader::new(stream) })
    }

    pub fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    /// # Panics
    /// If sending fails.
    pub fn send(&mut self, bytes: &[u8]) -> &mut Connection {
        self.try_send(bytes).expect("the connection takes a request");
        self
    }

    /// # Errors
    /// If sending fails.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Calls an operation as an SDK does.
    ///
    /// # Panics
    /// If no complete response arrives.
    pub fn call(&mut self, target: &str, body: &[u8]) -> Reply {
        self.send(&api_request(target, "", body)).reply()
    }

    /// Reads one complete response.
    ///
    /// # Panics
    /// If none arrives.
    pub fn reply(&mut self) -> Reply {
        self.try_reply().expect("a whole answer comes")
    }

    /// # Errors
    /// If no complete response arrives.
    pub fn try_reply(&mut self) -> io::Result<Reply> {
        read_reply(&mut self.stream)
    }

    /// Whether the server closes the connection without sending anything more.
    pub fn is_closed(&mut self) -> bool {
        match self.stream.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

/// One response from the server.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// `Null` when the body is empty or is not JSON.
    pub body: Value,
    pub bytes: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }

    /// The body, if it is text.
    ///
    /// # Panics
    /// If it is not.
    pub fn text(&self) -> String {
        String::from_utf8(self.bytes.clone()).expect("the body is text")
    }

    /// The short name of the exception, as clients read it: the part of `__type` after `#`.
    pub fn error(&self) -> Option<&str> {
        let name = self.body["__type"].as_str()?;
        Some(name.rsplit('#').next().unwrap_or(name))
    }

    /// The server's id for the request.
    ///
    /// # Panics
    /// If there is none; every response must have one.
    pub fn request_id(&self) -> &str {
        self.header("x-amzn-requestid").expect("every answer has an id")
    }

    pub fn is_success(&self) -> bool {
        self.status == 200
    }

    /// Whether the connection ends with this response.
    pub fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

fn read_reply(stream: &mut impl BufRead) -> io::Result<Reply> {
    let status_line = read_line(stream)?;
    let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| malformed("no status line"))?;
    let headers = read_headers(stream)?;
    let bytes = match read_body(stream, &headers)? {
        Some(bytes) => bytes,
        // "100 Continue" has no body.
        None if status < 200 => Vec::new(),
        None => return Err(malformed("no content length")),
    };
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Ok(Reply { status, headers, body, bytes })
}

/// The header lines up to the empty one, with their names in lower case.
pub(crate) fn read_headers(stream: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = read_line(stream)?;
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| malformed("no header"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

/// The body, if the headers give its length.
pub(crate) fn read_body(
    stream: &mut impl BufRead,
    headers: &[(String, String)],
) -> io::Result<Option<Vec<u8>>> {
    let Some(length) = find_header(headers, "content-length") else { return Ok(None) };
    let mut body = vec![0; length.parse().map_err(|_| malformed("no length"))?];
    stream.read_exact(&mut body)?;
    Ok(Some(body))
}

pub(crate) fn find_header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

pub(crate) fn read_line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_to_its_end_and_no_further() {
        let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 28\r\nX-A: b\r\n\r\n\
            {\"__type\":\"com.amazon#Oops\"}HTTP/1.1 200 OK\r\n";
        let mut stream = BufReader::new(&answer[..]);
        let reply = read_reply(&mut stream).unwrap();
        assert_eq!((reply.status, reply.error()), (400, Some("Oops")));
        assert_eq!(reply.header("x-a"), Some("b"));
        assert_eq!(read_line(&mut stream).unwrap(), "HTTP/1.1 200 OK");
    }

    #[test]
    fn only_an_answer_to_go_on_may_lack_a_length() {
        let read = |answer: &[u8]| read_reply(&mut BufReader::new(answer)).map(|it| it.status);
        assert_eq!(read(b"HTTP/1.1 100 Continue\r\n\r\n").ok(), Some(100));
        assert!(read(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn a_torn_reply_is_an_error() {
        let check = |answer: &[u8]| {
            let outcome = read_reply(&mut BufReader::new(answer));
            assert!(outcome.is_err(), "{outcome:?}");
        };
        check(b"");
        check(b"HTTP/1.1 200 OK\r\n");
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
    }
}
