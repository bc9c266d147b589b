//! Streams, through the SDK and through faults.

mod consumer;
mod rebuild;
mod typed_client;
mod writer;
