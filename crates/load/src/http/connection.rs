//! A connection that reopens after the server has closed it.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::response::{Response, ResponseError, ResponseParser};
use super::transport::{Security, Transport};
use crate::target::Target;
use crate::{LoadError, Result};

const INPUT_BYTES: usize = 16 * 1024;

/// Opens connections to a target, spread over its addresses.
#[derive(Clone)]
pub struct Connector {
    endpoint: String,
    addresses: Arc<[SocketAddr]>,
    next: Arc<AtomicUsize>,
    security: Option<Security>,
}

impl Connector {
    pub fn new(target: &Target) -> Result<Connector> {
        let endpoint = target.to_string();
        let security =
            match target.secure {
                true => {
                    let security = Security::new(&target.host, target.certificates.as_deref());
                    Some(security.map_err(|error| LoadError::Security {
                        endpoint: endpoint.clone(),
                        error,
                    })?)
                }
                false => None,
            };
        let addresses = target.addresses()?.into();
        Ok(Connector { endpoint, addresses, next: Arc::default(), security })
    }

    pub async fn open(&self) -> Result<Connection> {
        let stream = self
            .connect()
            .await
            .map_err(|error| LoadError::Connect { endpoint: self.endpoint.clone(), error })?;
        Ok(Connection {
            connector: self.clone(),
            stream: Some(stream),
            used: false,
            input: Vec::with_capacity(INPUT_BYTES),
            reconnects: 0,
        })
    }

    /// Tries the addresses until one accepts: a name may resolve to an address where nobody
    /// listens.
    async fn connect(&self) -> io::Result<Transport> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let mut failure = None;
        for offset in 0..self.addresses.len() {
            let address = self.addresses[first.wrapping_add(offset) % self.addresses.len()];
            match Transport::open(address, self.security.as_ref()).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| io::Error::from(io::ErrorKind::NotFound)))
    }
}

pub struct Connection {
    connector: Connector,
    stream: Option<Transport>,
    /// Whether this stream has carried a response. Only then can its end mean that the server
    /// closed an idle connection.
    used: bool,
    input: Vec<u8>,
    /// How often the server closed the connection between two requests.
    pub reconnects: u64,
}

/// A complete response, still in the connection's buffer.
#[derive(Debug, Clone)]
pub struct Received {
    pub status: u16,
    /// See [`Connection::body`].
    pub body: Range<usize>,
    pub size_bytes: usize,
}

/// Why there is no response.
#[derive(Debug)]
pub enum Failure {
    Connect(io::Error),
    Broken(io::Error),
    Malformed(ResponseError),
}

impl Failure {
    /// The name under which the report counts the failure, next to the names of exceptions.
    pub fn name(&self) -> &'static str {
        match self {
            Failure::Connect(_) => "(connection refused)",
            Failure::Broken(_) => "(connection broken)",
            Failure::Malformed(_) => "(malformed answer)",
        }
    }

    pub fn into_io(self) -> io::Error {
        match self {
            Failure::Connect(error) | Failure::Broken(error) => error,
            Failure::Malformed(error) => io::Error::other(error),
        }
    }
}

impl Connection {
    /// Sends a complete request and waits for the complete response.
    #[inline]
    pub async fn exchange(&mut self, request: &[u8]) -> std::result::Result<Received, Failure> {
        if let Some(stream) = &mut self.stream {
            match attempt(stream, &mut self.input, request).await {
                Ok(response) => return Ok(self.received(response)),
                Err(failure) => {
                    self.stream = None;
                    let is_idle_end = self.used && self.input.is_empty();
                    if !(is_idle_end && matches!(failure, Failure::Broken(_))) {
                        return Err(failure);
                    }
                }
            }
        }
        self.exchange_anew(request).await
    }

    pub fn body(&self, received: &Received) -> &[u8] {
        &self.input[received.body.clone()]
    }

    async fn exchange_anew(&mut self, request: &[u8]) -> std::result::Result<Received, Failure> {
        self.reconnects += 1;
        self.used = false;
        let mut stream = self.connector.connect().await.map_err(Failure::Connect)?;
        let response = attempt(&mut stream, &mut self.input, request).await?;
        self.stream = Some(stream);
        Ok(self.received(response))
    }

    fn received(&mut self, response: Response) -> Received {
        self.used = true;
        if response.close {
            self.stream = None;
        }
        Received { status: response.status, body: response.body, size_bytes: self.input.len() }
    }
}

async fn attempt(
    stream: &mut Transport,
    input: &mut Vec<u8>,
    request: &[u8],
) -> std::result::Result<Response, Failure> {
    input.clear();
    stream.write_all(request).await.map_err(Failure::Broken)?;
    let mut parser = ResponseParser::default();
    loop {
        let count = stream.read(input).await.map_err(Failure::Broken)?;
        if count == 0 {
            return match input.is_empty() {
                true => Err(Failure::Broken(io::Error::from(io::ErrorKind::UnexpectedEof))),
                false => parser.end(input).map_err(Failure::Malformed),
            };
        }
        if let Some(response) = parser.advance(input).map_err(Failure::Malformed)? {
            return Ok(response);
        }
        if let Some(size) = parser.size_expected() {
            input.reserve(size - input.len());
        }
    }
}
