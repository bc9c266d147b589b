//! Shared by the tests of tables: an engine on the memory store, and requests in their shortest
//! form.

use std::ops::ControlFlow;
use std::sync::Arc;

pub use zenobe_engine::TableUpdate;
use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::*;
use zenobe_engine::error::{Error, Result, UpdateTableError};
use zenobe_engine::schema::*;
use zenobe_engine::{Engine, EngineOptions, Limits};
use zenobe_store::memory::MemoryStore;
use zenobe_store::{Direction, KeyRange, Store};
use zenobe_value::{AttributeValue, Attributes, Number};

/// 2026-10-09T05:53:25.330.
pub const START_MS: u64 = 1_791_525_205_330;
pub const HOUR_MS: u64 = 3_600_000;
pub const DAY_MS: u64 = 24 * HOUR_MS;

pub struct Harness {
    pub store: Arc<dyn Store>,
    pub clock: Arc<ManualClock>,
    pub engine: Arc<Engine>,
}

impl Harness {
    pub async fn new() -> Harness {
        Harness::with(Arc::new(MemoryStore::new()), Limits::default()).await
    }

    pub async fn with_limits(limits: Limits) -> Harness {
        Harness::with(Arc::new(MemoryStore::new()), limits).await
    }

    pub async fn with(store: Arc<dyn Store>, limits: Limits) -> Harness {
        let options = EngineOptions { limits, ..EngineOptions::default() };
        Harness::with_options(store, options).await
    }

    /// The harness replaces the clock and the randomness.
    pub async fn with_options(store: Arc<dyn Store>, options: EngineOptions) -> Harness {
        let clock = Arc::new(ManualClock::new(START_MS));
        let options = EngineOptions { clock: clock.clone(), random_seed: Some(1), ..options };
        let engine = Engine::open(store.clone(), options).await.unwrap();
        Harness { store, clock, engine }
    }

    /// A second engine on the same store, as after a restart or on another node.
    pub async fn another(&self) -> Harness {
        Harness {
            store: self.store.clone(),
            clock: self.clock.clone(),
            engine: open(self.store.clone(), self.clock.clone()).await.unwrap(),
        }
    }

    pub async fn create(&self, request: CreateTable) -> TableDescription {
        self.engine.create_table(request).await.unwrap()
    }

    pub async fn update(&self, change: impl FnOnce(&mut UpdateTable)) -> Result<TableUpdate> {
        self.engine.update_table(update(change)).await
    }

    pub async fn describe(&self) -> TableDescription {
        self.engine.describe_table(&name("t")).await.unwrap()
    }

    pub async fn definition(&self) -> Arc<TableDefinition> {
        self.describe().await.definition
    }

    /// The status of an index of table `t`; `None` if there is no such index.
    pub async fn index_status(&self, index: &str) -> Option<IndexStatus> {
        self.definition().await.index(index).map(|index| index.status)
    }

    pub async fn put(&self, item: Attributes) -> Result<WriteOutcome> {
        put(&self.engine, item).await
    }

    pub async fn delete(&self, id: &str) {
        let key = Attributes::from([("id".to_owned(), text(id))]);
        let command = DeleteItem { table: name("t"), key, condition: None };
        self.engine.delete_item(command).await.unwrap();
    }

    /// Every key of the store.
    pub async fn keys(&self) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        let mut visit = |key: &[u8], _: &[u8]| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        };
        self.store.scan(KeyRange::all(), Direction::Forward, &mut visit).await.unwrap();
        keys
    }

    /// Scans table `t` (or one of its indexes) to its end.
    pub async fn scan(&self, index: Option<&str>) -> Result<Vec<Attributes>> {
        scan(&self.engine, index).await
    }

    /// Checks that the counters of table `t` and of its active indexes match the stored items.
    pub async fn check_statistics(&self) {
        let description = self.describe().await;
        let really = |items: &[Attributes]| ItemStatistics {
            item_count: items.len() as u64,
            size_bytes: items.iter().map(|item| zenobe_value::item_size_bytes(item) as u64).sum(),
        };
        assert_eq!(description.statistics, really(&self.scan(None).await.unwrap()));
        for index in description.definition.indexes() {
            if index.status == IndexStatus::Active {
                let items = self.scan(Some(&index.name)).await.unwrap();
                assert_eq!(description.index_statistics[&index.name], really(&items));
            }
        }
    }
}

pub async fn open(store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Result<Arc<Engine>> {
    Engine::open(store, EngineOptions { clock, ..EngineOptions::default() }).await
}

pub async fn put(engine: &Engine, item: Attributes) -> Result<WriteOutcome> {
    engine.put_item(PutItem { table: name("t"), item, condition: None }).await
}

pub async fn scan(engine: &Engine, index: Option<&str>) -> Result<Vec<Attributes>> {
    let mut items = Vec::new();
    let mut start_key = None;
    loop {
        let page = PageRequest { start_key: start_key.take(), ..PageRequest::default() };
        let index = index.map(str::to_owned);
        let outcome = engine.scan(&Scan { table: name("t"), index, segment: None, page }).await?;
        items.extend(outcome.items.iter().map(|item| item.decode()));
        match outcome.last_evaluated_key {
            None => return Ok(items),
            next => start_key = next,
        }
    }
}

pub fn namespace() -> Arc<Namespace> {
    Arc::new(Namespace { account: "000000000000".into(), region: "eu-west-1".into() })
}

pub fn name(name: &str) -> TableName {
    TableName { namespace: namespace(), name: name.to_owned() }
}

/// An on-demand table with partition key `id`.
pub fn create(table: &str) -> CreateTable {
    let keys = KeySchema { partition: vec![key("id", ScalarType::S)], sort: vec![] };
    CreateTable::on_demand(name(table), [("id".to_owned(), ScalarType::S)].into(), keys)
}

pub fn create_provisioned(read: u64, write: u64) -> CreateTable {
    CreateTable {
        billing_mode: BillingMode::Provisioned,
        throughput: units(read, write),
        ..create("t")
    }
}

/// A global index on attribute `on`, projecting everything.
pub fn index(name: &str, on: &str, throughput: ThroughputSettings) -> CreateIndex {
    CreateIndex {
        name: name.to_owned(),
        keys: KeySchema { partition: vec![key(on, ScalarType::S)], sort: vec![] },
        projection: IndexProjection::All,
        throughput,
    }
}

/// An UpdateTable of table `t`.
pub fn update(change: impl FnOnce(&mut UpdateTable)) -> UpdateTable {
    let mut request = UpdateTable::of(name("t"));
    change(&mut request);
    request
}

/// Adds the creation of a global index on attribute `on` to an UpdateTable.
pub fn add_index(request: &mut UpdateTable, name: &str, on: &str) {
    let types = request.attribute_types.get_or_insert_default();
    types.insert(on.to_owned(), ScalarType::S);
    request.index_changes.push(IndexChange::Create(Box::new(UnresolvedIndex {
        name: name.to_owned(),
        partition: vec![on.to_owned()],
        sort: vec![],
        projection: IndexProjection::All,
        throughput: ThroughputSettings::default(),
    })));
}

pub fn delete_index(request: &mut UpdateTable, name: &str) {
    request.index_changes.push(IndexChange::Delete { name: name.to_owned() });
}

pub fn update_index(request: &mut UpdateTable, name: &str, throughput: ThroughputSettings) {
    let name = name.to_owned();
    request.index_changes.push(IndexChange::Update { name, throughput });
}

pub fn units(read: u64, write: u64) -> ThroughputSettings {
    let provisioned = Some(ProvisionedUnits { read, write });
    ThroughputSettings { provisioned, ..ThroughputSettings::default() }
}

pub fn key(name: &str, scalar_type: ScalarType) -> KeyAttribute {
    KeyAttribute { name: name.to_owned(), scalar_type }
}

pub fn item(id: &str, attributes: &[(&str, &str)]) -> Attributes {
    let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), text(value)));
    attributes.chain([("id".to_owned(), text(id))]).collect()
}

pub fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub fn number(number: u64) -> AttributeValue {
    AttributeValue::N(Number::from(number))
}

/// The ids of items, sorted.
pub fn ids(items: &[Attributes]) -> Vec<String> {
    let mut ids: Vec<String> = items
        .iter()
        .map(|item| match &item["id"] {
            AttributeValue::S(id) => id.clone(),
            other => panic!("an id of {other:?}"),
        })
        .collect();
    ids.sort_unstable();
    ids
}

/// Checks that a request failed for this reason.
// The reason is taken by value so that callers can write it inline.
#[allow(clippy::needless_pass_by_value)]
pub fn check_refused<T: std::fmt::Debug>(result: Result<T>, expected: UpdateTableError) {
    match result {
        Err(Error::UpdateTable(error)) => assert_eq!(error, expected),
        other => panic!("{other:?}, expected {expected:?}"),
    }
}

pub fn is_not_found<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::TableNotFound { .. }))
}
