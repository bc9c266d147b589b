//! The enumerations of the API model that several operations use, in the order in which DynamoDB
//! lists their values in errors.

use zenobe_engine::command::Select;
use zenobe_engine::schema::{BillingMode, InsightsMode, ScalarType, StreamViewType, TableClass};

use crate::constraints::Enumeration;

pub(crate) static SCALAR_TYPE: Enumeration<ScalarType> =
    Enumeration(&[("B", ScalarType::B), ("N", ScalarType::N), ("S", ScalarType::S)]);

/// Which backups ListBackups shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackupTypeFilter {
    User,
    System,
    AwsBackup,
    All,
}

pub(crate) static BACKUP_TYPE_FILTER: Enumeration<BackupTypeFilter> = Enumeration(&[
    ("USER", BackupTypeFilter::User),
    ("SYSTEM", BackupTypeFilter::System),
    ("AWS_BACKUP", BackupTypeFilter::AwsBackup),
    ("ALL", BackupTypeFilter::All),
]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyType {
    Hash,
    Range,
}

pub(crate) static KEY_TYPE: Enumeration<KeyType> =
    Enumeration(&[("HASH", KeyType::Hash), ("RANGE", KeyType::Range)]);

pub(crate) static BILLING_MODE: Enumeration<BillingMode> = Enumeration(&[
    ("PROVISIONED", BillingMode::Provisioned),
    ("PAY_PER_REQUEST", BillingMode::PayPerRequest),
]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProjectionType {
    All,
    Include,
    KeysOnly,
}

pub(crate) static PROJECTION_TYPE: Enumeration<ProjectionType> = Enumeration(&[
    ("ALL", ProjectionType::All),
    ("INCLUDE", ProjectionType::Include),
    ("KEYS_ONLY", ProjectionType::KeysOnly),
]);

pub(crate) static STREAM_VIEW_TYPE: Enumeration<StreamViewType> = Enumeration(&[
    ("NEW_IMAGE", StreamViewType::NewImage),
    ("OLD_IMAGE", StreamViewType::OldImage),
    ("NEW_AND_OLD_IMAGES", StreamViewType::NewAndOldImages),
    ("KEYS_ONLY", StreamViewType::KeysOnly),
]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SseType {
    Aes256,
    Kms,
}

pub(crate) static SSE_TYPE: Enumeration<SseType> =
    Enumeration(&[("AES256", SseType::Aes256), ("KMS", SseType::Kms)]);

pub(crate) static TABLE_CLASS: Enumeration<TableClass> = Enumeration(&[
    ("STANDARD", TableClass::Standard),
    ("STANDARD_INFREQUENT_ACCESS", TableClass::StandardInfrequentAccess),
]);

/// `ReturnConsumedCapacity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReturnCapacity {
    Indexes,
    Total,
    None,
}

pub(crate) static RETURN_CONSUMED_CAPACITY: Enumeration<ReturnCapacity> = Enumeration(&[
    ("INDEXES", ReturnCapacity::Indexes),
    ("TOTAL", ReturnCapacity::Total),
    ("NONE", ReturnCapacity::None),
]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReturnValues {
    AllNew,
    UpdatedOld,
    AllOld,
    None,
    UpdatedNew,
}

pub(crate) static RETURN_VALUES: Enumeration<ReturnValues> = Enumeration(&[
    ("ALL_NEW", ReturnValues::AllNew),
    ("UPDATED_OLD", ReturnValues::UpdatedOld),
    ("ALL_OLD", ReturnValues::AllOld),
    ("NONE", ReturnValues::None),
    ("UPDATED_NEW", ReturnValues::UpdatedNew),
]);

/// `ReturnItemCollectionMetrics`: whether to return them.
pub(crate) static RETURN_ITEM_COLLECTION_METRICS: Enumeration<bool> =
    Enumeration(&[("SIZE", true), ("NONE", false)]);

/// `ReturnValuesOnConditionCheckFailure`: whether to return the item.
pub(crate) static RETURN_VALUES_ON_CONDITION_CHECK_FAILURE: Enumeration<bool> =
    Enumeration(&[("ALL_OLD", true), ("NONE", false)]);

/// `ApproximateCreationDateTimePrecision` of a Kinesis streaming destination.
pub(crate) static CREATION_TIME_PRECISION: Enumeration<()> =
    Enumeration(&[("MILLISECOND", ()), ("MICROSECOND", ())]);

/// `ContributorInsightsAction`: whether to enable them.
pub(crate) static CONTRIBUTOR_INSIGHTS_ACTION: Enumeration<bool> =
    Enumeration(&[("ENABLE", true), ("DISABLE", false)]);

pub(crate) static CONTRIBUTOR_INSIGHTS_MODE: Enumeration<InsightsMode> = Enumeration(&[
    ("ACCESSED_AND_THROTTLED_KEYS", InsightsMode::AccessedAndThrottledKeys),
    ("THROTTLED_KEYS", InsightsMode::ThrottledKeys),
]);

pub(crate) static SELECT: Enumeration<Select> = Enumeration(&[
    ("SPECIFIC_ATTRIBUTES", Select::SpecificAttributes),
    ("COUNT", Select::Count),
    ("ALL_ATTRIBUTES", Select::AllAttributes),
    ("ALL_PROJECTED_ATTRIBUTES", Select::AllProjectedAttributes),
]);
