//! The store as it answers, the nodes that share it, and which node does which work.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tokio::time::timeout;
use zenobe_engine::error::Error;
use zenobe_engine::lease::{LeaseStatus, NodeStatus};
use zenobe_engine::schema::Namespace;
use zenobe_store::{Inspection, StandbyStatus};

use super::history::HistoryStatus;
use super::{Admin, AdminError, check_method, shipping};

/// An unreachable store must be reported quickly.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Asked {
    inspection: Option<Inspection>,
    nodes: Vec<NodeStatus>,
    leases: Vec<LeaseStatus>,
    history: HistoryStatus,
}

impl Admin {
    pub(super) async fn answer_status(
        &self,
        namespace: &Namespace,
        method: &Method,
    ) -> Result<Value, AdminError> {
        check_method(method, &Method::GET)?;
        let asked = match timeout(PATIENCE, self.ask_store(namespace)).await {
            Ok(asked) => asked.map_err(|error| error.to_string()),
            Err(_) => Err(format!("it has not answered for {} seconds", PATIENCE.as_secs())),
        };
        let statistics = self.engine.store().statistics();
        let mut store = json!({
            "available": asked.is_ok(),
            "problem": asked.as_ref().err(),
            "size_bytes": statistics.size_bytes,
            "write_failure": statistics.write_failure,
        });
        let Asked { inspection, nodes, leases, history } = asked.unwrap_or_default();
        if let Some(inspection) = inspection {
            describe_store(&inspection, &mut store);
        }
        Ok(json!({
            "shared": self.engine.is_shared(),
            "nodes": nodes.iter().map(node).collect::<Vec<_>>(),
            "leases": leases.iter().map(lease).collect::<Vec<_>>(),
            "history": history.history,
            "backups": history.backups,
            "jobs": history.jobs,
            "store": store,
            "shipping": self.shipping.as_deref().map(shipping::describe),
        }))
    }

    async fn ask_store(&self, namespace: &Namespace) -> Result<Asked, Error> {
        let history = self.history_status(namespace).await?;
        let mut leases = self.engine.leases().await?;
        if self.has_tenants {
            // These name accounts, triggers and jobs.
            leases.retain(|lease| !lease.work.contains('/'));
        }
        Ok(Asked {
            inspection: self.engine.store().inspect().await?,
            nodes: self.engine.nodes().await?,
            leases,
            history,
        })
    }
}

fn describe_store(inspection: &Inspection, store: &mut Value) {
    let Inspection { server, host, round_trip, standbys, replicas } = inspection;
    store["server"] = json!(server);
    store["host"] = json!(host);
    store["round_trip_us"] = json!(round_trip.as_micros() as u64);
    store["standbys"] = standbys.iter().map(standby).collect();
    let replica = |(host, lag): &(String, Option<Duration>)| json!({ "host": host, "lag_ms_max": lag.map(milliseconds) });
    store["replicas"] = replicas.iter().map(replica).collect();
}

fn standby(standby: &StandbyStatus) -> Value {
    json!({
        "name": standby.name,
        "state": standby.state,
        "synchronous": standby.is_synchronous,
        "lag_bytes": standby.lag_bytes,
        "lag_ms": standby.lag.map(milliseconds),
    })
}

fn milliseconds(duration: Duration) -> u64 {
    duration.as_millis() as u64
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
