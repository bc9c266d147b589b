//! Streams, through the SDK and through faults.

pub mod consumer;
mod rebuild;
mod typed_client;
mod writer;
