//! Commands to the engine, and their outcomes. Everything here is already parsed: expressions are
//! bound, values are valid, names are resolved. The engine checks what still depends on the table's
//! schema or on stored items.

use std::collections::BTreeMap;
use std::sync::Arc;

use zenobe_expression::{Condition, KeyCondition, Projection, Update};
use zenobe_value::{Attributes, EncodedItem, ItemBuffer};

use crate::schema::{
    BillingMode, ContributorInsights, IndexProjection, InsightsMode, KeySchema, Namespace,
    ScalarType, StreamViewType, TableClass, TableDefinition, table_arn,
};
use crate::streams::{SequenceNumber, ShardId};

pub use crate::streams::StreamEvent;

/// A table as a request names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    pub namespace: Arc<Namespace>,
    pub name: String,
}

// ---- tables -------------------------------------------------------------------------------------

#[derive(Debug, Clone)]
pub struct CreateTable {
    pub table: TableName,
    pub attribute_types: BTreeMap<String, ScalarType>,
    pub keys: KeySchema,
    pub local_indexes: Vec<CreateIndex>,
    pub global_indexes: Vec<CreateIndex>,
    pub billing_mode: BillingMode,
    pub throughput: ThroughputSettings,
    pub stream: Option<StreamViewType>,
    pub kms_key: Option<KmsKey>,
    pub table_class: Option<TableClass>,
    pub deletion_protection: bool,
    pub tags: BTreeMap<String, String>,
}

impl CreateTable {
    /// An on-demand table without indexes, with defaults for everything else.
    pub fn on_demand(
        table: TableName,
        attribute_types: BTreeMap<String, ScalarType>,
        keys: KeySchema,
    ) -> CreateTable {
        CreateTable {
            table,
            attribute_types,
            keys,
            local_indexes: Vec::new(),
            global_indexes: Vec::new(),
            billing_mode: BillingMode::PayPerRequest,
            throughput: ThroughputSettings::default(),
            stream: None,
            kms_key: None,
            table_class: None,
            deletion_protection: false,
            tags: BTreeMap::new(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct CreateIndex {
    pub name: String,
    pub keys: KeySchema,
    pub projection: IndexProjection,
    pub throughput: ThroughputSettings,
}

/// The capacity members of a request for a table or an index; `None` means "not given".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThroughputSettings {
    pub provisioned: Option<ProvisionedUnits>,
    pub on_demand_max_read_units: Option<OnDemandMaximum>,
    pub on_demand_max_write_units: Option<OnDemandMaximum>,
    pub warm_read_units: Option<u64>,
    pub warm_write_units: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProvisionedUnits {
    pub read: u64,
    pub write: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDemandMaximum {
    Units(u64),
    /// `-1`, which means no maximum.
    Unlimited,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KmsKey {
    /// The account's `aws/dynamodb` key.
    AwsManaged,
    Customer(String),
}

#[derive(Debug, Clone)]
pub struct UpdateTable {
    pub table: TableName,
    pub attribute_types: Option<BTreeMap<String, ScalarType>>,
    pub billing_mode: Option<BillingMode>,
    pub throughput: ThroughputSettings,
    pub stream: Option<StreamChange>,
    pub encryption: Option<EncryptionChange>,
    pub table_class: Option<TableClass>,
    pub deletion_protection: Option<bool>,
    pub index_changes: Vec<IndexChange>,
}

impl UpdateTable {
    /// An update that changes nothing yet.
    pub fn of(table: TableName) -> UpdateTable {
        UpdateTable {
            table,
            attribute_types: None,
            billing_mode: None,
            throughput: ThroughputSettings::default(),
            stream: None,
            encryption: None,
            table_class: None,
            deletion_protection: None,
            index_changes: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamChange {
    Enable(StreamViewType),
    Disable,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EncryptionChange {
    Kms(KmsKey),
    Default,
}

#[derive(Debug, Clone)]
pub enum IndexChange {
    Create(Box<UnresolvedIndex>),
    Update { name: String, throughput: ThroughputSettings },
    Delete { name: String },
}

/// An index of an UpdateTable request. Its key types are known only together with the table's
/// definitions.
#[derive(Debug, Clone)]
pub struct UnresolvedIndex {
    pub name: String,
    pub partition: Vec<String>,
    pub sort: Vec<String>,
    pub projection: IndexProjection,
    pub throughput: ThroughputSettings,
}

#[derive(Debug, Clone)]
pub struct TablePage {
    pub names: Vec<String>,
    /// Whether names follow after the last one.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateTimeToLive {
    pub table: TableName,
    pub enabled: bool,
    pub attribute: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateContributorInsights {
    pub table: TableName,
    /// A global index, or `None` for the table itself.
    pub index: Option<String>,
    pub enable: bool,
    pub mode: InsightsMode,
}

/// One table's or index's Contributor Insights, in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsightsSummary {
    pub table: String,
    pub index: Option<String>,
    pub insights: ContributorInsights,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InsightsPage {
    pub summaries: Vec<InsightsSummary>,
    /// The table and index to go on after, if there may be more.
    pub next: Option<(String, Option<String>)>,
}

// ---- items --------------------------------------------------------------------------------------

#[derive(Debug, Clone)]
pub struct GetItem {
    pub table: TableName,
    pub key: Attributes,
    pub projection: Option<Projection>,
    pub consistent: bool,
}

#[derive(Debug, Clone)]
pub struct PutItem {
    pub table: TableName,
    pub item: Attributes,
    pub condition: Option<Condition>,
}

#[derive(Debug, Clone)]
pub struct DeleteItem {
    pub table: TableName,
    pub key: Attributes,
    pub condition: Option<Condition>,
}

#[derive(Debug, Clone)]
pub struct UpdateItem {
    pub table: TableName,
    pub key: Attributes,
    /// Without an update, a missing item is created with only its key, and an existing one is left
    /// alone.
    pub update: Option<Update>,
    pub condition: Option<Condition>,
}

#[derive(Debug, Clone)]
pub struct ReadOutcome {
    /// Projected as requested.
    pub item: Option<EncodedItem>,
    pub consumed: Consumed,
}

#[derive(Debug, Clone)]
pub struct WriteOutcome {
    pub table: Arc<TableDefinition>,
    pub old: Option<EncodedItem>,
    pub new: Option<EncodedItem>,
    pub consumed: Consumed,
    /// Only on tables with local indexes.
    pub collection: Option<ItemCollection>,
}

#[derive(Debug, Clone)]
pub struct ItemCollection {
    /// The partition key attribute and its value.
    pub key: Attributes,
    pub size_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Select {
    AllAttributes,
    AllProjectedAttributes,
    SpecificAttributes,
    Count,
}

/// Whose rules a read or an update follows, where PartiQL's differ from those of the other
/// operations.
///
/// A SELECT may filter by keys and by attributes that an index lacks. On a local index it fetches
/// missing columns for each row that it walks. An UPDATE measures only the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleSet {
    Expressions,
    PartiQl,
}

#[derive(Debug, Clone, Hash)]
pub struct Query {
    pub table: TableName,
    pub index: Option<String>,
    pub key_conditions: Vec<KeyCondition>,
    pub forward: bool,
    pub page: PageRequest,
}

#[derive(Debug, Clone, Hash)]
pub struct Scan {
    pub table: TableName,
    pub index: Option<String>,
    pub segment: Option<Segment>,
    pub page: PageRequest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Segment {
    pub number: u32,
    pub total: u32,
}

/// What Query and Scan share.
#[derive(Debug, Clone, Default, Hash)]
pub struct PageRequest {
    pub filter: Option<Condition>,
    pub projection: Option<Projection>,
    /// `None` is the default: all attributes of a table, the projected ones of an index, or those
    /// of the projection if there is one.
    pub select: Option<Select>,
    pub limit: Option<u32>,
    pub start_key: Option<Attributes>,
    pub consistent: bool,
}

#[derive(Debug, Clone)]
pub struct PageOutcome {
    /// Empty for `Select::Count`.
    pub items: ItemBuffer,
    pub count: u64,
    pub scanned_count: u64,
    pub last_evaluated_key: Option<Attributes>,
    pub consumed: Consumed,
}

#[derive(Debug, Clone)]
pub struct BatchGet {
    pub tables: Vec<BatchGetTable>,
}

#[derive(Debug, Clone)]
pub struct BatchGetTable {
    pub table: TableName,
    pub keys: Vec<Attributes>,
    pub projection: Option<Projection>,
    pub consistent: bool,
}

#[derive(Debug, Clone)]
pub struct BatchGetOutcome {
    /// One entry per requested table, in request order.
    pub tables: Vec<BatchGetTableOutcome>,
}

#[derive(Debug, Clone)]
pub struct BatchGetTableOutcome {
    pub items: Vec<EncodedItem>,
    /// Positions in the request's keys that did not fit in the response or met a limit of
    /// throughput, in order.
    pub unprocessed: Vec<usize>,
    pub consumed: Consumed,
}

#[derive(Debug, Clone)]
pub struct BatchWrite {
    pub tables: Vec<BatchWriteTable>,
}

#[derive(Debug, Clone)]
pub struct BatchWriteTable {
    pub table: TableName,
    pub requests: Vec<BatchWriteRequest>,
}

#[derive(Debug, Clone)]
pub enum BatchWriteRequest {
    Put(Attributes),
    Delete(Attributes),
}

#[derive(Debug, Clone)]
pub struct BatchWriteOutcome {
    /// One entry per table, in request order.
    pub tables: Vec<BatchWriteTableOutcome>,
}

#[derive(Debug, Clone)]
pub struct BatchWriteTableOutcome {
    pub consumed: Consumed,
    pub collections: Vec<ItemCollection>,
    /// The requests that met a limit of throughput, to send again.
    pub unprocessed: Vec<BatchWriteRequest>,
}

#[derive(Debug, Clone)]
pub struct TransactWrite {
    pub token: Option<TransactionToken>,
    pub actions: Vec<TransactAction>,
}

/// A client's idempotency token, with a digest of the parameters that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionToken {
    pub namespace: Arc<Namespace>,
    pub token: String,
    pub parameters_digest: [u8; 16],
}

#[derive(Debug, Clone)]
pub enum TransactAction {
    Put(PutItem),
    Update(UpdateItem),
    Delete(DeleteItem),
    Check { table: TableName, key: Attributes, condition: Condition },
}

#[derive(Debug, Clone)]
pub struct TransactWriteOutcome {
    /// One entry per table, in the order of first mention. If a token was replayed, these are
    /// reads.
    pub consumed: Vec<Consumed>,
    pub collections: Vec<(TableName, ItemCollection)>,
}

#[derive(Debug, Clone)]
pub struct TransactGet {
    pub gets: Vec<GetItem>,
}

#[derive(Debug, Clone)]
pub struct TransactGetOutcome {
    /// One entry per get, in order.
    pub items: Vec<Option<EncodedItem>>,
    /// One entry per table, in the order of first mention.
    pub consumed: Vec<Consumed>,
}

// ---- streams ------------------------------------------------------------------------------------

/// A stream as its ARN names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamName {
    pub table: TableName,
    pub label: String,
}

impl StreamName {
    pub fn arn(&self) -> String {
        let TableName { namespace, name } = &self.table;
        format!("{}/stream/{}", table_arn(namespace, name), self.label)
    }
}

#[derive(Debug, Clone)]
pub struct ListStreams {
    pub namespace: Arc<Namespace>,
    /// Only the streams of tables with this name.
    pub table: Option<String>,
    /// The table's name and the label of the last stream on the previous page.
    pub start_after: Option<(String, String)>,
    pub limit: usize,
}

#[derive(Debug, Clone)]
pub struct StreamPage {
    pub streams: Vec<StreamName>,
    /// Whether streams follow after the last one.
    pub more: bool,
}

#[derive(Debug, Clone)]
pub struct DescribeStream {
    pub stream: StreamName,
    /// Only shards whose names come after this one.
    pub start_after: Option<String>,
    /// Only the children of the shard with this name.
    pub children_of: Option<String>,
    pub limit: usize,
}

#[derive(Debug, Clone)]
pub struct StreamDescription {
    pub stream: StreamName,
    pub view_type: StreamViewType,
    pub enabled: bool,
    pub created_at_ms: u64,
    pub keys: KeySchema,
    pub shards: Vec<ShardDescription>,
    /// Whether shards follow after the last one.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardDescription {
    pub id: ShardId,
    pub parent: Option<ShardId>,
    pub first: SequenceNumber,
    /// Only for closed shards.
    pub last: Option<SequenceNumber>,
}

/// Where to start reading a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IteratorStart {
    TrimHorizon,
    Latest,
    At(SequenceNumber),
    After(SequenceNumber),
    AtTimestamp { at_ms: u64 },
}

/// A position in a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPosition {
    pub stream: StreamName,
    pub shard: u32,
    /// The number in the shard's log of the next entry to read.
    pub next_entry: u64,
    pub created_at_ms: u64,
}

#[derive(Debug, Clone)]
pub struct RecordPage {
    pub records: Vec<StreamRecord>,
    /// `None` at the end of a closed shard.
    pub next: Option<StreamPosition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRecord {
    /// Unique, and the same whenever the record is read.
    pub id: u128,
    pub event: StreamEvent,
    /// The database itself made the change: the item had expired.
    pub by_service: bool,
    pub created_at_ms: u64,
    pub sequence_number: SequenceNumber,
    pub view_type: StreamViewType,
    /// The size of the keys and the images.
    pub size_bytes: u64,
    pub keys: EncodedItem,
    pub new: Option<EncodedItem>,
    pub old: Option<EncodedItem>,
}

// ---- capacity -----------------------------------------------------------------------------------

/// The capacity units of one request on one table, in half units so that they stay exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consumed {
    pub table: TableName,
    /// Whether the halves are transactional reads, transactional writes or neither. Only
    /// transactional results show read and write units separately.
    pub transactional: Option<TransactionalUnits>,
    pub table_halves: u64,
    /// Only indexes that were used, by name.
    pub local_index_halves: BTreeMap<String, u64>,
    pub global_index_halves: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionalUnits {
    Read,
    Write,
}

impl Consumed {
    pub fn total_halves(&self) -> u64 {
        self.table_halves
            + self.local_index_halves.values().sum::<u64>()
            + self.global_index_halves.values().sum::<u64>()
    }
}
