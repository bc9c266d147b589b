//! The definition of a table: keys, indexes and settings. It is pure data, shared by the catalogue,
//! the item paths and the API; `catalog::definition_row` stores it.

use std::collections::BTreeMap;

use zenobe_value::AttributeType;

/// The account and region whose tables a caller sees. ARNs contain both.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace {
    pub account: String,
    pub region: String,
}

/// Identifies a table within one store. Never reused, so a deleted table's keys can't come back to
/// life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u64);

/// Identifies an index within its table. Never reused within the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexId(pub u32);

/// The types a key attribute may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScalarType {
    S,
    N,
    B,
}

impl ScalarType {
    pub fn attribute_type(self) -> AttributeType {
        match self {
            ScalarType::S => AttributeType::S,
            ScalarType::N => AttributeType::N,
            ScalarType::B => AttributeType::B,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyAttribute {
    pub name: String,
    pub scalar_type: ScalarType,
}

/// Partition and sort key attributes. Tables and local indexes have one partition attribute and at
/// most one sort attribute; global indexes have up to four of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySchema {
    pub partition: Vec<KeyAttribute>,
    pub sort: Vec<KeyAttribute>,
}

impl KeySchema {
    /// All key attributes, partition attributes first.
    pub fn attributes(&self) -> impl Iterator<Item = &KeyAttribute> {
        self.partition.iter().chain(&self.sort)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.attributes().any(|attribute| attribute.name == name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexProjection {
    All,
    KeysOnly,
    /// The listed attributes in addition to the keys, in the given order.
    Include(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKind {
    Local,
    Global,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexStatus {
    /// Being added to a table with data: every change writes to it, but it can't be read yet.
    Creating {
        backfilling: bool,
    },
    Active,
    /// Being removed: no longer written or readable.
    Deleting,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDefinition {
    pub id: IndexId,
    pub name: String,
    pub kind: IndexKind,
    pub keys: KeySchema,
    pub projection: IndexProjection,
    pub status: IndexStatus,
    /// Only for global indexes; local ones share the table's.
    pub throughput: Throughput,
    /// Only for global indexes, and once they have been asked for.
    pub insights: Option<ContributorInsights>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BillingMode {
    Provisioned,
    PayPerRequest,
}

/// What an on-demand table or index serves from the start, per second.
pub const ON_DEMAND_INITIAL_READ_UNITS: u64 = 12_000;
pub const ON_DEMAND_INITIAL_WRITE_UNITS: u64 = 4_000;

/// Capacity settings of a table or a global index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Throughput {
    /// Zero for on-demand tables.
    pub read_units: u64,
    pub write_units: u64,
    pub last_increase_ms: Option<u64>,
    pub last_decrease_ms: Option<u64>,
    /// How many decreases happened on the UTC day of `last_decrease_ms`.
    pub decreases_today: u32,
    pub on_demand_max_read_units: Option<u64>,
    pub on_demand_max_write_units: Option<u64>,
    pub warm_read_units: u64,
    pub warm_write_units: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamViewType {
    KeysOnly,
    NewImage,
    OldImage,
    NewAndOldImages,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSettings {
    pub view_type: StreamViewType,
    /// Unique for each time that a stream is enabled; the last part of the stream's ARN.
    pub label: String,
    pub created_at_ms: u64,
    /// The number of parts into which the hashes of partition keys are divided, until shards are
    /// split. Each part has one open shard.
    pub slots: u32,
    /// Oldest first; only the last one takes records.
    pub generations: Vec<ShardGeneration>,
}

/// Shards opened together, one per slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardGeneration {
    /// Counted from 0 within the stream.
    pub number: u32,
    pub opened_at_ms: u64,
    /// As many as the generation before has, or twice as many if its shards were split.
    pub slots: u32,
    /// The number of the shard of its first slot. The others follow.
    pub first_shard: u32,
}

/// Contributor Insights of a table or a global index: whether it reports its hottest keys, and under
/// which names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContributorInsights {
    pub status: InsightsStatus,
    pub mode: InsightsMode,
    pub changed_at_ms: u64,
    /// When the rules for accessed keys were made, while they exist. Their names contain it.
    pub accessed_rules_since_ms: Option<u64>,
    /// The same of the rules for throttled keys.
    pub throttled_rules_since_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsightsStatus {
    Enabled,
    Disabled,
    /// There were too many rules already.
    Failed,
}

/// Which keys Contributor Insights report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InsightsMode {
    #[default]
    AccessedAndThrottledKeys,
    ThrottledKeys,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableClass {
    Standard,
    StandardInfrequentAccess,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDefinition {
    pub id: TableId,
    /// The `TableId` that clients see: a random UUID, new each time that a table is created.
    pub uuid: String,
    pub namespace: Namespace,
    pub name: String,
    pub created_at_ms: u64,
    /// Rises with each change of the definition. Checked inside every write.
    pub version: u64,
    pub attribute_types: BTreeMap<String, ScalarType>,
    pub keys: KeySchema,
    /// In the order of the request.
    pub local_indexes: Vec<IndexDefinition>,
    pub global_indexes: Vec<IndexDefinition>,
    pub next_index_id: u32,
    pub billing_mode: BillingMode,
    /// When the table last became on demand, or was created so; `None` if it never was.
    pub on_demand_since_ms: Option<u64>,
    pub throughput: Throughput,
    /// The enabled stream.
    pub stream: Option<StreamSettings>,
    /// The label of the newest stream, enabled or not.
    pub latest_stream_label: Option<String>,
    /// The KMS key's ARN, if the table uses KMS encryption.
    pub kms_key_arn: Option<String>,
    /// Set once a class has been requested; the time is that of the last change.
    pub table_class: Option<(TableClass, Option<u64>)>,
    /// The time of the change before the last one; two changes within 30 days are the limit.
    pub previous_table_class_change_ms: Option<u64>,
    pub deletion_protection: bool,
    pub tags: BTreeMap<String, String>,
    pub ttl_attribute: Option<String>,
    pub ttl_changed_at_ms: Option<u64>,
    /// Whether items older than the setting have their entries in the expiry index.
    pub ttl_indexed: bool,
    /// Point-in-time recovery, while it is on.
    pub history: Option<HistorySettings>,
    /// Backups that are still being copied.
    pub holds: Vec<Hold>,
    /// How many eras of undo rows there have been ([`TableDefinition::undo_era`]).
    pub history_eras: u32,
    /// Contributor Insights of the table itself, once they have been asked for.
    pub insights: Option<ContributorInsights>,
    /// Set while a job fills the new table, which is not ready until then.
    pub filling: Option<Filling>,
}

/// The job that fills a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filling {
    pub job_kind: String,
    pub job_id: String,
    /// What a restored table is restored from.
    pub source: Option<RestoreSource>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreSource {
    pub table_arn: Option<String>,
    pub backup_arn: Option<String>,
    /// The moment whose state the table will have.
    pub restored_to_ms: u64,
}

/// Point-in-time recovery: while it is on, every change keeps the image that it replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistorySettings {
    /// Distinguishes the times in which changes were kept. What an earlier era kept is of no use to
    /// a later one, which knows nothing of the changes in between.
    pub era: u32,
    /// The first moment that can be restored, unless it is longer ago than the period.
    pub since_ms: u64,
    pub period_days: u32,
}

/// A backup that still needs the undo rows since it was made, because its items have not been copied
/// yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    pub era: u32,
    /// The backup's id.
    pub backup: String,
}

impl TableDefinition {
    /// The era whose undo rows every change writes, while there is a use for them. Point-in-time
    /// recovery and all holds share one era: the first of them opens it, and the last one ends it.
    pub fn undo_era(&self) -> Option<u32> {
        let recovery = self.history.as_ref().map(|history| history.era);
        recovery.or(self.holds.first().map(|hold| hold.era))
    }

    pub fn indexes(&self) -> impl Iterator<Item = &IndexDefinition> {
        self.local_indexes.iter().chain(&self.global_indexes)
    }

    pub fn index(&self, name: &str) -> Option<&IndexDefinition> {
        self.indexes().find(|index| index.name == name)
    }

    /// Whether the table or one of its global indexes reports its hottest keys.
    pub fn has_insights(&self) -> bool {
        let of_indexes = self.global_indexes.iter().map(|index| &index.insights);
        let mut all = of_indexes.chain([&self.insights]).flatten();
        all.any(|insights| insights.status == InsightsStatus::Enabled)
    }

    /// Whether the entries of one of the table's indexes carry an attribute.
    pub fn projects(&self, index: &IndexDefinition, attribute: &str) -> bool {
        crate::indexes::projects(&self.keys, index, attribute)
    }

    pub fn arn(&self) -> String {
        table_arn(&self.namespace, &self.name)
    }
}

/// The ARN of a table, whether or not it exists.
pub fn table_arn(namespace: &Namespace, name: &str) -> String {
    let Namespace { account, region } = namespace;
    // Not formatted: errors about throughput are many, and must cost less than what they refuse.
    ["arn:aws:dynamodb:", region, ":", account, ":table/", name].concat()
}

/// A definition with its current figures, as DescribeTable shows them.
#[derive(Debug, Clone)]
pub struct TableDescription {
    pub definition: std::sync::Arc<TableDefinition>,
    pub statistics: ItemStatistics,
    /// By index name.
    pub index_statistics: BTreeMap<String, ItemStatistics>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ItemStatistics {
    pub item_count: u64,
    pub size_bytes: u64,
}
