//! As much of HTTP/1.1 as a measurement needs.

mod connection;
mod request;
mod response;
mod transport;

pub(crate) use connection::{Connection, Connector, Failure, Received};
pub use request::Call;
pub(crate) use request::Request;
