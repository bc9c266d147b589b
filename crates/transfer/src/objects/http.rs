//! The HTTP client below the object stores: hyper over TCP or TLS, with a few idle connections kept for the requests that
//! follow.
//!
//! `object_store` brings reqwest as its client, and with it about forty crates that nothing else here needs. It asks for no more
//! than one function, from a request to a response, and repeats requests by itself.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, HeaderValue};
use hyper::rt::{Read, Write};
use hyper::{Method, Uri};
use hyper_util::rt::TokioIo;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// How long to wait for a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for the head of a response, from the first byte of its request on.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);
/// How long a response's body may make no progress.
const STALL_PATIENCE: Duration = Duration::from_secs(30);
/// How many connections to one host are kept for later.
const IDLE_CONNECTIONS_MAX: usize = 16;

type Sender = SendRequest<HttpRequestBody>;

#[derive(Debug)]
pub struct HyperConnector;

impl HttpConnector for HyperConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Client { idle: Arc::default() }))
    }
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Origin {
    is_secure: bool,
    host: String,
    port: u16,
}

impl Origin {
    fn of(uri: &Uri) -> Option<Origin> {
        let is_secure = uri.scheme_str()? == "https";
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        // IPv6 addresses have brackets in URLs only.
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
        Some(Origin { is_secure, host: host.to_owned(), port })
    }
}

struct Client {
    idle: Arc<Mutex<HashMap<Origin, Vec<Sender>>>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client").finish_non_exhaustive()
    }
}

impl HttpService for Client {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> BoxFuture<'b, Result<HttpResponse, HttpError>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let exchange = timeout(ANSWER_PATIENCE, self.exchange(request)).await;
            exchange.unwrap_or_else(|elapsed| Err(HttpError::new(HttpErrorKind::Timeout, elapsed)))
        })
    }
}

impl Client {
    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (target, mut request) = address(request)?;
        // The host may close a connection that is idle, also while a request is on its way. What was not sent, and what does
        // the same when it is done twice, goes to the next connection.
        while let Some(mut sender) = self.take_idle(&target) {
            let again = (request.method() != Method::POST).then(|| request.clone());
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(self.response(response, target, sender)),
                Err(mut failed) => match failed.take_message().or(again) {
                    Some(unanswered) => request = unanswered,
                    None => return Err(http_error(failed.into_error())),
                },
            }
        }
        let mut sender = connect(&target).await?;
        let response = sender.send_request(request).await.map_err(http_error)?;
        Ok(self.response(response, target, sender))
    }

    fn take_idle(&self, target: &Origin) -> Option<Sender> {
        let mut idle = self.idle.lock();
        let senders = idle.get_mut(target)?;
        while let Some(sender) = senders.pop() {
            if sender.is_ready() {
                return Some(sender);
            }
        }
        None
    }

    fn response(
        &self,
        response: hyper::Response<Incoming>,
        target: Origin,
        sender: Sender,
    ) -> HttpResponse {
        let idle = Arc::clone(&self.idle);
        response.map(|incoming| {
            HttpResponseBody::new(ResponseBody {
                incoming,
                stall: Box::pin(sleep(STALL_PATIENCE)),
                connection: Some((target, Mutex::new(sender))),
                idle,
            })
        })
    }
}

/// The request as HTTP/1.1 sends it: with a path, and the host in a header.
fn address(mut request: HttpRequest) -> Result<(Origin, HttpRequest), HttpError> {
    let unusable = || {
        let text = format!("`{}` is not a URL of an object store", request.uri());
        HttpError::new_boxed(HttpErrorKind::Unknown, text.into())
    };
    let target = Origin::of(request.uri()).ok_or_else(unusable)?;
    let authority = request.uri().authority().ok_or_else(unusable)?;
    // As it was signed: without credentials, which a URL may contain, and without a default port.
    let host = authority.as_str().rsplit_once('@').map_or(authority.as_str(), |(_, host)| host);
    let host = HeaderValue::from_str(host).map_err(|_| unusable())?;
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let path: Uri = path.parse().map_err(|_| unusable())?;
    *request.uri_mut() = path;
    request.headers_mut().entry(HOST).or_insert(host);
    Ok((target, request))
}

async fn connect(target: &Origin) -> Result<Sender, HttpError> {
    let connecting = async {
        let stream = TcpStream::connect((target.host.as_str(), target.port)).await?;
        // Without it the last packet of a request may wait for an acknowledgement.
        let _ = stream.set_nodelay(true);
        if !target.is_secure {
            return Ok(start(TokioIo::new(stream)).await);
        }
        let name = ServerName::try_from(target.host.clone()).map_err(std::io::Error::other)?;
        let tls = TlsConnector::from(tls_configuration()?);
        Ok(start(TokioIo::new(tls.connect(name, stream).await?)).await)
    };
    match timeout(CONNECT_PATIENCE, connecting).await {
        Ok(Ok(started)) => started.map_err(http_error),
        Ok(Err(error)) => Err::<Sender, std::io::Error>(error)
            .map_err(|error| HttpError::new(HttpErrorKind::Connect, error)),
        Err(elapsed) => Err(HttpError::new(HttpErrorKind::Connect, elapsed)),
    }
}

async fn start<T>(stream: T) -> hyper::Result<Sender>
where
    T: Read + Write + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(stream).await?;
    // Its errors show in the exchange. It ends when the sender is dropped, or the host closes it.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

/// Trusts the authorities that this machine trusts, or public ones if it names none: containers often lack certificates.
fn tls_configuration() -> std::io::Result<Arc<ClientConfig>> {
    static CONFIGURATION: Mutex<Option<Arc<ClientConfig>>> = Mutex::new(None);
    let mut made = CONFIGURATION.lock();
    if let Some(configuration) = &*made {
        return Ok(Arc::clone(configuration));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let configuration = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(std::io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::clone(made.insert(Arc::new(configuration))))
}

/// A body that keeps its connection for later once it has been read to its end.
struct ResponseBody {
    incoming: Incoming,
    stall: Pin<Box<Sleep>>,
    /// The lock is never contended: bodies must be `Sync`, and the sender is not.
    connection: Option<(Origin, Mutex<Sender>)>,
    idle: Arc<Mutex<HashMap<Origin, Vec<Sender>>>>,
}

impl ResponseBody {
    fn keep_connection(&mut self) {
        let Some((target, sender)) = self.connection.take() else { return };
        let mut idle = self.idle.lock();
        let senders = idle.entry(target).or_default();
        senders.retain(|sender| !sender.is_closed());
        if senders.len() < IDLE_CONNECTIONS_MAX {
            senders.push(sender.into_inner());
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let frame = match Pin::new(&mut self.incoming).poll_frame(context) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                ready!(self.stall.as_mut().poll(context));
                let text = format!("no data for {} s", STALL_PATIENCE.as_secs());
                let stalled = HttpError::new_boxed(HttpErrorKind::Timeout, text.into());
                return Poll::Ready(Some(Err(stalled)));
            }
        };
        let deadline = tokio::time::Instant::now() + STALL_PATIENCE;
        self.stall.as_mut().reset(deadline);
        if frame.is_none() || self.incoming.is_end_stream() {
            self.keep_connection();
        }
        Poll::Ready(frame.map(|frame| frame.map_err(http_error)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// The kind tells `object_store` whether to repeat the request.
fn http_error(error: hyper::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_closed() || error.is_canceled() || error.is_incomplete_message() {
        HttpErrorKind::Request
    } else if error.is_parse() {
        HttpErrorKind::Decode
    } else {
        HttpErrorKind::Interrupted
    };
    HttpError::new(kind, error)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use zenobe_testing::{
        ScriptedReply, ScriptedRequest, http_response, start_scripted_server_over,
    };

    use super::*;

    /// Sends three requests, one after the other. Returns their bodies, and how many connections carried them.
    async fn exchange(
        script: impl Fn(&ScriptedRequest) -> ScriptedReply + Send + Sync + 'static,
    ) -> (Vec<Bytes>, usize) {
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let address = start_scripted_server_over(script, move |stream| {
            counted.fetch_add(1, Ordering::Relaxed);
            stream
        });
        let client = HyperConnector.connect(&ClientOptions::default()).unwrap();
        let mut bodies = Vec::new();
        for number in 0..3 {
            let request = hyper::Request::get(format!("http://{address}/bucket/{number}?x=1"));
            let request = request.body(HttpRequestBody::empty()).unwrap();
            let response = client.execute(request).await.unwrap();
            bodies.push(response.into_body().bytes().await.unwrap());
        }
        (bodies, connections.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn requests_share_a_connection() {
        let echo = |request: &ScriptedRequest| {
            ScriptedReply::response(200, request.header("host").unwrap_or("none"))
        };
        let (bodies, connections) = exchange(echo).await;
        assert_eq!(connections, 1);
        assert!(bodies.iter().all(|body| body.starts_with(b"127.0.0.1:")), "{bodies:?}");
    }

    #[tokio::test]
    async fn a_connection_that_the_host_closed_is_replaced() {
        let close = |_: &ScriptedRequest| ScriptedReply::SendAndClose(http_response(200, "x"));
        let (bodies, connections) = exchange(close).await;
        assert_eq!((bodies.len(), connections), (3, 3));
    }

    /// Only then does `object_store` repeat the request.
    #[tokio::test]
    async fn a_host_that_does_not_listen_is_told_from_other_failures() {
        let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let client = HyperConnector.connect(&ClientOptions::default()).unwrap();
        let request = hyper::Request::get(format!("http://{unused}/"));
        let failed = client.execute(request.body(HttpRequestBody::empty()).unwrap()).await;
        assert_eq!(failed.unwrap_err().kind(), HttpErrorKind::Connect);
    }
}
