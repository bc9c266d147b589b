//! Background work on partitions: splits those that are hot or full, settles the peaks of on-demand
//! tables, and stores the maps.
//!
//! Every node samples its own traffic, counts the live nodes and reloads maps that another node has
//! changed. Only the holder of the lease changes maps. It assumes that its own traffic is
//! representative of all nodes.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use zenobe_store::{Batch, Key, WriteSet, read_counter, write_with};

use super::bucket::nanoseconds;
use super::cause::Access;
use super::map_row::{MapRow, Peaks};
use super::meter::{Meter, MeterState, Partition, PlacedPartition};
use super::partition_map::{PARTITION_READ_UNITS, PARTITION_WRITE_UNITS};
use super::split_points::{Divisible, SplitRules, boundaries};
use super::{TableMeters, load_maps};
use crate::Engine;
use crate::catalog::Table;
use crate::error::{Error, Result};
use crate::keyspace;
use crate::lease::Lease;
use crate::schema::{BillingMode, TableDefinition, TableId};
use crate::table_round::TableRound;

/// How often to sample the traffic.
const INTERVAL: Duration = Duration::from_secs(10);
/// A partition that serves this share of its limit is hot, in percent.
const HOT_PERCENT: u64 = 80;
/// A partition is split once it has been hot for this long.
const HOT_MS: u64 = 5 * 60 * 1_000;
/// After this time the highest traffic becomes the previous peak.
const PEAK_WINDOW_MS: u64 = 30 * 60 * 1_000;
/// The shortest time over which traffic is measured.
const LOOK_MS_MIN: u64 = 1_000;

/// The lease for changing maps.
const LEASE: &str = "partitions";

/// One round. Returns how long to wait until the next.
pub(crate) async fn maintain(engine: &Engine) -> Result<Duration> {
    count_nodes(engine).await?;
    follow_maps(engine).await?;
    let tables = engine.catalog.tables();
    let present: HashSet<TableId> = tables.values().map(|table| table.definition().id).collect();
    engine.meters.tables.lock().retain(|id, _| present.contains(id));
    engine.meters.stored.lock().retain(|(id, _), _| present.contains(id));
    let now_ms = engine.clock.now_ms();
    follow_clock(engine, now_ms);
    engine.meters.budgets.forget_unused(nanoseconds(now_ms));
    let used = engine.meters.all();
    if used.is_empty() {
        return Ok(INTERVAL);
    }
    let lease = engine.lease(LEASE).await?;
    let mut round = TableRound::new("maintaining the partitions of a table failed; retrying");
    for meters in used {
        let Some(table) = tables.get(&meters.table.resource.table) else { continue };
        let maintained = maintain_table(engine, table, &meters, lease.as_ref(), now_ms).await;
        round.take(table, maintained)?;
    }
    round.finish().map(|()| INTERVAL)
}

async fn maintain_table(
    engine: &Engine,
    table: &Arc<Table>,
    meters: &TableMeters,
    lease: Option<&Lease>,
    now_ms: u64,
) -> Result<()> {
    for meter in meters.meters() {
        let rules = split_rules(table.definition(), &meter);
        let (is_used, splits) = look(&meter, rules, now_ms);
        let Some(lease) = lease.filter(|_| is_used) else { continue };
        let size_bytes = stored_size(engine, &meter).await?;
        meter.change(nanoseconds(now_ms), |state| {
            state.plan.size_bytes = size_bytes;
            for boundary in &splits {
                state.row.map.split(boundary);
            }
        });
        if let Some(row) = meter.with_state(|state| state.to_store()) {
            store_map(engine, table, &meter, row, lease).await?;
        }
    }
    Ok(())
}

fn split_rules(table: &TableDefinition, meter: &Meter) -> SplitRules {
    // Like DynamoDB, which documents it for tables and not for indexes.
    let is_provisioned = table.billing_mode == BillingMode::Provisioned;
    let has_stream = meter.resource.index.is_none() && table.stream.is_some();
    SplitRules {
        divisible: match table.local_indexes.is_empty() {
            true => Divisible::BetweenItems,
            false => Divisible::BetweenCollections,
        },
        isolates_hot_keys: !(is_provisioned && has_stream),
    }
}

/// Samples the traffic since the last call. Returns whether there is anything to do (the meter had
/// traffic, or its map is not stored yet), and where to split hot partitions.
fn look(meter: &Meter, rules: SplitRules, now_ms: u64) -> (bool, Vec<Key>) {
    let partitions = meter.partitions();
    let Some((elapsed_ms, nodes)) = meter.with_state(|state| {
        let elapsed_ms = now_ms.saturating_sub(state.looked_at_ms);
        (elapsed_ms >= LOOK_MS_MIN).then(|| {
            state.looked_at_ms = now_ms;
            (elapsed_ms, state.plan.nodes)
        })
    }) else {
        return (false, Vec::new());
    };
    let mut total_units = [0; 2];
    let mut splits = Vec::new();
    for (position, PlacedPartition { first, partition }) in partitions.iter().enumerate() {
        let seen = Access::ALL.map(|access| partition.since_last_look(access));
        // Units per second of all nodes together.
        let units = seen.map(|(halves, _)| halves.saturating_mul(500 * nodes) / elapsed_ms);
        total_units = [total_units[0] + units[0], total_units[1] + units[1]];
        let is_throttled = seen.iter().any(|(_, throttled)| *throttled > 0);
        let is_hot = 100 * units[0] >= HOT_PERCENT * PARTITION_READ_UNITS
            || 100 * units[1] >= HOT_PERCENT * PARTITION_WRITE_UNITS;
        if is_hot_for_long(partition, is_hot || is_throttled && is_busy(units), now_ms) {
            let end = partitions.get(position + 1).map(|next| &next.first[..]);
            splits.extend(boundaries(&partition.samples(), first, end, rules));
        }
    }
    let is_used = total_units != [0, 0] || meter.with_state(|state| state.to_store().is_some());
    meter.with_state(|state| settle_peaks(state, total_units, now_ms));
    (is_used || !splits.is_empty(), splits)
}

/// A partition that throttles although it serves little has met its table's limit, not its own.
fn is_busy(units: [u64; 2]) -> bool {
    2 * units[0] >= PARTITION_READ_UNITS || 2 * units[1] >= PARTITION_WRITE_UNITS
}

fn is_hot_for_long(partition: &Partition, is_hot: bool, now_ms: u64) -> bool {
    let hot_since_ms = partition.hot_since_ms.load(Ordering::Relaxed);
    match (is_hot, hot_since_ms) {
        (false, _) => partition.hot_since_ms.store(0, Ordering::Relaxed),
        (true, 0) => partition.hot_since_ms.store(now_ms, Ordering::Relaxed),
        (true, since_ms) => return now_ms.saturating_sub(since_ms) >= HOT_MS,
    }
    false
}

/// When a window of half an hour ends, its highest traffic becomes the previous peak.
fn settle_peaks(state: &mut MeterState, [read_units, write_units]: [u64; 2], now_ms: u64) {
    let window = &mut state.window_peaks;
    window.read_units = window.read_units.max(read_units);
    window.write_units = window.write_units.max(write_units);
    if now_ms.saturating_sub(state.window_since_ms) < PEAK_WINDOW_MS {
        return;
    }
    let seen = std::mem::take(&mut state.window_peaks);
    state.window_since_ms = now_ms;
    let peaks = Peaks {
        read_units: state.row.peaks.read_units.max(seen.read_units),
        write_units: state.row.peaks.write_units.max(seen.write_units),
    };
    // A peak that changes nothing need not be remembered.
    if state.plan.rates(peaks) != state.plan.rates(state.row.peaks) {
        state.row.peaks = peaks;
    }
}

async fn stored_size(engine: &Engine, meter: &Meter) -> Result<u64> {
    let index = meter.resource.index.as_ref().map(|(_, id)| *id);
    let key = keyspace::size_bytes(meter.resource.table_id, index);
    Ok(u64::try_from(read_counter(&*engine.store, &key).await?).unwrap_or(0))
}

/// Stores a map, unless the table is gone.
async fn store_map(
    engine: &Engine,
    table: &Table,
    meter: &Meter,
    row: MapRow,
    lease: &Lease,
) -> Result<()> {
    let (table_id, index) = place(meter);
    let keys = [keyspace::partition_map_row(table_id, index)];
    let mut guards = vec![table.guard_key().clone()];
    guards.extend_from_slice(lease.guards());
    let set = WriteSet { guards: &guards, keys: &keys };
    let written = write_with(&*engine.store, set, |reads| {
        lease.check(&reads[1..guards.len()])?;
        let mut batch = Batch::new();
        if reads[0].is_some() {
            batch.put(keys[0].clone(), row.encode());
            batch.add(keyspace::partition_map_changes(), 1);
        }
        Ok::<_, Error>((batch, ()))
    });
    written.await??;
    engine.meters.stored.lock().insert((table_id, index), row.clone());
    let partitions = row.map.len();
    tracing::debug!(resource = meter.resource.arn(), partitions, "partitions have changed");
    meter.with_state(|state| state.stored = Some(row));
    Ok(())
}

/// Reads the maps again if another node has changed one.
async fn follow_maps(engine: &Engine) -> Result<()> {
    if !engine.is_shared() {
        return Ok(());
    }
    let changes = read_counter(&*engine.store, &keyspace::partition_map_changes()).await?;
    if changes == engine.meters.changes.swap(changes, Ordering::Relaxed) {
        return Ok(());
    }
    let maps = load_maps(&*engine.store).await?;
    let now_ns = nanoseconds(engine.clock.now_ms());
    for meters in engine.meters.all() {
        for meter in meters.meters() {
            let Some(row) = maps.get(&place(&meter)) else { continue };
            meter.change(now_ns, |state| {
                state.row = row.clone();
                state.stored = Some(row.clone());
            });
        }
    }
    *engine.meters.stored.lock() = maps;
    Ok(())
}

/// Each live node has an equal share of every table's capacity and of every account's budget.
async fn count_nodes(engine: &Engine) -> Result<()> {
    let nodes = match engine.is_shared() {
        true => engine.nodes().await?.iter().filter(|node| node.is_alive).count().max(1) as u64,
        false => 1,
    };
    if engine.meters.nodes.swap(nodes, Ordering::Relaxed) == nodes {
        return Ok(());
    }
    let now_ns = nanoseconds(engine.clock.now_ms());
    // A request that read the old number still holds the lock that `all` takes, until its budget is registered. So
    // `set_nodes` reaches that budget.
    let all = engine.meters.all();
    engine.meters.budgets.set_nodes(nodes);
    for meters in all {
        for meter in meters.meters() {
            meter.change(now_ns, |state| state.plan.nodes = nodes);
        }
    }
    Ok(())
}

/// A clock that was set back must not leave buckets in debt for that time.
fn follow_clock(engine: &Engine, now_ms: u64) {
    let before_ms = engine.meters.looked_at_ms.swap(now_ms, Ordering::Relaxed);
    let Some(by_ms) = before_ms.checked_sub(now_ms).filter(|by_ms| *by_ms > 0) else { return };
    engine.meters.budgets.set_clock_back(nanoseconds(by_ms));
    for meters in engine.meters.all() {
        for meter in meters.meters() {
            meter.set_clock_back(nanoseconds(by_ms));
            meter.with_state(|state| {
                state.looked_at_ms = state.looked_at_ms.min(now_ms);
                state.window_since_ms = state.window_since_ms.min(now_ms);
            });
        }
    }
}

fn place(meter: &Meter) -> (TableId, Option<crate::schema::IndexId>) {
    (meter.resource.table_id, meter.resource.index.as_ref().map(|(_, id)| *id))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::command::TableName;
    use crate::schema::{KeySchema, Namespace, Throughput};
    use crate::throughput::cause::Resource;
    use crate::throughput::partition_map::hash_key;
    use crate::throughput::plan::CapacityPlan;

    const START_MS: u64 = 1_700_000_000_000;
    const SECOND_MS: u64 = 1_000;
    const RULES: SplitRules =
        SplitRules { divisible: Divisible::BetweenItems, isolates_hot_keys: true };

    fn on_demand() -> Meter {
        let namespace = Arc::new(Namespace { account: "1".into(), region: "r".into() });
        let table = TableName { namespace, name: "t".into() };
        let keys = KeySchema { partition: Vec::new(), sort: Vec::new() };
        let resource = Resource { table, table_id: TableId(1), index: None, keys };
        let plan = CapacityPlan {
            billing_mode: BillingMode::PayPerRequest,
            throughput: Throughput::default(),
            account_units_max: 40_000,
            size_bytes: 0,
            nodes: 1,
        };
        Meter::new(resource, plan, None, nanoseconds(START_MS))
    }

    /// Writes this many units in each of the four partitions, spread over many keys.
    fn write(meter: &Meter, units: u64, now_ms: u64) {
        for number in 0..units {
            let hash = u128::from(number % 4) << 126 | u128::from(number % 251) << 64;
            let key = hash_key(hash);
            let (partition, _) = meter.take(Access::Write, &key, 2, None, nanoseconds(now_ms));
            partition.count(Access::Write, &key, 2);
        }
    }

    fn rate(meter: &Meter) -> u64 {
        let rate = |state: &mut MeterState| state.plan.rate(Access::Write, state.row.peaks).0;
        meter.with_state(rate).units_per_second
    }

    /// Twice the previous peak is served at once. A peak is previous once its half-hour window has ended.
    #[test]
    fn an_on_demand_table_follows_its_peaks() {
        let meter = on_demand();
        let mut now_ms = START_MS;
        let round = |units: u64, now_ms: &mut u64| {
            write(&meter, units, *now_ms);
            *now_ms += 10 * SECOND_MS;
            look(&meter, RULES, *now_ms);
            meter.change(nanoseconds(*now_ms), |_| {});
        };
        round(30_000, &mut now_ms);
        assert_eq!((rate(&meter), meter.partitions().len()), (4_000, 4));
        while now_ms < START_MS + PEAK_WINDOW_MS {
            round(0, &mut now_ms);
        }
        assert_eq!((rate(&meter), meter.partitions().len()), (6_000, 6));
        let to_store = meter.with_state(|state| state.to_store()).expect("the peak is kept");
        assert_eq!(to_store.peaks, Peaks { read_units: 0, write_units: 3_000 });
    }

    /// A peak within what the table serves anyway is not worth a row.
    #[test]
    fn small_peaks_are_forgotten() {
        let meter = on_demand();
        write(&meter, 100, START_MS);
        look(&meter, RULES, START_MS + PEAK_WINDOW_MS);
        assert_eq!(meter.with_state(|state| state.to_store()), None);
    }

    #[test]
    fn heat_has_to_last() {
        let meter = on_demand();
        let mut now_ms = START_MS;
        let mut splits = Vec::new();
        // One partition serves more than 80 % for five minutes, with a break before the last.
        for round in 0..40 {
            let units = if round == 30 { 0 } else { 9_000 };
            for number in 0..units {
                let key = hash_key(1 << 120 | u128::from(number % 100_u64) << 64);
                let (partition, _) = meter.take(Access::Write, &key, 2, None, nanoseconds(now_ms));
                partition.count(Access::Write, &key, 2);
            }
            now_ms += 10 * SECOND_MS;
            splits.extend(look(&meter, RULES, now_ms).1);
            if round == 30 {
                assert!(splits.is_empty(), "not yet for five minutes");
            }
        }
        assert!(splits.is_empty(), "the break began it again");
    }

    /// A partition holds 10 GB.
    #[test]
    fn partitions_divide_by_size() {
        let meter = on_demand();
        meter.change(nanoseconds(START_MS), |state| {
            state.plan.billing_mode = BillingMode::Provisioned;
            state.plan.size_bytes = 55 * 1_024 * 1_024 * 1_024;
        });
        assert_eq!(meter.partitions().len(), 6);
        assert!(meter.with_state(|state| state.to_store()).is_some());
    }
}
