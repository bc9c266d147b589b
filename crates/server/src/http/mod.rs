//! HTTP/1.1 as DynamoDB speaks it. [`crate::dispatch::Handler`] implements the operations.

mod accept_encoding;
pub mod allowed_hosts_and_origins;
mod body;
pub mod connection;
mod date;
mod guarded_stream;
mod head;
mod memory;
pub mod overload;
mod peer_connections;
pub mod response;
pub mod service;
mod timer;
mod transfer_rate;
pub mod workers;

use std::task::Poll;
use std::time::Duration;

pub use memory::BodyMemory;

/// The largest request body, compressed or not.
pub const BODY_SIZE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The bodies of all requests and responses together, from the first byte received to the last one
/// sent. Bodies beyond that wait. Bounds what many clients with large bodies can take.
pub const BODIES_SIZE_BYTES_MAX: usize = 16 * BODY_SIZE_BYTES_MAX;
/// The largest request line and headers, together.
pub const HEAD_SIZE_BYTES_MAX: usize = 16 * 1024;
/// Responses above this size are compressed for clients that accept it.
pub const COMPRESSION_SIZE_BYTES_MIN: usize = 4 * 1024;

/// The future's output, or `None` if it takes too long. Most futures are ready at once (small
/// bodies arrive with their head), and only those that are not start a timer.
async fn within<F: Future>(timeout: Duration, future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    let first = std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
    match first {
        Poll::Ready(output) => Some(output),
        Poll::Pending => tokio::time::timeout(timeout, future).await.ok(),
    }
}
