//! What a definition promises: the rate of a table or a global index, the limit behind it, and the
//! partitions that it needs.

use super::bucket::RefillRate;
use super::cause::{Access, ThrottleCause};
use super::map_row::{MapRow, Peaks};
use super::partition_map::{
    ON_DEMAND_PARTITIONS, PartitionMap, partitions_for_peaks, partitions_for_provisioned,
    partitions_for_size,
};
use crate::schema::{
    BillingMode, ON_DEMAND_INITIAL_READ_UNITS, ON_DEMAND_INITIAL_WRITE_UNITS, Throughput,
};

/// Provisioned tables save unused capacity for this long.
const PROVISIONED_BURST_S: u64 = 300;
/// On-demand tables save at most one second's worth of capacity.
const ON_DEMAND_BURST_S: u64 = 1;
/// An on-demand table serves this many times its previous peak at once.
const PEAK_FACTOR: u64 = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CapacityPlan {
    pub billing_mode: BillingMode,
    pub throughput: Throughput,
    /// The quota of an on-demand table, for reads and for writes.
    pub account_units_max: u64,
    pub size_bytes: u64,
    /// How many engines serve the table.
    pub nodes: u64,
}

impl CapacityPlan {
    /// How fast the table or index may be read or written, and which limit that is.
    pub fn rate(&self, access: Access, peaks: Peaks) -> (RefillRate, ThrottleCause) {
        let throughput = &self.throughput;
        if self.billing_mode == BillingMode::Provisioned {
            let units_per_second = match access {
                Access::Read => throughput.read_units,
                Access::Write => throughput.write_units,
            };
            let rate = RefillRate { units_per_second, burst_s: PROVISIONED_BURST_S };
            return (rate, ThrottleCause::Provisioned);
        }
        let maximum = match access {
            Access::Read => throughput.on_demand_max_read_units,
            Access::Write => throughput.on_demand_max_write_units,
        };
        let limits = [
            (self.on_demand_level(access, peaks), ThrottleCause::KeyRange),
            (self.account_units_max, ThrottleCause::AccountLimit),
            (maximum.unwrap_or(u64::MAX), ThrottleCause::MaxOnDemand),
        ];
        let (units_per_second, limit) =
            limits.into_iter().min_by_key(|(units, _)| *units).expect("there are three");
        (RefillRate { units_per_second, burst_s: ON_DEMAND_BURST_S }, limit)
    }

    /// The rates of reads and of writes.
    pub fn rates(&self, peaks: Peaks) -> [(RefillRate, ThrottleCause); 2] {
        Access::ALL.map(|access| self.rate(access, peaks))
    }

    /// The map of a table or index that has never been split.
    pub fn initial_row(&self) -> MapRow {
        let peaks = Peaks::default();
        MapRow { map: PartitionMap::even(self.partitions(peaks)), peaks }
    }

    /// How many partitions the table or index needs at least.
    pub fn partitions(&self, peaks: Peaks) -> u64 {
        let Throughput { read_units, write_units, warm_read_units, warm_write_units, .. } =
            self.throughput;
        let warm = partitions_for_peaks(warm_read_units, warm_write_units);
        let by_size = partitions_for_size(self.size_bytes);
        let by_mode = match self.billing_mode {
            BillingMode::Provisioned => partitions_for_provisioned(read_units, write_units),
            BillingMode::PayPerRequest => {
                let [read, write] = Access::ALL.map(|access| self.on_demand_level(access, peaks));
                partitions_for_peaks(read, write).max(ON_DEMAND_PARTITIONS)
            }
        };
        by_mode.max(warm).max(by_size).max(1)
    }

    /// What an on-demand table serves without having to grow.
    fn on_demand_level(&self, access: Access, peaks: Peaks) -> u64 {
        let (initial, warm, peak) = match access {
            Access::Read => {
                (ON_DEMAND_INITIAL_READ_UNITS, self.throughput.warm_read_units, peaks.read_units)
            }
            Access::Write => {
                (ON_DEMAND_INITIAL_WRITE_UNITS, self.throughput.warm_write_units, peaks.write_units)
            }
        };
        initial.max(warm).max(PEAK_FACTOR.saturating_mul(peak))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provisioned(read_units: u64, write_units: u64, warm_write_units: u64) -> CapacityPlan {
        let throughput =
            Throughput { read_units, write_units, warm_write_units, ..Throughput::default() };
        let billing_mode = BillingMode::Provisioned;
        CapacityPlan {
            billing_mode,
            throughput,
            account_units_max: 40_000,
            size_bytes: 0,
            nodes: 1,
        }
    }

    fn on_demand() -> CapacityPlan {
        let mut plan = provisioned(0, 0, 0);
        plan.billing_mode = BillingMode::PayPerRequest;
        plan
    }

    #[test]
    fn provisioned_units_decide_on_rate_and_partitions() {
        let plan = provisioned(1_000, 1_000, 0);
        let (rate, limit) = plan.rate(Access::Write, Peaks::default());
        assert_eq!(rate, RefillRate { units_per_second: 1_000, burst_s: 300 });
        assert_eq!(limit, ThrottleCause::Provisioned);
        assert_eq!(plan.partitions(Peaks::default()), 2);
        // Loaded at 10,000 writes, back at 1,000.
        assert_eq!(provisioned(0, 1_000, 10_000).partitions(Peaks::default()), 10);
        let size_bytes = 25 * 1_024 * 1_024 * 1_024;
        assert_eq!(CapacityPlan { size_bytes, ..plan }.partitions(Peaks::default()), 3);
    }

    #[test]
    fn on_demand_tables_serve_twice_their_peak() {
        let mut plan = on_demand();
        let units = |plan: &CapacityPlan, access, read_units, write_units| {
            let (rate, limit) = plan.rate(access, Peaks { read_units, write_units });
            (rate.units_per_second, limit)
        };
        use ThrottleCause::{AccountLimit, KeyRange, MaxOnDemand};
        assert_eq!(units(&plan, Access::Read, 0, 0), (12_000, KeyRange));
        assert_eq!(units(&plan, Access::Write, 0, 0), (4_000, KeyRange));
        assert_eq!(units(&plan, Access::Write, 0, 5_000), (10_000, KeyRange));
        assert_eq!(units(&plan, Access::Write, 0, 30_000), (40_000, AccountLimit));
        assert_eq!(plan.partitions(Peaks::default()), 4);
        assert_eq!(plan.partitions(Peaks { read_units: 0, write_units: 5_000 }), 10);
        plan.throughput.warm_write_units = 20_000;
        assert_eq!(units(&plan, Access::Write, 0, 0), (20_000, KeyRange));
        assert_eq!(plan.partitions(Peaks::default()), 20);
        plan.throughput.on_demand_max_write_units = Some(10);
        assert_eq!(units(&plan, Access::Write, 0, 0), (10, MaxOnDemand));
    }
}
