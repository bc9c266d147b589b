//! Application Auto Scaling (API 2016-02-06) for DynamoDB: which tables and global indexes to scale,
//! and the work that does it. Without HTTP: an operation's name and a JSON body in, a status and a
//! JSON body out.
//!
//! A *target* is one dimension (reads or writes) of a table or a global index, with a least and a
//! greatest capacity. Its policy and its scheduled actions are part of its row (`target`), so every
//! change of them is one atomic change of one row, and whoever deregisters a target can't leave
//! anything of it behind.
//!
//! Once a minute (`worker`), one node compares what all nodes have consumed (`usage`) with what is
//! provisioned, decides (`tracking`), changes the table through the engine like any UpdateTable
//! (`capacity`), and notes what it did (`activity`).
//!
//! **Invariant:** every write of the worker names its lease, so a node that has lost it writes
//! nothing. **Invariant:** all texts that clients see are in `messages`, except those about what
//! happened, which are in `activity`.

mod activity;
mod capacity;
mod constraints;
mod error;
mod fields;
mod json;
mod keys;
mod messages;
mod operations;
mod policy;
mod resource;
mod schedule;
mod target;
mod tracking;
mod usage;
mod worker;

use std::sync::Arc;

use tokio::sync::Mutex;
use zenobe_engine::Engine;
use zenobe_engine::schema::Namespace;

use crate::worker::Minutes;

pub use error::{Exception, ScalingError};

/// The service of one database.
pub struct Scaling {
    engine: Arc<Engine>,
    /// Names this process among the nodes that share a store.
    node: String,
    /// Which minutes have been looked at. Held while the work of a minute is done.
    minutes: Mutex<Minutes>,
}

/// An answer, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Scaling {
    pub fn new(engine: Arc<Engine>) -> Scaling {
        let minutes = Minutes::since(engine.clock().now_ms());
        Scaling { node: engine.new_uuid(), engine, minutes: Mutex::new(minutes) }
    }

    /// Answers one request of a caller who sees the tables of `namespace`.
    pub async fn answer(&self, operation: &str, namespace: &Arc<Namespace>, body: &[u8]) -> Answer {
        match operations::dispatch(self, operation, namespace, body).await {
            Ok(answer) => Answer { status: 200, body: answer.to_string().into_bytes() },
            Err(error) => error.into_answer(),
        }
    }

    fn now_ms(&self) -> u64 {
        self.engine.clock().now_ms()
    }
}
