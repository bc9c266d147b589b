//! Triggers: a table's stream delivered to an HTTP endpoint, in the shape and with the guarantees that a Lambda
//! function has: in order per item, at least once, with retries and a dead-letter destination.
//!
//! From the outside in: [`Triggers`] knows all triggers, a `coordinator` runs each, `plan` says which shards can be
//! worked on, a `worker` carries one shard through `reader`, `filter`, `batcher` and `delivery` to the `endpoint`,
//! or to `dead_letter`.
//!
//! **Invariant:** nothing here is called by a write. Triggers read what is committed, so no endpoint can slow or
//! fail a request.

mod batcher;
mod coordinator;
mod dead_letter;
mod definition;
mod delivery;
mod endpoint;
mod filter;
mod manager;
mod metrics;
pub mod plan;
pub mod reader;
pub mod record;
pub mod source;
mod worker;

pub use definition::{DeadLetterRefusal, DefinitionError, TriggerDefinition};
pub use manager::{TriggerError, Triggers};
