//! UpdateTable: the rules that depend on the table's state, in the order in which they are checked.
//! The caller has checked what the request alone reveals (members that exclude each other, values
//! out of range).

use crate::Engine;
use crate::catalog::edit::Edit;
use crate::command::{IndexChange, StreamChange, ThroughputSettings, UpdateTable};
use crate::error::{BlockedChange, Error, LimitError, Result, UpdateTableError};
use crate::lease::Lease;
use crate::options::Limits;
use crate::schema::{BillingMode, IndexStatus, StreamSettings, TableClass, TableDefinition};
use crate::streams;
use crate::tables::{TableUpdate, encryption, index_changes, throughput};

/// A table's class changes at most twice within this time.
const TABLE_CLASS_WINDOW_MS: u64 = 30 * 24 * 3_600 * 1_000;

impl Engine {
    /// Changes a table's settings atomically. They apply when this returns, except that indexes are
    /// filled and removed in the background.
    pub async fn update_table(&self, request: UpdateTable) -> Result<TableUpdate> {
        self.update_table_under(request, &Lease::default()).await
    }

    /// Like [`Engine::update_table`], for work under a lease: once that is lost, nothing changes.
    pub async fn update_table_under(
        &self,
        request: UpdateTable,
        lease: &Lease,
    ) -> Result<TableUpdate> {
        let (now_ms, limits) = (self.clock.now_ms(), &self.limits);
        let view_type = match request.stream {
            Some(StreamChange::Enable(view_type)) => Some(view_type),
            Some(StreamChange::Disable) | None => None,
        };
        let earlier = match view_type {
            Some(_) => self.latest_stream_label(&request.table).await?,
            None => None,
        };
        let decide = |before: &TableDefinition| {
            // The table may have had another stream since the earlier labels were read.
            let latest = earlier.as_deref().max(before.latest_stream_label.as_deref());
            let stream = view_type.map(|view_type| self.new_stream(view_type, latest));
            let mut edit = Edit::new(before.clone());
            apply(&mut edit.definition, &request, stream.as_ref(), now_ms, limits)?;
            match &edit.definition.stream {
                None => {
                    let stamp_ms = self.trusted_clock.read().stamp_ms;
                    streams::retire(before, stamp_ms, &mut edit.batch);
                }
                stream if *stream != before.stream => {
                    streams::put_row(&edit.definition, &mut edit.batch);
                }
                Some(_) => {}
            }
            Ok(edit)
        };
        let store = &*self.store;
        let changed = self.catalog.change_leased(store, &request.table, lease, decide).await?;
        self.background.wake();
        self.announcements.announce(&request.table);
        let after = self.describe_as_is(&changed.after).await;
        let before = self.describe_as_is(&changed.before).await;
        Ok(TableUpdate { before, after })
    }
}

fn apply(
    definition: &mut TableDefinition,
    request: &UpdateTable,
    new_stream: Option<&StreamSettings>,
    now_ms: u64,
    limits: &Limits,
) -> Result<()> {
    index_changes::check_types(definition, request)?;
    check_indexes_at_rest(definition, request)?;
    check_limits(request, limits)?;
    apply_capacity(definition, request, now_ms)?;
    if request.stream.is_some() {
        apply_stream(definition, new_stream)?;
    }
    if let Some(change) = &request.encryption {
        encryption::apply(definition, change)?;
    }
    if let Some(class) = request.table_class {
        apply_table_class(definition, class, now_ms)?;
    }
    if let Some(protection) = request.deletion_protection {
        definition.deletion_protection = protection;
    }
    index_changes::apply(definition, request, limits)
}

/// Capacity and stream can't change while an index is being created or deleted.
fn check_indexes_at_rest(
    definition: &TableDefinition,
    request: &UpdateTable,
) -> Result<(), UpdateTableError> {
    let busy = |deleting: bool| {
        let statuses = definition.global_indexes.iter().filter(move |index| match index.status {
            IndexStatus::Active => false,
            IndexStatus::Creating { .. } => !deleting,
            IndexStatus::Deleting => deleting,
        });
        statuses.map(|index| index.name.clone()).collect::<Vec<_>>()
    };
    let change = if request.billing_mode.is_some() || request.throughput.provisioned.is_some() {
        BlockedChange::Throughput
    } else if throughput::has_on_demand_maximum(&request.throughput) {
        BlockedChange::OnDemandMaximum
    } else if request.stream.is_some() {
        BlockedChange::Stream
    } else {
        return Ok(());
    };
    for deleting in [false, true] {
        let indexes = busy(deleting);
        if !indexes.is_empty() {
            return Err(UpdateTableError::IndexesBusy { change, indexes, deleting });
        }
    }
    Ok(())
}

fn check_limits(request: &UpdateTable, limits: &Limits) -> Result<()> {
    throughput::check_limits(limits, &request.throughput, None)?;
    for change in &request.index_changes {
        match change {
            IndexChange::Create(index) => {
                throughput::check_limits(limits, &index.throughput, Some(&index.name))?;
            }
            IndexChange::Update { name, throughput } => {
                throughput::check_limits(limits, throughput, Some(name))?;
            }
            IndexChange::Delete { .. } => {}
        }
    }
    Ok(())
}

/// The billing mode and all capacity settings, of the table and then of its indexes.
fn apply_capacity(
    definition: &mut TableDefinition,
    request: &UpdateTable,
    now_ms: u64,
) -> Result<(), UpdateTableError> {
    let mode_before = definition.billing_mode;
    let mode = request.billing_mode.unwrap_or(mode_before);
    definition.billing_mode = mode;
    match mode {
        BillingMode::PayPerRequest => on_demand(definition, request, mode_before, now_ms)?,
        BillingMode::Provisioned => provisioned(definition, request, mode_before, now_ms)?,
    }
    throughput::raise_warm(&mut definition.throughput, &request.throughput, None)?;
    for change in &request.index_changes {
        if let IndexChange::Update { name, throughput } = change {
            update_index(definition, name, throughput, mode_before, now_ms)?;
        }
    }
    Ok(())
}

fn on_demand(
    definition: &mut TableDefinition,
    request: &UpdateTable,
    mode_before: BillingMode,
    now_ms: u64,
) -> Result<(), UpdateTableError> {
    if request.throughput.provisioned.is_some() {
        return Err(throughput::not_on_demand(None));
    }
    if mode_before == BillingMode::Provisioned {
        definition.on_demand_since_ms = Some(now_ms);
        throughput::become_on_demand(&mut definition.throughput);
        for index in &mut definition.global_indexes {
            throughput::become_on_demand(&mut index.throughput);
        }
    }
    throughput::merge_on_demand_maximum(&mut definition.throughput, &request.throughput);
    Ok(())
}

fn provisioned(
    definition: &mut TableDefinition,
    request: &UpdateTable,
    mode_before: BillingMode,
    now_ms: u64,
) -> Result<(), UpdateTableError> {
    throughput::refuse_on_demand_maximum(&request.throughput, None)?;
    let Some(units) = request.throughput.provisioned else {
        // A request for this mode must give the units, even if the table is in it already.
        return match request.billing_mode {
            Some(_) => Err(throughput::required(None)),
            None => Ok(()),
        };
    };
    if mode_before == BillingMode::Provisioned {
        return throughput::change_units(&mut definition.throughput, units, None, now_ms);
    }
    throughput::become_provisioned(&mut definition.throughput, units);
    for index in &mut definition.global_indexes {
        let units = request.index_changes.iter().find_map(|change| match change {
            IndexChange::Update { name, throughput } if *name == index.name => {
                throughput.provisioned
            }
            _ => None,
        });
        let units = units.ok_or_else(|| throughput::required(Some(&index.name)))?;
        throughput::become_provisioned(&mut index.throughput, units);
    }
    Ok(())
}

fn update_index(
    definition: &mut TableDefinition,
    name: &str,
    settings: &ThroughputSettings,
    mode_before: BillingMode,
    now_ms: u64,
) -> Result<(), UpdateTableError> {
    let mode = definition.billing_mode;
    let index = index_changes::global_index(definition, name, false)?;
    if index.status == IndexStatus::Deleting {
        return Err(UpdateTableError::IndexBeingDeleted { index: name.to_owned() });
    }
    match (mode, settings.provisioned) {
        (BillingMode::PayPerRequest, Some(_)) => {
            return Err(throughput::not_on_demand(Some(name)));
        }
        // A change of mode has set the index's units together with the table's.
        (BillingMode::Provisioned, Some(units)) if mode_before == mode => {
            throughput::change_units(&mut index.throughput, units, Some(name), now_ms)?;
        }
        _ => {}
    }
    match mode {
        BillingMode::PayPerRequest => {
            throughput::merge_on_demand_maximum(&mut index.throughput, settings);
        }
        BillingMode::Provisioned => throughput::refuse_on_demand_maximum(settings, Some(name))?,
    }
    throughput::raise_warm(&mut index.throughput, settings, Some(name))
}

/// Enables `new_stream`; without one, disables the stream.
fn apply_stream(
    definition: &mut TableDefinition,
    new_stream: Option<&StreamSettings>,
) -> Result<(), UpdateTableError> {
    match (new_stream, &definition.stream) {
        (Some(_), Some(_)) => return Err(UpdateTableError::StreamAlreadyEnabled),
        (None, None) => return Err(UpdateTableError::NoStreamToDisable),
        (Some(stream), None) => {
            definition.latest_stream_label = Some(stream.label.clone());
            definition.stream = Some(stream.clone());
        }
        (None, Some(_)) => definition.stream = None,
    }
    Ok(())
}

fn apply_table_class(
    definition: &mut TableDefinition,
    class: TableClass,
    now_ms: u64,
) -> Result<()> {
    let (current, last_change_ms) = definition.table_class.unwrap_or((TableClass::Standard, None));
    if current == class {
        return Ok(());
    }
    let is_recent = |at_ms: u64| now_ms.saturating_sub(at_ms) < TABLE_CLASS_WINDOW_MS;
    if definition.previous_table_class_change_ms.is_some_and(is_recent) {
        return Err(Error::Limit(LimitError::TableClassChanges));
    }
    definition.previous_table_class_change_ms = last_change_ms;
    definition.table_class = Some((class, Some(now_ms)));
    Ok(())
}
