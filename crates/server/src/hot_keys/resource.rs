//! The hottest keys of one table or global index.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use zenobe_engine::keyspace::KeyHash;
use zenobe_engine::throughput::cause::{Access, Resource};
use zenobe_engine::throughput::facts::{KeyScope, Part};

use super::heat::{Heat, HeatMinute, Use};
use super::sketch::{Counter, Sketch, Tally};

/// As on AWS, a written unit weighs as much as three that are read.
const WRITE_WEIGHT: u64 = 3;

#[derive(Debug)]
pub struct ResourceKeys {
    pub resource: Arc<Resource>,
    /// The minute of the current sketches.
    minute: u64,
    /// The minute of the last request.
    used: u64,
    partition_keys: Ranking,
    item_keys: Ranking,
    heat: Heat,
    /// Since the server started.
    pub total: Total,
}

/// Everything that was counted of a table or index since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Total {
    pub requests: u64,
    pub elapsed_us: u64,
    pub used: Use,
}

/// The sketches of one kind of key.
#[derive(Debug, Default)]
struct Ranking {
    accessed: Windowed,
    throttled: Windowed,
}

/// The current minute and the one before it. So a report covers one to two minutes, and a key that
/// is no longer used is forgotten after two.
#[derive(Debug, Default)]
struct Windowed {
    current: Sketch,
    previous: Sketch,
}

/// The hottest keys of a kind, hottest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RankedKeys {
    pub accessed: Vec<Counter>,
    pub throttled: Vec<Counter>,
}

impl ResourceKeys {
    pub fn new(resource: Arc<Resource>, minute: u64) -> ResourceKeys {
        ResourceKeys {
            resource,
            minute,
            used: minute,
            partition_keys: Ranking::default(),
            item_keys: Ranking::default(),
            heat: Heat::default(),
            total: Total::default(),
        }
    }

    /// The minute of the last request.
    pub fn last_used(&self) -> u64 {
        self.used
    }

    /// Counts one request of perhaps several parts.
    pub fn add_request(&mut self, elapsed: Duration) {
        self.total.requests += 1;
        self.total.elapsed_us += u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    }

    pub fn add(&mut self, part: &Part, minute: u64, hasher: &RandomState) {
        self.advance(minute);
        self.used = minute;
        let mut used = Use { throttle_events: u64::from(part.is_throttled), ..Use::default() };
        let weight = match part.access {
            Access::Read => {
                used.read_halves = part.halves;
                part.halves
            }
            Access::Write => {
                used.write_halves = part.halves;
                WRITE_WEIGHT * part.halves
            }
        };
        self.total.used.add(used);
        self.heat.add(minute, part.partition, used);
        let tally = Tally {
            weight,
            events: 1,
            read_halves: used.read_halves,
            write_halves: used.write_halves,
        };
        self.count(part, tally, hasher);
    }

    fn count(&mut self, part: &Part, tally: Tally, hasher: &RandomState) {
        // The hash of the partition key comes first in every key.
        if part.scope == KeyScope::Range || part.key.len() <= KeyHash::LENGTH {
            return;
        }
        // The hash is not seeded. Keys that collide in this half share a counter; no other key is affected.
        self.partition_keys.add(part.key_hash(), &part.key, tally, part.is_throttled);
        let has_sort_key = !self.resource.keys.sort.is_empty();
        if part.scope == KeyScope::Item
            && has_sort_key
            && let Some(key) = self.resource.item_key(&part.key)
        {
            self.item_keys.add(hasher.hash_one(key), key, tally, part.is_throttled);
        }
    }

    /// Moves the windows on if a new minute has begun.
    fn advance(&mut self, minute: u64) {
        if minute <= self.minute {
            return;
        }
        let is_next = minute == self.minute + 1;
        self.minute = minute;
        for ranking in [&mut self.partition_keys, &mut self.item_keys] {
            for windowed in [&mut ranking.accessed, &mut ranking.throttled] {
                std::mem::swap(&mut windowed.current, &mut windowed.previous);
                windowed.current.clear();
                if !is_next {
                    windowed.previous.clear();
                }
            }
        }
    }

    pub fn partition_keys(&mut self, now: u64) -> RankedKeys {
        self.advance(now);
        self.partition_keys.ranked()
    }

    /// Keys of single items. A table without a sort key has none besides its partition keys.
    pub fn item_keys(&mut self, now: u64) -> RankedKeys {
        self.advance(now);
        self.item_keys.ranked()
    }

    pub fn heat(&self, now: u64) -> impl Iterator<Item = &HeatMinute> {
        self.heat.minutes(now)
    }
}

impl Ranking {
    /// A part that was refused by a limit consumed nothing, and does not count as an access.
    fn add(&mut self, identity: u64, key: &[u8], tally: Tally, is_throttled: bool) {
        if tally.weight > 0 {
            self.accessed.current.add(identity, key, tally);
        }
        if is_throttled {
            self.throttled.current.add(identity, key, Tally { weight: 1, ..tally });
        }
    }

    fn ranked(&self) -> RankedKeys {
        RankedKeys { accessed: self.accessed.ranked(), throttled: self.throttled.ranked() }
    }
}

impl Windowed {
    fn ranked(&self) -> Vec<Counter> {
        self.current.merged(&self.previous)
    }
}
