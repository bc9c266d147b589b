//! Application Auto Scaling (API 2016-02-06) for DynamoDB: which tables and global indexes to scale,
//! and the work that does it. Without HTTP: an operation's name and a JSON body in, a status and a
//! JSON body out.
//!
//! A *target* is one dimension (reads or writes) of a table or a global index, with a minimum
//! and a maximum capacity. Its policy and its scheduled actions are part of its row (`target`), so every
//! change of them is one atomic change of one row, and deregistering a target leaves nothing of it
//! behind.
//!
//! Once a minute (`worker`), one node compares what all nodes have consumed (`usage`) with what is
//! provisioned, decides (`tracking`), changes the table through the engine like any UpdateTable
//! (`capacity`), and records what it did (`activity`).
//!
//! **Invariant:** what the worker writes about targets is guarded by its lease, so a node that has
//! lost the lease writes nothing. Two writes have no guard: a node's own usage row, and UpdateTable,
//! which the worker calls only after it has checked its lease. **Invariant:** all texts that clients
//! see are in `messages`, except those about what happened, which are in `activity`.

mod activity;
mod alarms;
mod capacity;
mod constraints;
mod error;
mod json;
mod keys;
mod messages;
mod operations;
mod policy;
mod resource;
mod schedule;
mod target;
mod target_rows;
mod tracking;
mod usage;
mod worker;

use std::sync::Arc;

use tokio::sync::Mutex;
use zenobe_engine::Engine;
use zenobe_engine::schema::Namespace;

use crate::worker::Minutes;

pub use alarms::{TrackingAlarm, Watched};
pub use error::{Exception, ScalingError};

/// The service of one database.
pub struct Scaling {
    engine: Arc<Engine>,
    /// Names this process among the nodes that share a store.
    node: String,
    /// Which minutes have been processed. Locked while a minute is processed.
    minutes: Mutex<Minutes>,
}

/// An answer, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalingResponse {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Scaling {
    pub fn new(engine: Arc<Engine>) -> Scaling {
        let minutes = Minutes::since(engine.clock().now_ms());
        Scaling { node: engine.new_uuid(), engine, minutes: Mutex::new(minutes) }
    }

    /// Answers one request of a caller who sees the tables of `namespace`.
    pub async fn answer(
        &self,
        operation: &str,
        namespace: &Arc<Namespace>,
        body: &[u8],
    ) -> ScalingResponse {
        match operations::dispatch(self, operation, namespace, body).await {
            Ok(answer) => ScalingResponse { status: 200, body: answer.to_string().into_bytes() },
            Err(error) => error.into_answer(),
        }
    }

    fn now_ms(&self) -> u64 {
        self.engine.clock().now_ms()
    }
}
