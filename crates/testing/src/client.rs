//! A minimal client of the wire protocol: one connection, one request at a time, no retries.
//!
//! The SDK retries, validates and hides; these tests must know exactly which request was
//! acknowledged. It is also far cheaper, which leaves the machine to the server under load.

use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Map, Value};

/// A server that stays silent this long has failed.
const REPLY_TIME_MAX: Duration = Duration::from_secs(60);

/// Well formed, but signed with no real key: servers on loopback accept any credentials.
const AUTHORIZATION: &str = "AWS4-HMAC-SHA256 \
    Credential=test/20260101/us-east-1/dynamodb/aws4_request, \
    SignedHeaders=content-type;host;x-amz-date;x-amz-target, \
    Signature=0000000000000000000000000000000000000000000000000000000000000000";
const DATE: &str = "20260101T000000Z";

/// One keep-alive connection to a server, opened on first use and again after a failure.
pub struct Client {
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Client {
        Client { address, connection: None }
    }

    /// Calls `DynamoDB_20120810.<operation>`. `Err` means that no complete response arrived: the
    /// request may or may not have taken effect.
    pub fn call(&mut self, operation: &str, body: &Value) -> Result<Reply, ClientError> {
        self.call_target(&format!("DynamoDB_20120810.{operation}"), body)
    }

    /// Like [`Client::call`], for `DynamoDBStreams_20120810.<operation>`.
    pub fn call_streams(&mut self, operation: &str, body: &Value) -> Result<Reply, ClientError> {
        self.call_target(&format!("DynamoDBStreams_20120810.{operation}"), body)
    }

    fn call_target(&mut self, target: &str, body: &Value) -> Result<Reply, ClientError> {
        let headers = [
            ("Content-Type", "application/x-amz-json-1.0"),
            ("X-Amz-Target", target),
            ("X-Amz-Date", DATE),
            ("Authorization", AUTHORIZATION),
        ];
        self.send("POST", "/", &headers, body.to_string().as_bytes())
    }

    /// Calls an operation that must succeed.
    ///
    /// # Panics
    /// If it does not.
    pub fn expect(&mut self, operation: &str, body: &Value) -> Value {
        let reply =
            self.call(operation, body).unwrap_or_else(|error| panic!("{operation}: {error}"));
        assert_eq!(reply.status, 200, "{operation} {body} answers {}", reply.body);
        reply.body
    }

    /// Sends an arbitrary request. Adds `Host` and `Content-Length`.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Reply, ClientError> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        let outcome = self.exchange(&[head.as_bytes(), body].concat());
        // After a failure the connection may hold half a response.
        if outcome.as_ref().map_or(true, |reply| reply.closes) {
            self.connection = None;
        }
        outcome
    }

    fn exchange(&mut self, request: &[u8]) -> Result<Reply, ClientError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(connect(self.address).map_err(ClientError::Connect)?),
        };
        connection.get_mut().write_all(request).map_err(ClientError::Exchange)?;
        read_reply(connection)
    }
}

fn connect(address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(REPLY_TIME_MAX))?;
    Ok(BufReader::new(stream))
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
    closes: bool,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
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
}

/// Why no complete response arrived.
#[derive(Debug)]
pub enum ClientError {
    /// Nothing was sent.
    Connect(io::Error),
    /// The request may have taken effect.
    Exchange(io::Error),
}

impl fmt::Display for ClientError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Connect(error) => write!(formatter, "cannot connect: {error}"),
            ClientError::Exchange(error) => write!(formatter, "no whole answer: {error}"),
        }
    }
}

impl std::error::Error for ClientError {}

fn read_reply(connection: &mut impl BufRead) -> Result<Reply, ClientError> {
    let malformed = |what| ClientError::Exchange(io::Error::new(io::ErrorKind::InvalidData, what));
    let status_line = read_line(connection)?;
    let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| malformed("no status line"))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(connection)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| malformed("no header"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let value_of = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    let length = value_of("content-length").and_then(|text| text.parse().ok());
    let mut bytes = vec![0; length.ok_or_else(|| malformed("no content length"))?];
    connection.read_exact(&mut bytes).map_err(ClientError::Exchange)?;
    let closes = value_of("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Ok(Reply { status, headers, body, bytes, closes })
}

fn read_line(connection: &mut impl BufRead) -> Result<String, ClientError> {
    let mut line = String::new();
    if connection.read_line(&mut line).map_err(ClientError::Exchange)? == 0 {
        return Err(ClientError::Exchange(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Builds an item from plain JSON: strings become `S`, numbers `N`, booleans `BOOL`, null `NULL`,
/// arrays `L`, objects `M`.
pub fn json_item(plain: &Value) -> Value {
    let members = plain.as_object().expect("an item is an object");
    Value::Object(members.iter().map(|(name, value)| (name.clone(), attribute(value))).collect())
}

fn attribute(plain: &Value) -> Value {
    let (kind, value) = match plain {
        Value::String(text) => ("S", Value::String(text.clone())),
        Value::Number(number) => ("N", Value::String(number.to_string())),
        Value::Bool(flag) => ("BOOL", Value::Bool(*flag)),
        Value::Null => ("NULL", Value::Bool(true)),
        Value::Array(elements) => ("L", elements.iter().map(attribute).collect()),
        Value::Object(_) => ("M", json_item(plain)),
    };
    Value::Object(Map::from_iter([(kind.to_owned(), value)]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
    fn a_torn_reply_is_an_error() {
        let check = |answer: &[u8]| {
            let outcome = read_reply(&mut BufReader::new(answer));
            assert!(matches!(outcome, Err(ClientError::Exchange(_))), "{outcome:?}");
        };
        check(b"");
        check(b"HTTP/1.1 200 OK\r\n");
        check(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
    }

    #[test]
    fn plain_json_becomes_an_item() {
        let plain = json!({"a": "x", "b": 1, "c": [true, null], "d": {"e": 2}});
        let expected = json!({
            "a": {"S": "x"},
            "b": {"N": "1"},
            "c": {"L": [{"BOOL": true}, {"NULL": true}]},
            "d": {"M": {"e": {"N": "2"}}},
        });
        assert_eq!(json_item(&plain), expected);
    }
}
