//! The engine against what it should be.
//!
//! [`model`] runs random histories of every data-plane operation against the engine and against a [`twin`]: a
//! naive database in memory, written from the specification, that shares nothing with the engine but the types of
//! values, commands and outcomes. [`concurrency`] lets many tasks loose on few items and checks what they saw
//! with [`linearizability`].

mod backend;
mod concurrency;
mod generate;
mod hesitant;
mod linearizability;
mod model;
mod run;
mod shrink;
mod statement;
mod step;
mod text;
mod twin;
