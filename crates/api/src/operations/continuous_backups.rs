//! UpdateContinuousBackups and DescribeContinuousBackups: point-in-time recovery of a table.

use zenobe_engine::history::ContinuousBackups;

use crate::constraints::{TableNameRule, Violations};
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::messages::backup;
use crate::{Context, Reply};

const PERIOD_DAYS_MAX: i64 = 35;

pub(crate) async fn describe(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: DescribeContinuousBackupsInput = request(body)?;
    let table = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let described = context.engine.describe_continuous_backups(&table).await;
    Ok(render(described.map_err(|error| context.backup(error))?))
}

pub(crate) async fn update(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: UpdateContinuousBackupsInput = request(body)?;
    let table = context.table_name(input.table_name.as_deref(), TableNameRule::Settings)?;
    let (enabled, period_days) = constrained(input.point_in_time_recovery_specification)?;
    let engine = context.engine;
    let updated = engine.update_continuous_backups(&table, enabled, period_days).await;
    Ok(render(updated.map_err(|error| context.backup(error))?))
}

shape! {
    struct DescribeContinuousBackupsInput {
        "TableName" => table_name: String,
    }

    struct UpdateContinuousBackupsInput {
        "TableName" => table_name: String,
        "PointInTimeRecoverySpecification" => point_in_time_recovery_specification:
            PointInTimeRecoverySpecification,
    }

    struct PointInTimeRecoverySpecification {
        "PointInTimeRecoveryEnabled" => point_in_time_recovery_enabled: bool,
        "RecoveryPeriodInDays" => recovery_period_in_days: i32,
    }
}

/// Whether recovery is to be on, and its period in days, if given.
fn constrained(
    specification: Option<PointInTimeRecoverySpecification>,
) -> Result<(bool, Option<u32>), ApiError> {
    const PATH: &str = "pointInTimeRecoverySpecification";
    let mut violations = Violations::new();
    let given = specification.is_some();
    let specification = violations.required(specification, PATH);
    let period_days = specification.recovery_period_in_days;
    let mut enabled = false;
    if given {
        let path = format!("{PATH}.pointInTimeRecoveryEnabled");
        enabled = violations.required(specification.point_in_time_recovery_enabled, &path);
        if let Some(days) = period_days {
            let path = format!("{PATH}.recoveryPeriodInDays");
            violations.range(days.into(), &path, 1, PERIOD_DAYS_MAX);
        }
    }
    violations.finish()?;
    if !enabled && period_days.is_some() {
        return Err(backup::period_while_disabling());
    }
    Ok((enabled, period_days.map(i32::unsigned_abs)))
}

/// Continuous backups are on for every table; only the recovery is switched.
fn render(backups: Option<ContinuousBackups>) -> Reply {
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("ContinuousBackupsDescription").object(|writer| {
            writer.name("ContinuousBackupsStatus").string("ENABLED");
            writer.name("PointInTimeRecoveryDescription").object(|writer| {
                let status = if backups.is_some() { "ENABLED" } else { "DISABLED" };
                writer.name("PointInTimeRecoveryStatus").string(status);
                if let Some(ContinuousBackups { period_days, window }) = backups {
                    writer.name("RecoveryPeriodInDays").integer(period_days);
                    writer.name("EarliestRestorableDateTime").timestamp(window.earliest_ms);
                    writer.name("LatestRestorableDateTime").timestamp(window.latest_ms);
                }
            });
        });
    });
    Reply(writer.finish())
}
