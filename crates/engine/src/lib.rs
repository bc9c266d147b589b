//! DynamoDB's semantics over an ordered store: tables, items, indexes, transactions.
//!
//! **Invariant:** no JSON, no HTTP and no client-facing text here. Commands come in typed
//! ([`command`]), outcomes and errors go out typed ([`error`]), so the same engine can run embedded in a Rust
//! program.
//!
//! **Invariant:** only `change` writes items and index entries.

pub mod command;
pub mod error;
pub mod schema;
