//! The partitions of a table.

use std::sync::Arc;

use hyper::Method;
use serde_json::{Value, json};
use zenobe_engine::command::TableName;
use zenobe_engine::schema::Namespace;
use zenobe_engine::throughput::report::{FlowReport, PartitionReport, PartitionStatus};

use super::throughput::table_error;
use super::{Admin, AdminError, check_method};

impl Admin {
    pub(super) async fn answer_partitions(
        &self,
        namespace: &Arc<Namespace>,
        method: &Method,
        table: &str,
    ) -> Result<Value, AdminError> {
        check_method(method, &Method::GET)?;
        let name = TableName { namespace: Arc::clone(namespace), name: table.to_owned() };
        let reports = self.engine.partitions(&name).await;
        let reports = reports.map_err(|error| table_error(table, &error))?;
        let reports: Vec<Value> = reports.iter().map(report).collect();
        Ok(json!({ "table": table, "resources": reports }))
    }
}

fn report(report: &PartitionReport) -> Value {
    json!({
        "index": report.resource.index_name(),
        "mode": report.mode.name(),
        "read": flow(report.read),
        "write": flow(report.write),
        "partitions": report.partitions.iter().map(partition).collect::<Vec<_>>(),
    })
}

fn flow(flow: FlowReport) -> Value {
    json!({
        "units_per_second": flow.units_per_second,
        "limit": format!("{:?}", flow.limit),
        "units_left": flow.units_left,
    })
}

fn partition(partition: &PartitionStatus) -> Value {
    json!({
        "id": partition.id,
        "first_hash": format!("{:032x}", partition.first_hash),
        "begins_inside_collection": partition.begins_inside_collection,
        "size_bytes": partition.size_bytes,
        "read_units": partition.read_units,
        "write_units": partition.write_units,
        "read_throttle_events": partition.read_throttle_events,
        "write_throttle_events": partition.write_throttle_events,
    })
}
