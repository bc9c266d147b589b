//! The live side of a table's or a global index's capacity: its buckets, its partitions, and what
//! was consumed.
//!
//! Every request passes here, so nothing takes a lock or hashes a name: a request adds to a few
//! atomics of its table and of its partition.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use zenobe_store::Key;

use super::bucket::{Bucket, RefillRate};
use super::budget::Budget;
use super::cause::{Access, Resource, ThrottleCause, ThrottleReason};
use super::map_row::{MapRow, Peaks};
use super::partition_map::{PARTITION_READ_UNITS, PARTITION_WRITE_UNITS};
use super::plan::CapacityPlan;

/// The capacity of a table or a global index as it is used.
#[derive(Debug)]
pub(crate) struct Meter {
    pub resource: Arc<Resource>,
    flows: [Flow; 2],
    partitions: ArcSwap<Vec<PlacedPartition>>,
    /// What partitions that have since been split had consumed, in half units.
    retired_halves: [AtomicU64; 2],
    state: Mutex<MeterState>,
}

/// Reads or writes of the whole table or index.
#[derive(Debug)]
struct Flow {
    bucket: Bucket,
    /// Which limit the bucket stands for, as a number.
    limit: AtomicU8,
    throttled: [AtomicU64; ThrottleCause::ALL.len()],
}

/// A partition and where it begins. Every request compares first keys, so they lie apart from the
/// counters, which other threads keep changing.
#[derive(Debug, Clone)]
pub(crate) struct PlacedPartition {
    /// Its first key, after the prefix.
    pub first: Key,
    pub partition: Arc<Partition>,
}

/// A partition as it is used. No two of them share a cache line.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Partition {
    pub id: u32,
    flows: [PartitionFlow; 2],
    samples: Mutex<Samples>,
    /// When it became hot; 0 if it is not.
    pub hot_since_ms: AtomicU64,
}

/// The keys of the last traffic, each as often as its share of it.
#[derive(Debug, Default)]
struct Samples {
    keys: Vec<Key>,
    /// The oldest one, which the next one replaces.
    oldest: usize,
}

#[derive(Debug)]
struct PartitionFlow {
    bucket: Bucket,
    consumed_halves: AtomicU64,
    throttled: AtomicU64,
    /// What had been consumed and throttled when the traffic was last sampled.
    seen: [AtomicU64; 2],
}

/// What only background work and changes of the definition use.
#[derive(Debug)]
pub(crate) struct MeterState {
    pub plan: CapacityPlan,
    pub row: MapRow,
    /// The row in the store, if there is one.
    pub stored: Option<MapRow>,
    /// The highest traffic since the peaks were last settled, in units per second.
    pub window_peaks: Peaks,
    pub window_since_ms: u64,
    pub looked_at_ms: u64,
}

impl MeterState {
    /// The row to store, unless the store or the definition alone says the same.
    pub fn to_store(&self) -> Option<MapRow> {
        let known = self.stored.clone().unwrap_or_else(|| self.plan.initial_row());
        (known != self.row).then(|| self.row.clone())
    }
}

/// What a partition serves leaves a sample of its keys for background work, about this many between
/// two looks at a hot partition.
const SAMPLES_MAX: usize = 256;
/// How many half units each sample stands for. Reads weigh less, because a partition serves more of them.
const READ_HALVES_PER_SAMPLE: u64 = 192;
const WRITE_HALVES_PER_SAMPLE: u64 = 64;
/// A partition saves at most one second's worth of capacity.
const PARTITION_BURST_S: u64 = 1;

impl Meter {
    /// `since_ns` is when it began to save capacity.
    pub fn new(
        resource: Resource,
        plan: CapacityPlan,
        row: Option<MapRow>,
        since_ns: u64,
    ) -> Meter {
        let stored = row;
        let row = stored.clone().unwrap_or_else(|| plan.initial_row());
        let flow = |access| Flow {
            bucket: Bucket::new(since_ns, plan.rate(access, row.peaks).0, plan.nodes),
            limit: AtomicU8::new(0),
            throttled: Default::default(),
        };
        let flows = Access::ALL.map(flow);
        let since_ms = since_ns / 1_000_000;
        let state = MeterState {
            plan,
            row,
            stored,
            window_peaks: Peaks::default(),
            window_since_ms: since_ms,
            looked_at_ms: since_ms,
        };
        let meter = Meter {
            resource: Arc::new(resource),
            flows,
            partitions: ArcSwap::default(),
            retired_halves: Default::default(),
            state: Mutex::new(state),
        };
        meter.change(since_ns, |_| {});
        meter
    }

    /// Follows a change of the definition, of the map or of the number of nodes.
    pub fn change(&self, now_ns: u64, change: impl FnOnce(&mut MeterState)) {
        let mut state = self.state.lock();
        change(&mut state);
        self.apply(&mut state, now_ns);
    }

    pub fn with_state<T>(&self, look: impl FnOnce(&mut MeterState) -> T) -> T {
        look(&mut self.state.lock())
    }

    /// Updates buckets and partitions to match the state.
    fn apply(&self, state: &mut MeterState, now_ns: u64) {
        let MeterState { plan, row, .. } = state;
        row.map.grow_to(plan.partitions(row.peaks));
        for (access, flow) in Access::ALL.into_iter().zip(&self.flows) {
            let (rate, limit) = plan.rate(access, row.peaks);
            flow.bucket.set_rate(rate, plan.nodes);
            flow.limit.store(limit as u8, Ordering::Relaxed);
        }
        let current = self.partitions.load();
        let ends = |partitions: &[Key], position: usize| partitions.get(position + 1).cloned();
        let old_firsts: Vec<Key> = current.iter().map(|it| it.first.clone()).collect();
        let new = row.map.partitions();
        let new_firsts: Vec<Key> = new.iter().map(|it| it.first.clone()).collect();
        let mut kept = vec![false; current.len()];
        let mut partitions = Vec::with_capacity(new.len());
        for (position, start) in new.iter().enumerate() {
            let same = current
                .iter()
                .position(|it| it.partition.id == start.id && it.first == start.first);
            let same = same.filter(|old| ends(&old_firsts, *old) == ends(&new_firsts, position));
            let partition = match same {
                Some(old) => {
                    kept[old] = true;
                    Arc::clone(&current[old].partition)
                }
                None => Arc::new(Partition::new(start.id, now_ns, plan.nodes)),
            };
            partitions.push(PlacedPartition { first: start.first.clone(), partition });
        }
        for (placed, _) in current.iter().zip(&kept).filter(|(_, kept)| !**kept) {
            for access in Access::ALL {
                let halves = placed.partition.consumed_halves(access);
                self.retired_halves[access as usize].fetch_add(halves, Ordering::Relaxed);
            }
        }
        partitions.iter().for_each(|placed| placed.partition.set_nodes(plan.nodes));
        drop(current);
        self.partitions.store(Arc::new(partitions));
    }

    pub fn partitions(&self) -> Arc<Vec<PlacedPartition>> {
        self.partitions.load_full()
    }

    /// Looks at the partitions without counting as a holder of them, so threads don't contend for
    /// that count.
    pub fn with_partitions<T>(&self, look: impl FnOnce(&[PlacedPartition]) -> T) -> T {
        look(&self.partitions.load())
    }

    /// The partition of a key, given without its prefix.
    fn partition(&self, suffix: &[u8]) -> Arc<Partition> {
        let partitions = self.partitions.load();
        Arc::clone(&partitions[position(&partitions, suffix)].partition)
    }

    /// Takes half units for a request that needs at least this many. If a limit is met, the request
    /// takes nothing and is counted as throttled.
    pub fn take(
        &self,
        access: Access,
        suffix: &[u8],
        halves: u64,
        budget: Option<&Budget>,
        now_ns: u64,
    ) -> (Arc<Partition>, Result<(), LimitsHit>) {
        let partition = self.partition(suffix);
        let (flow, own) = (&self.flows[access as usize], &partition.flows[access as usize]);
        let by_table = flow.bucket.take(now_ns, halves);
        let by_partition = own.bucket.take(now_ns, halves);
        let by_account = budget.is_none_or(|budget| budget.take(access, halves, now_ns));
        if by_table && by_partition && by_account {
            return (partition, Ok(()));
        }
        if by_table {
            flow.bucket.refund(halves);
        }
        if by_partition {
            own.bucket.refund(halves);
        }
        if let Some(budget) = budget.filter(|_| by_account) {
            budget.refund(access, halves);
        }
        let met = LimitsHit {
            limit: (!by_table).then(|| flow.limit()),
            key_range: !by_partition,
            budget: !by_account,
        };
        self.count_throttled(access, &partition, met);
        (partition, Err(met))
    }

    /// Which limit a request would meet now, without taking anything.
    pub fn check(
        &self,
        access: Access,
        suffix: &[u8],
        now_ns: u64,
    ) -> Result<(), (Arc<Partition>, LimitsHit)> {
        let partition = self.partition(suffix);
        let (flow, own) = (&self.flows[access as usize], &partition.flows[access as usize]);
        let met = LimitsHit {
            limit: (!flow.bucket.has_any(now_ns)).then(|| flow.limit()),
            key_range: !own.bucket.has_any(now_ns),
            // Whatever asks has been admitted by its account.
            budget: false,
        };
        if met.limit.is_none() && !met.key_range {
            return Ok(());
        }
        self.count_throttled(access, &partition, met);
        Err((partition, met))
    }

    /// Takes more half units for a request that was admitted with fewer.
    pub fn charge(&self, access: Access, partition: &Partition, halves: u64, now_ns: u64) {
        self.charge_table(access, halves, now_ns);
        partition.charge(access, halves, now_ns);
    }

    /// Takes half units of the whole table or index; its partitions are charged by themselves.
    pub fn charge_table(&self, access: Access, halves: u64, now_ns: u64) {
        self.flows[access as usize].bucket.charge(now_ns, halves);
    }

    pub fn refund(&self, access: Access, partition: &Partition, halves: u64) {
        self.flows[access as usize].bucket.refund(halves);
        partition.flows[access as usize].bucket.refund(halves);
    }

    /// The reasons for having met a limit, each once.
    pub fn reasons(&self, access: Access, met: LimitsHit) -> Vec<ThrottleReason> {
        let reason = |cause| ThrottleReason { resource: Arc::clone(&self.resource), access, cause };
        met.causes().map(reason).collect()
    }

    pub fn consumed_halves(&self, access: Access) -> u64 {
        let partitions = self.partitions.load();
        let live: u64 = partitions.iter().map(|it| it.partition.consumed_halves(access)).sum();
        live + self.retired_halves[access as usize].load(Ordering::Relaxed)
    }

    pub fn throttled(&self, access: Access, cause: ThrottleCause) -> u64 {
        self.flows[access as usize].throttled[cause as usize].load(Ordering::Relaxed)
    }

    /// What the bucket of the whole table or index has left, in units.
    pub fn units_left(&self, access: Access, now_ns: u64) -> i64 {
        self.flows[access as usize].bucket.units_left(now_ns)
    }

    pub fn set_clock_back(&self, by_ns: u64) {
        self.flows.iter().for_each(|flow| flow.bucket.set_back(by_ns));
        for placed in self.partitions.load().iter() {
            placed.partition.flows.iter().for_each(|flow| flow.bucket.set_back(by_ns));
        }
    }

    fn count_throttled(&self, access: Access, partition: &Partition, met: LimitsHit) {
        for cause in met.causes() {
            let counter = &self.flows[access as usize].throttled[cause as usize];
            counter.fetch_add(1, Ordering::Relaxed);
        }
        partition.flows[access as usize].throttled.fetch_add(1, Ordering::Relaxed);
    }
}

impl Flow {
    fn limit(&self) -> ThrottleCause {
        ThrottleCause::from_number(self.limit.load(Ordering::Relaxed))
    }
}

/// The limits that a request met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimitsHit {
    /// That of the whole table or index.
    limit: Option<ThrottleCause>,
    /// That of the partition.
    key_range: bool,
    /// That of the account for all its tables.
    budget: bool,
}

impl LimitsHit {
    fn causes(self) -> impl Iterator<Item = ThrottleCause> {
        let unlike = |is_met: bool, cause| (is_met && self.limit != Some(cause)).then_some(cause);
        let key_range = unlike(self.key_range, ThrottleCause::KeyRange);
        let budget = unlike(self.budget, ThrottleCause::AccountLimit);
        self.limit.into_iter().chain(key_range).chain(budget)
    }
}

impl Partition {
    fn new(id: u32, now_ns: u64, nodes: u64) -> Partition {
        let flow = |access| PartitionFlow {
            bucket: Bucket::new(now_ns, partition_rate(access), nodes),
            consumed_halves: AtomicU64::new(0),
            throttled: AtomicU64::new(0),
            seen: Default::default(),
        };
        Partition {
            id,
            flows: Access::ALL.map(flow),
            samples: Mutex::default(),
            hot_since_ms: AtomicU64::new(0),
        }
    }

    /// Partitions of equal width, for tests.
    #[cfg(test)]
    pub fn evenly(count: u64) -> Arc<Vec<PlacedPartition>> {
        let map = super::partition_map::PartitionMap::even(count);
        let starts = map.partitions().iter();
        let place =
            |id, first| PlacedPartition { first, partition: Arc::new(Partition::new(id, 0, 1)) };
        Arc::new(starts.map(|start| place(start.id, start.first.clone())).collect())
    }

    fn set_nodes(&self, nodes: u64) {
        for (access, flow) in Access::ALL.into_iter().zip(&self.flows) {
            flow.bucket.set_rate(partition_rate(access), nodes);
        }
    }

    /// Takes half units for a request that was admitted.
    pub fn charge(&self, access: Access, halves: u64, now_ns: u64) {
        self.flows[access as usize].bucket.charge(now_ns, halves);
    }

    /// Counts what a request for this key, given without its prefix, has consumed.
    pub fn count(&self, access: Access, suffix: &[u8], halves: u64) {
        let before = self.count_only(access, halves);
        let after = before + halves;
        // Divided by constants, which costs every request less than by a number from a table.
        let due = match access {
            Access::Read => after / READ_HALVES_PER_SAMPLE - before / READ_HALVES_PER_SAMPLE,
            Access::Write => after / WRITE_HALVES_PER_SAMPLE - before / WRITE_HALVES_PER_SAMPLE,
        };
        if due > 0 {
            self.sample(suffix, due);
        }
    }

    /// Counts what was consumed without saying where. Returns what had been consumed before.
    pub fn count_only(&self, access: Access, halves: u64) -> u64 {
        self.flows[access as usize].consumed_halves.fetch_add(halves, Ordering::Relaxed)
    }

    pub fn consumed_halves(&self, access: Access) -> u64 {
        self.flows[access as usize].consumed_halves.load(Ordering::Relaxed)
    }

    pub fn throttled(&self, access: Access) -> u64 {
        self.flows[access as usize].throttled.load(Ordering::Relaxed)
    }

    /// What was consumed, in half units, and throttled since the last call.
    pub fn since_last_look(&self, access: Access) -> (u64, u64) {
        let flow = &self.flows[access as usize];
        let now = [self.consumed_halves(access), self.throttled(access)];
        let [consumed, throttled] = [0, 1].map(|which| {
            now[which].saturating_sub(flow.seen[which].swap(now[which], Ordering::Relaxed))
        });
        (consumed, throttled)
    }

    /// The keys of the last traffic, oldest first: a key that consumed more is there more often.
    pub fn samples(&self) -> Vec<Key> {
        let samples = self.samples.lock();
        let (newer, older) = samples.keys.split_at(samples.oldest);
        [older, newer].concat()
    }

    fn sample(&self, suffix: &[u8], times: u64) {
        // If the lock is taken, another request is leaving a sample that is just as good.
        let Some(mut samples) = self.samples.try_lock() else { return };
        let key = Key::copy_from_slice(suffix);
        for _ in 0..times.min(SAMPLES_MAX as u64) {
            samples.add(key.clone());
        }
    }
}

impl Samples {
    fn add(&mut self, key: Key) {
        if self.keys.len() < SAMPLES_MAX {
            self.keys.push(key);
            return;
        }
        self.keys[self.oldest] = key;
        self.oldest = (self.oldest + 1) % SAMPLES_MAX;
    }
}

/// Where a key, given without its prefix, belongs.
pub(crate) fn position(partitions: &[PlacedPartition], suffix: &[u8]) -> usize {
    // The first partition begins with the empty key.
    partitions.partition_point(|partition| partition.first[..] <= *suffix).saturating_sub(1)
}

fn partition_rate(access: Access) -> RefillRate {
    let units_per_second = match access {
        Access::Read => PARTITION_READ_UNITS,
        Access::Write => PARTITION_WRITE_UNITS,
    };
    RefillRate { units_per_second, burst_s: PARTITION_BURST_S }
}
