//! The answer to UpdateTable: the new state, except that DynamoDB still shows the old capacity, class and
//! encryption key while it changes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use zenobe_engine::TableUpdate;
use zenobe_engine::command::{IndexChange, OnDemandMaximum, ThroughputSettings, UpdateTable};
use zenobe_engine::schema::{IndexDefinition, TableDefinition, TableDescription};

use crate::Reply;
use crate::json::Writer;
use crate::render::{Presentation, WarmThroughput, write_table};

pub(super) fn render(sent: &UpdateTable, update: &TableUpdate, now_ms: u64) -> Reply {
    let (before, after) = (&*update.before.definition, &*update.after.definition);
    let shown = TableDescription {
        definition: Arc::new(shown_definition(before, after)),
        ..update.after.clone()
    };
    let warm = changed_warm_throughputs(sent);
    let removed = |maximum: Option<OnDemandMaximum>| maximum == Some(OnDemandMaximum::Unlimited);
    let presentation = Presentation {
        table_status: is_updating(sent, before).then_some("UPDATING"),
        index_status: index_statuses(sent),
        warm_throughput: WarmThroughput::Updating(&warm),
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

fn shown_definition(before: &TableDefinition, after: &TableDefinition) -> TableDefinition {
    let mut shown = after.clone();
    shown.billing_mode = before.billing_mode;
    shown.on_demand_since_ms = before.on_demand_since_ms;
    shown.throughput.read_units = before.throughput.read_units;
    shown.throughput.write_units = before.throughput.write_units;
    shown.throughput.last_increase_ms = before.throughput.last_increase_ms;
    shown.throughput.last_decrease_ms = before.throughput.last_decrease_ms;
    shown.throughput.decreases_today = before.throughput.decreases_today;
    shown.table_class = before.table_class;
    shown.kms_key_arn.clone_from(&before.kms_key_arn);
    for index in &mut shown.global_indexes {
        if let Some(old) = index_of(before, &index.name) {
            let warm = (index.throughput.warm_read_units, index.throughput.warm_write_units);
            index.throughput = old.throughput.clone();
            (index.throughput.warm_read_units, index.throughput.warm_write_units) = warm;
        }
    }
    shown
}

fn index_of<'a>(table: &'a TableDefinition, name: &str) -> Option<&'a IndexDefinition> {
    table.global_indexes.iter().find(|index| index.name == name)
}

/// Some changes happen at once or leave the table active: encryption, deletion protection, warm
/// throughput, on-demand maxima, and a billing mode that the table has already.
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
        IndexChange::Create(index) => (index.name.clone(), "CREATING"),
        IndexChange::Update { name, .. } => (name.clone(), "UPDATING"),
        IndexChange::Delete { name } => (name.clone(), "DELETING"),
    };
    sent.index_changes.iter().map(status).collect()
}

/// Whose warm throughput was given: the table's (`None`), or that of an index.
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
