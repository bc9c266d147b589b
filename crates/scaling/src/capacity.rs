//! What is provisioned for a target, and changing it like any UpdateTable.

use std::sync::Arc;

use zenobe_engine::catalog::Table;
use zenobe_engine::clock::iso8601_without_zone;
use zenobe_engine::command::{IndexChange, ProvisionedUnits, ThroughputSettings, UpdateTable};
use zenobe_engine::error::{Error, LimitError, Result, UpdateTableError};
use zenobe_engine::lease::Lease;
use zenobe_engine::schema::{BillingMode, Namespace, Throughput};
use zenobe_engine::throughput::cause::Access;
use zenobe_engine::{Engine, ThroughputMode};

use crate::resource::TargetName;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Provisioned {
    /// Zero if the table is on demand.
    pub units: u64,
    pub is_on_demand: bool,
    /// Whether consumption is metered.
    pub is_metered: bool,
}

/// `None` if the table or the index does not exist.
pub(crate) async fn provisioned(
    engine: &Engine,
    namespace: &Arc<Namespace>,
    name: &TargetName,
) -> Result<Option<Provisioned>> {
    let table = match engine.current_table(&name.table_name(namespace)).await {
        Ok(table) => table,
        Err(Error::TableNotFound { .. } | Error::TableFilling { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(throughput(&table, name).map(|throughput| Provisioned {
        units: match name.access {
            Access::Read => throughput.read_units,
            Access::Write => throughput.write_units,
        },
        is_on_demand: table.definition().billing_mode == BillingMode::PayPerRequest,
        is_metered: engine.throughput_mode(&table) != ThroughputMode::Off,
    }))
}

/// Sets the units of a target, and leaves those of its table's other dimension as they are. The
/// inner result says why the table can't be changed. Background work that has lost its lease
/// changes nothing.
pub(crate) async fn set_units(
    engine: &Engine,
    namespace: &Arc<Namespace>,
    name: &TargetName,
    units: u64,
    lease: &Lease,
) -> Result<Result<(), String>> {
    match try_set_units(engine, namespace, name, units, lease).await {
        // Another caller has set the same units in the meantime.
        Ok(()) | Err(Error::UpdateTable(UpdateTableError::ThroughputUnchanged { .. })) => {
            Ok(Ok(()))
        }
        Err(error) => match reason(&error, name) {
            Some(reason) => Ok(Err(reason)),
            None => Err(error),
        },
    }
}

async fn try_set_units(
    engine: &Engine,
    namespace: &Arc<Namespace>,
    name: &TargetName,
    units: u64,
    lease: &Lease,
) -> Result<()> {
    let table_name = name.table_name(namespace);
    let table = engine.current_table(&table_name).await?;
    let index_not_found = || Error::IndexNotFound { index: name.index.clone().unwrap_or_default() };
    let throughput = throughput(&table, name).ok_or_else(index_not_found)?;
    let provisioned = match name.access {
        Access::Read => ProvisionedUnits { read: units, write: throughput.write_units },
        Access::Write => ProvisionedUnits { read: throughput.read_units, write: units },
    };
    let settings =
        ThroughputSettings { provisioned: Some(provisioned), ..ThroughputSettings::default() };
    let mut update = UpdateTable::of(table_name);
    match &name.index {
        None => update.throughput = settings,
        Some(index) => update
            .index_changes
            .push(IndexChange::Update { name: index.clone(), throughput: settings }),
    }
    engine.update_table_under(update, lease).await?;
    Ok(())
}

fn throughput<'a>(table: &'a Table, name: &TargetName) -> Option<&'a Throughput> {
    let definition = table.definition();
    match &name.index {
        None => Some(&definition.throughput),
        Some(wanted) => {
            let index = definition.global_indexes.iter().find(|index| index.name == *wanted);
            index.map(|index| &index.throughput)
        }
    }
}

/// What an activity says about a table that can't be changed; `None` for failures of the store.
fn reason(error: &Error, name: &TargetName) -> Option<String> {
    let (table, resource_id) = (&name.table, name.resource_id());
    Some(match error {
        Error::TableNotFound { .. } => {
            format!("Requested resource not found: Table: {table} not found")
        }
        Error::TableFilling { .. } => format!("Table {table} is being created"),
        Error::IndexNotFound { .. } => format!("Index does not exist: {resource_id}"),
        Error::UpdateTable(
            UpdateTableError::ThroughputOnDemand | UpdateTableError::IndexThroughputOnDemand { .. },
        ) => format!(
            "The billing mode of table {table} is PAY_PER_REQUEST: it has no capacity to set"
        ),
        Error::UpdateTable(UpdateTableError::TooManyDecreases {
            decreases_today, next_ms, ..
        }) => format!(
            "Subscriber limit exceeded: Provisioned throughput decreases are limited within a \
             given UTC day. Number of decreases today: {decreases_today}. Next decrease can be \
             made at {}Z",
            iso8601_without_zone(*next_ms)
        ),
        Error::Limit(LimitError::TableCapacity { requested, maximum, .. }) => {
            format!("{requested} is above the per table maximum for the account: {maximum}")
        }
        Error::Limit(LimitError::AccountCapacity { current, maximum, requested, .. }) => format!(
            "The account has {current} units and would get {requested} more, which is above its \
             maximum: {maximum}"
        ),
        Error::UpdateTable(error) => error.to_string(),
        _ => return None,
    })
}
