//! UpdateTable. Each request makes one logical change; the engine checks what depends on the
//! table's state.

mod combinations;
mod index_updates;
mod response;

use zenobe_engine::command::{IndexChange, TableName, UpdateTable};
use zenobe_engine::error::{Error, UpdateTableError};
use zenobe_engine::schema::BillingMode;

use self::combinations::Members;
use self::index_updates::{IndexUpdateInput, lower_index_updates};
use super::create_table::table_class;
use super::enumerations::BILLING_MODE;
use super::table_input::encryption::EncryptionInput;
use super::table_input::keys::Definitions;
use super::table_input::shapes::{
    AttributeDefinition, GlobalSecondaryIndexUpdate, OnDemandThroughput, PresentMember,
    ProvisionedThroughput, SSESpecification, StreamSpecification, WarmThroughput,
};
use super::table_input::stream::StreamInput;
use super::table_input::throughput::{Capacity, CapacityOwner};
use crate::constraints::{TableNameRule, Violations, printed_list};
use crate::error::ApiError;
use crate::json::decode::{request, shape};
use crate::messages::constraint::java_object;
use crate::messages::{parameter_not_supported, table};
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: UpdateTableInput = request(body)?;
    let table = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let constrained = constrain(input)?;
    let is_blocked = constrained.exceeds_bounds();
    let command = lower(table, constrained)?;
    if is_blocked {
        return Err(blocked(context, &command.table).await);
    }
    let sent = command.clone();
    let update = context
        .engine
        .update_table(command)
        .await
        .map_err(|error| worded(context, &sent, error))?;
    Ok(response::render(&sent, &update, context.engine.clock().now_ms()))
}

shape! {
    struct UpdateTableInput {
        "AttributeDefinitions" => attribute_definitions: Vec<AttributeDefinition>,
        "TableName" => table_name: String,
        "BillingMode" => billing_mode: String,
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput,
        "GlobalSecondaryIndexUpdates" => global_secondary_index_updates:
            Vec<GlobalSecondaryIndexUpdate>,
        "StreamSpecification" => stream_specification: StreamSpecification,
        "SSESpecification" => sse_specification: SSESpecification,
        "ReplicaUpdates" => replica_updates: Vec<ReplicationGroupUpdate>,
        "TableClass" => table_class: String,
        "DeletionProtectionEnabled" => deletion_protection_enabled: bool,
        "MultiRegionConsistency" => multi_region_consistency: String,
        "GlobalTableWitnessUpdates" => global_table_witness_updates: Vec<PresentMember>,
        "OnDemandThroughput" => on_demand_throughput: OnDemandThroughput,
        "WarmThroughput" => warm_throughput: WarmThroughput,
        "GlobalTableSettingsReplicationMode" => global_table_settings_replication_mode: String,
        "DisassociationProtectionEnabled" => disassociation_protection_enabled: bool,
        "VectorIndexUpdates" => vector_index_updates: Vec<PresentMember>,
    }

    struct ReplicationGroupUpdate {
        "Create" => create: PresentMember,
        "Update" => update: PresentMember,
        "Delete" => delete: PresentMember,
        "Disassociate" => disassociate: PresentMember,
    }
}

/// The request after its members' constraints.
struct Constrained {
    definitions: Definitions,
    billing_mode: Option<BillingMode>,
    capacity: Capacity,
    index_updates: Option<Vec<IndexUpdateInput>>,
    stream: Option<StreamInput>,
    encryption: Option<EncryptionInput>,
    replica_updates: Option<Vec<ReplicationGroupUpdate>>,
    table_class: Option<String>,
    deletion_protection: Option<bool>,
    /// The first member that only DynamoDB itself supports so far.
    unsupported: Option<&'static str>,
}

fn constrain(input: UpdateTableInput) -> Result<Constrained, ApiError> {
    let unsupported = unsupported(&input);
    let mut violations = Violations::new();
    let definitions = input.attribute_definitions.unwrap_or_default();
    let definitions = Definitions::constrain(definitions, &mut violations);
    let billing_mode =
        violations.enumeration(input.billing_mode.as_deref(), "billingMode", &BILLING_MODE);
    let capacity = Capacity::constrain(
        input.provisioned_throughput,
        input.on_demand_throughput,
        input.warm_throughput,
        "",
        &mut violations,
    );
    let index_updates = input
        .global_secondary_index_updates
        .map(|updates| IndexUpdateInput::constrain(updates, &mut violations));
    let stream =
        input.stream_specification.map(|given| StreamInput::constrain(&given, &mut violations));
    let encryption =
        input.sse_specification.map(|given| EncryptionInput::constrain(given, &mut violations));
    if let Some(updates) = &input.replica_updates {
        violations.count(updates.len(), "replicaUpdates", 1, usize::MAX, || {
            printed_list(updates, |_| java_object("ReplicationGroupUpdate"))
        });
    }
    violations.finish()?;
    Ok(Constrained {
        definitions,
        billing_mode,
        capacity,
        index_updates,
        stream,
        encryption,
        replica_updates: input.replica_updates,
        table_class: input.table_class,
        deletion_protection: input.deletion_protection_enabled,
        unsupported,
    })
}

impl Constrained {
    fn exceeds_bounds(&self) -> bool {
        self.index_updates.iter().flatten().any(IndexUpdateInput::exceeds_bounds)
    }
}

fn unsupported(input: &UpdateTableInput) -> Option<&'static str> {
    let members = [
        ("VectorIndexUpdates", input.vector_index_updates.is_some()),
        ("MultiRegionConsistency", input.multi_region_consistency.is_some()),
        ("GlobalTableWitnessUpdates", input.global_table_witness_updates.is_some()),
        (
            "GlobalTableSettingsReplicationMode",
            input.global_table_settings_replication_mode.is_some(),
        ),
        ("DisassociationProtectionEnabled", input.disassociation_protection_enabled.is_some()),
    ];
    members.iter().find(|(_, given)| *given).map(|(name, _)| *name)
}

/// The request's own rules. They come before the check that the table exists.
fn lower(table: TableName, input: Constrained) -> Result<UpdateTable, ApiError> {
    Members::of(&input).check()?;
    reject_unsupported(&input)?;
    check_capacity(&input)?;
    let created = input.index_updates.unwrap_or_default();
    let index_changes = lower_index_updates(created, &input.definitions, input.billing_mode)?;
    let stream = input.stream.map(StreamInput::changed).transpose()?;
    let encryption = input.encryption.map(EncryptionInput::resolve).transpose()?;
    let table_class = input.table_class.as_deref().map(table_class).transpose()?;
    let definitions = (!input.definitions.is_empty()).then_some(input.definitions);
    Ok(UpdateTable {
        table,
        attribute_types: definitions.map(Definitions::into_types),
        billing_mode: input.billing_mode,
        throughput: input.capacity.settings(),
        stream,
        encryption,
        table_class,
        deletion_protection: input.deletion_protection,
        index_changes,
    })
}

fn reject_unsupported(input: &Constrained) -> Result<(), ApiError> {
    if let Some(updates) = &input.replica_updates {
        let acts = |update: &ReplicationGroupUpdate| {
            update.create.is_some()
                || update.update.is_some()
                || update.delete.is_some()
                || update.disassociate.is_some()
        };
        return Err(if updates.iter().all(acts) {
            parameter_not_supported("ReplicaUpdates")
        } else {
            table::no_replica_actions()
        });
    }
    input.unsupported.map_or(Ok(()), |member| Err(parameter_not_supported(member)))
}

fn check_capacity(input: &Constrained) -> Result<(), ApiError> {
    let provisioned = input.capacity.provisioned.is_some();
    match input.billing_mode {
        Some(BillingMode::PayPerRequest) if provisioned => {
            return Err(table::throughput_on_demand());
        }
        Some(BillingMode::Provisioned) if !provisioned => {
            return Err(table::update_throughput_required());
        }
        _ => {}
    }
    input.capacity.check_bounds()?;
    input.capacity.check_on_demand_range(CapacityOwner::Table)
}

/// The response to an index update that no table accepts, whether or not the index exists.
async fn blocked(context: &Context<'_>, table: &TableName) -> ApiError {
    match context.engine.describe_table(table).await {
        Ok(_) => table::index_update_blocked(),
        Err(error) => context.table(&table.name, error),
    }
}

/// The engine reports the capacity of new and existing indexes alike; DynamoDB doesn't.
fn worded(context: &Context<'_>, sent: &UpdateTable, error: Error) -> ApiError {
    let is_created = |name: &str| {
        sent.index_changes
            .iter()
            .any(|change| matches!(change, IndexChange::Create(index) if index.name == name))
    };
    match error {
        Error::UpdateTable(UpdateTableError::IndexThroughputRequired { index })
            if is_created(&index) =>
        {
            table::created_index_throughput_required(&index)
        }
        Error::UpdateTable(UpdateTableError::IndexThroughputOnDemand { index })
            if is_created(&index) =>
        {
            table::index_throughput_on_demand(&index)
        }
        error => context.table(&sent.table.name, error),
    }
}
