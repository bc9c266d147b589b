//! The server from outside, over TCP: the HTTP layer with test handlers, and the binary as a
//! process.

mod access;
mod admin;
mod backups;
mod bench;
mod bodies;
mod clients;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod clock;
mod commands;
mod cross_site;
mod dashboards;
mod endpoint;
mod local;
mod log_lines;
mod moving;
mod observer;
mod overload;
mod shutdown;
mod sql;
mod statements;
mod support;
mod tail;
mod test_control;
mod throughput;
mod triggers;
mod two_nodes;
mod watching;
mod wire;
