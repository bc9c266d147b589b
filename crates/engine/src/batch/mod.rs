//! Batches: many independent reads or writes in one call.

mod get;
mod write;
