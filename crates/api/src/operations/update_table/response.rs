//! The response to UpdateTable: the new state, except that DynamoDB still shows the old capacity,
//! class and encryption key while it changes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use zenobe_engine::TableUpdate;
use zenobe_engine::command::{IndexChange, OnDemandMaximum, ThroughputSettings, UpdateTable};
use zenobe_engine::schema::{IndexDefinition, TableDefinition, TableDescription, Throughput};

use crate::Reply;
use crate::json::Writer;
use crate::render::{Presentation, ShownWarmThroughput, write_table};

pub(super) fn render(sent: &UpdateTable, update: &TableUpdate, now_ms: u64) -> Reply {
    let (before, after) = (&*update.before.definition, &*update.after.definition);
    let warm = changed_warm_throughputs(sent);
    let shown = TableDescription {
        definition: Arc::new(shown_definition(before, after, &warm)),
        ..update.after.clone()
    };
    let removed = |maximum: Option<OnDemandMaximum>| maximum == Some(OnDemandMaximum::Unlimited);
    let presentation = Presentation {
        table_status: is_updating(sent, before).then_some("UPDATING"),
        index_status: index_statuses(sent),
        warm_throughput: ShownWarmThroughput::Updating(&warm),
        encryption_status: if sent.encryption.is_some() { "UPDATING" } else { "ENABLED" },
        removed_maxima: (
            removed(sent.throughput.on_demand_max_read_units),
            removed(sent.throughput.on_demand_max_write_units),
        ),
        ..Presentation::described(now_ms)
    };
    let mut writer = Writer::new();
    writer.object(|writer| write_table(writer.name("TableDescription"), &shown, &presentation));
    Reply(writer.finish())
}

fn shown_definition(
    before: &TableDefinition,
    after: &TableDefinition,
    warm: &[Option<String>],
) -> TableDefinition {
    let mut shown = after.clone();
    shown.billing_mode = before.billing_mode;
    shown.on_demand_since_ms = before.on_demand_since_ms;
    shown.table_class = before.table_class;
    // A table that had no key shows the one that it is getting.
    shown.kms_key_arn = before.kms_key_arn.clone().or(shown.kms_key_arn);
    let is_warmed = warm.contains(&None);
    shown.throughput = shown_throughput(&before.throughput, &after.throughput, is_warmed);
    for index in &mut shown.global_indexes {
        if let Some(old) = index_of(before, &index.name) {
            let is_warmed = warm.iter().flatten().any(|name| *name == index.name);
            index.throughput = shown_throughput(&old.throughput, &index.throughput, is_warmed);
        }
    }
    shown
}

/// The old figures, except for on-demand maxima, which change at once, and for warm throughput that
/// this request raises.
fn shown_throughput(before: &Throughput, after: &Throughput, is_warmed: bool) -> Throughput {
    let warmed = if is_warmed { after } else { before };
    Throughput {
        on_demand_max_read_units: after.on_demand_max_read_units,
        on_demand_max_write_units: after.on_demand_max_write_units,
        warm_read_units: warmed.warm_read_units,
        warm_write_units: warmed.warm_write_units,
        // The times of the change are those of the request.
        last_increase_ms: after.last_increase_ms,
        last_decrease_ms: after.last_decrease_ms,
        ..before.clone()
    }
}

fn index_of<'a>(table: &'a TableDefinition, name: &str) -> Option<&'a IndexDefinition> {
    table.global_indexes.iter().find(|index| index.name == name)
}

/// Some changes happen at once or leave the table active: encryption, deletion protection, warm
/// throughput, on-demand maxima, and a billing mode that the table already has.
fn is_updating(sent: &UpdateTable, before: &TableDefinition) -> bool {
    sent.throughput.provisioned.is_some()
        || sent.stream.is_some()
        || sent.table_class.is_some()
        || sent.billing_mode.is_some_and(|mode| mode != before.billing_mode)
        || sent.index_changes.iter().any(|change| match change {
            IndexChange::Create(_) | IndexChange::Delete { .. } => true,
            IndexChange::Update { throughput, .. } => throughput.provisioned.is_some(),
        })
}

fn index_statuses(sent: &UpdateTable) -> BTreeMap<String, &'static str> {
    let status = |change: &IndexChange| match change {
        IndexChange::Create(index) => Some((index.name.clone(), "CREATING")),
        IndexChange::Update { name, throughput } => {
            throughput.provisioned.map(|_| (name.clone(), "UPDATING"))
        }
        IndexChange::Delete { name } => Some((name.clone(), "DELETING")),
    };
    sent.index_changes.iter().filter_map(status).collect()
}

/// Where warm throughput was given: the table (`None`) or an index.
fn changed_warm_throughputs(sent: &UpdateTable) -> Vec<Option<String>> {
    let gives_warm = |settings: &ThroughputSettings| {
        settings.warm_read_units.is_some() || settings.warm_write_units.is_some()
    };
    let table = gives_warm(&sent.throughput).then_some(None);
    let indexes = sent.index_changes.iter().filter_map(|change| match change {
        IndexChange::Create(index) if gives_warm(&index.throughput) => Some(index.name.clone()),
        IndexChange::Update { name, throughput } if gives_warm(throughput) => Some(name.clone()),
        _ => None,
    });
    table.into_iter().chain(indexes.map(Some)).collect()
}
