//! The engine checked against a model.
//!
//! [`model`] runs random histories of every data-plane operation against the engine and against a
//! [`twin`]: a naive in-memory database, written from the specification, that shares only the types
//! of values, commands and outcomes with the engine. [`concurrency`] runs many tasks on few items
//! and checks what they saw with [`linearizability`].

mod backend;
mod concurrency;
mod generate;
mod linearizability;
mod model;
mod render;
mod run;
mod shrink;
mod statement;
mod step;
mod text;
mod twin;
