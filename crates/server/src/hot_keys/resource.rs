//! The hottest keys of one table or global index.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use zenobe_engine::keyspace::KeyHash;
use zenobe_engine::request_facts::{KeyScope, key_hash};
use zenobe_engine::throughput::cause::{Access, Resource};

use super::heat::{Heat, HeatMinute, Use};
use super::pending::PartCount;
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

/// A minute that a [`Windowed`] has a sketch of.
#[derive(Debug, Clone, Copy)]
enum Window {
    Current,
    Previous,
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

    /// Counts a part of a request. Threads add their requests late, so a part may be older than others
    /// that have been added.
    pub fn add(&mut self, key: &[u8], part: PartCount, hasher: &RandomState) {
        self.advance(part.minute);
        self.used = self.used.max(part.minute);
        if let Some(elapsed) = part.elapsed {
            self.total.requests += 1;
            self.total.elapsed_us += u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        }
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
        self.heat.add(part.minute, part.partition, used);
        let tally = Tally {
            weight,
            events: 1,
            read_halves: used.read_halves,
            write_halves: used.write_halves,
        };
        self.count(key, &part, tally, hasher);
    }

    fn count(&mut self, key: &[u8], part: &PartCount, tally: Tally, hasher: &RandomState) {
        let Some(window) = Window::of(part.minute, self.minute) else { return };
        // The hash of the partition key comes first in every key.
        if part.scope == KeyScope::Range || key.len() <= KeyHash::LENGTH {
            return;
        }
        // The hash is not seeded. Keys that collide in this half share a counter; no other key is affected.
        let is_throttled = part.is_throttled;
        self.partition_keys.add(window, key_hash(key), key, tally, is_throttled);
        let has_sort_key = !self.resource.keys.sort.is_empty();
        if part.scope == KeyScope::Item
            && has_sort_key
            && let Some(key) = self.resource.item_key(key)
        {
            self.item_keys.add(window, hasher.hash_one(key), key, tally, is_throttled);
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
    fn add(&mut self, window: Window, identity: u64, key: &[u8], tally: Tally, is_throttled: bool) {
        if tally.weight > 0 {
            self.accessed.sketch(window).add(identity, key, tally);
        }
        if is_throttled {
            self.throttled.sketch(window).add(identity, key, Tally { weight: 1, ..tally });
        }
    }

    fn ranked(&self) -> RankedKeys {
        RankedKeys { accessed: self.accessed.ranked(), throttled: self.throttled.ranked() }
    }
}

impl Window {
    /// `None` for a minute whose keys are forgotten already.
    fn of(minute: u64, current: u64) -> Option<Window> {
        match current.saturating_sub(minute) {
            0 => Some(Window::Current),
            1 => Some(Window::Previous),
            _ => None,
        }
    }
}

impl Windowed {
    fn sketch(&mut self, window: Window) -> &mut Sketch {
        match window {
            Window::Current => &mut self.current,
            Window::Previous => &mut self.previous,
        }
    }

    fn ranked(&self) -> Vec<Counter> {
        self.current.merged(&self.previous)
    }
}
