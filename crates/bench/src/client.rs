//! A closed-loop HTTP/1.1 load generator, small enough that the server is the bottleneck: requests are rendered into one
//! buffer per connection, responses are only framed and their status checked.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Result;
use crate::workload::Workload;

/// What one measurement yields.
#[derive(Debug, Clone)]
pub struct Sample {
    pub requests_per_second: f64,
    pub latency_us: Histogram<u64>,
}

impl Sample {
    pub fn new(latency_us: Histogram<u64>, elapsed: Duration) -> Sample {
        Sample { requests_per_second: latency_us.len() as f64 / elapsed.as_secs_f64(), latency_us }
    }
}

pub fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are valid")
}

/// Runs the workload on its number of connections for `duration`.
pub fn measure(
    address: SocketAddr,
    table: &'static str,
    workload: &Workload,
    items: u64,
    duration: Duration,
) -> Result<Sample> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut connections = Vec::new();
        for _ in 0..workload.connections {
            connections.push(Connection::open(address).await?);
        }
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for (number, connection) in connections.into_iter().enumerate() {
            let random = SmallRng::seed_from_u64(number as u64);
            tasks.spawn(drive(connection, table, *workload, random, items, start + duration));
        }
        let mut latency_us = empty_histogram();
        while let Some(histogram) = tasks.join_next().await {
            latency_us.add(histogram??)?;
        }
        Ok(Sample::new(latency_us, start.elapsed()))
    })
}

async fn drive(
    mut connection: Connection,
    table: &'static str,
    workload: Workload,
    mut random: SmallRng,
    items: u64,
    end: Instant,
) -> Result<Histogram<u64>> {
    let mut histogram = empty_histogram();
    let mut body = Vec::new();
    let mut now = Instant::now();
    while now < end {
        body.clear();
        workload.write_body(table, &mut random, items, &mut body);
        connection.request(workload.operation.name(), &body).await?;
        let after = Instant::now();
        histogram.saturating_record((after - now).as_micros() as u64);
        now = after;
    }
    Ok(histogram)
}

pub struct Connection {
    stream: TcpStream,
    output: Vec<u8>,
    input: Vec<u8>,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, output: Vec::new(), input: Vec::with_capacity(16 * 1024) })
    }

    /// Sends one request and returns the response's body; any status but 200 is an error.
    pub async fn request(&mut self, operation: &str, body: &[u8]) -> Result<&[u8]> {
        self.output.clear();
        self.output.extend_from_slice(
            format!(
                "POST / HTTP/1.1\r\n\
                 Host: 127.0.0.1\r\n\
                 Content-Type: application/x-amz-json-1.0\r\n\
                 X-Amz-Target: DynamoDB_20120810.{operation}\r\n\
                 X-Amz-Date: 20260101T000000Z\r\n\
                 Authorization: AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00\r\n\
                 Content-Length: {}\r\n\r\n",
                body.len()
            )
            .as_bytes(),
        );
        self.output.extend_from_slice(body);
        self.stream.write_all(&self.output).await?;
        let (head_size, body_size) = self.read_response().await?;
        if !self.input.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&self.input).into_owned().into());
        }
        Ok(&self.input[head_size..head_size + body_size])
    }

    /// Reads until one response is complete; returns the sizes of its head and body.
    async fn read_response(&mut self) -> Result<(usize, usize)> {
        self.input.clear();
        loop {
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err("the server closed the connection".into());
            }
            let Some(head_size) = find(&self.input, b"\r\n\r\n").map(|at| at + 4) else { continue };
            let body_size = content_length(&self.input[..head_size])?;
            while self.input.len() < head_size + body_size {
                if self.stream.read_buf(&mut self.input).await? == 0 {
                    return Err("the server closed the connection within a response".into());
                }
            }
            return Ok((head_size, body_size));
        }
    }
}

fn content_length(head: &[u8]) -> Result<usize> {
    let head = std::str::from_utf8(head)?;
    let line = head
        .split("\r\n")
        .find(|line| {
            line.len() > 15 && line.as_bytes()[..15].eq_ignore_ascii_case(b"content-length:")
        })
        .ok_or("a response without a content length")?;
    Ok(line[15..].trim().parse()?)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
