//! RestoreTableToPointInTime and RestoreTableFromBackup.

use zenobe_engine::command::TableName;
use zenobe_engine::restore::{
    IndexOverride, RestoreFrom, RestoreOverrides, RestoreTable, RestoreTime,
};

use super::backup_arn::{BackupArn, constrain_backup_arn, namespace_in};
use super::create_table::render_created;
use super::enumerations::{BILLING_MODE, KeyType};
use super::get_shard_iterator::WireTimestamp;
use super::table_input::encryption::EncryptionInput;
use super::table_input::indexes::IndexInput;
use super::table_input::keys::KeyElement;
use super::table_input::shapes::{
    GlobalSecondaryIndex, LocalSecondaryIndex, OnDemandThroughput, PresentMember,
    ProvisionedThroughput, SSESpecification,
};
use super::table_input::throughput::Capacity;
use crate::constraints::{TableNameRule, Violations, is_table_name};
use crate::error::ApiError;
use crate::json::decode::{request, shape};
use crate::messages::{backup, parameter_not_supported, request as request_texts};
use crate::{Context, Reply};

pub(crate) async fn to_point_in_time(
    context: &Context<'_>,
    body: &[u8],
) -> Result<Reply, ApiError> {
    let mut input: RestoreTableToPointInTimeInput = request(body)?;
    let mut violations = Violations::new();
    let target = constrain_target(input.target_table_name.as_deref(), &mut violations);
    if let Some(arn) = &input.source_table_arn {
        violations.length(arn, "sourceTableArn", 1, 1_024);
    }
    if let Some(name) = &input.source_table_name {
        violations.name(name, "sourceTableName");
    }
    let overrides = input.take_overrides().constrain(&mut violations);
    violations.finish()?;
    let name = source(context, input.source_table_arn, input.source_table_name)?;
    let time = time(input.restore_date_time, input.use_latest_restorable_time)?;
    let overrides = overrides?;
    if name.namespace != *context.namespace && overrides.encryption.is_none() {
        // A table that does not exist is reported first.
        let found = context.engine.current_table(&name).await;
        found.map_err(|error| context.backup(error))?;
        return Err(backup::cross_region_encryption());
    }
    let source = RestoreFrom::Table { name, time };
    restore(context, source, target, overrides).await
}

pub(crate) async fn from_backup(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let mut input: RestoreTableFromBackupInput = request(body)?;
    let mut violations = Violations::new();
    let target = constrain_target(input.target_table_name.as_deref(), &mut violations);
    let arn = constrain_backup_arn(input.backup_arn.take(), &mut violations);
    let overrides = input.take_overrides().constrain(&mut violations);
    violations.finish()?;
    let BackupArn { table, id } = BackupArn::parse(context, &arn)?;
    let overrides = overrides?;
    if table.namespace != *context.namespace && overrides.encryption.is_none() {
        // A backup that does not exist is reported first.
        let found = context.engine.backup(&table, &id).await;
        found.map_err(|error| context.backup(error))?;
        return Err(backup::cross_region_encryption());
    }
    let source = RestoreFrom::Backup { table, id };
    restore(context, source, target, overrides).await
}

/// Declares a request with the overrides that both operations take.
macro_rules! restore_input {
    ($name:ident { $($member:literal => $field:ident: $type:ty),* $(,)? }) => {
        shape! {
            struct $name {
                $($member => $field: $type,)*
                "BillingModeOverride" => billing_mode: String,
                "GlobalSecondaryIndexOverride" => global_indexes: Vec<GlobalSecondaryIndex>,
                "LocalSecondaryIndexOverride" => local_indexes: Vec<LocalSecondaryIndex>,
                "ProvisionedThroughputOverride" => provisioned: ProvisionedThroughput,
                "OnDemandThroughputOverride" => on_demand: OnDemandThroughput,
                "SSESpecificationOverride" => encryption: SSESpecification,
                "VectorIndexOverride" => vector_indexes: Vec<PresentMember>,
            }
        }

        impl $name {
            fn take_overrides(&mut self) -> OverridesInput {
                OverridesInput {
                    billing_mode: self.billing_mode.take(),
                    global_indexes: self.global_indexes.take(),
                    local_indexes: self.local_indexes.take(),
                    provisioned: self.provisioned.take(),
                    on_demand: self.on_demand.take(),
                    encryption: self.encryption.take(),
                    vector_indexes: self.vector_indexes.take(),
                }
            }
        }
    };
}

restore_input! {
    RestoreTableToPointInTimeInput {
        "SourceTableArn" => source_table_arn: String,
        "SourceTableName" => source_table_name: String,
        "TargetTableName" => target_table_name: String,
        "UseLatestRestorableTime" => use_latest_restorable_time: bool,
        "RestoreDateTime" => restore_date_time: WireTimestamp,
    }
}

restore_input! {
    RestoreTableFromBackupInput {
        "TargetTableName" => target_table_name: String,
        "BackupArn" => backup_arn: String,
    }
}

fn constrain_target(name: Option<&str>, violations: &mut Violations) -> String {
    let given = name.is_some();
    let name = violations.required(name.map(str::to_owned), "targetTableName");
    if given {
        violations.name(&name, "targetTableName");
    }
    name
}

fn source(
    context: &Context<'_>,
    arn: Option<String>,
    name: Option<String>,
) -> Result<TableName, ApiError> {
    match (arn, name) {
        (Some(_), Some(_)) => Err(backup::one_source()),
        (None, None) => Err(request_texts::table_name_required()),
        (None, Some(name)) => context.table_name(Some(&name), TableNameRule::Settings),
        (Some(arn), None) => table_in_arn(context, &arn),
    }
}

/// The table of an ARN, which may be in another region.
fn table_in_arn(context: &Context<'_>, arn: &str) -> Result<TableName, ApiError> {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let ["arn", "aws", "dynamodb", region, account, resource] = parts[..] else {
        return Err(backup::invalid_source_arn());
    };
    let name = resource.strip_prefix("table/").filter(|name| is_table_name(name));
    let (Some(name), Some(namespace)) = (name, namespace_in(context, region)) else {
        return Err(backup::invalid_source_arn());
    };
    if account != context.namespace.account {
        return Err(backup::other_owner());
    }
    Ok(TableName { namespace, name: name.to_owned() })
}

fn time(at: Option<WireTimestamp>, use_latest: Option<bool>) -> Result<RestoreTime, ApiError> {
    match (at, use_latest.unwrap_or(false)) {
        (Some(_), true) => Err(backup::two_restore_times()),
        (None, false) => Err(backup::no_restore_time()),
        (None, true) => Ok(RestoreTime::Latest),
        (Some(at), false) => Ok(RestoreTime::Second(at.at_ms / 1_000)),
    }
}

/// The overrides of either operation.
struct OverridesInput {
    billing_mode: Option<String>,
    global_indexes: Option<Vec<GlobalSecondaryIndex>>,
    local_indexes: Option<Vec<LocalSecondaryIndex>>,
    provisioned: Option<ProvisionedThroughput>,
    on_demand: Option<OnDemandThroughput>,
    encryption: Option<SSESpecification>,
    vector_indexes: Option<Vec<PresentMember>>,
}

impl OverridesInput {
    /// Checks the constraints at once. The result holds what the other rules say, which are reported
    /// later.
    fn constrain(self, violations: &mut Violations) -> Result<RestoreOverrides, ApiError> {
        let billing_mode = violations.enumeration(
            self.billing_mode.as_deref(),
            "billingModeOverride",
            &BILLING_MODE,
        );
        let mut global = |(position, index)| {
            let path = format!("globalSecondaryIndexOverride.{}.member", position + 1);
            IndexInput::constrain_global(index, &path, violations)
        };
        let global_indexes: Option<Vec<IndexInput>> = self
            .global_indexes
            .map(|given| given.into_iter().enumerate().map(&mut global).collect());
        let mut local = |(position, index)| {
            let path = format!("localSecondaryIndexOverride.{}.member", position + 1);
            IndexInput::constrain_local(index, &path, violations)
        };
        let local_indexes: Option<Vec<IndexInput>> =
            self.local_indexes.map(|given| given.into_iter().enumerate().map(&mut local).collect());
        let capacity = Capacity::constrain(self.provisioned, self.on_demand, None, "", violations);
        let encryption = self.encryption.map(|given| EncryptionInput::constrain(given, violations));
        if self.vector_indexes.is_some() {
            return Err(parameter_not_supported("VectorIndexOverride"));
        }
        if let Some(member) = capacity.on_demand_out_of_range() {
            return Err(backup::on_demand_maximum_range(member));
        }
        let overrides = |indexes: Option<Vec<IndexInput>>| {
            let indexes = indexes.map(|indexes| indexes.iter().map(index_override).collect());
            indexes.transpose()
        };
        Ok(RestoreOverrides {
            billing_mode,
            throughput: capacity.settings(),
            local_indexes: overrides(local_indexes)?,
            global_indexes: overrides(global_indexes)?,
            encryption: encryption.map(EncryptionInput::resolve).transpose()?,
        })
    }
}

fn index_override(index: &IndexInput) -> Result<IndexOverride, ApiError> {
    let names = |is_sort: bool| {
        let keys = index.keys.iter().filter(|key| (key.key_type == KeyType::Range) == is_sort);
        keys.map(|key: &KeyElement| key.name.clone()).collect()
    };
    Ok(IndexOverride {
        name: index.name.clone(),
        partition: names(false),
        sort: names(true),
        projection: index.projection()?,
        throughput: index.capacity.settings(),
    })
}

async fn restore(
    context: &Context<'_>,
    source: RestoreFrom,
    target: String,
    overrides: RestoreOverrides,
) -> Result<Reply, ApiError> {
    let target = TableName { namespace: context.namespace.clone(), name: target };
    let restored = context.engine.restore_table(RestoreTable { source, target, overrides }).await;
    let restored = restored.map_err(|error| context.backup(error))?;
    Ok(render_created(&restored, &[], context.engine.clock().now_ms()))
}
