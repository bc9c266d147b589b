//! The server from outside, over TCP: the HTTP layer with handlers made for the test, and the binary as a
//! process.

mod access;
mod bodies;
mod clients;
mod commands;
mod shutdown;
mod support;
mod wire;
