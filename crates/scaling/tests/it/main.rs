//! The service on an engine in memory, with a clock that the tests move.

mod cases;
mod minutes;
mod nodes;
mod world;
