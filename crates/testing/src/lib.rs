//! Support for tests that drive a real server: its process, its wire protocol, its directory, its
//! randomness.
//!
//! - [`ServerProcess`] starts `zenobe serve`, kills or stops it, and checks how it ended.
//! - [`Client`] speaks the wire protocol; [`Connection`] sends exactly the bytes that it is told to.
//! - [`start_scripted_server`] starts a server that answers as the test says.
//! - [`wait_until`] waits for a condition, and [`SetOnDrop`] ends the threads of a test.
//! - [`replay_case_file`] compares recorded answers with those of now.
//! - [`TemporaryDirectory`] is removed after a passing test and kept after a failing one.
//! - [`Postgres`] is a server with a database for each test, and [`Proxy`] a network to it that fails.
//! - [`linearizability`] checks whether some order explains what concurrent callers saw.
//! - [`Seed`] makes a random test replayable: it prints itself, and `ZENOBE_SEED` brings it back.
//!
//! **Invariant:** this crate knows the server's command line and wire protocol, never its
//! internals.

pub mod allocations;
mod binary;
#[cfg(test)]
mod bless;
mod case_file;
mod client;
mod connection;
pub mod linearizability;
mod postgres;
mod postgres_process;
mod process;
mod proxy;
mod scripted_server;
mod seed;
mod server_process;
mod temporary_directory;
mod wait;

pub use binary::server_binary;
pub use case_file::{CaseStep, replay_case_file};
pub use client::{AUTHORIZATION, Client, ClientError, api_request};
pub use connection::{Connection, Reply};
pub use postgres::Postgres;
pub use postgres_process::{PostgresProcess, free_port, psql};
pub use process::{Output, Process, Stream};
pub use proxy::{NetworkFault, Proxy};
pub use rustix::process::Signal;
pub use scripted_server::{
    ScriptedReply, ScriptedRequest, http_response, start_scripted_server,
    start_scripted_server_over,
};
pub use seed::Seed;
pub use server_process::{
    ServerOptions, ServerProcess, StartError, listening_address, without_options,
};
pub use temporary_directory::TemporaryDirectory;
pub use wait::{PATIENCE, SetOnDrop, wait_for, wait_until};
