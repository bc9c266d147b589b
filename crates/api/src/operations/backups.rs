//! ListBackups, DescribeBackup and DeleteBackup. The only backups are those that the database makes by itself when a table
//! with point-in-time recovery is deleted.

use zenobe_engine::backups::{Backup, backup_arn};
use zenobe_engine::command::TableName;
use zenobe_engine::error::{Error, HistoryError};

use super::enumerations::{BACKUP_TYPE_FILTER, BILLING_MODE, BackupTypeFilter};
use super::get_shard_iterator::WireTimestamp;
use crate::constraints::{TableNameRule, Violations};
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::backup as messages;
use crate::render::{write_features, write_key_schema};
use crate::{Context, Reply};

const LIMIT_MAX: i64 = 100;

pub(crate) async fn list(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: ListBackupsInput = request(body)?;
    let mut violations = Violations::new();
    if let Some(limit) = input.limit {
        violations.range(limit.into(), "limit", 1, LIMIT_MAX);
    }
    let filter =
        violations.enumeration(input.backup_type.as_deref(), "backupType", &BACKUP_TYPE_FILTER);
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
    let shows_system = matches!(filter, Some(BackupTypeFilter::System | BackupTypeFilter::All));
    let found = context.engine.backups(context.namespace).await;
    let mut found = found.map_err(|error| context.backup(error))?;
    found.retain(|backup| {
        let is_named = table.as_ref().is_none_or(|table| table.name == backup.definition.name);
        let is_timely = (lower_ms..upper_ms).contains(&backup.created_at_ms);
        // Ids begin with the time of their creation.
        let is_after = start.as_ref().is_none_or(|start| backup.place() > start.place());
        shows_system && is_named && is_timely && is_after
    });
    found.sort_by(|left, right| left.place().cmp(&right.place()));
    let limit = input.limit.map_or(LIMIT_MAX as usize, |limit| limit.unsigned_abs() as usize);
    let has_more = found.len() > limit;
    found.truncate(limit);
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("BackupSummaries").array(&found, write_summary);
        if let Some(last) = found.last().filter(|_| has_more) {
            writer.name("LastEvaluatedBackupArn").string(&last.arn());
        }
    });
    Ok(Reply(writer.finish()))
}

pub(crate) async fn describe(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let backup = find(context, body).await?;
    let mut writer = Writer::new();
    writer.object(|writer| write_description(writer.name("BackupDescription"), &backup));
    Ok(Reply(writer.finish()))
}

/// The database's own backups expire by themselves.
pub(crate) async fn delete(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let backup = find(context, body).await?;
    Err(messages::system_backup(&backup.arn(), &messages::seconds(backup.expires_at_ms)))
}

shape! {
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

/// Where a list goes on. The region must be the caller's, and the backup need not exist.
fn start(context: &Context<'_>, arn: &str) -> Result<BackupArn, ApiError> {
    let region = arn.split(':').nth(3);
    match region.is_some_and(|region| region != context.namespace.region) {
        true => Err(messages::start_arn_region()),
        false => BackupArn::parse(context, arn),
    }
}

/// The backup that a request names.
async fn find(context: &Context<'_>, body: &[u8]) -> Result<Backup, ApiError> {
    let input: BackupInput = request(body)?;
    let mut violations = Violations::new();
    let arn = constrain_backup_arn(input.backup_arn, &mut violations);
    violations.finish()?;
    let BackupArn { table, id } = BackupArn::parse(context, &arn)?;
    context.engine.backup(&table, &id).await.map_err(|error| match error {
        Error::History(HistoryError::BackupNotFound { .. }) => messages::backup_not_found(&arn),
        error => context.backup(error),
    })
}

pub(crate) fn constrain_backup_arn(arn: Option<String>, violations: &mut Violations) -> String {
    let given = arn.is_some();
    let arn = violations.required(arn, "backupArn");
    if given {
        violations.length(&arn, "backupArn", 37, 1024);
    }
    arn
}

/// The parts of `arn:aws:dynamodb:<region>:<account>:table/<table>/backup/<id>`.
pub(crate) struct BackupArn {
    pub(crate) table: TableName,
    pub(crate) id: String,
}

impl BackupArn {
    pub(crate) fn parse(context: &Context<'_>, arn: &str) -> Result<BackupArn, ApiError> {
        let parts: Vec<&str> = arn.splitn(6, ':').collect();
        let ["arn", partition, service, region, account, resource] = parts[..] else {
            return Err(messages::invalid_backup_arn());
        };
        let resource: Vec<&str> = resource.split('/').collect();
        let ["table", table, "backup", id] = resource[..] else {
            return Err(messages::invalid_backup_arn());
        };
        if (partition, service) != ("aws", "dynamodb") || region != context.namespace.region {
            return Err(messages::backup_arn_not_valid());
        }
        if account != context.namespace.account {
            return Err(messages::access_denied());
        }
        let table = TableName { namespace: context.namespace.clone(), name: table.to_owned() };
        Ok(BackupArn { table, id: id.to_owned() })
    }

    fn place(&self) -> (&str, &str) {
        (&self.id, &self.table.name)
    }
}

/// Where a backup stands in a list: by the time of its creation.
trait Place {
    fn place(&self) -> (&str, &str);
}

impl Place for Backup {
    fn place(&self) -> (&str, &str) {
        (&self.id, &self.definition.name)
    }
}

fn write_details(writer: &mut Writer, backup: &Backup) {
    let definition = &backup.definition;
    let arn = backup_arn(&definition.namespace, &definition.name, &backup.id);
    writer.name("BackupArn").string(&arn);
    writer.name("BackupName").string(&backup.name());
    writer.name("BackupSizeBytes").integer(backup.statistics.size_bytes);
    writer.name("BackupStatus").string("AVAILABLE");
    writer.name("BackupType").string("SYSTEM");
    writer.name("BackupCreationDateTime").timestamp(backup.created_at_ms);
    writer.name("BackupExpiryDateTime").timestamp(backup.expires_at_ms);
}

fn write_summary(writer: &mut Writer, backup: &Backup) {
    let definition = &backup.definition;
    writer.object(|writer| {
        writer.name("TableName").string(&definition.name);
        writer.name("TableId").string(&definition.uuid);
        writer.name("TableArn").string(&definition.arn());
        write_details(writer, backup);
    });
}

fn write_description(writer: &mut Writer, backup: &Backup) {
    let definition = &backup.definition;
    writer.object(|writer| {
        writer.name("BackupDetails").object(|writer| write_details(writer, backup));
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
            writer.name("ItemCount").integer(backup.statistics.item_count);
            writer.name("BillingMode").string(BILLING_MODE.name_of(&definition.billing_mode));
        });
        write_features(writer.name("SourceTableFeatureDetails"), definition);
    });
}
