//! The partitions of a table, and the throughput of all tables for the metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::Method;
use serde_json::{Value, json};
use zenobe_engine::command::TableName;
use zenobe_engine::schema::Namespace;
use zenobe_engine::throughput::report::{
    Consumption, FlowReport, PartitionReport, PartitionStatus,
};

use super::throughput::table_error;
use super::{Admin, AdminError};
use crate::prometheus::Exposition;
use crate::prometheus::MetricType::Counter;

/// This many tables, the oldest, have their own series; the others are summed.
const TABLES_MAX: usize = 200;
/// The label of all other tables.
const OTHER: &str = "other";

impl Admin {
    pub(super) async fn answer_partitions(
        &self,
        namespace: &Arc<Namespace>,
        method: &Method,
        table: &str,
    ) -> Result<Value, AdminError> {
        if *method != Method::GET {
            return Err(AdminError::method("GET"));
        }
        let name = TableName { namespace: Arc::clone(namespace), name: table.to_owned() };
        let reports = self.engine.partitions(&name).await;
        let reports = reports.map_err(|error| table_error(table, &error))?;
        let reports: Vec<Value> = reports.iter().map(report).collect();
        Ok(json!({ "table": table, "resources": reports }))
    }

    pub(super) fn render_throughput(&self, out: &mut Exposition) {
        render(&self.engine.consumption(), out);
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

/// Sums by table and index. Tables of different accounts may share a name.
fn render(all: &[Consumption], out: &mut Exposition) {
    let mut tables: Vec<_> = all.iter().map(|it| it.resource.table_id).collect();
    tables.dedup();
    tables.truncate(TABLES_MAX);
    let mut units: BTreeMap<(&str, &str), [f64; 2]> = BTreeMap::new();
    let mut events: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for one in all {
        let labels = match tables.binary_search(&one.resource.table_id) {
            Ok(_) => (&*one.resource.table.name, one.resource.index_name().unwrap_or_default()),
            Err(_) => (OTHER, ""),
        };
        let sums = units.entry(labels).or_default();
        *sums = [sums[0] + one.read_units, sums[1] + one.write_units];
        for (reason, count) in &one.throttle_events {
            *events.entry((labels.0, labels.1, reason.name())).or_default() += count;
        }
    }
    for (name, which) in [
        ("zenobe_consumed_read_capacity_units_total", 0),
        ("zenobe_consumed_write_capacity_units_total", 1),
    ] {
        let mut metric = out.metric(name, Counter);
        for ((table, index), sums) in &units {
            metric.sample(&[("table", table), ("index", index)], sums[which]);
        }
    }
    let mut metric = out.metric("zenobe_throttle_events_total", Counter);
    for ((table, index, reason), count) in &events {
        metric.sample(&[("table", table), ("index", index), ("reason", reason)], count);
    }
}

#[cfg(test)]
mod tests {
    use zenobe_engine::schema::{IndexId, KeySchema, TableId};
    use zenobe_engine::throughput::cause::{Access, Resource, ThrottleCause, ThrottleReason};

    use super::*;

    fn consumption(id: u64, index: Option<&str>) -> Consumption {
        let namespace = Arc::new(Namespace { account: "1".into(), region: "r".into() });
        let table = TableName { namespace, name: format!("t{id:04}") };
        let index = index.map(|name| (name.to_owned(), IndexId(1)));
        let keys = KeySchema { partition: Vec::new(), sort: Vec::new() };
        let resource = Arc::new(Resource { table, table_id: TableId(id), index, keys });
        let cause = ThrottleCause::KeyRange;
        let reason = ThrottleReason { resource: resource.clone(), access: Access::Read, cause };
        Consumption {
            resource,
            read_units: 0.5,
            write_units: 2.0,
            throttle_events: vec![(reason, 3)],
        }
    }

    #[test]
    fn tables_beyond_the_limit_are_added_up() {
        let mut all: Vec<Consumption> = Vec::new();
        for id in 1..=TABLES_MAX as u64 + 10 {
            all.extend([consumption(id, None), consumption(id, Some("i"))]);
        }
        let mut out = Exposition::default();
        render(&all, &mut out);
        let text = out.into_text();
        for expected in [
            "zenobe_consumed_read_capacity_units_total{table=\"t0001\",index=\"\"} 0.5",
            "zenobe_consumed_write_capacity_units_total{table=\"t0200\",index=\"i\"} 2",
            "zenobe_consumed_read_capacity_units_total{table=\"other\",index=\"\"} 10",
            "zenobe_throttle_events_total{table=\"t0001\",index=\"i\",\
             reason=\"IndexReadKeyRangeThroughputExceeded\"} 3",
            "zenobe_throttle_events_total{table=\"other\",index=\"\",\
             reason=\"TableReadKeyRangeThroughputExceeded\"} 30",
        ] {
            assert!(text.lines().any(|line| line == expected), "{expected} in\n{text}");
        }
        assert!(!text.contains("t0201"));
    }
}
