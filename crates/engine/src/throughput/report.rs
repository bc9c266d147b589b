//! Partitions and consumption, for operators and metrics.

use std::sync::Arc;

use super::ThroughputMode;
use super::bucket::nanoseconds;
use super::cause::{Access, Resource, ThrottleCause, ThrottleReason};
use super::meter::{Meter, PlacedPartition};
use super::partition_map::hash_of;
use crate::Engine;
use crate::command::TableName;
use crate::error::Result;
use crate::keyspace::KeyHash;

/// The partitions of a table or a global index.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionReport {
    pub resource: Arc<Resource>,
    pub mode: ThroughputMode,
    /// What the table or index may use per second, and what is left of it with what was saved.
    pub read: FlowReport,
    pub write: FlowReport,
    pub partitions: Vec<PartitionStatus>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowReport {
    pub units_per_second: u64,
    /// Which limit that is.
    pub limit: ThrottleCause,
    /// Negative if more was used than there was. On a store that several nodes share, this node's
    /// part.
    pub units_left: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PartitionStatus {
    pub id: u32,
    /// The first hash of the range.
    pub first_hash: u128,
    /// Whether it begins inside an item collection.
    pub begins_inside_collection: bool,
    /// As far as it can be told from the size of the table, whose keys are spread evenly.
    pub size_bytes: u64,
    /// Consumed through this node since it started.
    pub read_units: f64,
    pub write_units: f64,
    pub read_throttle_events: u64,
    pub write_throttle_events: u64,
}

/// What a table or a global index has consumed through this node.
#[derive(Debug, Clone, PartialEq)]
pub struct Consumption {
    pub resource: Arc<Resource>,
    pub read_units: f64,
    pub write_units: f64,
    /// Only limits that were met.
    pub throttle_events: Vec<(ThrottleReason, u64)>,
}

impl Engine {
    /// The partitions of a table, then those of its global indexes.
    pub async fn partitions(&self, name: &TableName) -> Result<Vec<PartitionReport>> {
        let described = self.describe_table(name).await?;
        let table = self.current_table(name).await?;
        let mode = self.throughput_mode(&table);
        let now_ns = nanoseconds(self.clock.now_ms());
        let meters = self.capacity_of(&table).meters.meters();
        let report = |meter: &Arc<Meter>| {
            let statistics = match meter.resource.index_name() {
                None => described.statistics,
                Some(index) => described.index_statistics.get(index).copied().unwrap_or_default(),
            };
            report(meter, mode, statistics.size_bytes, now_ns)
        };
        Ok(meters.iter().map(report).collect())
    }

    /// What each table and global index with requests has consumed, oldest tables first.
    pub fn consumption(&self) -> Vec<Consumption> {
        let mut tables = self.meters.all();
        tables.sort_by_key(|meters| meters.table.resource.table_id);
        let meters = tables.iter().flat_map(|meters| meters.meters());
        meters.map(|meter| consumption(&meter)).collect()
    }
}

fn report(meter: &Meter, mode: ThroughputMode, size_bytes: u64, now_ns: u64) -> PartitionReport {
    let [read, write] = Access::ALL.map(|access| {
        let (rate, limit) = meter.with_state(|state| state.plan.rate(access, state.row.peaks));
        let units_left = meter.units_left(access, now_ns);
        FlowReport { units_per_second: rate.units_per_second, limit, units_left }
    });
    let partitions = meter.partitions();
    let status = |position: usize| {
        let PlacedPartition { first, partition } = &partitions[position];
        let first_hash = hash_of(first);
        let end = partitions.get(position + 1).map_or(u128::MAX, |next| hash_of(&next.first));
        let share = (end - first_hash) as f64 / u128::MAX as f64;
        PartitionStatus {
            id: partition.id,
            first_hash,
            begins_inside_collection: first.len() > KeyHash::LENGTH,
            size_bytes: (share * size_bytes as f64) as u64,
            read_units: units(partition.consumed_halves(Access::Read)),
            write_units: units(partition.consumed_halves(Access::Write)),
            read_throttle_events: partition.throttled(Access::Read),
            write_throttle_events: partition.throttled(Access::Write),
        }
    };
    PartitionReport {
        resource: Arc::clone(&meter.resource),
        mode,
        read,
        write,
        partitions: (0..partitions.len()).map(status).collect(),
    }
}

fn consumption(meter: &Meter) -> Consumption {
    let mut throttle_events = Vec::new();
    for access in Access::ALL {
        for cause in ThrottleCause::ALL {
            let events = meter.throttled(access, cause);
            if events > 0 {
                let resource = Arc::clone(&meter.resource);
                throttle_events.push((ThrottleReason { resource, access, cause }, events));
            }
        }
    }
    Consumption {
        resource: Arc::clone(&meter.resource),
        read_units: units(meter.consumed_halves(Access::Read)),
        write_units: units(meter.consumed_halves(Access::Write)),
        throttle_events,
    }
}

/// Capacity units, from half units.
pub fn units(halves: u64) -> f64 {
    halves as f64 / 2.0
}
