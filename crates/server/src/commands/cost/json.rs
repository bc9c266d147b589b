//! The report for programs. Costs of throughput are given for the observed time and for a month.

use serde_json::{Value, json};
use zenobe_engine::throughput::report::units;
use zenobe_monitoring::cost::StorageClass;
use zenobe_monitoring::cost::estimate::{
    EntryEstimate, FlowEstimate, FreeTier, Group, ModeCosts, ResourceEstimate, StorageCosts,
    TableEstimate,
};

use super::Report;

pub fn render(report: &Report) -> Value {
    let (estimate, recorded) = (&report.estimate, &report.recorded);
    let factor = estimate.month_factor();
    let all = estimate.costs()[0];
    let group = |group: &Group| {
        let mut value = json!({
            "name": group.name,
            "requests": group.counts.requests,
            "read_units": units(group.counts.read_halves),
            "write_units": units(group.counts.write_halves),
            "share": if all > 0.0 { group.costs[0] / all } else { 0.0 },
        });
        add_costs(&mut value, group.costs, factor);
        value
    };
    let mut value = json!({
        "since_ms": recorded.since_ms,
        "until_ms": recorded.until_ms,
        "observed_hours": estimate.observed_hours,
        "month_factor": factor,
        "region": report.region,
        "prices_date": report.prices_date,
        "tables": estimate.tables.iter().map(|it| table(it, factor)).collect::<Vec<_>>(),
        "by": report.by.name(),
        "groups": estimate.grouped(report.by.group()).iter().map(group).collect::<Vec<_>>(),
        "storage": storage(&estimate.storage_month()),
        "stream_reads": estimate.stream_reads,
        "stream_reads_month": estimate.stream_reads_cost * factor,
        "cheapest_month": estimate.cheapest() * factor,
        "free_tier": report.free_tier.as_ref().map(free_tier),
    });
    add_costs(&mut value, estimate.costs(), factor);
    value
}

/// Dollars by mode, for the observed time and for a month.
fn add_costs(value: &mut Value, costs: ModeCosts, factor: f64) {
    let by_mode = |[on_demand, provisioned, auto_scaling]: ModeCosts| {
        json!({
            "on_demand": on_demand,
            "provisioned": provisioned,
            "auto_scaling": auto_scaling,
        })
    };
    value["observed"] = by_mode(costs);
    value["month"] = by_mode(costs.map(|cost| cost * factor));
}

fn table(table: &TableEstimate, factor: f64) -> Value {
    let facts = &table.facts;
    let mut value = json!({
        "table": facts.name,
        "exists": facts.exists,
        "storage_class": match facts.class {
            StorageClass::Standard => "standard",
            StorageClass::InfrequentAccess => "infrequent-access",
        },
        "cheapest": table.cheapest_mode().name(),
        "storage": storage(&table.storage),
        "resources": table.resources.iter().map(|it| resource(it, factor)).collect::<Vec<_>>(),
        "patterns": table.entries.iter().map(|it| entry(it, factor)).collect::<Vec<_>>(),
    });
    add_costs(&mut value, table.costs, factor);
    value
}

fn storage(costs: &StorageCosts) -> Value {
    json!({
        "storage_month": costs.storage_month,
        "point_in_time_recovery_month": costs.recovery_month,
        "backups_month": costs.backups_month,
        "restore_once": costs.restore_once,
        "export_once": costs.export_once,
        "import_once": costs.import_once,
    })
}

fn resource(resource: &ResourceEstimate, factor: f64) -> Value {
    json!({
        "index": resource.index,
        "read": flow(&resource.read, factor),
        "write": flow(&resource.write, factor),
    })
}

fn flow(flow: &FlowEstimate, factor: f64) -> Value {
    let mut value = json!({
        "units": flow.units(),
        "constant_units": flow.constant.units,
        "constant_units_without_burst": flow.constant.units_without_burst,
        "burst_minutes": flow.constant.burst_minutes,
        "scaled_units_mean": flow.scaled.mean_units(),
        "scaled_units_max": flow.scaled.units_max,
        "scaled_increases": flow.scaled.increases,
        "scaled_decreases": flow.scaled.decreases,
        "scaled_throttled_minutes": flow.scaled.throttled_minutes,
    });
    add_costs(&mut value, flow.costs, factor);
    value
}

fn entry(entry: &EntryEstimate, factor: f64) -> Value {
    let mut value = json!({
        "index": entry.index,
        "operation": entry.operation,
        "pattern": entry.pattern.to_string(),
        "requests": entry.counts.requests,
        "read_units": units(entry.counts.read_halves),
        "write_units": units(entry.counts.write_halves),
        "returned_items": entry.counts.returned_items,
    });
    add_costs(&mut value, entry.costs, factor);
    value
}

fn free_tier(free: &FreeTier) -> Value {
    json!({
        "storage_month": free.storage,
        "stream_reads_month": free.stream_reads,
        "provisioned_month": free.throughput[1],
        "auto_scaling_month": free.throughput[2],
    })
}
