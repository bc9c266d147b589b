//! HTTP/1.1 as DynamoDB speaks it. The operations' semantics are behind [`crate::dispatch::Handler`].

mod accept_encoding;
mod body;
pub mod connection;
mod date;
mod head;
mod peers;
pub mod response;
pub mod service;
pub mod sites;
mod stream;
mod timer;
pub mod workers;

pub use body::BodyMemory;

/// The largest request body, compressed or not.
pub const BODY_SIZE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bodies being received or answered together; more wait. Bounds what many clients with large bodies can take.
pub const BODIES_SIZE_BYTES_MAX: usize = 16 * BODY_SIZE_BYTES_MAX;
/// The largest request line and headers together.
pub const HEAD_SIZE_BYTES_MAX: usize = 16 * 1024;
/// Responses above this size are compressed for clients that accept it.
pub const COMPRESSION_SIZE_BYTES_MIN: usize = 4 * 1024;
