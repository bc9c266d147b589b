//! The server itself, as a process started like a user starts it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Result;
use crate::client::Connection;
use crate::report::median;
use crate::subjects::bare::ResponseSizes;
use crate::workload::{self, STREAMED_TABLE, TABLE};

const LOAD_CONNECTIONS: u64 = 64;
const START_SAMPLES: usize = 5;
const IDLE_SETTLE: Duration = Duration::from_secs(1);

/// Builds the server in release mode and returns the binary's path.
pub fn build() -> Result<PathBuf> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()))
        .args(["build", "--release", "--package", "zenobe"])
        .status()?;
    if !status.success() {
        return Err("the server does not build".into());
    }
    // The benchmark's own binary lies in the same directory.
    let directory = std::env::current_exe()?;
    Ok(directory.parent().ok_or("no directory")?.join("zenobe"))
}

pub struct Server {
    process: Child,
    pub address: SocketAddr,
}

impl Server {
    pub fn start(binary: &Path, data: &Path, durability: &str) -> Result<Server> {
        let mut process = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--durability", durability, "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .spawn()?;
        let output = process.stdout.take().expect("standard output is piped");
        let address = read_address(BufReader::new(output))?;
        Ok(Server { process, address })
    }

    /// Creates the table and puts `items` items.
    pub fn load(&self, table: &'static str, items: u64) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut connection = Connection::open(self.address).await?;
            let create = create_table(table, table == STREAMED_TABLE);
            connection.request("CreateTable", create.as_bytes()).await?;
            let mut tasks = tokio::task::JoinSet::new();
            for worker in 0..LOAD_CONNECTIONS {
                let mut connection = Connection::open(self.address).await?;
                tasks.spawn(async move {
                    let mut body = Vec::new();
                    for number in (worker..items).step_by(LOAD_CONNECTIONS as usize) {
                        body.clear();
                        workload::write_put(table, &workload::key(number), 0, &mut body);
                        connection.request("PutItem", &body).await?;
                    }
                    Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
                });
            }
            while let Some(done) = tasks.join_next().await {
                done??;
            }
            Ok(())
        })
    }

    pub fn response_sizes(&self) -> Result<ResponseSizes> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut connection = Connection::open(self.address).await?;
            let get = format!(
                r#"{{"TableName":"{TABLE}","Key":{{"pk":{{"S":"{}"}}}}}}"#,
                workload::key(0)
            );
            let get_item = connection.request("GetItem", get.as_bytes()).await?.len();
            let mut put = Vec::new();
            workload::write_put(TABLE, &workload::key(0), 0, &mut put);
            let put_item = connection.request("PutItem", &put).await?.len();
            Ok(ResponseSizes { get_item, put_item })
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// CreateTable's body for a table with a string key, with a stream if so wished.
pub fn create_table(table: &str, streamed: bool) -> String {
    let stream = match streamed {
        true => {
            r#","StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}"#
        }
        false => "",
    };
    format!(
        r#"{{"TableName":"{table}","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{{"AttributeName":"pk","AttributeType":"S"}}],"KeySchema":[{{"AttributeName":"pk","KeyType":"HASH"}}]{stream}}}"#
    )
}

/// How the server starts and rests with an empty store.
pub struct Start {
    pub ready_ms: f64,
    pub idle_memory_mb: f64,
}

pub fn measure_start(binary: &Path) -> Result<Start> {
    let mut ready_ms = Vec::new();
    let mut idle_memory_mb = 0.0;
    for sample in 0..START_SAMPLES {
        let directory = tempfile::tempdir()?;
        let start = Instant::now();
        let server = Server::start(binary, &directory.path().join("data"), "sync")?;
        answer_health(server.address)?;
        ready_ms.push(start.elapsed().as_secs_f64() * 1000.0);
        if sample + 1 == START_SAMPLES {
            std::thread::sleep(IDLE_SETTLE);
            idle_memory_mb = resident_memory_mb(server.process.id())?;
        }
    }
    Ok(Start { ready_ms: median(ready_ms.into_iter()), idle_memory_mb })
}

fn answer_health(address: SocketAddr) -> Result<()> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address)?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(answer.into()) }
}

fn resident_memory_mb(process: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    let kilobytes: f64 = line.split_whitespace().nth(1).ok_or("no VmRSS figure")?.parse()?;
    Ok(kilobytes / 1024.0)
}

/// The server prints where it listens; standard output is read on so that it never blocks.
fn read_address(mut output: impl BufRead + Send + 'static) -> Result<SocketAddr> {
    let mut line = String::new();
    while output.read_line(&mut line)? > 0 {
        if let Some(at) = line.find("http://") {
            let rest = &line[at + "http://".len()..];
            let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
            let address = rest[..end.unwrap_or(rest.len())].parse()?;
            std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
            return Ok(address);
        }
        line.clear();
    }
    Err("the server ended before it listened".into())
}
