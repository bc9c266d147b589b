//! CreateBackup, ListBackups, DescribeBackup and DeleteBackup.

use zenobe_engine::backups::{Backup, ListBackups};
use zenobe_engine::error::Error;

use super::backup_arn::{BackupArn, constrain_backup_arn, constrain_length};
use super::enumerations::{BACKUP_TYPE_FILTER, BILLING_MODE, BackupTypeFilter};
use super::get_shard_iterator::WireTimestamp;
use crate::constraints::{TableNameRule, Violations};
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::backup as messages;
use crate::render::{write_features, write_key_schema, write_on_demand_maxima};
use crate::{Context, Reply};

const LIMIT_MAX: i64 = 100;

pub(crate) async fn create(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: CreateBackupInput = request(body)?;
    let table = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let mut violations = Violations::new();
    let given = input.backup_name.is_some();
    let name = violations.required(input.backup_name, "backupName");
    if given {
        violations.name(&name, "backupName");
    }
    violations.finish()?;
    let created = context.engine.create_backup(&table, &name).await;
    let backup = created.map_err(|error| context.backup(error))?;
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("BackupDetails").object(|writer| {
            write_details(writer, &backup, &backup.arn(), "CREATING");
        });
    });
    Ok(Reply(writer.finish()))
}

pub(crate) async fn list(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: ListBackupsInput = request(body)?;
    let mut violations = Violations::new();
    if let Some(limit) = input.limit {
        violations.range(limit.into(), "limit", 1, LIMIT_MAX);
    }
    let filter =
        violations.enumeration(input.backup_type.as_deref(), "backupType", &BACKUP_TYPE_FILTER);
    if let Some(arn) = &input.exclusive_start_backup_arn {
        constrain_length(arn, "exclusiveStartBackupArn", &mut violations);
    }
    violations.finish()?;
    let table = match input.table_name.as_deref() {
        Some(given) => Some(context.table_name(Some(given), TableNameRule::Settings)?),
        None => None,
    };
    let lower_ms = input.time_range_lower_bound.map_or(0, |bound| bound.at_ms);
    let upper_ms = input.time_range_upper_bound.map_or(u64::MAX, |bound| bound.at_ms);
    if lower_ms > upper_ms {
        return Err(messages::time_range());
    }
    let start = input.exclusive_start_backup_arn.as_deref().map(|arn| start(context, arn));
    let start = start.transpose()?;
    let filter = filter.unwrap_or(BackupTypeFilter::User);
    let wanted = ListBackups {
        namespace: context.namespace,
        table: table.as_ref().map(|table| &*table.name),
        users: matches!(filter, BackupTypeFilter::User | BackupTypeFilter::All),
        systems: matches!(filter, BackupTypeFilter::System | BackupTypeFilter::All),
        created_at_ms: lower_ms..upper_ms,
        after: start.as_ref().map(|start| (&*start.id, &*start.table.name)),
        limit: input.limit.map_or(LIMIT_MAX as usize, |limit| limit.unsigned_abs() as usize),
    };
    let found = context.engine.list_backups(&wanted).await;
    let found = found.map_err(|error| context.backup(error))?;
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("BackupSummaries").array(&found.backups, write_summary);
        if let Some(last) = found.backups.last().filter(|_| found.has_more) {
            writer.name("LastEvaluatedBackupArn").string(&last.arn());
        }
    });
    Ok(Reply(writer.finish()))
}

pub(crate) async fn describe(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let (arn, BackupArn { table, id }) = named(context, body)?;
    let backup = context.engine.backup(&table, &id).await;
    let backup = backup.map_err(|error| fault(context, error, &arn))?;
    Ok(render_description(&backup, &arn, "AVAILABLE"))
}

pub(crate) async fn delete(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let (arn, BackupArn { table, id }) = named(context, body)?;
    let deleted = context.engine.delete_backup(&table, &id).await;
    let backup = deleted.map_err(|error| fault(context, error, &arn))?;
    Ok(render_description(&backup, &arn, "DELETED"))
}

shape! {
    struct CreateBackupInput {
        "TableName" => table_name: String,
        "BackupName" => backup_name: String,
    }

    struct ListBackupsInput {
        "TableName" => table_name: String,
        "Limit" => limit: i32,
        "TimeRangeLowerBound" => time_range_lower_bound: WireTimestamp,
        "TimeRangeUpperBound" => time_range_upper_bound: WireTimestamp,
        "ExclusiveStartBackupArn" => exclusive_start_backup_arn: String,
        "BackupType" => backup_type: String,
    }

    struct BackupInput {
        "BackupArn" => backup_arn: String,
    }
}

/// Where a list continues. The region must be the caller's, and the backup need not exist.
fn start(context: &Context<'_>, arn: &str) -> Result<BackupArn, ApiError> {
    let region = arn.split(':').nth(3);
    match region.is_some_and(|region| region != context.namespace.region) {
        true => Err(messages::start_arn_region()),
        false => BackupArn::parse(context, arn),
    }
}

/// The backup that a request names, with its ARN as it is given: answers repeat it.
fn named(context: &Context<'_>, body: &[u8]) -> Result<(String, BackupArn), ApiError> {
    let input: BackupInput = request(body)?;
    let mut violations = Violations::new();
    let arn = constrain_backup_arn(input.backup_arn, &mut violations);
    violations.finish()?;
    let parts = BackupArn::parse(context, &arn)?.here(context);
    Ok((arn, parts))
}

fn fault(context: &Context<'_>, error: Error, given: &str) -> ApiError {
    match error {
        Error::Backup(error) => messages::backup_fault(&error, Some(given)),
        error => context.backup(error),
    }
}

fn write_details(writer: &mut Writer, backup: &Backup, arn: &str, status: &str) {
    let expires_at_ms = backup.expires_at_ms();
    writer.name("BackupArn").string(arn);
    writer.name("BackupName").string(&backup.name);
    writer.name("BackupSizeBytes").integer(backup.statistics.size_bytes);
    writer.name("BackupStatus").string(status);
    writer.name("BackupType").string(if expires_at_ms.is_some() { "SYSTEM" } else { "USER" });
    writer.name("BackupCreationDateTime").timestamp(backup.created_at_ms);
    if let Some(expires_at_ms) = expires_at_ms {
        writer.name("BackupExpiryDateTime").timestamp(expires_at_ms);
    }
}

fn write_summary(writer: &mut Writer, backup: &Backup) {
    let definition = &backup.definition;
    writer.object(|writer| {
        writer.name("TableName").string(&definition.name);
        writer.name("TableId").string(&definition.uuid);
        writer.name("TableArn").string(&definition.arn());
        write_details(writer, backup, &backup.arn(), "AVAILABLE");
    });
}

fn render_description(backup: &Backup, arn: &str, status: &str) -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| {
        write_description(writer.name("BackupDescription"), backup, arn, status);
    });
    Reply(writer.finish())
}

fn write_description(writer: &mut Writer, backup: &Backup, arn: &str, status: &str) {
    let definition = &backup.definition;
    writer.object(|writer| {
        let details = writer.name("BackupDetails");
        details.object(|writer| write_details(writer, backup, arn, status));
        writer.name("SourceTableDetails").object(|writer| {
            writer.name("TableName").string(&definition.name);
            writer.name("TableId").string(&definition.uuid);
            writer.name("TableArn").string(&definition.arn());
            writer.name("TableSizeBytes").integer(backup.statistics.size_bytes);
            write_key_schema(writer.name("KeySchema"), &definition.keys);
            writer.name("TableCreationDateTime").timestamp(definition.created_at_ms);
            writer.name("ProvisionedThroughput").object(|writer| {
                writer.name("ReadCapacityUnits").integer(definition.throughput.read_units);
                writer.name("WriteCapacityUnits").integer(definition.throughput.write_units);
            });
            write_on_demand_maxima(writer, &definition.throughput, (false, false));
            writer.name("ItemCount").integer(backup.statistics.item_count);
            writer.name("BillingMode").string(BILLING_MODE.name_of(&definition.billing_mode));
        });
        write_features(writer.name("SourceTableFeatureDetails"), definition);
    });
}
