//! The rows of the table of targets, in groups measured together.

mod bulk;
mod dead_runs;
mod expiry;
mod growth;
mod history;
mod many_nodes;
mod partiql;
mod peers;
mod reads;
mod rest;
mod scan;
mod throughput;
mod write_batches;
mod writes;

use std::path::Path;
use std::time::Duration;

use crate::Result;
use crate::cleanup::Scratch;
use crate::outcome::Outcome;
use crate::subjects::peers::Installation;

/// Shared by all groups.
pub struct Context<'a> {
    pub binary: &'a Path,
    /// The clone, which holds the scripts that start other programs.
    pub repository: &'a Path,
    pub scratch: &'a Scratch,
    pub peers: &'a [Installation],
    pub effort: Effort,
}

/// How long and how much to measure.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    pub rounds: usize,
    pub duration: Duration,
    pub items: u64,
    pub large_items: u64,
    /// Items that are put and deleted again, as in a queue.
    pub drained_items: u64,
}

impl Effort {
    /// The same time in more and shorter rounds, which brings compared measurements closer
    /// together. It suits lanes that leave no background work behind.
    pub fn in_short_turns(self) -> Effort {
        const PARTS: u32 = 3;
        Effort { rounds: self.rounds * PARTS as usize, duration: self.duration / PARTS, ..self }
    }
}

pub struct Group {
    pub name: &'static str,
    pub about: &'static str,
    pub measure: fn(&Context<'_>) -> Result<Outcome>,
}

pub const GROUPS: [Group; 14] = [
    Group {
        name: "reads",
        about: "GetItem and Query against the bare server",
        measure: reads::measure,
    },
    Group {
        name: "writes-os",
        about: "writes with durability os against the bare server",
        measure: writes::measure_os,
    },
    Group {
        name: "writes-sync",
        about: "writes with durability sync against both limits",
        measure: writes::measure_sync,
    },
    Group {
        name: "partiql",
        about: "statements against the operations that they become",
        measure: partiql::measure,
    },
    Group { name: "peers", about: "against the peers", measure: peers::measure },
    Group { name: "growth", about: "a large table against a small one", measure: growth::measure },
    Group { name: "scan", about: "a full parallel scan in cache", measure: scan::measure },
    Group { name: "load", about: "bulk load and sustained writes", measure: bulk::measure },
    Group { name: "rest", about: "start, forks, idle, size of the binary", measure: rest::measure },
    Group { name: "expiry", about: "items that expire", measure: expiry::measure },
    Group {
        name: "dead-runs",
        about: "reads while another client polls a drained queue",
        measure: dead_runs::measure,
    },
    Group {
        name: "throughput",
        about: "requests that are metered, or may be throttled, against those that are not",
        measure: throughput::measure,
    },
    Group {
        name: "history",
        about: "recovery, reads as of a time, restores, exports and backups",
        measure: history::measure,
    },
    Group {
        name: "many-nodes",
        about: "nodes on PostgreSQL against PostgreSQL itself",
        measure: many_nodes::measure,
    },
];
