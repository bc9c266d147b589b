//! The first limit: a `hyper` server that reads each request and answers with a fixed body. It
//! shows what HTTP alone costs on this machine, with connections that stay on their threads like
//! the real server's.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZero;
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};

use crate::Result;
use crate::cleanup::Process;

/// A separate process, like the real server.
pub struct BareServer {
    process: Process,
    pub address: SocketAddr,
}

impl BareServer {
    /// Answers every request with `body`, which it reads from `file`.
    pub fn start(file: &Path, body: &str) -> Result<BareServer> {
        std::fs::write(file, body)?;
        let mut command = Command::new(std::env::current_exe()?);
        let process = Process::start(command.arg("bare").arg(file))?;
        Ok(BareServer { address: process.address()?, process })
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
    let count = std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = (0..count).map(|_| start_thread()).collect::<io::Result<Vec<Handle>>>()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("listening on http://{}", listener.local_addr()?);
    for thread in threads.iter().cycle() {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        thread.spawn(serve(stream, body.clone()));
    }
    Ok(())
}

fn start_thread() -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    Ok(handle)
}

async fn serve(stream: std::net::TcpStream, body: Bytes) {
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    let service = service_fn(move |request| answer(request, body.clone()));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A client that disconnects ends only its own connection.
    let _ = connection.await;
}

async fn answer(
    request: Request<Incoming>,
    body: Bytes,
) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    let _ = request.into_body().collect().await;
    Ok(Response::new(Full::new(body)))
}
