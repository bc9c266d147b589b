//! Zenobe, a database that speaks Amazon DynamoDB's API.
//!
//! [`Database`] embeds it in a Rust program, without HTTP. Such a program turns the default feature
//! `server` off and, to call it through the AWS SDK, `aws-sdk` on:
//!
//! ```toml
//! zenobe = { version = "0.1", default-features = false, features = ["aws-sdk"] }
//! ```
//!
//! Everything else here is the server around it. A request flows downward: [`http::connection`]
//! accepts it, [`http::service`] checks the head and reads the body, [`access`] identifies the
//! caller, [`dispatch::Handler`] handles it, and [`http::response`] renders the response. None of
//! these knows what a table or an item is, or which storage backend there is.
#![cfg_attr(not(feature = "server"), allow(rustdoc::broken_intra_doc_links))]

#[cfg(feature = "server")]
pub mod access;
#[cfg(feature = "server")]
pub mod admin;
#[cfg(feature = "server")]
pub mod allocator;
#[cfg(feature = "server")]
pub mod cli;
#[cfg(feature = "server")]
pub mod commands;
#[cfg(feature = "server")]
pub mod config;
#[cfg(feature = "server")]
pub mod dispatch;
#[cfg(feature = "server")]
pub mod hot_keys;
#[cfg(feature = "server")]
pub mod http;
#[cfg(feature = "server")]
pub mod instance;
#[cfg(feature = "server")]
pub mod logging;
#[cfg(feature = "server")]
pub mod metrics;
#[cfg(feature = "server")]
pub mod observer;
#[cfg(feature = "server")]
mod open_files;
#[cfg(feature = "server")]
pub mod otlp;
#[cfg(feature = "server")]
pub mod outbound;
#[cfg(feature = "server")]
pub mod prometheus;
#[cfg(feature = "server")]
pub mod request_id;
#[cfg(feature = "server")]
pub mod serve;
#[cfg(feature = "server")]
pub mod services;
#[cfg(feature = "server")]
pub mod shutdown;
#[cfg(feature = "server")]
pub mod slow_requests;
#[cfg(feature = "server")]
pub mod test_control;
#[cfg(feature = "server")]
mod time;
#[cfg(feature = "server")]
pub mod triggers;

pub use zenobe_database::*;
