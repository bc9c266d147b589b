//! CreateTable.

use std::collections::BTreeSet;

use zenobe_engine::command::{CreateTable, EncryptionChange, KmsKey, TableName};
use zenobe_engine::error::Error;
use zenobe_engine::schema::{BillingMode, TableClass, TableDescription};

use super::enumerations::{BILLING_MODE, TABLE_CLASS};
use super::table_input::encryption::EncryptionInput;
use super::table_input::indexes::{
    IndexInput, IndexNames, check_index_lists, check_projected_attributes, global_indexes,
    global_keys, local_indexes, local_keys,
};
use super::table_input::keys::{
    Definitions, KeyCount, KeyElement, constrain_key_schema, in_java_set_order, table_keys,
};
use super::table_input::shapes::{
    AttributeDefinition, GlobalSecondaryIndex, KeySchemaElement, LocalSecondaryIndex,
    OnDemandThroughput, PresentMember, ProvisionedThroughput, SSESpecification,
    StreamSpecification, Tag, WarmThroughput,
};
use super::table_input::stream::StreamInput;
use super::table_input::tags::tags;
use super::table_input::throughput::{Capacity, CapacityOwner};
use crate::constraints::{TableNameRule, Violations};
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::{parameter_not_supported, table};
use crate::render::{Presentation, ShownWarmThroughput, write_table};
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: CreateTableInput = request(body)?;
    let table = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let constrained = constrain(input)?;
    let warm = constrained.given_warm_throughputs();
    let name = table.name.clone();
    let command = lower(table, constrained)?;
    let created = context.engine.create_table(command).await.map_err(|error| match error {
        Error::TableFilling { name } => table::table_being_used(&name),
        error => context.table(&name, error),
    })?;
    Ok(render_created(&created, &warm, context.engine.clock().now_ms()))
}

shape! {
    struct CreateTableInput {
        "AttributeDefinitions" => attribute_definitions: Vec<AttributeDefinition>,
        "TableName" => table_name: String,
        "KeySchema" => key_schema: Vec<KeySchemaElement>,
        "LocalSecondaryIndexes" => local_secondary_indexes: Vec<LocalSecondaryIndex>,
        "GlobalSecondaryIndexes" => global_secondary_indexes: Vec<GlobalSecondaryIndex>,
        "BillingMode" => billing_mode: String,
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput,
        "StreamSpecification" => stream_specification: StreamSpecification,
        "SSESpecification" => sse_specification: SSESpecification,
        "Tags" => tags: Vec<Tag>,
        "TableClass" => table_class: String,
        "DeletionProtectionEnabled" => deletion_protection_enabled: bool,
        "WarmThroughput" => warm_throughput: WarmThroughput,
        "ResourcePolicy" => resource_policy: String,
        "OnDemandThroughput" => on_demand_throughput: OnDemandThroughput,
        "GlobalTableSourceArn" => global_table_source_arn: String,
        "GlobalTableSettingsReplicationMode" => global_table_settings_replication_mode: String,
        "VectorIndexes" => vector_indexes: Vec<PresentMember>,
    }
}

shape! {
    /// The tables that ImportTable creates have fewer settings.
    struct TableCreationParameters {
        "TableName" => table_name: String,
        "AttributeDefinitions" => attribute_definitions: Vec<AttributeDefinition>,
        "KeySchema" => key_schema: Vec<KeySchemaElement>,
        "BillingMode" => billing_mode: String,
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput,
        "OnDemandThroughput" => on_demand_throughput: OnDemandThroughput,
        "SSESpecification" => sse_specification: SSESpecification,
        "GlobalSecondaryIndexes" => global_secondary_indexes: Vec<GlobalSecondaryIndex>,
        "VectorIndexes" => vector_indexes: Vec<PresentMember>,
    }
}

/// The table that an import creates, by the rules of CreateTable.
pub(crate) fn creation_command(
    table: TableName,
    parameters: TableCreationParameters,
) -> Result<CreateTable, ApiError> {
    let input = CreateTableInput {
        attribute_definitions: parameters.attribute_definitions,
        key_schema: parameters.key_schema,
        global_secondary_indexes: parameters.global_secondary_indexes,
        billing_mode: parameters.billing_mode,
        provisioned_throughput: parameters.provisioned_throughput,
        sse_specification: parameters.sse_specification,
        on_demand_throughput: parameters.on_demand_throughput,
        vector_indexes: parameters.vector_indexes,
        ..CreateTableInput::default()
    };
    lower(table, constrain(input)?)
}

/// The request after its members' constraints.
struct Constrained {
    definitions: Definitions,
    billing_mode: BillingMode,
    capacity: Capacity,
    keys: Vec<KeyElement>,
    local_indexes: Option<Vec<IndexInput>>,
    global_indexes: Option<Vec<IndexInput>>,
    stream: Option<StreamInput>,
    encryption: Option<EncryptionInput>,
    tags: Vec<Tag>,
    table_class: Option<String>,
    deletion_protection: bool,
    unsupported: UnsupportedMembers,
}

/// Members that only DynamoDB itself supports so far.
struct UnsupportedMembers {
    vector_indexes: bool,
    others: Vec<&'static str>,
}

fn constrain(input: CreateTableInput) -> Result<Constrained, ApiError> {
    let unsupported = unsupported(&input);
    let mut violations = Violations::new();
    let definitions = violations.required(input.attribute_definitions, "attributeDefinitions");
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
    let keys =
        constrain_key_schema(input.key_schema, "keySchema", KeyCount::AtMostTwo, &mut violations);
    let global_indexes = input.global_secondary_indexes.map(|indexes| {
        numbered("globalSecondaryIndexes", indexes, |index, path| {
            IndexInput::constrain_global(index, path, &mut violations)
        })
    });
    let local_indexes = input.local_secondary_indexes.map(|indexes| {
        numbered("localSecondaryIndexes", indexes, |index, path| {
            IndexInput::constrain_local(index, path, &mut violations)
        })
    });
    let stream =
        input.stream_specification.map(|given| StreamInput::constrain(&given, &mut violations));
    let encryption =
        input.sse_specification.map(|given| EncryptionInput::constrain(given, &mut violations));
    violations.finish()?;
    Ok(Constrained {
        definitions,
        billing_mode: billing_mode.unwrap_or(BillingMode::Provisioned),
        capacity,
        keys,
        local_indexes,
        global_indexes,
        stream,
        encryption,
        tags: input.tags.unwrap_or_default(),
        table_class: input.table_class,
        deletion_protection: input.deletion_protection_enabled.unwrap_or_default(),
        unsupported,
    })
}

fn numbered<T>(
    list: &str,
    indexes: Vec<T>,
    mut constrain: impl FnMut(T, &str) -> IndexInput,
) -> Vec<IndexInput> {
    let constrain = |(position, index): (usize, T)| {
        constrain(index, &format!("{list}.{}.member", position + 1))
    };
    indexes.into_iter().enumerate().map(constrain).collect()
}

fn unsupported(input: &CreateTableInput) -> UnsupportedMembers {
    let members = [
        ("GlobalTableSourceArn", input.global_table_source_arn.is_some()),
        (
            "GlobalTableSettingsReplicationMode",
            input.global_table_settings_replication_mode.is_some(),
        ),
        ("ResourcePolicy", input.resource_policy.is_some()),
    ];
    UnsupportedMembers {
        vector_indexes: input.vector_indexes.is_some(),
        others: members.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect(),
    }
}

/// The request's own rules, in DynamoDB's order.
fn lower(table: TableName, input: Constrained) -> Result<CreateTable, ApiError> {
    let billing_mode = input.billing_mode;
    input.capacity.check_provisioned(CapacityOwner::Table, billing_mode)?;
    let keys = table_keys(&input.keys, &input.definitions)?;
    let (local_inputs, global_inputs) =
        (input.local_indexes.as_deref(), input.global_indexes.as_deref());
    check_index_lists(local_inputs, global_inputs, &keys)?;
    let local_keys = local_keys(local_inputs.unwrap_or_default(), &keys, &input.definitions)?;
    let global_keys = global_keys(global_inputs.unwrap_or_default(), &input.definitions)?;
    reject_unused_definitions(&input)?;
    let mut names = IndexNames::default();
    let local_indexes = local_indexes(local_inputs.unwrap_or_default(), local_keys, &mut names)?;
    let global_indexes =
        global_indexes(global_inputs.unwrap_or_default(), global_keys, billing_mode, &mut names)?;
    check_projected_attributes(local_indexes.iter().chain(&global_indexes))?;
    reject_unsupported(&input)?;
    let stream = input.stream.map_or(Ok(None), StreamInput::created)?;
    check_on_demand_and_warm(&input)?;
    let kms_key = kms_key(input.encryption)?;
    let tags = tags(input.tags)?;
    let table_class = input.table_class.as_deref().map(table_class).transpose()?;
    Ok(CreateTable {
        table,
        attribute_types: input.definitions.into_types(),
        keys,
        local_indexes,
        global_indexes,
        billing_mode,
        throughput: input.capacity.settings(),
        stream,
        kms_key,
        table_class,
        deletion_protection: input.deletion_protection,
        tags,
    })
}

/// Every defined attribute must be a key of the table or of an index.
fn reject_unused_definitions(input: &Constrained) -> Result<(), ApiError> {
    if input.local_indexes.is_none() && input.global_indexes.is_none() {
        return if input.definitions.len() == input.keys.len() {
            Ok(())
        } else {
            Err(table::definitions_not_matching())
        };
    }
    let indexes = input.local_indexes.iter().chain(&input.global_indexes).flatten();
    let used: Vec<&str> = input
        .keys
        .iter()
        .chain(indexes.flat_map(|index| &index.keys))
        .map(|key| key.name.as_str())
        .collect();
    let distinct: BTreeSet<&str> = used.iter().copied().collect();
    if input.definitions.names().all(|name| distinct.contains(name)) {
        return Ok(());
    }
    let used = in_java_set_order(&used).join(", ");
    Err(table::definitions_not_used(&input.definitions.printed(), &used))
}

fn reject_unsupported(input: &Constrained) -> Result<(), ApiError> {
    if input.unsupported.vector_indexes {
        return Err(match input.billing_mode {
            BillingMode::Provisioned => table::vector_indexes_provisioned(),
            BillingMode::PayPerRequest => parameter_not_supported("VectorIndexes"),
        });
    }
    match input.unsupported.others.first() {
        Some(member) => Err(parameter_not_supported(member)),
        None => Ok(()),
    }
}

fn check_on_demand_and_warm(input: &Constrained) -> Result<(), ApiError> {
    let places = || {
        let indexes = input.global_indexes.iter().flatten();
        let indexes = indexes.map(|index| (CapacityOwner::Index(&index.name), &index.capacity));
        std::iter::once((CapacityOwner::Table, &input.capacity)).chain(indexes)
    };
    for (place, capacity) in places() {
        capacity.check_on_demand(place, input.billing_mode)?;
    }
    for (place, capacity) in places() {
        capacity.check_warm(place, input.billing_mode)?;
    }
    Ok(())
}

fn kms_key(encryption: Option<EncryptionInput>) -> Result<Option<KmsKey>, ApiError> {
    match encryption.map(EncryptionInput::resolve).transpose()? {
        Some(EncryptionChange::Kms(key)) => Ok(Some(key)),
        Some(EncryptionChange::Default) | None => Ok(None),
    }
}

pub(crate) fn table_class(name: &str) -> Result<TableClass, ApiError> {
    let found = TABLE_CLASS.0.iter().find(|(known, _)| *known == name);
    found.map(|(_, class)| *class).ok_or_else(table::table_class)
}

impl Constrained {
    /// Where warm throughput was given: the table (`None`) or an index.
    fn given_warm_throughputs(&self) -> Vec<Option<String>> {
        let table = self.capacity.gives_warm().then_some(None);
        let indexes = self.global_indexes.iter().flatten();
        let indexes = indexes
            .filter(|index| index.capacity.gives_warm())
            .map(|index| Some(index.name.clone()));
        table.into_iter().chain(indexes).collect()
    }
}

/// The answer of an operation that creates a table. It shows the warm throughput of the places in `warm` only.
pub(crate) fn render_created(
    created: &TableDescription,
    warm: &[Option<String>],
    now_ms: u64,
) -> Reply {
    let indexes = &created.definition.global_indexes;
    let presentation = Presentation {
        table_status: Some("CREATING"),
        index_status: indexes.iter().map(|index| (index.name.clone(), "CREATING")).collect(),
        shows_backfilling: false,
        shows_on_demand_since: false,
        warm_throughput: ShownWarmThroughput::Only(warm),
        ..Presentation::described(now_ms)
    };
    let mut writer = Writer::new();
    writer.object(|writer| write_table(writer.name("TableDescription"), created, &presentation));
    Reply(writer.finish())
}
