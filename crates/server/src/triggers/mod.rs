//! Triggers deliver a table's stream to an HTTP endpoint, in the format and with the guarantees
//! that a Lambda function gets: in order per item, at least once, with retries and a dead-letter
//! destination.
//!
//! From the outside in: [`Triggers`] knows all triggers, a `coordinator` runs each, `plan` decides
//! which shards are ready, and a `worker` carries one shard through `reader`, `filter`, `batcher`
//! and `delivery` to the `endpoint`, or to `dead_letter`.
//!
//! **Invariant:** no write calls anything here. Triggers read what is committed, so no endpoint can
//! slow down or fail a request.

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
