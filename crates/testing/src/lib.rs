//! Support for tests that drive a real server: its process, its wire protocol, its directory, its
//! randomness.
//!
//! - [`ServerProcess`] starts `zenobe serve`, kills it abruptly, or stops it cleanly.
//! - [`Client`] speaks the wire protocol with nothing between the test and the bytes.
//! - [`TemporaryDirectory`] is removed after a passing test and kept after a failing one.
//! - [`linearizability`] checks whether some order explains what concurrent callers saw.
//! - [`Seed`] makes a random test replayable: it prints itself, and `ZENOBE_SEED` brings it back.
//!
//! **Invariant:** this crate knows the server's command line and wire protocol, never its
//! internals.

pub mod allocations;
mod binary;
#[cfg(test)]
mod bless;
mod client;
pub mod linearizability;
mod seed;
mod server_process;
mod temporary_directory;

pub use binary::server_binary;
pub use client::{Client, ClientError, Reply, json_item};
pub use seed::Seed;
pub use server_process::{ServerOptions, ServerProcess, StartError};
pub use temporary_directory::TemporaryDirectory;
