//! The first limit: a `hyper` server that reads each request and answers a fixed body. What HTTP alone costs on this
//! machine, in the way that hyper and tokio are commonly used.

use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::Result;
use crate::cleanup::Process;

/// A process of its own, like the real server.
pub struct BareServer {
    process: Process,
    pub address: SocketAddr,
}

impl BareServer {
    /// Answers everything with `body`, which it reads from `file`.
    pub fn start(file: &Path, body: &str) -> Result<BareServer> {
        std::fs::write(file, body)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("bare").arg(file).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = Process::start(&mut command)?;
        let mut line = String::new();
        BufReader::new(process.take_output()?).read_line(&mut line)?;
        Ok(BareServer { process, address: line.trim().parse()? })
    }
}

impl BareServer {
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

/// The child process: serves until it is killed.
pub fn run(body: &Path) -> Result<()> {
    let body = Bytes::from(std::fs::read(body)?);
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let body = body.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| answer(request, body.clone()));
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                // A client that goes away ends its connection, nothing else.
                let _ = connection.await;
            });
        }
    })
}

async fn answer(
    request: Request<Incoming>,
    body: Bytes,
) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    let _ = request.into_body().collect().await;
    Ok(Response::new(Full::new(body)))
}
