use zenobe_api::Operation;

use super::*;
use crate::cost::PriceFile;
use crate::cost::observed::{EntryKey, ResourceUse};
use crate::cost::prices::ClassPrices;
use crate::traffic::{QueryPattern, SortCondition};

fn prices() -> RegionPrices {
    *PriceFile::built_in().region("us-east-1").unwrap()
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
}

fn table(name: &str, class: StorageClass) -> TableFacts {
    TableFacts { name: name.to_owned(), exists: true, class, ..TableFacts::default() }
}

/// The same half units in every minute of an hour.
fn steady(halves: u64) -> Vec<MinuteUse> {
    let minutes = if halves == 0 { 0..0 } else { 0..60 };
    minutes.map(|minute| MinuteUse { minute, halves }).collect()
}

const HOUR: [Range<u64>; 1] = [const { 0..60 }; 1];

fn traffic(entries: &[(Option<&str>, Operation, Pattern, u64, u64)]) -> TableTraffic {
    let mut traffic = TableTraffic::default();
    for (index, operation, pattern, read_halves, write_halves) in entries {
        let (index, operation, pattern) = (index.map(str::to_owned), *operation, *pattern);
        let counts = EntryCounts {
            requests: 60,
            read_halves: 60 * read_halves,
            write_halves: 60 * write_halves,
            returned_items: 0,
        };
        traffic.entries.insert(EntryKey { index: index.clone(), operation, pattern }, counts);
        let resource: &mut ResourceUse = traffic.uses.entry(index).or_default();
        for (uses, halves) in
            [(&mut resource.read, read_halves), (&mut resource.write, write_halves)]
        {
            match uses.is_empty() {
                true => *uses = steady(*halves),
                false => uses.iter_mut().for_each(|used| used.halves += halves),
            }
        }
    }
    traffic
}

#[test]
fn on_demand_is_paid_by_half_units() {
    // One million eventually consistent reads are half a million units: $0.0625. A million writes: $0.625.
    let million = 1_000_000;
    let flow = |prices, halves| {
        FlowEstimate::new(prices, &HOUR, &[MinuteUse { minute: 0, halves }]).costs[0]
    };
    let (standard, infrequent) = (prices().standard, prices().infrequent_access);
    let of = |class: &ClassPrices| {
        (
            [class.read_request_units_million, class.read_capacity_unit_hour],
            [class.write_request_units_million, class.write_capacity_unit_hour],
        )
    };
    let (read, write) = of(&standard);
    close(flow(read, million), 0.0625);
    close(flow(read, 1), 0.125 / 2_000_000.0);
    close(flow(write, 2 * million), 0.625);
    let (read, write) = of(&infrequent);
    close(flow(read, 2 * million), 0.155);
    close(flow(write, 2 * million), 0.78);
}

#[test]
fn capacity_is_paid_by_the_hour_and_a_month_has_730() {
    // 90 units per second for an hour: 5,400 units per minute.
    let orders = traffic(&[(None, Operation::PutItem, Pattern::Write, 0, 2 * 5_400)]);
    let facts = table("Orders", StorageClass::Standard);
    let estimate = Estimate::new(&prices(), &HOUR, vec![(facts, orders)], 0);
    close(estimate.observed_hours, 1.0);
    close(estimate.month_factor(), 730.0);
    let write = &estimate.tables[0].resources[0].write;
    assert_eq!(write.constant.units, 90);
    close(write.units(), 324_000.0);
    // 324,000 requests: $0.2025. 90 units: $0.0585. The table also needs one unit to read: $0.00013.
    close(estimate.tables[0].costs[0], 0.2025);
    close(estimate.tables[0].costs[1], 0.0585 + 0.000_13);
    // Auto scaling keeps ⌈5400/42⌉ = 129 units, of which 70 % are used: $0.08385.
    let scaled = write.scaled;
    assert_eq!((scaled.minutes, scaled.units_max, scaled.throttled_minutes), (60, 129, 0));
    close(estimate.tables[0].costs[2], 0.083_85 + 0.000_13);
    assert_eq!(estimate.tables[0].cheapest_mode(), Mode::Provisioned);
    close(estimate.costs()[1] * estimate.month_factor(), 0.058_63 * 730.0);
}

#[test]
fn half_an_hour_is_extrapolated_twice_as_far() {
    let uses = vec![MinuteUse { minute: 3, halves: 2_000_000 }];
    let mut orders = TableTraffic::default();
    orders.uses.insert(None, ResourceUse { read: uses, write: Vec::new() });
    let facts = table("Orders", StorageClass::InfrequentAccess);
    let observed = [0..10, 20..40];
    let estimate = Estimate::new(&prices(), &observed, vec![(facts, orders)], 200_000);
    close(estimate.observed_hours, 0.5);
    close(estimate.costs()[0], 0.155);
    close(estimate.costs()[0] * estimate.month_factor(), 226.3);
    close(estimate.stream_reads_cost, 0.04);
}

#[test]
fn an_idle_table_costs_one_unit_of_each_kind_unless_it_is_on_demand() {
    let facts = TableFacts {
        global_indexes: vec!["by-owner".to_owned()],
        ..table("Idle", StorageClass::Standard)
    };
    let estimate = Estimate::new(&prices(), &HOUR, vec![(facts, TableTraffic::default())], 0);
    let costs = estimate.tables[0].costs;
    close(costs[0], 0.0);
    // The table and its index.
    close(costs[1], 2.0 * (0.000_13 + 0.000_65));
    close(costs[2], 2.0 * (0.000_13 + 0.000_65));
    assert_eq!(estimate.tables[0].cheapest_mode(), Mode::OnDemand);
    close(estimate.cheapest(), 0.0);
}

#[test]
fn storage_is_paid_with_the_overhead_of_items() {
    let gb = 1_u64 << 30;
    let facts = TableFacts {
        stored: Stored { size_bytes: 10 * gb - 100, items: 1 },
        recoverable: Stored { size_bytes: 4 * gb, items: 0 },
        has_recovery: true,
        backups_size_bytes: 3 * gb,
        ..table("Orders", StorageClass::Standard)
    };
    let costs = storage(&prices(), &facts);
    close(costs.storage_month, 2.5);
    close(costs.recovery_month, 0.8);
    close(costs.backups_month, 0.3);
    close(costs.month(), 3.6);
    close(costs.restore_once, 0.6);
    close(costs.export_once, 0.4);
    let imports = RegionPrices { import_gb: 0.25, ..prices() };
    close(storage(&imports, &facts).import_once, 1.0);
    let infrequent = TableFacts { class: StorageClass::InfrequentAccess, ..facts.clone() };
    close(storage(&prices(), &infrequent).storage_month, 1.0);
    let estimate =
        Estimate::new(&prices(), &HOUR, vec![(facts, TableTraffic::default())], 1_000_000);
    let free = FreeTier::of(&estimate, &prices());
    close(free.storage, 2.5);
    // 730 million reads of streams per month, of which 2.5 million are free.
    close(free.stream_reads, 0.5);
    close(free.throughput[1], (0.000_13 + 0.000_65) * 730.0);
    close(free.throughput[0], 0.0);
}

#[test]
fn costs_are_divided_among_access_patterns() {
    let by_date = Pattern::Query(QueryPattern {
        sort: SortCondition::BeginsWith,
        backward: true,
        filtered: false,
        local_index: false,
    });
    let scan = Pattern::Scan { filtered: true, local_index: false };
    let orders = traffic(&[
        (None, Operation::GetItem, Pattern::Key, 100, 0),
        (None, Operation::Query, by_date, 300, 0),
        (None, Operation::Scan, scan, 600, 0),
        (None, Operation::PutItem, Pattern::Write, 0, 200),
        (Some("by-owner"), Operation::PutItem, Pattern::IndexWrite, 0, 400),
    ]);
    let facts = table("Orders", StorageClass::Standard);
    let estimate = Estimate::new(&prices(), &HOUR, vec![(facts, orders)], 0);
    let names: Vec<String> =
        estimate.grouped(GroupBy::Pattern).into_iter().map(|group| group.name).collect();
    assert_eq!(
        names,
        [
            "Orders/by-owner PutItem, index write",
            "Orders PutItem",
            "Orders Scan, filtered",
            "Orders Query by partition key and sort begins_with, backward",
            "Orders GetItem by key",
        ]
    );
    for by in [GroupBy::Table, GroupBy::Index, GroupBy::Operation, GroupBy::Pattern] {
        let sum = estimate.grouped(by).iter().fold([0.0; 3], |sum, group| add(sum, group.costs));
        close(sum[0], estimate.costs()[0]);
    }
    let operations = estimate.grouped(GroupBy::Operation);
    assert_eq!(
        (operations[0].name.as_str(), operations[0].counts.write_halves),
        ("PutItem", 36_000)
    );
    // 18,000 written units at $0.625, of 30,000 read ones at $0.125.
    close(operations[0].costs[0], 0.011_25);
    let indexes = estimate.grouped(GroupBy::Index);
    let of = |name| indexes.iter().find(|group| group.name == name).unwrap();
    close(of("Orders/by-owner").costs[0], 0.0075);
    close(of("Orders").costs[0], 0.00375 + 0.00375);
    // The scan reads six tenths, and so pays six tenths of the read capacity.
    let entry = &estimate.tables[0].entries;
    let scan = entry.iter().find(|entry| entry.operation == "Scan").unwrap();
    let read = &estimate.tables[0].resources[0].read;
    close(scan.costs[1], 0.6 * read.costs[1]);
}
