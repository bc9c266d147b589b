//! The first yardstick: a `hyper` server that reads each request and answers a fixed body.

use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::Result;
use crate::workload::Operation;

/// The sizes of the bodies that the real server answers with.
#[derive(Debug, Clone, Copy)]
pub struct ResponseSizes {
    pub get_item: usize,
    pub put_item: usize,
}

/// One bare server per response size, each a process of its own like the real server.
pub struct BareServers {
    get_item: BareServer,
    put_item: BareServer,
}

impl BareServers {
    pub fn start(sizes: ResponseSizes) -> Result<BareServers> {
        Ok(BareServers {
            get_item: BareServer::start(sizes.get_item)?,
            put_item: BareServer::start(sizes.put_item)?,
        })
    }

    pub fn address(&self, operation: Operation) -> SocketAddr {
        match operation {
            Operation::GetItem => self.get_item.address,
            Operation::PutItem => self.put_item.address,
        }
    }
}

struct BareServer {
    process: Child,
    address: SocketAddr,
}

impl BareServer {
    fn start(body_bytes: usize) -> Result<BareServer> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("bare")
            .arg(body_bytes.to_string())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = process.stdout.take().expect("standard output is piped");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        Ok(BareServer { process, address: line.trim().parse()? })
    }
}

impl Drop for BareServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The child process: serves until it is killed.
pub fn run(body_bytes: usize) -> Result<()> {
    let body = Bytes::from(vec![b'x'; body_bytes]);
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
