//! The server: HTTP, configuration, access and dispatch around `zenobe_api`.
//!
//! A request flows downward: [`http::connection`] accepts, [`http::service`] checks the head and reads
//! the body, [`access`] says who is calling, [`dispatch::Handler`] answers, [`http::response`] renders.
//!
//! **Invariant:** only [`serve`] names a storage backend. Nothing here knows what a table or an item is.

pub mod access;
pub mod admin;
pub mod allocator;
pub mod cli;
pub mod commands;
pub mod config;
pub mod dispatch;
pub mod http;
pub mod logging;
pub mod metrics;
mod open_files;
pub mod outbound;
pub mod request_id;
mod runtime_thread;
pub mod serve;
pub mod shutdown;
mod time;
pub mod triggers;
