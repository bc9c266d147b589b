//! Texts about point-in-time recovery, restores and backups.

use zenobe_engine::error::{Error, HistoryError, RestoreError, TableBackupError};

use super::engine::{Subject, engine_error};
use super::throughput::max_request_units;
use super::{INVALID, SUBSCRIBER, texts};
use crate::error::ApiError;

texts! {
    TableNotFound, "" => {
        table_not_found(table: &str) "Table not found: {table}";
    }
    TableAlreadyExists, "" => {
        table_already_exists(table: &str) "Table already exists: {table}";
    }
    TableInUse, "" => {
        already_restoring(table: &str, from: &str)
            "Table: {table} is already being restored from backup: {from}";
    }
    PointInTimeRecoveryUnavailable, "" => {
        recovery_is_off(table: &str)
            "Point in time recovery is not enabled for table '{table}'";
    }
    InvalidRestoreTime, "" => {
        restore_time(at: &str, earliest: &str, latest: &str) "RestoreDateTime '{at}' must be within \
            EarliestRestorableDateTime '{earliest}' and LatestRestorableDateTime '{latest}'";
    }
    BackupInUse, "" => {
        backup_in_use(arn: &str) "Backup is being used to restore another table: {arn}";
        backup_being_restored(arn: &str) "Backup is being used to restore table: {arn}";
    }
    BackupNotFound, "" => {
        backup_not_found(arn: &str) "Backup not found: {arn}";
    }
    AccessDenied, "" => {
        access_denied() "Access is denied";
    }
    Validation, "" => {
        invalid_backup_arn() "Invalid Backup ARN";
        one_source() "Must provide exactly one of: sourceTableArn, sourceTableName";
        other_owner() "This action is only supported by accounts that match the resource owner’s \
            account.";
    }
    Validation, INVALID => {
        invalid_source_arn() "sourceTableArn is not a valid ARN";
        time_range() "Time range lower bound must be less than or equal to upper bound";
    }
    Validation, "Invalid Request: " => {
        backup_arn_not_valid() "BackupArn is not valid";
        period_while_disabling()
            "Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery.";
        no_restore_time() "Either one of RestoreDateTime or UseLatestRestorableTime must be \
            specified, but not both";
        two_restore_times() "Both RestoreDateTime and UseLatestRestorableTime cannot be set for \
            point-in-time restore request. Please specify either RestoreDateTime time or \
            UseLatestRestorableTime";
        system_backup(arn: &str, expiry: &str) "User is not allowed to delete the system backup \
            with arn {arn}. It will automatically expire on {expiry}";
        cross_region_encryption()
            "sseSpecificationOverride must be provided for cross-region restores";
        start_arn_region()
            "The supplied ExclusiveStartBackupArn does not match the region";
        on_demand_maximum_range(member: &str)
            "Requested {member} for OnDemandThroughput is outside of valid range";
        index_mismatch(index: &str) "Index {index} does not match a secondary index that existed \
            in the source table and cannot be created during the restore operation";
        index_throughput_required(index: &str)
            "Must specify provisioned throughput for index {index}";
        throughput_on_demand(place: &str) "Cannot override ProvisionedThroughput if BillingMode is \
            overridden to PAY_PER_REQUEST{place}";
        throughput_required()
            "Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED";
        throughput_unless_provisioned()
            "Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED";
        on_demand_maximum(member: &str) "Cannot override {member} for OnDemandThroughput unless \
            BillingModeOverride is PAY_PER_REQUEST";
    }
    LimitExceeded, SUBSCRIBER => {
        too_many_restores() "Only 50 restore operations can be done simultaneously";
        // Our own; AWS's limit is not recorded.
        too_many_backups() "Only 50 backups of a table can be created simultaneously";
    }
    // Reading the past is our own, and so are these.
    Validation, "" => {
        as_of_time(given: &str) "The time '{given}' in x-zenobe-as-of is not valid: write it as in \
            2026-11-16T08:00:00Z, or in seconds since the epoch";
        as_of_operation(operation: &str) "{operation} cannot be called as of a time: \
            x-zenobe-as-of is for GetItem, BatchGetItem, Query, Scan and the SELECT statements of \
            ExecuteStatement and BatchExecuteStatement";
        as_of_statement() "Only SELECT statements can be run as of a time (x-zenobe-as-of)";
        as_of_window(at: &str, earliest: &str, latest: &str) "The time '{at}' in x-zenobe-as-of \
            must be within EarliestRestorableDateTime '{earliest}' and \
            LatestRestorableDateTime '{latest}'";
        as_of_index(index: &str) "Index {index} cannot be read as of a time, because only tables \
            have a history: query or scan the table, or restore it to that time";
    }
}

/// The error of an operation on backups or restores, which names a missing table in its own way.
pub(crate) fn backup_error(error: Error, region: &str) -> ApiError {
    match error {
        Error::TableNotFound { name } | Error::TableFilling { name } => table_not_found(&name),
        Error::TableExists { name } => table_already_exists(&name),
        error => engine_error(error, Subject::Table { name: "", region }),
    }
}

pub(super) fn history_error(error: &HistoryError, subject: Subject<'_>) -> ApiError {
    match error {
        HistoryError::Off { table } => recovery_is_off(table),
        HistoryError::OutsideWindow { at_ms, earliest_ms, latest_ms } => {
            let [at, earliest, latest] = [*at_ms, *earliest_ms, *latest_ms].map(seconds);
            match subject {
                Subject::Items => as_of_window(&at, &earliest, &latest),
                Subject::Table { .. } | Subject::Resource { .. } => {
                    restore_time(&at, &earliest, &latest)
                }
            }
        }
        HistoryError::Index { index } => as_of_index(index),
    }
}

/// `given` is the ARN in the request, if that is what the text names.
pub(crate) fn backup_fault(error: &TableBackupError, given: Option<&str>) -> ApiError {
    match error {
        TableBackupError::NotFound { arn } => backup_not_found(given.unwrap_or(arn)),
        TableBackupError::BeingRestored { arn } => backup_being_restored(given.unwrap_or(arn)),
        TableBackupError::OfTheSystem { arn, expires_at_ms } => {
            system_backup(given.unwrap_or(arn), &seconds(*expires_at_ms))
        }
        TableBackupError::TooMany => too_many_backups(),
    }
}

pub(super) fn restore_error(error: &RestoreError) -> ApiError {
    match error {
        RestoreError::IndexMismatch { index } => index_mismatch(index),
        RestoreError::DuplicateIndexName { index } => super::table::duplicate_index_name(index),
        RestoreError::IndexThroughputRequired { index } => index_throughput_required(index),
        RestoreError::ThroughputOnDemand { index } => {
            let place = index.as_ref().map_or(String::new(), |index| format!(" for index {index}"));
            throughput_on_demand(&place)
        }
        RestoreError::ThroughputRequired => throughput_required(),
        RestoreError::ThroughputUnlessProvisioned => throughput_unless_provisioned(),
        RestoreError::OnDemandMaximum { write } => on_demand_maximum(max_request_units(*write)),
        RestoreError::AlreadyRestoring { name, from } => already_restoring(name, from),
        RestoreError::BackupInUse { arn } => backup_in_use(arn),
        RestoreError::TooMany => too_many_restores(),
    }
}

/// A time to the second: `2026-11-16T08:00:00Z`.
pub(crate) fn seconds(at_ms: u64) -> String {
    let text = zenobe_engine::clock::iso8601_without_zone(at_ms);
    let (to_the_second, _) = text.split_once('.').unwrap_or((&text, ""));
    format!("{to_the_second}Z")
}
