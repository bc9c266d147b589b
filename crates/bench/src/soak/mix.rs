//! The mixed load: several workloads at once, each at its own rate.

use std::collections::BTreeMap;
use std::time::Duration;

use zenobe_load::{Histogram, Plan, Report, Workload};

use crate::machine::{self, Memory};
use crate::measure::Latency;
use crate::outcome::{count, milliseconds};
use crate::subjects::server::Server;
use crate::{Result, load, progress};

/// The workloads and their connections. Writes wait for the disk, so they need more connections.
const MIX: [(Workload, usize); 5] = [
    (Workload::Get, 16),
    (Workload::Put, 64),
    (Workload::Update, 32),
    (Workload::Query, 8),
    (Workload::Transact, 32),
];
/// Pages of 1 MB each.
const SCANNED_PAGES_PER_SECOND: f64 = 10.0;
/// An open loop needs more connections than a closed one at the same rate, because requests come in
/// bursts.
const OPEN_CONNECTIONS_FACTOR: usize = 2;
/// Long enough for flushes and compactions to matter.
const TRIAL: Duration = Duration::from_secs(20);
/// The fractions of the closed loop's rate to try in an open loop.
const PARTS_TRIED: [f64; 7] = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3];
/// A rate is sustained if 99 % of the requests finish within this time.
pub const LATENCY_MAX_MS: f64 = 50.0;
const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;

/// Plans that run side by side.
pub struct Mix {
    plans: Vec<Plan>,
    rates: Vec<f64>,
    scan: Plan,
}

impl Mix {
    /// Finds the highest rate of all workloads together, with the scan beside them, at which an
    /// open loop stays within [`LATENCY_MAX_MS`]. The search starts from a closed loop's rate. At
    /// that rate itself requests would pile up, because the batches of a closed loop cost less.
    pub fn find(server: &Server, items: u64) -> Result<Mix> {
        let address = server.address;
        let mut plans = Vec::new();
        for (workload, connections) in MIX {
            let plan = load::plan(address, workload, items, connections)?;
            plans.push(Plan { duration: TRIAL, ..plan });
        }
        let scan = load::plan(address, Workload::Scan, items, 1)?;
        let scan = load::open_loop(scan, SCANNED_PAGES_PER_SECOND);
        let scan = Plan { duration: TRIAL, ..scan };
        let closed = run_beside(&scan, &plans)?;
        for report in &closed {
            load::check(report)?;
        }
        let rates = closed.iter().map(Report::requests_per_second).collect();
        let closed = Mix { plans, rates, scan };
        for part in PARTS_TRIED {
            // A trial must not pay for the compactions of the one before.
            server.settle("soak")?;
            let trial = closed.at(part).run(TRIAL, server.id())?;
            let p99 = trial.latency().p99;
            progress::say(&format!(
                "soak: {} requests/s: p99 {}, {} not sent in time",
                count(closed.rate() * part),
                milliseconds(p99),
                count(trial.unsent as f64)
            ));
            if trial.unsent == 0 && p99 <= LATENCY_MAX_MS {
                return Ok(closed.slowed(part));
            }
        }
        Err(format!("no rate was found at which p99 is at most {LATENCY_MAX_MS} ms").into())
    }

    /// The same workloads at a fraction of their rates.
    pub fn slowed(mut self, part: f64) -> Mix {
        self.rates.iter_mut().for_each(|rate| *rate *= part);
        self
    }

    /// The same workloads in an open loop at a fraction of their rates.
    pub fn at(&self, part: f64) -> Mix {
        let rates: Vec<f64> = self.rates.iter().map(|rate| rate * part).collect();
        let open = |(plan, rate): (&Plan, &f64)| {
            let connections = plan.connections * OPEN_CONNECTIONS_FACTOR;
            load::open_loop(Plan { connections, ..plan.clone() }, *rate)
        };
        let plans = self.plans.iter().zip(&rates).map(open).collect();
        Mix { plans, rates, scan: self.scan.clone() }
    }

    pub fn rate(&self) -> f64 {
        self.rates.iter().sum()
    }

    /// Each workload with its rate.
    pub fn rates(&self) -> impl Iterator<Item = (Workload, f64)> + '_ {
        self.plans.iter().map(|plan| plan.workload).zip(self.rates.iter().copied())
    }

    /// Runs everything and the scan for `duration`, and watches the memory of the process.
    pub fn run(&self, duration: Duration, process: u32) -> Result<Part> {
        let all = self.plans.iter().chain([&self.scan]);
        let timed = |plan: &Plan| Plan { duration, warmup: Duration::ZERO, ..plan.clone() };
        let plans: Vec<Plan> = all.map(timed).collect();
        let (reports, memory) = machine::watching_memory(process, || run_together(&plans))?;
        let workloads = self.plans.iter().map(|plan| plan.workload);
        Part::new(workloads, &reports, memory)
    }
}

/// The reports of the plans. The scan's report does not count: the scan may fall behind while the
/// others take all they can.
fn run_beside(scan: &Plan, plans: &[Plan]) -> Result<Vec<Report>> {
    let together: Vec<Plan> = plans.iter().chain([scan]).cloned().collect();
    let mut reports = run_together(&together)?;
    reports.pop();
    Ok(reports)
}

fn run_together(plans: &[Plan]) -> Result<Vec<Report>> {
    std::thread::scope(|scope| {
        let run = |plan| {
            let plan = load::with_new_requests(plan);
            scope.spawn(move || zenobe_load::run(&plan, &mut |_| ()))
        };
        let running: Vec<_> = plans.iter().map(run).collect();
        let mut reports = Vec::with_capacity(plans.len());
        for thread in running {
            reports.push(thread.join().map_err(|_| "the load generator panicked")??);
        }
        Ok(reports)
    })
}

/// The results of one part of the soak.
pub struct Part {
    pub requests: u64,
    pub requests_per_second: f64,
    /// All latencies except the scan's, in nanoseconds.
    pub histogram: Histogram<u64>,
    pub workloads: Vec<(Workload, Latency)>,
    pub memory: Memory,
    pub scanned_items: u64,
    pub unsent: u64,
    /// Connections that the server closed and the client reopened.
    pub reconnects: u64,
    pub errors: BTreeMap<String, u64>,
}

impl Part {
    /// The scan's report comes last.
    fn new(
        workloads: impl Iterator<Item = Workload>,
        reports: &[Report],
        memory: Memory,
    ) -> Result<Part> {
        let (scan, mixed) = reports.split_last().ok_or("nothing was run")?;
        let mut histogram = mixed.first().ok_or("nothing was run")?.latency.clone();
        for report in &mixed[1..] {
            histogram.add(&report.latency)?;
        }
        let latency = |report: &Report| Latency::of(&report.latency, NANOSECONDS_PER_MILLISECOND);
        let mut errors = BTreeMap::new();
        for (name, number) in reports.iter().flat_map(|report| &report.errors) {
            *errors.entry(name.clone()).or_default() += number;
        }
        Ok(Part {
            requests: mixed.iter().map(|report| report.requests).sum(),
            requests_per_second: mixed.iter().map(Report::requests_per_second).sum(),
            histogram,
            workloads: workloads.zip(mixed.iter().map(latency)).collect(),
            memory,
            scanned_items: scan.items,
            unsent: mixed.iter().map(|report| report.unsent).sum(),
            reconnects: reports.iter().map(|report| report.reconnects).sum(),
            errors,
        })
    }

    pub fn latency(&self) -> Latency {
        Latency::of(&self.histogram, NANOSECONDS_PER_MILLISECOND)
    }

    /// The 99th percentile of each workload.
    fn p99s(&self) -> String {
        let p99 = |(workload, latency): &(Workload, Latency)| {
            format!("{workload} {}", milliseconds(latency.p99))
        };
        self.workloads.iter().map(p99).collect::<Vec<_>>().join(", ")
    }

    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// A row of the table.
    pub fn line(&self, number: usize) -> String {
        let latency = self.latency();
        format!(
            "| {number} | {} | {} | {} | {} | {} | {} | {:.0} | {:.0} | {} |",
            count(self.requests_per_second),
            milliseconds(latency.p50),
            milliseconds(latency.p99),
            self.p99s(),
            milliseconds(latency.p999),
            milliseconds(self.histogram.max() as f64 / NANOSECONDS_PER_MILLISECOND),
            self.memory.anonymous_mib,
            self.memory.resident_mib,
            self.error_count()
        )
    }
}
