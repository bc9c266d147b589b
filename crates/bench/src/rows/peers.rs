//! The same requests to other programs that speak DynamoDB's API.
//!
//! Each program runs in every mode that it has and at the concurrency that suits it best. Reads
//! compare with each program's best mode, writes with modes that promise the same for an
//! acknowledged write.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use zenobe_load::{Plan, Workload};

use crate::load::{self, watched_lane};
use crate::measure::{Series, interleave_each};
use crate::outcome::{
    Bar, Chart, Finding, NOT_MEASURED, Outcome, Section, Verdict, count, milliseconds,
};
use crate::subjects::bare::BareServer;
use crate::subjects::peers::{Installation, Mode, Peer, Survives};
use crate::subjects::server::{Keeping, Server};
use crate::{Result, answers, progress};

use super::{Context, Effort};

/// Enough to spread keys, and few enough for the slowest peer to load.
const ITEMS: u64 = 5_000;
/// The ratios of writes are so large that more rounds add nothing.
const ROUNDS_MAX: usize = 3;
const PAGE_ITEMS: usize = 25;
/// Before the measurement every contestant gets this many times its load, the same for all: enough
/// for runtimes that compile hot code.
const WARMUP_FACTOR: u32 = 2;
const WARMUP_CONNECTIONS: usize = 16;
const TRIAL: Duration = Duration::from_millis(700);
const READS_FACTOR: f64 = 3.0;
const WRITES_FACTOR: f64 = 5.0;

/// One operation to compare.
struct Contest {
    row: &'static str,
    name: &'static str,
    workload: Workload,
    /// The promise that contestants must keep; `None` for reads.
    survives: Option<Survives>,
    /// The concurrencies to try.
    connections: &'static [usize],
}

const READ_CONNECTIONS: &[usize] = &[4, 16, 64];
const WRITE_CONNECTIONS: &[usize] = &[4, 16, 64, 256];

const CONTESTS: [Contest; 5] = [
    Contest {
        row: "peers-get",
        name: "GetItem",
        workload: Workload::Get,
        survives: None,
        connections: READ_CONNECTIONS,
    },
    Contest {
        row: "peers-query",
        name: "Query, page of 25 items",
        workload: Workload::Query,
        survives: None,
        connections: READ_CONNECTIONS,
    },
    Contest {
        row: "peers-put-memory",
        name: "PutItem in memory",
        workload: Workload::Put,
        survives: Some(Survives::Nothing),
        connections: WRITE_CONNECTIONS,
    },
    Contest {
        row: "peers-put-os",
        name: "PutItem that survives a crash",
        workload: Workload::Put,
        survives: Some(Survives::Crash),
        connections: WRITE_CONNECTIONS,
    },
    Contest {
        row: "peers-put-sync",
        name: "PutItem that survives power loss",
        workload: Workload::Put,
        survives: Some(Survives::PowerLoss),
        connections: WRITE_CONNECTIONS,
    },
];

pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    if context.peers.is_empty() {
        let finding = Finding::told("peers", "against peers", "not compared in this run");
        return Ok(Outcome { findings: vec![finding], ..Outcome::default() });
    }
    let mut contestants = start_own(context)?;
    let mut absent = Vec::new();
    for installation in context.peers {
        for mode in installation.modes() {
            let name = format!("{}, {}", installation.title(), mode.description);
            progress::show(&format!("peers: starting {name}"));
            match Contestant::start_peer(context, installation, mode, &name) {
                Ok(contestant) => contestants.push(contestant),
                Err(error) => {
                    progress::say(&format!("  failed: {name}: {error}"));
                    absent.push(name);
                }
            }
        }
    }
    let mut outcome = Outcome::default();
    let warmup = context.effort.duration * WARMUP_FACTOR;
    let mut text = format!(
        "{INTRODUCTION} Before an operation is measured, each program answers it for {} s, and again for a moment before each \
         measurement.\n",
        warmup.as_secs_f64()
    );
    for contest in &CONTESTS {
        let own = contestants.iter().find(|each| each.takes_part(contest));
        let limit = Contestant::start_limit(context, contest, own.ok_or("we don't take part")?)?;
        let standings = hold(context, contest, &contestants, &limit);
        outcome.findings.push(finding(contest, &standings));
        outcome.charts.push(chart(contest, &standings));
        write_table(&mut text, contest, &standings);
    }
    for name in absent {
        let _ = writeln!(text, "\n{name}: {NOT_MEASURED}.");
        outcome.findings.push(Finding::failed("peers", &format!("against {name}")));
    }
    outcome.sections.push(Section { heading: "Peers".to_owned(), text });
    Ok(outcome)
}

const INTRODUCTION: &str = "\
Each program runs in every mode that it has, otherwise with its own defaults, and with the number of connections that suits it \
best. Reads are compared with all modes, writes only with modes that promise the same for an acknowledged write, \
as their system calls show: Dynoxide on a file syncs once per write and DynamoDB Local four times, so both \
survive power loss; dynalite on a file does not sync, so it survives a crash of the process; moto has only its memory. \
Dynoxide is compiled for speed instead of for size, which is its default. moto keeps its tables in a single process; \
it runs with 16 threads. The bare server answers the same bytes without doing anything: client and server share \
the cores, so no program can be faster here, and the processor time per request says more than the rates.";

/// A program that is running and loaded.
struct Contestant {
    name: String,
    kind: Kind,
    survives: Survives,
    address: SocketAddr,
    process: u32,
    /// Ends when the contestant is dropped.
    _running: Box<dyn std::any::Any>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Own,
    Peer,
    /// The bare server: the rate of a program that does nothing, on this machine with this client.
    Limit,
}

fn start_own(context: &Context<'_>) -> Result<Vec<Contestant>> {
    let modes = [
        ("Zenobe, in memory", Keeping::Memory, Survives::Nothing),
        ("Zenobe, durability os", Keeping::Os, Survives::Crash),
        ("Zenobe, durability sync", Keeping::Sync, Survives::PowerLoss),
    ];
    let mut started = Vec::new();
    for (name, keeping, survives) in modes {
        let server = Server::start(context.binary, &context.scratch.path(name), keeping)?;
        load_tables(name, server.address)?;
        started.push(Contestant {
            name: name.to_owned(),
            kind: Kind::Own,
            survives,
            address: server.address,
            process: server.id(),
            _running: Box::new(server),
        });
    }
    Ok(started)
}

impl Contestant {
    fn start_peer(
        context: &Context<'_>,
        installation: &Installation,
        mode: Mode,
        name: &str,
    ) -> Result<Contestant> {
        let peer = Peer::start(installation, mode, &context.scratch.path(name))?;
        load_tables(name, peer.address)?;
        Ok(Contestant {
            name: name.to_owned(),
            kind: Kind::Peer,
            survives: mode.survives,
            address: peer.address,
            process: peer.id(),
            _running: Box::new(peer),
        })
    }

    fn start_limit(
        context: &Context<'_>,
        contest: &Contest,
        own: &Contestant,
    ) -> Result<Contestant> {
        let plan = load::plan(own.address, contest.workload, ITEMS, 1)?;
        let body = match contest.workload {
            Workload::Get => answers::get_item(own.address, &plan.table)?,
            Workload::Query => answers::query(own.address, &plan.table, PAGE_ITEMS)?,
            _ => "{}".to_owned(),
        };
        let bare = BareServer::start(&context.scratch.path("limit.json"), &body)?;
        Ok(Contestant {
            name: "bare server".to_owned(),
            kind: Kind::Limit,
            survives: own.survives,
            address: bare.address,
            process: bare.id(),
            _running: Box::new(bare),
        })
    }

    /// Our server takes part once in each contest; in reads it runs with its defaults.
    fn takes_part(&self, contest: &Contest) -> bool {
        match contest.survives {
            Some(survives) => self.survives == survives,
            None => self.kind != Kind::Own || self.survives == Survives::PowerLoss,
        }
    }
}

fn load_tables(title: &str, address: SocketAddr) -> Result<()> {
    for workload in [Workload::Put, Workload::Query] {
        load::prepare(title, &load::plan(address, workload, ITEMS, 1)?)?;
    }
    Ok(())
}

struct Standing<'a> {
    contestant: &'a Contestant,
    connections: usize,
    outcome: Result<Series>,
}

impl Standing<'_> {
    fn series(&self) -> Option<&Series> {
        self.outcome.as_ref().ok()
    }

    fn rate(&self) -> Option<f64> {
        self.series().map(Series::rate)
    }
}

fn hold<'a>(
    context: &Context<'_>,
    contest: &Contest,
    contestants: &'a [Contestant],
    limit: &'a Contestant,
) -> Vec<Standing<'a>> {
    let mut standings = Vec::new();
    let mut runners = Vec::new();
    let taking_part = contestants.iter().filter(|each| each.takes_part(contest));
    for contestant in taking_part.chain([limit]) {
        progress::show(&format!("peers: {}, trying {}", contest.name, contestant.name));
        let tried = warm_up(contest, contestant, context.effort.duration * WARMUP_FACTOR)
            .and_then(|()| best_connections(contest, contestant));
        match tried {
            Ok(plan) => runners.push((contestant, plan)),
            Err(error) => {
                standings.push(Standing { contestant, connections: 0, outcome: Err(error) });
            }
        }
    }
    let lanes = runners.iter().map(|(contestant, plan)| {
        watched_lane(contestant.name.clone(), plan.clone(), contestant.process)
    });
    let title = format!("peers: {}", contest.name);
    let effort = Effort { rounds: context.effort.rounds.min(ROUNDS_MAX), ..context.effort };
    let effort = match contest.survives {
        None => effort.in_short_turns(),
        Some(_) => effort,
    };
    let outcomes = interleave_each(&title, effort.rounds, effort.duration, lanes.collect());
    for ((contestant, plan), outcome) in runners.iter().zip(outcomes) {
        standings.push(Standing { contestant, connections: plan.connections, outcome });
    }
    for standing in &standings {
        if let Err(error) = &standing.outcome {
            progress::say(&format!("  failed: {}: {error}", standing.contestant.name));
        }
    }
    let order = |standing: &Standing<'_>| standing.rate().unwrap_or(-1.0);
    standings.sort_by(|left, right| order(right).total_cmp(&order(left)));
    standings
}

fn warm_up(contest: &Contest, contestant: &Contestant, duration: Duration) -> Result<()> {
    let plan = load::plan(contestant.address, contest.workload, ITEMS, WARMUP_CONNECTIONS)?;
    load::warm_up(&plan, duration)
}

/// Tries each concurrency briefly.
fn best_connections(contest: &Contest, contestant: &Contestant) -> Result<Plan> {
    let mut best: Option<(f64, Plan)> = None;
    let mut failure = None;
    for &connections in contest.connections {
        let plan = load::plan(contestant.address, contest.workload, ITEMS, connections)?;
        // A peer that fails with many connections may do well with few.
        match load::sample(&plan, TRIAL) {
            Ok(sample) => {
                let rate = sample.requests_per_second;
                if best.as_ref().is_none_or(|(highest, _)| rate > *highest) {
                    best = Some((rate, plan));
                }
            }
            Err(error) => failure = Some(error),
        }
    }
    match (best, failure) {
        (Some((_, plan)), _) => Ok(plan),
        (None, Some(error)) => Err(error),
        (None, None) => Err("there is no concurrency to try".into()),
    }
}

fn finding(contest: &Contest, standings: &[Standing<'_>]) -> Finding {
    let factor = match contest.survives {
        None => READS_FACTOR,
        Some(_) => WRITES_FACTOR,
    };
    let what = format!("{} against the best peer", contest.name);
    let best = |kind: Kind| {
        let mut of_kind = standings.iter().filter(|each| each.contestant.kind == kind);
        of_kind.find_map(|each| Some((each.contestant, each.series()?)))
    };
    let (Some((_, ours)), Some((peer, theirs))) = (best(Kind::Own), best(Kind::Peer)) else {
        return Finding::failed(contest.row, &what);
    };
    let multiple = ours.rate_by(theirs);
    Finding {
        row: contest.row,
        what,
        target: format!("≥ {factor} ×"),
        measured: format!(
            "{:.1} × {} (range {:.1} to {:.1}; {} of {}/s){}",
            multiple.median,
            peer.name,
            multiple.low,
            multiple.high,
            count(ours.rate()),
            count(theirs.rate()),
            failures(standings)
        ),
        verdict: Verdict::of(multiple.median >= factor),
    }
}

/// The peers that could not be measured. The ratio must not hide them.
fn failures(standings: &[Standing<'_>]) -> String {
    let failed = standings
        .iter()
        .filter(|each| each.contestant.kind == Kind::Peer && each.outcome.is_err())
        .map(|each| format!("; {} failed", each.contestant.name));
    failed.collect()
}

fn chart(contest: &Contest, standings: &[Standing<'_>]) -> Chart {
    let bar = |standing: &Standing<'_>| Bar {
        name: standing.contestant.name.clone(),
        value: standing.rate(),
        own: standing.contestant.kind == Kind::Own,
    };
    Chart {
        title: contest.name.to_owned(),
        unit: "requests/s",
        bars: standings.iter().map(bar).collect(),
    }
}

fn write_table(text: &mut String, contest: &Contest, standings: &[Standing<'_>]) {
    let own = standings.iter().find(|each| each.contestant.kind == Kind::Own);
    let ours = own.and_then(Standing::series);
    let _ = writeln!(text, "\n### {}\n", contest.name);
    text.push_str("| | a write survives | connections | requests/s | Zenobe is | p50 | p99 | its CPU per request |\n");
    text.push_str("|---|---|---:|---:|---:|---:|---:|---:|\n");
    for standing in standings {
        let contestant = standing.contestant;
        let survives = match contestant.kind {
            Kind::Limit => "–",
            _ => contestant.survives.name(),
        };
        let cells = match &standing.outcome {
            Ok(series) => {
                cells(series, standing.connections, ours.filter(|_| contestant.kind != Kind::Own))
            }
            Err(_) => format!("– | {NOT_MEASURED} | – | – | – | –"),
        };
        let _ = writeln!(text, "| {} | {survives} | {cells} |", contestant.name);
    }
}

fn cells(series: &Series, connections: usize, ours: Option<&Series>) -> String {
    let rate = series.rate();
    let dash = || "–".to_owned();
    let ratio = ours.map_or_else(dash, |ours| format!("{:.1} ×", ours.rate_by(series).median));
    let (p50, p99) = series.latency().map_or_else(
        || (dash(), dash()),
        |latency| (milliseconds(latency.p50), milliseconds(latency.p99)),
    );
    let cpu = series.cpu_us().map_or_else(dash, |time| format!("{} µs", count(time)));
    format!("{connections} | {} | {ratio} | {p50} | {p99} | {cpu}", count(rate))
}
