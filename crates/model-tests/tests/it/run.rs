//! Runs a history on the engine and on its twin, and stops where they differ.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use zenobe_engine::clock::ManualClock;
use zenobe_engine::command::*;
use zenobe_engine::error::Error;
use zenobe_engine::schema::{IndexKind, IndexStatus, Namespace, StreamViewType};
use zenobe_engine::{Engine, Limits};
use zenobe_value::{Attributes, EncodedItem};

use crate::backend::{Backend, Disk, Engines};
use crate::generate::{Settings, Shape, shapes};
use crate::step::{BatchGetTable, Step, digest};
use crate::text::Trees;
use crate::twin::Twin;
use crate::twin::fault::{Fault, Refusal};
use crate::twin::life::{EXPIRY, Record};
use crate::twin::page::{Page, Query as ModelQuery, Reading};
use crate::twin::schema::{Index, IndexState, NewIndex};
use crate::twin::table::Table;
use crate::twin::transaction::Get;
use crate::twin::value::{Key, key_of};
use crate::twin::write::{Action, BatchRequest, Write};

/// Where a history diverged, and how.
#[derive(Debug, Clone)]
pub struct Divergence {
    pub position: usize,
    pub what: String,
}

/// More pages than any history needs: a start key that doesn't advance must not run forever.
const PAGES_MAX: usize = 200;
pub const START_MS: u64 = 1_700_000_000_000;

pub async fn run(
    backend: Backend,
    settings: Settings,
    steps: &[Step],
) -> Result<Counts, Divergence> {
    let mut world = World::new(backend, settings).await;
    let at = |position: usize| move |what: String| Divergence { position, what };
    for (position, step) in steps.iter().enumerate() {
        world.step(step).await.map_err(at(position))?;
    }
    // Whatever the history did, this must hold at its end and after a restart.
    for step in [Step::Check, Step::Work, Step::Check, Step::Reopen, Step::Check] {
        let at_the_end = |what| format!("at the end, {step}: {what}");
        world.step(&step).await.map_err(at_the_end).map_err(at(steps.len().saturating_sub(1)))?;
    }
    Ok(world.counts)
}

/// How often both sides accepted each kind of request, and rejected one for each kind of reason: a
/// test in which everything fails tests nothing.
#[derive(Debug, Clone, Default)]
pub struct Counts(pub BTreeMap<String, usize>);

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        for (name, count) in &other.0 {
            *self.0.entry(name.clone()).or_default() += count;
        }
    }

    pub fn count(&mut self, name: impl Into<String>) {
        *self.0.entry(name.into()).or_default() += 1;
    }

    /// The start of a fault's debug text identifies it.
    fn count_fault(&mut self, fault: &Fault) {
        let text = format!("{fault:?}");
        let end = text.find([' ', '{', '[', ')']).unwrap_or(text.len());
        self.count(&text[..end]);
    }
}

pub struct World {
    disk: Disk,
    clock: Arc<ManualClock>,
    limits: Limits,
    /// `None` only while they are being reopened.
    engines: Option<Engines>,
    pub namespace: Arc<Namespace>,
    pub twin: Twin,
    pub counts: Counts,
}

pub type Outcome = Result<(), String>;

/// A batch's result for one table: items, cost, and the keys that were left out.
type BatchGot = (Vec<Attributes>, Consumed, Vec<usize>);

impl World {
    async fn new(backend: Backend, settings: Settings) -> World {
        let disk = Disk::new(backend);
        let clock = Arc::new(ManualClock::new(START_MS));
        let collection_size_bytes_max = settings.collection_size_bytes_max;
        let limits = Limits {
            collection_size_bytes_max,
            time_to_live_change_interval_ms: 0,
            ..Limits::default()
        };
        let engines = disk.engines(&clock, limits).await;
        let namespace = Namespace { account: "000000000000".into(), region: "local".into() };
        let mut world = World {
            disk,
            clock,
            limits,
            engines: Some(engines),
            namespace: Arc::new(namespace),
            twin: Twin { now_ms: START_MS, ..Twin::default() },
            counts: Counts::default(),
        };
        for shape in shapes() {
            world.create(&shape).await.expect("a valid table");
        }
        world
    }

    pub fn engine(&self) -> &Arc<Engine> {
        self.engines.as_ref().expect("the engines are open").any()
    }

    fn name(&self, table: &str) -> TableName {
        TableName { namespace: Arc::clone(&self.namespace), name: table.to_owned() }
    }

    async fn create(&mut self, shape: &Shape) -> Outcome {
        let command = create_table(self.name(&shape.name), shape);
        let actual = self.engine().create_table(command).await.map(drop);
        let indexes = shape.indexes.iter().map(|index| Index {
            name: index.name.clone(),
            kind: index.kind,
            keys: index.keys.clone(),
            projection: index.projection.clone(),
            state: IndexState::Active,
        });
        let table = Table {
            name: self.name(&shape.name),
            keys: shape.keys.clone(),
            indexes: indexes.collect(),
            items: Default::default(),
            collection_size_bytes_max: self.limits.collection_size_bytes_max,
            expires: false,
            streams: Vec::new(),
        };
        let expected = self.twin.create_table(table);
        self.agree("create-table", &expected, actual)
    }

    async fn step(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Write { table, write } => self.write(table, write).await,
            Step::Get { get, consistent } => self.get(get, *consistent).await,
            Step::Query(query) => self.query(query).await,
            Step::Scan { table, reading, segments } => self.scan(table, reading, *segments).await,
            Step::BatchGet(tables) => self.batch_get(tables).await,
            Step::BatchWrite(tables) => self.batch_write(tables).await,
            Step::TransactWrite { token, writes } => {
                self.transact_write(token.as_deref(), writes).await
            }
            Step::TransactGet(gets) => self.transact_get(gets).await,
            Step::Statement(step) => self.statement(step).await,
            Step::AddIndex { table, index } => self.add_index(table, index).await,
            Step::DropIndex { table, index } => self.drop_index(table, index).await,
            Step::CreateTable { table } => match shapes().iter().find(|shape| shape.name == *table)
            {
                Some(shape) => self.create(shape).await,
                // A table that no history has.
                None => Ok(()),
            },
            Step::DeleteTable { table } => {
                let expected = self.twin.delete_table(table);
                let actual = self.engine().delete_table(&self.name(table)).await.map(drop);
                self.agree("delete-table", &expected, actual)
            }
            Step::SetTimeToLive { table, enabled } => self.set_time_to_live(table, *enabled).await,
            Step::SetStream { table, view_type } => self.set_stream(table, *view_type).await,
            Step::Crash => {
                self.disk.crash();
                self.engines = None;
                self.disk.recover();
                self.counts.count("crash");
                self.engines = Some(self.disk.engines(&self.clock, self.limits).await);
                Ok(())
            }
            Step::Work => {
                self.twin.tables.values_mut().for_each(Table::finish_index_work);
                if self.twin.expire() > 0 {
                    self.counts.count("expiry");
                }
                let outcome = self.engine().run_pending_work().await;
                outcome.map_err(|error| format!("background work failed: {error:?}"))
            }
            Step::AdvanceClock { by_ms } => {
                self.twin.now_ms += by_ms;
                self.clock.advance_ms(*by_ms);
                Ok(())
            }
            Step::Check => self.check().await,
            Step::Reopen => {
                self.engines = None;
                self.engines = Some(self.disk.engines(&self.clock, self.limits).await);
                Ok(())
            }
        }
    }

    /// Both accept with equal outcomes, or the engine rejects for a reason that the model allows.
    fn agree<T: PartialEq + Debug>(
        &mut self,
        request: &str,
        expected: &Result<T, Refusal>,
        actual: Result<T, Error>,
    ) -> Outcome {
        let actual = actual.map_err(Fault::of);
        let agreed = match (expected, &actual) {
            (Ok(expected), Ok(actual)) => expected == actual,
            (Err(refusal), Err(fault)) => refusal.allows(fault),
            _ => false,
        };
        match &actual {
            Ok(_) => self.counts.count(request),
            Err(fault) => self.counts.count_fault(fault),
        }
        if agreed { Ok(()) } else { Err(difference(expected, &actual)) }
    }

    async fn write(&mut self, table: &str, write: &Write) -> Outcome {
        let expected = self.twin.write(table, write);
        let trees = trees(write);
        let bound = trees.bind();
        let (table, condition) = (self.name(table), bound.condition);
        let actual = match &write.action {
            Action::Put(item) => {
                self.engine().put_item(PutItem { table, item: item.clone(), condition }).await
            }
            Action::Delete(key) => {
                self.engine().delete_item(DeleteItem { table, key: key.clone(), condition }).await
            }
            Action::Update(key, _) => {
                let (key, update) = (key.clone(), bound.update);
                self.engine().update_item(UpdateItem { table, key, update, condition }).await
            }
            Action::Check(_) => panic!("a check is part of a transaction"),
        };
        let expected = expected.map(|written| {
            let collection =
                written.collection.map(|collection| (collection.key, collection.size_bytes));
            (written.old, written.new, written.consumed, collection)
        });
        let actual = actual.map(|written| {
            let collection =
                written.collection.map(|collection| (collection.key, collection.size_bytes));
            (decoded(written.old), decoded(written.new), written.consumed, collection)
        });
        self.agree("write", &expected, actual)
    }

    async fn get(&mut self, get: &Get, consistent: bool) -> Outcome {
        let expected = self.twin.get(&get.table, &get.key, get.projection.as_deref(), consistent);
        let command = self.get_command(get, consistent);
        let actual = self.engine().get_item(&command).await;
        self.agree("get", &expected, actual.map(|read| (decoded(read.item), read.consumed)))
    }

    fn get_command(&self, get: &Get, consistent: bool) -> GetItem {
        let bound = Trees { projection: get.projection.as_deref(), ..Trees::default() }.bind();
        GetItem {
            table: self.name(&get.table),
            key: get.key.clone(),
            projection: bound.projection,
            consistent,
        }
    }

    async fn query(&mut self, query: &ModelQuery) -> Outcome {
        let expected = self.twin.query(query);
        let trees =
            Trees { key_conditions: Some(&query.conditions), ..reading_trees(&query.reading) };
        let bound = trees.bind();
        let mut command = Query {
            table: self.name(&query.table),
            index: query.reading.index.clone(),
            key_conditions: bound.key_conditions,
            forward: query.forward,
            page: page_request(&query.reading, bound.filter, bound.projection),
        };
        command.page.start_key = query.start.clone();
        let mut pages = Vec::new();
        let actual = loop {
            match self.engine().query(&command).await {
                Err(error) => break Err(error),
                Ok(outcome) => {
                    pages.push(page(outcome));
                    command.page.start_key = last_key(&pages);
                }
            }
            if command.page.start_key.is_none() || pages.len() == PAGES_MAX {
                break Ok(pages);
            }
        };
        self.agree("query", &expected, actual)
    }

    async fn scan(&mut self, table: &str, reading: &Reading, segments: Option<u32>) -> Outcome {
        if let Err(refusal) = self.twin.check_scan(table, reading) {
            let actual = self.scan_pages(table, reading, None).await;
            return self.agree("scan refused", &Err(refusal), actual);
        }
        let segments = match segments {
            Some(total) => (0..total).map(|number| Some(Segment { number, total })).collect(),
            None => vec![None],
        };
        for segment in segments {
            let expected = self.twin.scan(table, reading, segment);
            let actual = self.scan_pages(table, reading, segment).await;
            let what = if segment.is_some() { "scan of a segment" } else { "scan" };
            self.agree(what, &Ok(expected), actual)?;
        }
        Ok(())
    }

    async fn scan_pages(
        &self,
        table: &str,
        reading: &Reading,
        segment: Option<Segment>,
    ) -> Result<Vec<Page>, Error> {
        let bound = reading_trees(reading).bind();
        let mut command = Scan {
            table: self.name(table),
            index: reading.index.clone(),
            segment,
            page: page_request(reading, bound.filter, bound.projection),
        };
        let mut pages = Vec::new();
        loop {
            pages.push(page(self.engine().scan(&command).await?));
            command.page.start_key = last_key(&pages);
            if command.page.start_key.is_none() || pages.len() == PAGES_MAX {
                return Ok(pages);
            }
        }
    }

    async fn batch_get(&mut self, tables: &[BatchGetTable]) -> Outcome {
        let expected = self.expected_batch_get(tables);
        let requests = tables.iter().map(|table| {
            let trees = Trees { projection: table.projection.as_deref(), ..Trees::default() };
            zenobe_engine::command::BatchGetTable {
                table: self.name(&table.table),
                keys: table.keys.clone(),
                projection: trees.bind().projection,
                consistent: table.consistent,
            }
        });
        let command = BatchGet { tables: requests.collect() };
        let actual = self.engine().batch_get(&command).await.map(|outcome| {
            let table = |table: BatchGetTableOutcome| {
                let items: Vec<Attributes> =
                    table.items.into_iter().map(|item| item.as_item().decode()).collect();
                (items, table.consumed, table.unprocessed)
            };
            outcome.tables.into_iter().map(table).collect::<Vec<_>>()
        });
        self.agree("batch-get", &expected, actual)
    }

    fn expected_batch_get(&self, tables: &[BatchGetTable]) -> Result<Vec<BatchGot>, Refusal> {
        tables.iter().try_for_each(|table| self.twin.table(&table.table).map(drop))?;
        let mut outcomes = Vec::new();
        for table in tables {
            let mut items = Vec::new();
            let name = self.name(&table.table);
            let mut consumed = crate::twin::table::nothing_consumed(&name);
            for key in &table.keys {
                let projection = table.projection.as_deref();
                let (item, halves) =
                    self.twin.get(&table.table, key, projection, table.consistent)?;
                items.extend(item);
                consumed.table_halves += halves.table_halves;
            }
            outcomes.push((items, consumed, Vec::new()));
        }
        Ok(outcomes)
    }

    async fn batch_write(&mut self, tables: &[(String, Vec<BatchRequest>)]) -> Outcome {
        let expected = self.twin.batch_write(tables);
        let request = |request: &BatchRequest| match request {
            BatchRequest::Put(item) => BatchWriteRequest::Put(item.clone()),
            BatchRequest::Delete(key) => BatchWriteRequest::Delete(key.clone()),
        };
        let tables = tables.iter().map(|(table, requests)| BatchWriteTable {
            table: self.name(table),
            requests: requests.iter().map(request).collect(),
        });
        let command = BatchWrite { tables: tables.collect() };
        // The size of a collection depends on which write of the batch came last, so it is not
        // compared here.
        let actual = self.engine().batch_write(command).await.map(|outcome| {
            outcome.tables.into_iter().map(|table| table.consumed).collect::<Vec<_>>()
        });
        self.agree("batch-write", &expected, actual)
    }

    async fn transact_write(&mut self, token: Option<&str>, writes: &[(String, Write)]) -> Outcome {
        let digest = digest(writes);
        let expected = self.twin.transact_write(token.map(|token| (token, digest)), writes);
        let actions = writes.iter().map(|(table, write)| self.action(table, write)).collect();
        let token = token.map(|token| TransactionToken {
            namespace: Arc::clone(&self.namespace),
            token: token.to_owned(),
            parameters_digest: digest,
        });
        let actual = self.engine().transact_write(TransactWrite { token, actions }).await;
        let sorted = |mut collections: Vec<(String, Attributes, u64)>| {
            collections.sort_by_key(|(table, key, _)| format!("{table} {key:?}"));
            collections
        };
        let expected = expected.map(|(consumed, collections)| (consumed, sorted(collections)));
        let actual = actual.map(|outcome| {
            let collections = outcome.collections.into_iter();
            let collections = collections
                .map(|(table, collection)| (table.name, collection.key, collection.size_bytes))
                .collect();
            (outcome.consumed, sorted(collections))
        });
        let is_replay = actual.as_ref().is_ok_and(|(consumed, _)| {
            consumed.iter().any(|part| part.transactional == Some(TransactionalUnits::Read))
        });
        let request = if is_replay { "transact-write again" } else { "transact-write" };
        self.agree(request, &expected, actual)
    }

    fn action(&self, table: &str, write: &Write) -> TransactAction {
        let bound = trees(write).bind();
        let (table, condition) = (self.name(table), bound.condition);
        match &write.action {
            Action::Put(item) => {
                TransactAction::Put(PutItem { table, item: item.clone(), condition })
            }
            Action::Delete(key) => {
                TransactAction::Delete(DeleteItem { table, key: key.clone(), condition })
            }
            Action::Update(key, _) => TransactAction::Update(UpdateItem {
                table,
                key: key.clone(),
                update: bound.update,
                condition,
            }),
            Action::Check(key) => TransactAction::Check {
                table,
                key: key.clone(),
                condition: condition.expect("a check has a condition"),
            },
        }
    }

    async fn transact_get(&mut self, gets: &[Get]) -> Outcome {
        let expected = self.twin.transact_get(gets);
        let gets = gets.iter().map(|get| self.get_command(get, true)).collect();
        let actual = self.engine().transact_get(&TransactGet { gets }).await.map(|outcome| {
            let items = outcome.items.into_iter().map(decoded).collect::<Vec<_>>();
            (items, outcome.consumed)
        });
        self.agree("transact-get", &expected, actual)
    }

    async fn add_index(&mut self, table: &str, index: &NewIndex) -> Outcome {
        let expected = match self.twin.tables.get_mut(table) {
            Some(table) => table.add_index(index),
            None => Err(Fault::TableNotFound.into()),
        };
        let names =
            |attributes: &[(String, _)]| attributes.iter().map(|(name, _)| name.clone()).collect();
        let change = IndexChange::Create(Box::new(UnresolvedIndex {
            name: index.name.clone(),
            partition: names(&index.partition),
            sort: names(&index.sort),
            projection: index.projection.clone(),
            throughput: ThroughputSettings::default(),
        }));
        let types = index.partition.iter().chain(&index.sort).cloned().collect();
        let command =
            UpdateTable { attribute_types: Some(types), ..index_change(self.name(table), change) };
        let actual = self.engine().update_table(command).await.map(drop);
        self.agree("add-index", &expected, actual)
    }

    async fn drop_index(&mut self, table: &str, index: &str) -> Outcome {
        let expected = match self.twin.tables.get_mut(table) {
            Some(table) => table.drop_index(index),
            None => Err(Fault::TableNotFound.into()),
        };
        let change = IndexChange::Delete { name: index.to_owned() };
        let command = index_change(self.name(table), change);
        let actual = self.engine().update_table(command).await.map(drop);
        self.agree("drop-index", &expected, actual)
    }

    async fn set_time_to_live(&mut self, table: &str, enabled: bool) -> Outcome {
        let expected = match self.twin.tables.get_mut(table) {
            Some(table) => table.set_time_to_live(enabled),
            None => Err(Fault::TableNotFound.into()),
        };
        let attribute = EXPIRY.to_owned();
        let command = UpdateTimeToLive { table: self.name(table), enabled, attribute };
        let actual = self.engine().update_time_to_live(command).await;
        self.agree("time-to-live", &expected, actual)
    }

    async fn set_stream(&mut self, table: &str, view_type: Option<StreamViewType>) -> Outcome {
        let expected = match self.twin.tables.get_mut(table) {
            Some(table) => table.set_stream(view_type),
            None => Err(Fault::TableNotFound.into()),
        };
        let change = view_type.map_or(StreamChange::Disable, StreamChange::Enable);
        let command =
            UpdateTable { stream: Some(change), ..update_table(self.name(table), Vec::new()) };
        let actual = self.engine().update_table(command).await.map(drop);
        self.agree("stream", &expected, actual)
    }

    /// Every stream shows every change, and an item's changes in order.
    async fn check_streams(&mut self) -> Outcome {
        for shape in shapes() {
            let expected: Vec<_> = self
                .twin
                .streams(&shape.name)
                .iter()
                .map(|stream| by_item(&stream.records))
                .collect();
            let records = stream_records(self.engine(), &self.name(&shape.name)).await;
            let records = records.map_err(|error| format!("streams can't be read: {error:?}"))?;
            let actual: Vec<_> = records.iter().map(|records| by_item(records)).collect();
            compare(&format!("streams of {}", shape.name), &expected, &actual)?;
            if actual.iter().any(|records| !records.is_empty()) {
                self.counts.count("records");
            }
        }
        Ok(())
    }

    /// What is stored, counted and described must match the twin's items.
    async fn check(&mut self) -> Outcome {
        self.check_streams().await?;
        for (name, table) in &self.twin.tables {
            let found = self.engine().check_consistency(&table.name).await;
            let found = found.map_err(|error| format!("{name} can't be checked: {error:?}"))?;
            if !found.is_empty() {
                return Err(format!("{name} is inconsistent: {found:?}"));
            }
            let description = self.engine().describe_table(&table.name).await;
            let description =
                description.map_err(|error| format!("{name} can't be described: {error:?}"))?;
            compare(name, &table.statistics(None), &description.statistics)?;
            for index in table.indexes.iter().filter(|index| index.is_maintained()) {
                let name = format!("{name}.{}", index.name);
                let stored = description.index_statistics.get(&index.name).copied();
                compare(&name, &Some(table.statistics(Some(index))), &stored)?;
            }
            compare(name, &index_states(table), &described_states(&description))?;
        }
        for name in self.twin.tables.keys() {
            let reading = Reading::default();
            let pages = self.scan_pages(name, &reading, None).await;
            let pages = pages.map_err(|error| format!("{name} can't be scanned: {error:?}"))?;
            let table = &self.twin.tables[name];
            let mut stored: Vec<(Key, Attributes)> = Vec::new();
            for item in pages.into_iter().flat_map(|page| page.items) {
                let key = key_of(&table.key_attributes(), &item).ok_or("an item without key")?;
                stored.push((key, item));
            }
            stored.sort_by(|(one, _), (other, _)| one.cmp(other));
            let expected: Vec<(Key, Attributes)> = table.items.clone().into_iter().collect();
            compare(name, &expected, &stored)?;
        }
        Ok(())
    }
}

fn create_table(table: TableName, shape: &Shape) -> CreateTable {
    let schemas = shape.indexes.iter().map(|index| &index.keys).chain([&shape.keys]);
    let attributes = schemas.flat_map(|keys| keys.attributes());
    let attribute_types =
        attributes.map(|attribute| (attribute.name.clone(), attribute.scalar_type)).collect();
    let indexes = |kind: IndexKind| {
        let indexes = shape.indexes.iter().filter(|index| index.kind == kind);
        let create = |index: &crate::generate::IndexShape| CreateIndex {
            name: index.name.clone(),
            keys: index.keys.clone(),
            projection: index.projection.clone(),
            throughput: ThroughputSettings::default(),
        };
        indexes.map(create).collect()
    };
    CreateTable {
        local_indexes: indexes(IndexKind::Local),
        global_indexes: indexes(IndexKind::Global),
        ..CreateTable::on_demand(table, attribute_types, shape.keys.clone())
    }
}

/// The records by item, each item's in order. Records of different items have no order.
fn by_item(records: &[Record]) -> BTreeMap<String, Vec<Record>> {
    let mut items: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    for record in records {
        items.entry(format!("{:?}", record.keys)).or_default().push(record.clone());
    }
    items
}

/// The records of all streams of a table, in the order of the streams. Their times must never
/// descend.
async fn stream_records(engine: &Engine, table: &TableName) -> Result<Vec<Vec<Record>>, Error> {
    let namespace = Arc::clone(&table.namespace);
    let list =
        ListStreams { namespace, table: Some(table.name.clone()), start_after: None, limit: 1_000 };
    let mut streams = Vec::new();
    for stream in engine.list_streams(&list).await?.streams {
        let command = DescribeStream {
            stream: stream.clone(),
            start_after: None,
            children_of: None,
            limit: 10_000,
        };
        let mut records = Vec::new();
        for shard in engine.describe_stream(&command).await?.shards {
            let (name, start) = (shard.id.to_string(), IteratorStart::TrimHorizon);
            let mut position = Some(engine.shard_iterator(&stream, &name, start).await?);
            let mut last_ms = 0;
            while let Some(from) = position {
                let page = engine.get_records(&from, 100).await?;
                position = page.next.filter(|_| !page.records.is_empty());
                for record in page.records {
                    assert!(last_ms <= record.created_at_ms, "the times of a shard descend");
                    last_ms = record.created_at_ms;
                    records.push(Record {
                        event: record.event,
                        by_service: record.by_service,
                        keys: record.keys.as_item().decode(),
                        new: decoded(record.new),
                        old: decoded(record.old),
                    });
                }
            }
        }
        streams.push(records);
    }
    Ok(streams)
}

fn index_change(table: TableName, change: IndexChange) -> UpdateTable {
    update_table(table, vec![change])
}

fn update_table(table: TableName, index_changes: Vec<IndexChange>) -> UpdateTable {
    UpdateTable { index_changes, ..UpdateTable::of(table) }
}

fn index_states(table: &Table) -> Vec<(String, &'static str)> {
    let state = |index: &Index| match index.state {
        IndexState::Active => "active",
        IndexState::Creating { .. } => "creating",
        IndexState::Deleting => "deleting",
    };
    sorted(table.indexes.iter().map(|index| (index.name.clone(), state(index))).collect())
}

fn described_states(
    description: &zenobe_engine::schema::TableDescription,
) -> Vec<(String, &'static str)> {
    let state = |status: IndexStatus| match status {
        IndexStatus::Active => "active",
        IndexStatus::Creating { .. } => "creating",
        IndexStatus::Deleting => "deleting",
    };
    let indexes = description.definition.indexes();
    sorted(indexes.map(|index| (index.name.clone(), state(index.status))).collect())
}

fn sorted<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort();
    list
}

fn trees(write: &Write) -> Trees<'_> {
    let update = match &write.action {
        Action::Update(_, update) => update.as_ref(),
        _ => None,
    };
    Trees { update, condition: write.condition.as_ref(), ..Trees::default() }
}

fn reading_trees(reading: &Reading) -> Trees<'_> {
    Trees {
        filter: reading.filter.as_ref(),
        projection: reading.projection.as_deref(),
        ..Trees::default()
    }
}

fn page_request(
    reading: &Reading,
    filter: Option<zenobe_expression::Condition>,
    projection: Option<zenobe_expression::Projection>,
) -> PageRequest {
    PageRequest {
        filter,
        projection,
        select: reading.select,
        limit: reading.limit,
        start_key: None,
        consistent: reading.consistent,
    }
}

fn page(outcome: PageOutcome) -> Page {
    Page {
        items: outcome.items.iter().map(|item| item.decode()).collect(),
        count: outcome.count,
        scanned_count: outcome.scanned_count,
        last_evaluated_key: outcome.last_evaluated_key,
        consumed: outcome.consumed,
    }
}

fn last_key(pages: &[Page]) -> Option<Attributes> {
    pages.last().and_then(|page| page.last_evaluated_key.clone())
}

fn decoded(item: Option<EncodedItem>) -> Option<Attributes> {
    item.map(|item| item.as_item().decode())
}

fn compare<T: PartialEq + Debug>(what: &str, expected: &T, actual: &T) -> Outcome {
    if expected == actual {
        return Ok(());
    }
    Err(format!("{what}: {}", difference(expected, actual)))
}

pub fn difference(expected: &impl Debug, actual: &impl Debug) -> String {
    const SHOWN_MAX: usize = 6_000;
    let shown = |text: String| match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    format!(
        "\n  expected {}\n  actual   {}",
        shown(format!("{expected:?}")),
        shown(format!("{actual:?}"))
    )
}
