//! Accepts connections, serves requests on each, and lets all of them finish.

use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::guarded_stream::GuardedStream;
use super::peer_connections::PeerConnections;
use super::service::Service;
use super::timer::ConnectionTimer;
use super::workers::Workers;
use crate::dispatch::Handler;
use crate::shutdown;

/// How much of a head the parser reads before it gives up. Heads between DynamoDB's limit and this
/// one get DynamoDB's response.
const PARSER_BUFFER_SIZE_BYTES_MAX: usize = 64 * 1024;
/// The pause after a failed accept. The usual cause is a lack of file descriptors, which others
/// must release.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(50);
/// How long to wait for connections that were cut. They end at once, unless one is in the middle of
/// a long computation.
const CUT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub struct ConnectionOptions {
    pub connections_max: usize,
    /// The most connections that one peer may have. `None` allows another machine half of them,
    /// and this machine all.
    pub connections_per_peer_max: Option<usize>,
    /// How long a connection may be without a complete request head.
    pub idle_timeout: Duration,
    /// How long a peer may stall while a response is being sent.
    pub stall_timeout: Duration,
    /// How long requests may take to finish once the server is asked to stop.
    pub shutdown_timeout: Duration,
}

/// Serves until `shutdown` is triggered, then until the open requests are answered or their time is
/// up. Once this returns, nothing is being served.
pub async fn serve<H: Handler>(
    listener: TcpListener,
    workers: Workers,
    service: Arc<Service<H>>,
    options: ConnectionOptions,
    mut shutdown: shutdown::Listener,
) {
    let mut connections = JoinSet::new();
    let listening = shutdown.clone();
    tokio::select! {
        () = accept_all(&listener, &workers, &mut connections, &service, options, listening) => {}
        () = shutdown.stopped() => {}
    }
    drop(listener);
    if tokio::time::timeout(options.shutdown_timeout, ended(&mut connections)).await.is_ok() {
        return;
    }
    let open = connections.len();
    tracing::warn!(open, "connections did not finish in time; closing them");
    connections.abort_all();
    if tokio::time::timeout(CUT_TIMEOUT, ended(&mut connections)).await.is_err() {
        tracing::warn!(open = connections.len(), "connections could not be closed");
    }
}

async fn ended(connections: &mut JoinSet<()>) {
    while connections.join_next().await.is_some() {}
}

/// Runs until it is dropped.
async fn accept_all<H: Handler>(
    listener: &TcpListener,
    workers: &Workers,
    connections: &mut JoinSet<()>,
    service: &Arc<Service<H>>,
    options: ConnectionOptions,
    shutdown: shutdown::Listener,
) {
    let peers = PeerConnections::new(&options);
    loop {
        // At the maximum, new connections wait in the kernel's queue.
        let may_accept = connections.len() < options.connections_max;
        let accepted = tokio::select! {
            accepted = listener.accept(), if may_accept => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let (stream, place) = match accepted {
            Ok((stream, address)) => match peers.place(address.ip()) {
                Some(place) => (stream, place),
                // Letting it wait would block the connections behind it.
                None => {
                    service.metrics.connection_refused();
                    continue;
                }
            },
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
                continue;
            }
        };
        let (service, shutdown) = (service.clone(), shutdown.clone());
        let served = workers.serve(connections, stream, move |stream| async move {
            let _counted = (service.metrics.connection_opened(), place);
            serve_connection(stream, service.clone(), options, shutdown).await;
        });
        if let Err(error) = served {
            tracing::warn!(%error, "a connection cannot be served");
        }
    }
}

async fn serve_connection<H: Handler>(
    stream: TcpStream,
    service: Arc<Service<H>>,
    options: ConnectionOptions,
    mut shutdown: shutdown::Listener,
) {
    // Responses are written in one piece; waiting for more data would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection was already closed");
        return;
    }
    let stream = GuardedStream::new(stream, options.stall_timeout, service.body_memory.clone());
    let answer = service_fn(|request| service.call(request));
    let connection = http1::Builder::new()
        .timer(ConnectionTimer::default())
        .header_read_timeout(options.idle_timeout)
        .max_buf_size(PARSER_BUFFER_SIZE_BYTES_MAX)
        // A client that closes its sending side still gets its response, and a request that was
        // read completely is never dropped halfway because its client went away.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = std::pin::pin!(connection);
    let result = tokio::select! {
        biased;
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
