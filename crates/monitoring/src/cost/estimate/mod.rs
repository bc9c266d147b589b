//! What traffic and storage cost, in dollars.

use std::collections::BTreeMap;
use std::ops::Range;

use super::needed_capacity::{ConstantCapacity, MinuteUse, ScaledCapacity};
use super::observed::{EntryCounts, TableTraffic};
use super::prices::{RegionPrices, StorageClass};
use crate::traffic::Pattern;

/// AWS's month.
pub const HOURS_PER_MONTH: f64 = 730.0;
const BYTES_PER_GB: f64 = (1_u64 << 30) as f64;
/// AWS adds this many bytes to each item and index entry.
const ITEM_OVERHEAD_BYTES: u64 = 100;

/// How capacity is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    OnDemand,
    /// The cheapest constant capacity.
    Provisioned,
    AutoScaled,
}

impl Mode {
    pub const ALL: [Mode; 3] = [Mode::OnDemand, Mode::Provisioned, Mode::AutoScaled];

    pub fn name(self) -> &'static str {
        match self {
            Mode::OnDemand => "on demand",
            Mode::Provisioned => "provisioned",
            Mode::AutoScaled => "auto scaling",
        }
    }
}

/// Dollars by [`Mode`].
pub type ModeCosts = [f64; 3];

/// A table as it is now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableFacts {
    pub name: String,
    /// Whether there is such a table now. One that was deleted has traffic, but no storage.
    pub exists: bool,
    pub class: StorageClass,
    pub global_indexes: Vec<String>,
    /// The items of the table and the entries of all its indexes.
    pub stored: Stored,
    /// Those of the table and its local indexes, which is what a backup has.
    pub recoverable: Stored,
    pub has_recovery: bool,
    pub backups_size_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stored {
    pub size_bytes: u64,
    pub items: u64,
}

impl Stored {
    fn gb(self) -> f64 {
        (self.size_bytes + ITEM_OVERHEAD_BYTES * self.items) as f64 / BYTES_PER_GB
    }
}

/// What everything would cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    pub observed_hours: f64,
    /// The most expensive on demand comes first.
    pub tables: Vec<TableEstimate>,
    pub stream_reads: u64,
    /// For the observed time.
    pub stream_reads_cost: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TableEstimate {
    pub facts: TableFacts,
    /// Of throughput, for the observed time.
    pub costs: ModeCosts,
    pub resources: Vec<ResourceEstimate>,
    pub entries: Vec<EntryEstimate>,
    pub storage: StorageCosts,
}

/// Dollars per month, and what a single action would cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StorageCosts {
    pub storage_month: f64,
    pub recovery_month: f64,
    pub backups_month: f64,
    pub restore_once: f64,
    pub export_once: f64,
    pub import_once: f64,
}

impl StorageCosts {
    pub fn month(&self) -> f64 {
        self.storage_month + self.recovery_month + self.backups_month
    }
}

/// A table (`None`) or one of its global indexes.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceEstimate {
    pub index: Option<String>,
    pub read: FlowEstimate,
    pub write: FlowEstimate,
}

/// What its reads or its writes consumed and would cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowEstimate {
    pub halves: u64,
    pub constant: ConstantCapacity,
    pub scaled: ScaledCapacity,
    /// For the observed time.
    pub costs: ModeCosts,
}

/// A kind of request, and its part of the costs: of capacity, in proportion to what it consumed.
#[derive(Debug, Clone, PartialEq)]
pub struct EntryEstimate {
    pub index: Option<String>,
    pub operation: &'static str,
    pub pattern: Pattern,
    pub counts: EntryCounts,
    pub costs: ModeCosts,
}

impl Estimate {
    /// `observed` are ranges of minutes in order. There must be at least one minute.
    pub fn new(
        prices: &RegionPrices,
        observed: &[Range<u64>],
        tables: Vec<(TableFacts, TableTraffic)>,
        stream_reads: u64,
    ) -> Estimate {
        let minutes: u64 = observed.iter().map(|range| range.end - range.start).sum();
        let estimate = |(facts, traffic): (TableFacts, TableTraffic)| {
            TableEstimate::new(prices, observed, facts, &traffic)
        };
        let mut tables: Vec<TableEstimate> = tables.into_iter().map(estimate).collect();
        tables.sort_by(|left, right| right.costs[0].total_cmp(&left.costs[0]));
        Estimate {
            observed_hours: minutes.max(1) as f64 / 60.0,
            tables,
            stream_reads,
            stream_reads_cost: stream_reads as f64 / 100_000.0 * prices.stream_reads_100k,
        }
    }

    /// The factor from the costs of the observed time to those of a month.
    pub fn month_factor(&self) -> f64 {
        HOURS_PER_MONTH / self.observed_hours
    }

    /// What the throughput of all tables would have cost in each mode, over the observed time.
    pub fn costs(&self) -> ModeCosts {
        self.tables.iter().fold([0.0; 3], |sum, table| add(sum, table.costs))
    }

    /// What the throughput of all tables would have cost in each table's cheapest mode, over the observed time.
    pub fn cheapest(&self) -> f64 {
        self.tables.iter().map(|table| table.cost(table.cheapest_mode())).sum()
    }

    pub fn storage_month(&self) -> StorageCosts {
        let mut sum = StorageCosts::default();
        for costs in self.tables.iter().map(|table| table.storage) {
            sum.storage_month += costs.storage_month;
            sum.recovery_month += costs.recovery_month;
            sum.backups_month += costs.backups_month;
            sum.restore_once += costs.restore_once;
            sum.export_once += costs.export_once;
            sum.import_once += costs.import_once;
        }
        sum
    }
}

impl TableEstimate {
    fn new(
        prices: &RegionPrices,
        observed: &[Range<u64>],
        facts: TableFacts,
        traffic: &TableTraffic,
    ) -> TableEstimate {
        let resources = resources(prices, observed, &facts, traffic);
        let entries = traffic.entries.iter().map(|(key, counts)| {
            let resource = resources.iter().find(|resource| resource.index == key.index);
            EntryEstimate {
                index: key.index.clone(),
                operation: key.operation.name(),
                pattern: key.pattern,
                counts: *counts,
                costs: resource.map_or([0.0; 3], |resource| {
                    let reads = resource.read.part(counts.read_halves);
                    add(reads, resource.write.part(counts.write_halves))
                }),
            }
        });
        let entries = entries.collect();
        let costs = resources
            .iter()
            .flat_map(|resource| [resource.read.costs, resource.write.costs])
            .fold([0.0; 3], add);
        let storage = storage(prices, &facts);
        TableEstimate { facts, costs, resources, entries, storage }
    }

    pub fn cost(&self, mode: Mode) -> f64 {
        self.costs[mode as usize]
    }

    /// On demand if nothing is cheaper.
    pub fn cheapest_mode(&self) -> Mode {
        let cheaper = |best: Mode, mode: Mode| match self.cost(mode) < self.cost(best) {
            true => mode,
            false => best,
        };
        Mode::ALL.into_iter().fold(Mode::OnDemand, cheaper)
    }
}

/// The table and its global indexes, those that exist and those that have traffic.
fn resources(
    prices: &RegionPrices,
    observed: &[Range<u64>],
    facts: &TableFacts,
    traffic: &TableTraffic,
) -> Vec<ResourceEstimate> {
    let class = prices.of(facts.class);
    let existing = std::iter::once(None).chain(facts.global_indexes.iter().cloned().map(Some));
    let mut indexes: Vec<Option<String>> = existing.chain(traffic.uses.keys().cloned()).collect();
    indexes.sort();
    indexes.dedup();
    let estimate = |index: Option<String>| {
        let uses = traffic.uses.get(&index).cloned().unwrap_or_default();
        let read_prices = [class.read_request_units_million, class.read_capacity_unit_hour];
        let write_prices = [class.write_request_units_million, class.write_capacity_unit_hour];
        let read = FlowEstimate::new(read_prices, observed, &uses.read);
        let write = FlowEstimate::new(write_prices, observed, &uses.write);
        ResourceEstimate { index, read, write }
    };
    indexes.into_iter().map(estimate).collect()
}

impl FlowEstimate {
    /// The prices of a million request units and of a capacity unit for an hour.
    fn new(
        [request_million, unit_hour]: [f64; 2],
        observed: &[Range<u64>],
        uses: &[MinuteUse],
    ) -> FlowEstimate {
        let halves: u64 = uses.iter().map(|used| used.halves).sum();
        let constant = ConstantCapacity::for_traffic(uses);
        let scaled = ScaledCapacity::for_traffic(observed, uses);
        let hours = |unit_minutes: u64| unit_minutes as f64 / 60.0;
        let costs = [
            halves as f64 / 2.0 / 1_000_000.0 * request_million,
            hours(constant.units * scaled.minutes) * unit_hour,
            hours(scaled.unit_minutes) * unit_hour,
        ];
        FlowEstimate { halves, constant, scaled, costs }
    }

    pub fn units(&self) -> f64 {
        self.halves as f64 / 2.0
    }

    /// The costs of this many half units.
    fn part(&self, halves: u64) -> ModeCosts {
        match self.halves {
            0 => [0.0; 3],
            all => self.costs.map(|cost| cost * halves as f64 / all as f64),
        }
    }
}

fn storage(prices: &RegionPrices, facts: &TableFacts) -> StorageCosts {
    let recoverable_gb = facts.recoverable.gb();
    StorageCosts {
        storage_month: facts.stored.gb() * prices.of(facts.class).storage_gb_month,
        recovery_month: match facts.has_recovery {
            true => recoverable_gb * prices.point_in_time_recovery_gb_month,
            false => 0.0,
        },
        backups_month: facts.backups_size_bytes as f64 / BYTES_PER_GB * prices.backup_gb_month,
        restore_once: recoverable_gb * prices.restore_gb,
        export_once: recoverable_gb * prices.export_gb,
        import_once: recoverable_gb * prices.import_gb,
    }
}

/// What AWS's free tier takes off a month: 25 GB and 25 provisioned read and write units of standard
/// tables, and 2.5 million reads of streams.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FreeTier {
    pub storage: f64,
    pub stream_reads: f64,
    pub throughput: ModeCosts,
}

const FREE_GB: f64 = 25.0;
const FREE_UNITS: f64 = 25.0;
const FREE_STREAM_READS: f64 = 2_500_000.0;

impl FreeTier {
    pub fn of(estimate: &Estimate, prices: &RegionPrices) -> FreeTier {
        let standard = prices.of(StorageClass::Standard);
        let tables =
            || estimate.tables.iter().filter(|table| table.facts.class == StorageClass::Standard);
        let gb: f64 = tables().map(|table| table.facts.stored.gb()).sum();
        let resources = || tables().flat_map(|table| &table.resources);
        let month =
            |units: f64, unit_hour: f64| units.min(FREE_UNITS) * unit_hour * HOURS_PER_MONTH;
        let throughput = |units: &dyn Fn(&FlowEstimate) -> f64| {
            let read: f64 = resources().map(|resource| units(&resource.read)).sum();
            let write: f64 = resources().map(|resource| units(&resource.write)).sum();
            month(read, standard.read_capacity_unit_hour)
                + month(write, standard.write_capacity_unit_hour)
        };
        let reads = estimate.stream_reads as f64 * estimate.month_factor();
        FreeTier {
            storage: gb.min(FREE_GB) * standard.storage_gb_month,
            stream_reads: reads.min(FREE_STREAM_READS) / 100_000.0 * prices.stream_reads_100k,
            throughput: [
                0.0,
                throughput(&|flow| flow.constant.units as f64),
                throughput(&|flow| flow.scaled.mean_units()),
            ],
        }
    }
}

/// What costs are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    Table,
    Index,
    Operation,
    Pattern,
}

/// Requests of one group, and what their throughput costs for the observed time.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub name: String,
    pub counts: EntryCounts,
    pub costs: ModeCosts,
}

impl Estimate {
    /// The most expensive on demand comes first.
    pub fn grouped(&self, by: GroupBy) -> Vec<Group> {
        let mut groups: BTreeMap<String, (EntryCounts, ModeCosts)> = BTreeMap::new();
        for table in &self.tables {
            for entry in &table.entries {
                let name = group_name(by, &table.facts.name, entry);
                let (counts, costs) = groups.entry(name).or_default();
                counts.add(&entry.counts);
                *costs = add(*costs, entry.costs);
            }
        }
        let groups = groups.into_iter();
        let mut groups: Vec<Group> =
            groups.map(|(name, (counts, costs))| Group { name, counts, costs }).collect();
        groups.sort_by(|left, right| right.costs[0].total_cmp(&left.costs[0]));
        groups
    }
}

fn group_name(by: GroupBy, table: &str, entry: &EntryEstimate) -> String {
    let resource = match &entry.index {
        None => table.to_owned(),
        Some(index) => format!("{table}/{index}"),
    };
    match by {
        GroupBy::Table => table.to_owned(),
        GroupBy::Index => resource,
        GroupBy::Operation => entry.operation.to_owned(),
        GroupBy::Pattern => format!("{resource} {}", entry.access()),
    }
}

impl EntryEstimate {
    /// Operation and pattern, as text.
    pub fn access(&self) -> String {
        let (operation, pattern) = (self.operation, self.pattern.to_string());
        match self.pattern {
            Pattern::Write | Pattern::Other => operation.to_owned(),
            Pattern::IndexWrite => format!("{operation}, {pattern}"),
            Pattern::Scan { .. } if operation == "Scan" => pattern.replacen("scan", operation, 1),
            Pattern::Key | Pattern::Query(_) | Pattern::Scan { .. } => {
                format!("{operation} by {pattern}")
            }
        }
    }
}

fn add(left: ModeCosts, right: ModeCosts) -> ModeCosts {
    [left[0] + right[0], left[1] + right[1], left[2] + right[2]]
}

#[cfg(test)]
mod tests;
