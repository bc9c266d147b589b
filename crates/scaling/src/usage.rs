//! What tables and global indexes consume in each minute.
//!
//! A node knows only its own requests. On a shared store, each node stores a row per minute with
//! what its targets consumed, and the holder of the lease adds them up.

use std::collections::{BTreeMap, HashMap};

use zenobe_engine::Engine;
use zenobe_engine::command::TableName;
use zenobe_engine::error::Result;
use zenobe_engine::row::Fields;
use zenobe_engine::schema::{IndexId, TableId};
use zenobe_engine::throughput::cause::Access;
use zenobe_value::Attributes;

use crate::resource::TargetName;

pub(crate) const MINUTE_MS: u64 = 60 * 1_000;

/// Follows what this node's tables have consumed since it started.
#[derive(Debug)]
pub(crate) struct UsageSampler {
    /// The minute of the last sample.
    minute: u64,
    seen: HashMap<(TableId, Option<IndexId>), [u64; 2]>,
}

/// What was consumed through this node in one minute, in half units. What is missing consumed
/// nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct MinuteUsage {
    pub minute: u64,
    halves: HashMap<(TableName, Option<String>), [u64; 2]>,
}

impl UsageSampler {
    pub(crate) fn since(now_ms: u64) -> UsageSampler {
        UsageSampler { minute: now_ms / MINUTE_MS, seen: HashMap::new() }
    }

    /// The minutes that have ended since the last sample, the oldest first and at most `minutes_max`.
    ///
    /// Samples are taken right after each minute, so what was consumed belongs to the minute of the
    /// previous sample. If several minutes have ended, nobody was served in the others: the process
    /// was stopped, or a test has moved the clock.
    pub(crate) fn collect(
        &mut self,
        engine: &Engine,
        now_ms: u64,
        minutes_max: u64,
    ) -> Vec<MinuteUsage> {
        let (first, end) = (self.minute, now_ms / MINUTE_MS);
        if first == end {
            return Vec::new();
        }
        self.minute = end;
        let mut halves = HashMap::new();
        let mut seen = HashMap::new();
        for consumption in engine.consumption() {
            let resource = &consumption.resource;
            let id = (resource.table_id, resource.index.as_ref().map(|(_, id)| *id));
            let total =
                [consumption.read_units, consumption.write_units].map(|units| (units * 2.0) as u64);
            let before = self.seen.get(&id).copied().unwrap_or_default();
            let consumed = [0, 1].map(|access: usize| total[access].saturating_sub(before[access]));
            seen.insert(id, total);
            if consumed != [0, 0] {
                let index = resource.index_name().map(str::to_owned);
                halves.insert((resource.table.clone(), index), consumed);
            }
        }
        self.seen = seen;
        let mut halves = Some(halves);
        // After the clock was set back, no minute has ended.
        let usage = |minute| MinuteUsage {
            minute,
            halves: halves.take().filter(|_| minute == first).unwrap_or_default(),
        };
        (first.max(end.saturating_sub(minutes_max))..end).map(usage).collect()
    }
}

impl MinuteUsage {
    pub(crate) fn of(&self, table: &TableName, name: &TargetName) -> u64 {
        let halves = self.halves.get(&(table.clone(), name.index.clone()));
        halves.map_or(0, |halves| halves[position(name.access)])
    }
}

fn position(access: Access) -> usize {
    match access {
        Access::Read => 0,
        Access::Write => 1,
    }
}

/// What several nodes consumed, by target.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct StoredUsage(BTreeMap<String, u64>);

impl StoredUsage {
    pub(crate) fn add(&mut self, name: &TargetName, halves: u64) {
        let sum = self.0.entry(text(name)).or_default();
        *sum = sum.saturating_add(halves);
    }

    /// `None` if no node has said anything about the target.
    pub(crate) fn of(&self, name: &TargetName) -> Option<u64> {
        self.0.get(&text(name)).copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn encode(&self) -> Attributes {
        let mut targets = Fields::default();
        self.0.iter().for_each(|(target, halves)| targets.number(target, *halves));
        let mut fields = Fields::default();
        fields.map("halves", targets.0);
        fields.0
    }

    /// Adds the row of another node.
    pub(crate) fn add_row(&mut self, row: Attributes) -> Result<()> {
        let mut targets = Fields(Fields(row).take_map("halves")?);
        let names: Vec<String> = targets.0.keys().cloned().collect();
        for name in names {
            let halves = targets.take_number(&name)?;
            let sum = self.0.entry(name).or_default();
            *sum = sum.saturating_add(halves);
        }
        Ok(())
    }
}

fn text(name: &TargetName) -> String {
    format!("{} {}", name.resource_id(), name.dimension())
}
