//! DynamoDB's capacity accounting: what tables and global indexes may consume, how they are split into
//! partitions, and which requests DynamoDB would throttle.
//!
//! A definition says what a table may consume (`plan`); its partition map (`partition_map`) says
//! where. A `Meter` holds the buckets for both. Before a request reads or locks anything, it
//! takes its minimum cost from the buckets of its table, of its partition and of its account, if
//! that has one (`Engine::admit`), and afterwards the rest (`Ticket::settle`). If a bucket is empty,
//! the request is refused or only counted, depending on the table's mode.
//!
//! Capacity is adaptive, as on DynamoDB: partitions have no fixed shares of their table's
//! throughput. Any of them may use all of it, up to the limit of a partition.
//!
//! Expiry, imports, restores and backfills write under leases and don't pass here: they consume
//! nothing.

mod admit;
mod bucket;
mod budget;
pub mod cause;
mod key_text;
mod map_row;
mod meter;
mod mode;
pub mod partition_map;
mod partition_upkeep;
mod plan;
pub mod report;
mod split_points;
mod ticket;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use parking_lot::Mutex;
use zenobe_store::{Direction, Reader, read_counter};

use self::bucket::nanoseconds;
use self::budget::{Budget, Budgets};
use self::map_row::MapRow;
use self::plan::CapacityPlan;
use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::keyspace;
use crate::options::EngineOptions;
use crate::schema::{IndexId, IndexKind, TableId, Throughput};

pub(crate) use admit::Demand;
pub(crate) use meter::{Meter, Partition, PlacedPartition, position};
pub use mode::{MODE_TAG, ModeTagError, ThroughputMode, UnknownMode};
pub(crate) use partition_upkeep::maintain;
pub(crate) use ticket::Ticket;

/// The meters of a table and its global indexes. They outlive the versions of its definition.
#[derive(Debug)]
pub struct TableMeters {
    pub(crate) table: Arc<Meter>,
    /// What the account may consume with all its tables, if that is limited.
    pub(super) budget: Option<Arc<Budget>>,
    state: Mutex<MetersState>,
}

#[derive(Debug)]
struct MetersState {
    /// The version of the definition that the meters follow.
    version: u64,
    indexes: Vec<Arc<Meter>>,
}

/// The meters that one version of a definition uses.
#[derive(Debug)]
pub(crate) struct TableCapacity {
    pub meters: Arc<TableMeters>,
    /// Those of the global indexes, in the order of the definition.
    indexes: Vec<Arc<Meter>>,
}

impl TableCapacity {
    pub fn table(&self) -> &Meter {
        &self.meters.table
    }

    pub fn index(&self, id: IndexId) -> Option<&Meter> {
        let is_it =
            |meter: &&Arc<Meter>| matches!(&meter.resource.index, Some((_, it)) if *it == id);
        self.indexes.iter().find(is_it).map(|meter| &**meter)
    }
}

/// All meters of an engine.
pub(crate) struct Meters {
    pub mode: ThroughputMode,
    /// The laxest mode that a table may have.
    pub mode_min: ThroughputMode,
    /// No bucket has saved capacity from before this time.
    started_at_ms: u64,
    account_units_max: u64,
    budgets: Budgets,
    /// Whether any table is metered, or was since the start.
    is_metering: AtomicBool,
    /// How many engines share the tables' capacity.
    nodes: AtomicU64,
    tables: Mutex<HashMap<TableId, Arc<TableMeters>>>,
    stored: Mutex<HashMap<(TableId, Option<IndexId>), MapRow>>,
    /// The store's count of changes when the stored maps were last read.
    changes: AtomicI64,
    /// The clock's time when background work last ran.
    looked_at_ms: AtomicU64,
}

impl Meters {
    pub async fn load(store: &dyn Reader, options: &EngineOptions, now_ms: u64) -> Result<Meters> {
        let (mode, mode_min) = (options.throughput, options.throughput_min);
        // Counted before the rows are read, so a change in between is noticed later.
        let changes = read_counter(store, &keyspace::partition_map_changes()).await?;
        Ok(Meters {
            mode,
            mode_min,
            started_at_ms: now_ms,
            account_units_max: options.limits.table_capacity_units_max,
            budgets: Budgets::new(&options.limits),
            is_metering: AtomicBool::new(mode.max(mode_min) != ThroughputMode::Off),
            nodes: AtomicU64::new(1),
            tables: Mutex::default(),
            stored: Mutex::new(load_maps(store).await?),
            changes: AtomicI64::new(changes),
            looked_at_ms: AtomicU64::new(now_ms),
        })
    }

    /// See [`crate::Engine::is_metering`].
    pub fn is_metering(&self) -> bool {
        self.is_metering.load(Ordering::Relaxed)
    }

    pub fn begin_metering(&self) {
        if !self.is_metering() {
            self.is_metering.store(true, Ordering::Relaxed);
        }
    }

    /// The meters of a table, which are created by its first request.
    pub fn of(&self, table: &Table, now_ms: u64) -> TableCapacity {
        let definition = table.definition();
        let mut tables = self.tables.lock();
        let meters = tables.entry(definition.id).or_insert_with(|| {
            let meter = self.new_meter(table, None);
            let state = MetersState { version: 0, indexes: Vec::new() };
            let (nodes, since_ns) =
                (self.nodes.load(Ordering::Relaxed), nanoseconds(self.started_at_ms));
            let budget = self.budgets.of(&definition.namespace.account, nodes, since_ns);
            Arc::new(TableMeters { table: meter, budget, state: Mutex::new(state) })
        });
        let meters = Arc::clone(meters);
        drop(tables);
        let indexes = self.follow(&meters, table, now_ms);
        TableCapacity { meters, indexes }
    }

    /// Updates the meters to a definition, unless they follow a later one.
    fn follow(&self, meters: &TableMeters, table: &Table, now_ms: u64) -> Vec<Arc<Meter>> {
        let definition = table.definition();
        let mut state = meters.state.lock();
        if definition.version > state.version {
            state.version = definition.version;
            let now_ns = nanoseconds(now_ms);
            let follow = |meter: &Meter, throughput: &Throughput| {
                meter.change(now_ns, |state| {
                    state.plan.billing_mode = definition.billing_mode;
                    state.plan.throughput = throughput.clone();
                });
            };
            follow(&meters.table, &definition.throughput);
            let indexes = definition.global_indexes.iter().map(|index| {
                let known = state.indexes.iter().find(|meter| is_of(meter, index.id));
                match known {
                    Some(meter) => {
                        follow(meter, &index.throughput);
                        Arc::clone(meter)
                    }
                    None => self.new_meter(table, Some(index.id)),
                }
            });
            state.indexes = indexes.collect();
        }
        state.indexes.clone()
    }

    fn new_meter(&self, table: &Table, index: Option<IndexId>) -> Arc<Meter> {
        let definition = table.definition();
        let index_definition =
            definition.global_indexes.iter().find(|definition| Some(definition.id) == index);
        debug_assert!(index_definition.is_none_or(|index| index.kind == IndexKind::Global));
        let throughput = index_definition.map_or(&definition.throughput, |index| &index.throughput);
        let plan = CapacityPlan {
            billing_mode: definition.billing_mode,
            throughput: throughput.clone(),
            account_units_max: self.account_units_max,
            size_bytes: 0,
            nodes: self.nodes.load(Ordering::Relaxed),
        };
        let resource = cause::Resource::of(table, index_definition);
        let stored = self.stored.lock().get(&(definition.id, index)).cloned();
        let since_ms = definition.created_at_ms.max(self.started_at_ms);
        Arc::new(Meter::new(resource, plan, stored, nanoseconds(since_ms)))
    }

    /// Every meter that exists.
    fn all(&self) -> Vec<Arc<TableMeters>> {
        self.tables.lock().values().cloned().collect()
    }
}

impl TableMeters {
    /// The table's own meter, then those of its global indexes.
    fn meters(&self) -> Vec<Arc<Meter>> {
        let indexes = self.state.lock().indexes.clone();
        std::iter::once(Arc::clone(&self.table)).chain(indexes).collect()
    }
}

fn is_of(meter: &Meter, index: IndexId) -> bool {
    matches!(meter.resource.index, Some((_, id)) if id == index)
}

/// A map that doesn't decode is an error: a table without its map would seem never to have grown.
async fn load_maps(store: &dyn Reader) -> Result<HashMap<(TableId, Option<IndexId>), MapRow>> {
    let mut maps = HashMap::new();
    let mut failure = None;
    let mut visit = |key: &[u8], row: &[u8]| {
        let unknown = || Error::Corrupt { detail: "the key of a partition map".to_owned() };
        let place = keyspace::parts_of_partition_map_row(key).ok_or_else(unknown);
        match place.and_then(|place| Ok((place, MapRow::decode(row)?))) {
            Ok((place, row)) => {
                maps.insert(place, row);
                ControlFlow::Continue(())
            }
            Err(error) => {
                tracing::error!(?key, %error, "a partition map does not decode");
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    store.scan(keyspace::all_partition_maps(), Direction::Forward, &mut visit).await?;
    failure.map_or(Ok(maps), Err)
}
