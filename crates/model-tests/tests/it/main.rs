//! The engine checked against a model.
//!
//! [`model`] runs random histories of every data-plane operation against the engine and against a
//! [`twin`]: a naive in-memory database, written from the specification, that shares only the types
//! of values, commands and outcomes with the engine. [`races`] runs many callers on few items, on
//! every store and on a server, and checks what they saw.

mod backend;
mod generate;
mod model;
mod past;
mod races;
mod render;
mod run;
mod shrink;
mod statement;
mod step;
mod text;
mod twin;
