//! The programs to measure: the server, its limits and its peers.

pub mod bare;
pub mod bare_client;
pub mod commit_loop;
pub mod peers;
pub mod postgres;
pub mod server;
