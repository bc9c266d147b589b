//! A minimal client of the wire protocol: one connection, one request at a time, no retries.
//!
//! The SDK retries, validates and hides; these tests must know exactly which request was
//! acknowledged. It is also far cheaper, which leaves the machine to the server under load.

use std::net::SocketAddr;
use std::{fmt, io};

use serde_json::Value;

use crate::connection::{Connection, Reply};

/// Well formed, but signed with no real key: servers on loopback accept any credentials.
pub const AUTHORIZATION: &str = "AWS4-HMAC-SHA256 \
    Credential=test/20260101/us-east-1/dynamodb/aws4_request, \
    SignedHeaders=content-type;host;x-amz-date;x-amz-target, \
    Signature=0000000000000000000000000000000000000000000000000000000000000000";
const DATE: &str = "20260101T000000Z";

/// One keep-alive connection to a server, opened on first use and again after a failure.
pub struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Client {
        Client { address, connection: None }
    }

    /// Closes the connection. The next call opens another.
    pub fn disconnect(&mut self) {
        self.connection = None;
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

    /// Like [`Client::call`], for any target, also one of another service.
    pub fn call_target(&mut self, target: &str, body: &Value) -> Result<Reply, ClientError> {
        self.call_with(target, "", body)
    }

    /// Like [`Client::call_target`], with further header lines.
    pub fn call_with(
        &mut self,
        target: &str,
        more_headers: &str,
        body: &Value,
    ) -> Result<Reply, ClientError> {
        self.exchange(&api_request(target, more_headers, body.to_string().as_bytes()))
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
        let lines: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let headers = format!("Host: {}\r\n{lines}", self.address);
        self.exchange(&request(&format!("{method} {path}"), &headers, body))
    }

    fn exchange(&mut self, request: &[u8]) -> Result<Reply, ClientError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::connect(self.address).map_err(ClientError::Connect)?,
        };
        connection.try_send(request).map_err(ClientError::Exchange)?;
        let reply = connection.try_reply().map_err(ClientError::Exchange)?;
        // After a failure the connection may hold half a response, so it is kept only here.
        self.connection = (!reply.closes()).then_some(connection);
        Ok(reply)
    }
}

/// A request to the API as an SDK sends it, with further header lines.
pub fn api_request(target: &str, more_headers: &str, body: &[u8]) -> Vec<u8> {
    let headers = format!(
        "Host: localhost\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Date: {DATE}\r\n\
         Authorization: {AUTHORIZATION}\r\nX-Amz-Target: {target}\r\n{more_headers}"
    );
    request("POST /", &headers, body)
}

fn request(method_and_path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("{method_and_path} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
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
