//! The programs to measure: the server, its two limits and its peers.

pub mod bare;
pub mod commit_loop;
pub mod peers;
pub mod server;
