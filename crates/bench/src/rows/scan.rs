//! A full parallel scan of a table that fits in the cache.

use std::time::Duration;

use zenobe_load::{Plan, Workload};

use crate::measure::median;
use crate::outcome::{Finding, Outcome, Section, Verdict, count};
use crate::subjects::server::{Keeping, Server};
use crate::{Result, answers, load, machine, progress};

use super::Context;

/// Four segments keep both cores busy.
const SEGMENTS: usize = 4;
const MEGABYTES_PER_CORE_SECOND_MIN: f64 = 150.0;

pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    let effort = context.effort;
    let server = Server::start(context.binary, &context.scratch.path("scan"), Keeping::Os)?;
    let plan = load::plan(server.address, Workload::Scan, effort.items, SEGMENTS)?;
    load::prepare("scan", &plan)?;
    let table_bytes = answers::table_bytes(server.address, &plan.table)?;
    let bytes_per_item = table_bytes as f64 / effort.items as f64;
    scan(&server, &plan, effort.duration, bytes_per_item)?;
    let mut scans = Vec::new();
    for round in 1..=effort.rounds {
        progress::show(&format!("scan: round {round} of {}", effort.rounds));
        scans.push(scan(&server, &plan, effort.duration, bytes_per_item)?);
    }
    let per_core = median(scans.iter().map(|scan| scan.megabytes_per_core_second));
    let wall = median(scans.iter().map(|scan| scan.megabytes_per_second));
    let finding = Finding {
        row: "scan",
        what: "full parallel scan in cache, item bytes per core".to_owned(),
        target: format!("≥ {MEGABYTES_PER_CORE_SECOND_MIN} MB/s"),
        measured: format!("{per_core:.0} MB/s"),
        verdict: Verdict::of(per_core >= MEGABYTES_PER_CORE_SECOND_MIN),
    };
    let note = format!(
        "{SEGMENTS} segments of a table of {} items ({:.0} MB as DynamoDB counts item bytes), in pages of 1 MB. The server \
         delivers {per_core:.0} MB of items per second of its processor time, and {wall:.0} MB/s by the clock, while the client \
         takes its share of the cores.",
        count(effort.items as f64),
        table_bytes as f64 / 1e6,
    );
    let sections = vec![Section { heading: "Scan".to_owned(), text: note }];
    Ok(Outcome { findings: vec![finding], sections, charts: Vec::new() })
}

struct Scan {
    megabytes_per_second: f64,
    megabytes_per_core_second: f64,
}

fn scan(server: &Server, plan: &Plan, duration: Duration, bytes_per_item: f64) -> Result<Scan> {
    let before = machine::cpu_time(server.id())?;
    let report = load::run(&Plan { duration, warmup: Duration::ZERO, ..plan.clone() })?;
    let used = machine::cpu_time(server.id())? - before;
    let megabytes = report.items as f64 * bytes_per_item / 1e6;
    Ok(Scan {
        megabytes_per_second: megabytes / report.elapsed.as_secs_f64(),
        megabytes_per_core_second: megabytes / used.as_secs_f64(),
    })
}
