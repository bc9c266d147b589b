//! A real server, driven as its users and its enemies drive it.
//!
//! The server is found or built by `zenobe_testing::server_binary`. Tests on randomness print a seed;
//! `ZENOBE_SEED` replays it.

mod contention;
mod corruption;
mod histories;
mod index_changes;
mod io_failure;
mod kill;
mod kill_catalog;
mod start;
mod statements;
mod streams;
mod tables;
mod typed_client;
