//! Accepting connections, serving requests on each, and letting all of them finish.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::service::Service;
use super::stream::GuardedStream;
use crate::dispatch::Handler;
use crate::shutdown;

/// What the parser reads of a head before it gives up by itself. Heads between DynamoDB's bound and
/// this one get DynamoDB's answer.
const PARSER_BUFFER_SIZE_BYTES_MAX: usize = 64 * 1024;
/// Pause after a failed accept, which is mostly a lack of file descriptors that others must give back.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(50);
/// How long cut connections have to be gone. They are, unless one is in the middle of a long computation.
const CUT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub struct ConnectionOptions {
    pub connections_max: usize,
    /// How long a connection may be without a whole request head.
    pub idle_timeout: Duration,
    /// How long a peer may stall while an answer is being sent.
    pub stall_timeout: Duration,
    /// How long requests get to finish once the server is asked to stop.
    pub shutdown_timeout: Duration,
}

/// Serves until `shutdown` is triggered, then until the open requests are answered or their time is up.
/// Nothing is served any more once this returns.
pub async fn serve<H: Handler>(
    listener: TcpListener,
    service: Arc<Service<H>>,
    options: ConnectionOptions,
    mut shutdown: shutdown::Listener,
) {
    // One permit per connection. When they are used up, new connections wait in the kernel's queue.
    let permits = Arc::new(Semaphore::new(options.connections_max));
    let listening = shutdown.clone();
    let (cut, cutting) = shutdown::channel();
    tokio::select! {
        () = accept_all(&listener, &permits, &service, options, listening, cutting) => {}
        () = shutdown.stopped() => {}
    }
    drop(listener);
    let all = u32::try_from(options.connections_max).unwrap_or(u32::MAX);
    let finished = || permits.acquire_many(all);
    if tokio::time::timeout(options.shutdown_timeout, finished()).await.is_ok() {
        return;
    }
    let open = options.connections_max - permits.available_permits();
    tracing::warn!(open, "connections did not finish in time and are cut");
    cut.stop();
    if tokio::time::timeout(CUT_TIMEOUT, finished()).await.is_err() {
        let open = options.connections_max - permits.available_permits();
        tracing::warn!(open, "connections could not be cut");
    }
}

async fn accept_all<H: Handler>(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
    service: &Arc<Service<H>>,
    options: ConnectionOptions,
    shutdown: shutdown::Listener,
    cut: shutdown::Listener,
) {
    // The semaphore is never closed, so the loop ends only with its future.
    while let Ok(permit) = permits.clone().acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
                continue;
            }
        };
        let (service, shutdown, mut cut) = (service.clone(), shutdown.clone(), cut.clone());
        tokio::spawn(async move {
            let _counted = service.metrics.connection_opened();
            tokio::select! {
                () = serve_connection(stream, service.clone(), options, shutdown) => {}
                () = cut.stopped() => {}
            }
            drop(permit);
        });
    }
}

async fn serve_connection<H: Handler>(
    stream: TcpStream,
    service: Arc<Service<H>>,
    options: ConnectionOptions,
    mut shutdown: shutdown::Listener,
) {
    // Answers are written in one piece; waiting for more to send would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection is gone already");
        return;
    }
    let stream = GuardedStream::new(stream, options.stall_timeout);
    let answer = service_fn(|request| service.call(request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.idle_timeout)
        .max_buf_size(PARSER_BUFFER_SIZE_BYTES_MAX)
        // A client that closes its side still gets its answer, and a request that was read whole is
        // never dropped halfway because its client went away.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = std::pin::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = shutdown.stopped() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}
