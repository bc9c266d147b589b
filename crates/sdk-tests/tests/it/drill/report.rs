//! The numbers of a drill.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use zenobe_testing::Seed;

use super::faults::Fault;
use super::ledger::Ledger;

/// One round in numbers.
#[derive(Default)]
pub struct RoundReport {
    /// Requests of writers.
    pub operations: u64,
    /// Operations in histories, and how many of them got no answer.
    pub events: u64,
    pub events_unknown: u64,
    /// The longest time in which no node acknowledged a write.
    pub longest_unavailability: Duration,
}

pub struct Report {
    name: String,
    seed: Seed,
    started: Instant,
    rounds: BTreeMap<Fault, Vec<RoundReport>>,
    pub records: u64,
    pub expired: u64,
}

impl Report {
    pub fn new(name: &str, seed: Seed) -> Report {
        Report {
            name: name.to_owned(),
            seed,
            started: Instant::now(),
            rounds: BTreeMap::new(),
            records: 0,
            expired: 0,
        }
    }

    pub fn add(&mut self, fault: Fault, round: RoundReport) {
        let number: usize = self.rounds.values().map(Vec::len).sum();
        eprintln!(
            "{}: {:4} s, round {}, {fault:?}: {} requests, {} operations in histories ({} without an answer), \
             no write acknowledged for {:.1} s at most",
            self.name,
            self.started.elapsed().as_secs(),
            number + 1,
            round.operations,
            round.events,
            round.events_unknown,
            round.longest_unavailability.as_secs_f64(),
        );
        self.rounds.entry(fault).or_default().push(round);
    }

    pub fn print(&self, ledger: &Ledger) {
        let all = || self.rounds.values().flatten();
        eprintln!(
            "\n{} with ZENOBE_SEED={}: {} rounds in {} s",
            self.name,
            self.seed.value(),
            all().count(),
            self.started.elapsed().as_secs()
        );
        eprintln!("| fault | rounds | requests | longest time without an acknowledged write |");
        eprintln!("|---|---|---|---|");
        for (fault, rounds) in &self.rounds {
            let requests: u64 = rounds.iter().map(|round| round.operations).sum();
            let longest = rounds.iter().map(|round| round.longest_unavailability).max();
            let longest_s = longest.unwrap_or_default().as_secs_f64();
            eprintln!("| {fault:?} | {} | {requests} | {longest_s:.1} s |", rounds.len());
        }
        eprintln!(
            "{} requests acknowledged, {} refused as unavailable, {} without a clear answer; {} operations in \
             histories, {} of them without an answer; {} stream records, {} of expiry: nothing lost, nothing twice",
            ledger.acknowledged,
            ledger.unavailable,
            ledger.unknown,
            all().map(|round| round.events).sum::<u64>(),
            all().map(|round| round.events_unknown).sum::<u64>(),
            self.records,
            self.expired,
        );
        assert!(ledger.acknowledged > 100 * all().count() as u64, "hardly anything was written");
    }
}
