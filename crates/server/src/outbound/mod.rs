//! A small HTTP client for calls that the server and the commands make themselves: one request per
//! connection, with a bounded response in a bounded time.

mod url;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

pub use url::{Url, UrlError};

/// The largest response; Lambda's own limit.
const ANSWER_SIZE_BYTES_MAX: usize = 6 * 1024 * 1024;

pub struct Outgoing {
    pub method: Method,
    /// Includes the query, if any.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

#[derive(Debug)]
pub struct Answered {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answered {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    #[error("cannot connect to {authority}: {error}")]
    Connect { authority: String, error: std::io::Error },
    #[error("{authority} did not answer within {} ms", timeout.as_millis())]
    Timeout { authority: String, timeout: Duration },
    #[error("{authority} closed the connection early: {error}")]
    Broken { authority: String, error: hyper::Error },
    #[error("{authority} answered with more than {ANSWER_SIZE_BYTES_MAX} bytes")]
    TooLarge { authority: String },
    #[error("`{authority}` is not valid in a request")]
    Unsendable { authority: String },
}

/// Sends a request to the host of `url` and waits for the complete response.
pub async fn send(
    url: &Url,
    outgoing: Outgoing,
    timeout: Duration,
) -> Result<Answered, OutboundError> {
    let authority = || url.authority().to_owned();
    let exchange = tokio::time::timeout(timeout, exchange(url, outgoing)).await;
    exchange.unwrap_or_else(|_| Err(OutboundError::Timeout { authority: authority(), timeout }))
}

async fn exchange(url: &Url, outgoing: Outgoing) -> Result<Answered, OutboundError> {
    let authority = || url.authority().to_owned();
    let broken = |error| OutboundError::Broken { authority: authority(), error };
    let stream = TcpStream::connect((url.host(), url.port()))
        .await
        .map_err(|error| OutboundError::Connect { authority: authority(), error })?;
    // Without it the last packet of a request may wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let request = request(url, outgoing)
        .ok_or_else(|| OutboundError::Unsendable { authority: authority() })?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let (head, mut incoming) = response.into_parts();
        let mut body = BytesMut::new();
        while let Some(frame) = incoming.frame().await {
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            if body.len() + data.len() > ANSWER_SIZE_BYTES_MAX {
                return Err(OutboundError::TooLarge { authority: authority() });
            }
            body.extend_from_slice(&data);
        }
        Ok(Answered { status: head.status.as_u16(), headers: head.headers, body: body.freeze() })
    };
    // The connection makes progress only while it is polled; its errors show in the exchange.
    let mut exchange = std::pin::pin!(exchange);
    let connection = async {
        let _ = connection.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answered = exchange.as_mut() => answered,
        () = connection => unreachable!("the connection's future never ends"),
    }
}

fn request(url: &Url, outgoing: Outgoing) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::new(Full::new(outgoing.body));
    *request.method_mut() = outgoing.method;
    *request.uri_mut() = outgoing.path.parse().ok()?;
    *request.headers_mut() = outgoing.headers;
    request.headers_mut().insert(HOST, HeaderValue::from_str(url.authority()).ok()?);
    Some(request)
}
