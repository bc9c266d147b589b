//! The load generator against the real server, and against servers made to misbehave.

mod connections;
mod encryption;
mod open_loop;
mod support;
mod tables;
mod workloads;
