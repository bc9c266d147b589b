//! The nodes that share a store, and which node does which work.

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use zenobe_engine::error::Error;
use zenobe_engine::lease::{LeaseStatus, NodeStatus};

use super::{Admin, AdminError};

impl Admin {
    pub(super) async fn answer_status(&self, method: &Method) -> Result<Value, AdminError> {
        if *method != Method::GET {
            return Err(AdminError::method("GET"));
        }
        let failed = |error: Error| {
            let message = format!("the store cannot be asked: {error}");
            AdminError::new(StatusCode::SERVICE_UNAVAILABLE, message)
        };
        let nodes = self.engine.nodes().await.map_err(failed)?;
        let leases = self.engine.leases().await.map_err(failed)?;
        let (history, jobs) = self.history_status().await.map_err(failed)?;
        let statistics = self.engine.store().statistics();
        Ok(json!({
            "shared": self.engine.is_shared(),
            "nodes": nodes.iter().map(node).collect::<Vec<_>>(),
            "leases": leases.iter().map(lease).collect::<Vec<_>>(),
            "history": history,
            "jobs": jobs,
            "store": {
                "size_bytes": statistics.size_bytes,
                "write_failure": statistics.write_failure,
            },
        }))
    }
}

fn node(node: &NodeStatus) -> Value {
    json!({
        "id": node.id,
        "name": node.name,
        "this": node.is_this,
        "alive": node.is_alive,
        "started_at_ms": node.started_at_ms,
        "clock_ms": node.clock_ms,
    })
}

fn lease(lease: &LeaseStatus) -> Value {
    json!({ "work": lease.work, "node": lease.node, "since_ms": lease.since_ms })
}
