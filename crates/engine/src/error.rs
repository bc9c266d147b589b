//! Every error of the engine, typed. The API's message catalogue holds the texts that clients see;
//! the `Display` texts here are for logs.

use zenobe_expression::UpdateError;
use zenobe_value::{AttributeType, Attributes, EncodedItem};

use crate::schema::{KeySchema, ScalarType};
use crate::throughput::ModeTagError;
use crate::throughput::cause::Throttled;

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Whether the store only repeats that it refuses requests: it has logged the reason once, and
    /// need not log it again for every request.
    pub fn is_known_outage(&self) -> bool {
        use zenobe_store::Error::{Closed, WritesRefused};
        matches!(self, Error::Store(WritesRefused { .. } | Closed))
    }
}

impl From<zenobe_store::Error> for Error {
    fn from(error: zenobe_store::Error) -> Error {
        match error {
            zenobe_store::Error::Conflict => Error::Conflict,
            zenobe_store::Error::Unavailable { detail } => Error::Unavailable { detail },
            other => Error::Store(other),
        }
    }
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("table {name} not found")]
    TableNotFound { name: String },
    #[error("table not found for resource {arn}")]
    ResourceNotFound { arn: String },
    #[error("table {name} already exists")]
    TableExists { name: String },
    /// A job is still filling the new table.
    #[error("table {name} is being filled")]
    TableFilling { name: String },
    #[error("index {index} not found")]
    IndexNotFound { index: String },
    #[error("{0}")]
    UpdateTable(#[from] UpdateTableError),
    #[error("table is protected against deletion")]
    DeletionProtected,
    #[error("indexes of the table are being created or deleted")]
    IndexesInFlux,
    #[error("{0}")]
    TimeToLive(TimeToLiveError),
    #[error("{0}")]
    Insights(InsightsError),
    #[error("more than 50 tags")]
    TooManyTags,
    #[error("account or table limit: {0:?}")]
    Limit(LimitError),
    #[error("{0}")]
    ModeTag(#[from] ModeTagError),

    #[error("{0}")]
    Key(#[from] KeyError),
    #[error("index {index}: {error}")]
    IndexKey { index: String, attribute: String, error: IndexKeyError },
    #[error("update targets key attribute {attribute}")]
    UpdateOfKey { attribute: String },
    /// A nested path below a key attribute of the table or (with `index`) of an index.
    #[error("path below key attribute {attribute}")]
    PathBelowKey { attribute: String, index: bool },
    #[error("the conditional request failed")]
    ConditionFailed { item: Option<EncodedItem> },
    #[error("item exceeds the size limit")]
    ItemTooLarge,
    #[error("updated item exceeds the size limit")]
    UpdateTooLarge,
    #[error("item is nested too deeply")]
    NestedTooDeeply,
    #[error("update failed: {0:?}")]
    Update(UpdateError),
    #[error("item collection exceeds its size limit")]
    CollectionTooLarge,

    #[error("{0}")]
    History(#[from] HistoryError),
    #[error("{0}")]
    Restore(#[from] RestoreError),
    #[error("{0}")]
    Backup(#[from] TableBackupError),
    #[error("{0}")]
    Export(#[from] ExportSpanError),
    #[error("{0}")]
    Page(#[from] PageError),
    #[error("{0}")]
    Stream(#[from] StreamError),

    #[error("the same item twice in a batch")]
    DuplicateKeys,
    #[error("the same item twice in a transaction")]
    DuplicateTransactionItems,
    #[error("items of a transaction exceed its size limit")]
    TransactionTooLarge,
    #[error("transaction cancelled")]
    TransactionCancelled(Vec<CancellationReason>),
    #[error("token was used with other parameters")]
    IdempotentParameterMismatch,
    #[error("transaction with this token is in progress")]
    TransactionInProgress,
    /// The request met a limit of throughput. It consumed nothing.
    #[error("throttled: {:?}", .0.reasons)]
    Throttled(Box<Throttled>),

    /// Another node does this work now. Nothing was written, and no client sees this error.
    #[error("the lease on {work} is lost")]
    LeaseLost { work: String },
    /// The definition that the work began with is stale, so it begins again. Nothing was written, and no client sees this
    /// error.
    #[error("table {name} has changed")]
    TableChanged { name: String },
    /// Every attempt conflicted with other writes of the same items. Nothing was written.
    #[error("every attempt of the write conflicted with other writes of its items")]
    Conflict,
    /// The store can't be reached. Nothing was written.
    #[error("the store is unavailable: {detail}")]
    Unavailable { detail: String },
    #[error("{0}")]
    Store(zenobe_store::Error),
    #[error("stored bytes do not decode: {detail}")]
    Corrupt { detail: String },
}

#[derive(Debug, Clone)]
pub enum CancellationReason {
    None,
    ConditionFailed {
        item: Option<EncodedItem>,
    },
    /// Shown as ValidationError with the single operation's text.
    Invalid(Box<Error>),
    CollectionTooLarge,
    /// Every attempt conflicted with other writes of the same items.
    Conflict,
    Throttled(Box<Throttled>),
}

/// Contributor Insights that can't be changed or described.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InsightsError {
    /// Local indexes have none either.
    #[error("table {table} has no global index {index}")]
    IndexNotFound { table: String, index: String },
    #[error("the table is not ready")]
    TableNotActive,
    #[error("the index is being created or deleted")]
    IndexNotActive,
}

/// A primary key or an item that doesn't match the table's key schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A `Key` parameter with the wrong attributes or types.
    #[error("key does not match the schema")]
    SchemaMismatch,
    #[error("item lacks key attribute {attribute}")]
    Missing { attribute: String },
    #[error("key attribute {attribute} has type {actual:?}, expected {expected:?}")]
    TypeMismatch { attribute: String, expected: ScalarType, actual: AttributeType },
    #[error("key attribute {attribute} is empty")]
    Empty { attribute: String, scalar_type: ScalarType },
    #[error("partition key is too long")]
    PartitionKeyTooLong,
    #[error("sort key is too long")]
    SortKeyTooLong,
}

/// An attribute of a written item that can't be the key of one of its indexes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexKeyError {
    #[error("type {actual:?}, expected {expected:?}")]
    TypeMismatch { expected: ScalarType, actual: AttributeType },
    #[error("empty value")]
    Empty { scalar_type: ScalarType },
    #[error("partition key too long")]
    PartitionKeyTooLong,
    #[error("sort key too long")]
    SortKeyTooLong,
    /// The same faults, in a value from an update instead of a put.
    #[error("update yields an empty index key")]
    UpdatedEmpty { scalar_type: ScalarType },
    #[error("update yields an index key of the wrong type")]
    UpdatedTypeMismatch,
    #[error("update yields an index key that is too long")]
    UpdatedTooLong,
}

/// Faults of requests to read a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    #[error("stream not found")]
    NotFound,
    #[error("shard not found")]
    ShardNotFound,
    #[error("sequence number is not in the shard")]
    SequenceNumberNotInShard,
    #[error("timestamp is in the future")]
    TimestampInFuture,
    #[error("records are past their retention")]
    Trimmed,
    #[error("position is too old")]
    PositionExpired,
}

/// Why a table can't be read or restored as of a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    #[error("point-in-time recovery of {table} is off")]
    Off { table: String },
    /// All in milliseconds since the epoch.
    #[error("{at_ms} is not within {earliest_ms} and {latest_ms}")]
    OutsideWindow { at_ms: u64, earliest_ms: u64, latest_ms: u64 },
    /// Indexes have no history.
    #[error("index {index} as of a time")]
    Index { index: String },
}

/// Why a backup can't be made, found or deleted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableBackupError {
    #[error("backup {arn} not found")]
    NotFound { arn: String },
    #[error("backup {arn} is being restored")]
    BeingRestored { arn: String },
    /// The database made it, and deletes it.
    #[error("backup {arn} expires by itself")]
    OfTheSystem { arn: String, expires_at_ms: u64 },
    #[error("too many backups of the table are being copied")]
    TooMany,
}

/// Why an export can't begin. Times are in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportSpanError {
    #[error("the time lies in the future or before what can be restored")]
    Time,
    #[error("the time is too recent to be restored")]
    TooRecent,
    #[error("the changes begin at {from_ms}, before the table was created")]
    BeforeCreation { from_ms: u64 },
    #[error("the changes end at {to_ms}, which is in the future")]
    EndsInFuture { to_ms: u64 },
    #[error("the export period is too short")]
    TooShort,
    #[error("the changes of too long a time")]
    TooLong,
    #[error("too many exports at a time")]
    TooMany,
}

/// Overrides of a restore that don't fit the table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    #[error("the source table has no index {index}")]
    IndexMismatch { index: String },
    #[error("two indexes are called {index}")]
    DuplicateIndexName { index: String },
    #[error("no throughput for index {index}")]
    IndexThroughputRequired { index: String },
    #[error("throughput with on-demand billing")]
    ThroughputOnDemand { index: Option<String> },
    #[error("provisioned billing without throughput")]
    ThroughputRequired,
    #[error("throughput for an on-demand table")]
    ThroughputUnlessProvisioned,
    #[error("on-demand maximum with provisioned billing")]
    OnDemandMaximum { write: bool },
    #[error("table {name} is already being restored")]
    AlreadyRestoring { name: String, from: String },
    #[error("backup {arn} is already being restored")]
    BackupInUse { arn: String },
    #[error("too many restores at a time")]
    TooMany,
}

/// Faults of a Query or Scan that only the table's schema reveals.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    #[error("consistent read on a global index")]
    ConsistentReadOnGlobalIndex,
    #[error("index {index} is being backfilled")]
    Backfilling { index: String },
    #[error("start key does not have the right attributes")]
    StartKeyInvalid,
    #[error("start key does not match the schema")]
    StartKeyMismatch { table_key: bool },
    #[error("start key where at most one item can be found")]
    StartKeyOfSingleItem { key: Box<Attributes> },
    #[error("start key outside the query")]
    StartKeyOutsideQuery,
    #[error("start key does not match the sort key condition")]
    StartKeyOutsideSortCondition,
    #[error("query of at most one row can't be restarted")]
    QueryNotRestartable,
    #[error("start key belongs to another segment")]
    StartKeyOutsideSegment { total: u32, segment: u32 },
    #[error("{given} conditions on {attributes} key attributes")]
    TooManyKeyConditions { given: usize, attributes: usize },
    #[error("no condition on key attribute {attribute}")]
    MissingKeyCondition { attribute: String },
    #[error("no equality on partition attributes {attributes:?}")]
    PartitionConditionsNotEqual { attributes: Vec<String> },
    #[error("no equality on sort attributes {attributes:?}, but a condition on {behind}")]
    SortConditionsNotEqual { attributes: Vec<String>, behind: String },
    #[error("key condition not supported")]
    KeyConditionNotSupported,
    #[error("condition type does not match the key")]
    ConditionTypeMismatch,
    #[error("key condition that no index can answer")]
    NotIndexable,
    #[error("empty key value for {attribute}")]
    EmptyKeyValue { attribute: String, scalar_type: ScalarType },
    #[error("filter on key attribute {attribute}")]
    FilterOnKey { attribute: String },
    #[error("index {index} does not project the filter's {attributes:?}")]
    FilterNotProjected { index: String, attributes: Vec<String> },
    #[error("index {index} does not project everything")]
    SelectAllNotProjected { index: String },
    #[error("index {index} does not project {attributes:?}")]
    NotProjected { index: String, attributes: Vec<String> },
}

/// Faults of an UpdateTable that only the table's state reveals.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpdateTableError {
    #[error("throughput is not given")]
    ThroughputRequired,
    #[error("throughput is not given for index {index}")]
    IndexThroughputRequired { index: String },
    #[error("throughput given for an on-demand table")]
    ThroughputOnDemand,
    #[error("throughput given for index {index} of an on-demand table")]
    IndexThroughputOnDemand { index: String },
    #[error("throughput equals the current one")]
    ThroughputUnchanged { index: Option<String>, read: u64, write: u64 },
    #[error("too many decreases today")]
    TooManyDecreases { decreases_today: u32, last_decrease_ms: u64, next_ms: u64 },
    #[error("on-demand maximum on a provisioned table")]
    OnDemandMaximumOnProvisioned { write: bool },
    #[error("on-demand maximum on index {index} of a provisioned table")]
    IndexOnDemandMaximumOnProvisioned { index: String, write: bool },
    #[error("{change:?} while indexes {indexes:?} are being created or deleted")]
    IndexesBusy { change: BlockedChange, indexes: Vec<String>, deleting: bool },
    #[error("warm throughput can't be lowered")]
    WarmThroughputDecrease { write: bool, index: Option<String> },
    #[error("stream is enabled already")]
    StreamAlreadyEnabled,
    #[error("no stream to disable")]
    NoStreamToDisable,
    #[error("table is encrypted by default already")]
    AlreadyEncryptedByDefault,
    #[error("table is encrypted with that key already")]
    AlreadyEncryptedWithKey,
    #[error("key attributes have other types")]
    AttributesRedefined { existing: KeySchema, new: KeySchema },
    #[error("index {index} exists")]
    IndexExists { index: String },
    #[error("index {index} does not exist")]
    IndexMissing { index: String },
    #[error("{index} is a local index")]
    LocalIndex { index: String, deleting: bool },
    #[error("attribute definitions are not given for index {index}")]
    DefinitionsMissing { index: String },
    #[error("key attributes are not defined")]
    KeysNotDefined { keys: Vec<String>, definitions: Vec<String> },
    #[error("more than 20 global indexes")]
    TooManyGlobalIndexes,
    #[error("another index is being created or deleted")]
    IndexWorkInProgress,
    #[error("index {index} is being deleted")]
    IndexBeingDeleted { index: String },
}

/// A change of a table that must wait until no index is being created or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockedChange {
    Throughput,
    OnDemandMaximum,
    Stream,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeToLiveError {
    #[error("already enabled")]
    AlreadyEnabled,
    #[error("active on {current}")]
    OtherAttribute { current: String },
    #[error("already disabled")]
    AlreadyDisabled,
    #[error("changed too often")]
    ChangedTooOften,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitError {
    Tables,
    /// Capacity above the account's maximum per table.
    TableCapacity {
        write: bool,
        requested: u64,
        maximum: u64,
    },
    /// Capacity that would take the account's tables together above their maximum.
    AccountCapacity {
        write: bool,
        /// What they have now.
        current: u64,
        maximum: u64,
        /// What the request adds.
        requested: u64,
    },
    /// An on-demand maximum above the limit of a table, for the table or an index.
    OnDemandMaximum {
        write: bool,
        index: Option<String>,
    },
    /// The class of a table changes at most twice in 30 days.
    TableClassChanges,
}
