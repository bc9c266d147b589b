//! What a large amount of data costs: latency compared with a small table, memory, and the time to
//! start.

use std::time::{Duration, Instant};

use zenobe_load::{Plan, Workload};

use crate::load::{self, lane};
use crate::machine::{self, Memory};
use crate::measure::{Lane, Ratio, Series, interleave, median};
use crate::outcome::{Finding, Outcome, Section, Verdict, count, milliseconds};
use crate::progress;
use crate::subjects::server::{CACHE_MIB_DEFAULT, Keeping, Server};
use crate::{Result, answers};

use super::Context;

const SMALL_ITEMS: u64 = 10_000;
/// Enough that requests overlap, too few to saturate the machine.
const CLOSED_CONNECTIONS: usize = 4;
const OPEN_CONNECTIONS: usize = 32;
const OPEN_REQUESTS_PER_SECOND: f64 = 4_000.0;
const SLOWDOWN_MAX: f64 = 1.5;
const NAMES: [&str; 2] = ["GetItem", "Query"];
const START_MAX_MS: f64 = 300.0;
const START_SAMPLES: usize = 3;
/// What the server may need besides its cache, which also covers its write buffers: the program,
/// its connections, compactions, and whatever the allocator keeps.
const MEMORY_ALLOWANCE_MIB: f64 = 96.0;

pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    let small = Server::start(context.binary, &context.scratch.path("small"), Keeping::Os)?;
    load_tables(&small, "small table", SMALL_ITEMS)?;
    let data = context.scratch.path("large");
    let large = Server::start(context.binary, &data, Keeping::Os)?;
    let load = || {
        let load_time = load_tables(&large, "large table", context.effort.large_items)?;
        // The compactions after loading belong to the load, not to the reads.
        large.settle("large table")?;
        Ok(load_time)
    };
    let (load_time, while_loading) = machine::watching_memory(large.id(), load)?;
    let data_bytes = large.data_bytes()?;
    let (large, start_ms) = restart(context, large)?;

    let items = context.effort.large_items;
    let read = || {
        let closed = compare(context, &small, &large, "closed loop", |plan| plan)?;
        let open = compare(context, &small, &large, "open loop", |plan| {
            let plan = Plan { connections: OPEN_CONNECTIONS, ..plan };
            load::open_loop(plan, OPEN_REQUESTS_PER_SECOND)
        })?;
        Ok((closed, open))
    };
    let ((closed, open), while_reading) = machine::watching_memory(large.id(), read)?;

    let mut findings = slowdowns(
        &open,
        &["growth-get-open", "growth-query-open"],
        &NAMES,
        &format!("{OPEN_REQUESTS_PER_SECOND} requests/s"),
    );
    findings.extend(slowdowns(
        &closed,
        &["growth-get-closed", "growth-query-closed"],
        &NAMES,
        &format!("{CLOSED_CONNECTIONS} connections"),
    ));
    findings.push(memory(while_loading, while_reading, items));
    let what = format!("first answer with {} items after a clean stop", millions(items));
    findings.push(Finding::at_most("start-large", what, START_MAX_MS, "ms", start_ms));
    let note = format!(
        "Two tables of {} items each, one with a sort key, were loaded in {:.0} s ({} items/s) and take \
         {:.1} GB on disk. A second server has {} items in each. Both servers have the default cache of {CACHE_MIB_DEFAULT} MiB. The large \
         server's own memory never exceeded {:.0} MiB during loading and {:.0} MiB during reading \
         (resident, with mapped files: {:.0} and {:.0} MiB).",
        millions(items),
        load_time.as_secs_f64(),
        count(2.0 * items as f64 / load_time.as_secs_f64()),
        data_bytes as f64 / 1e9,
        count(SMALL_ITEMS as f64),
        while_loading.anonymous_mib,
        while_reading.anonymous_mib,
        while_loading.resident_mib,
        while_reading.resident_mib,
    );
    let all: Vec<Series> = closed.into_iter().chain(open).collect();
    let sections = vec![Section::of_series("Growth", &note, &all)];
    Ok(Outcome { findings, sections, charts: Vec::new() })
}

fn load_tables(server: &Server, title: &str, items: u64) -> Result<Duration> {
    let mut elapsed = Duration::ZERO;
    for workload in [Workload::Get, Workload::Query] {
        let plan = load::plan(server.address, workload, items, CLOSED_CONNECTIONS)?;
        elapsed += load::prepare(title, &plan)?.elapsed;
    }
    Ok(elapsed)
}

/// Restarts the server a few times. Returns it with the median time until its first response.
fn restart(context: &Context<'_>, mut server: Server) -> Result<(Server, f64)> {
    let data = context.scratch.path("large");
    let mut milliseconds = Vec::new();
    for _ in 0..START_SAMPLES {
        progress::show("large table: stopping and starting");
        let plan = load::plan(server.address, Workload::Get, 1, 1)?;
        server.stop()?;
        let start = Instant::now();
        server = Server::start(context.binary, &data, Keeping::Os)?;
        answers::call(
            server.address,
            "GetItem",
            &serde_json::json!({"TableName": plan.table, "Key": {"pk": {"S": "user#000000000000"}}}),
        )?;
        milliseconds.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok((server, median(milliseconds)))
}

/// GetItem and Query, the small table first.
fn compare(
    context: &Context<'_>,
    small: &Server,
    large: &Server,
    title: &str,
    pace: impl Fn(Plan) -> Plan,
) -> Result<Vec<Series>> {
    let mut lanes: Vec<Lane<'_>> = Vec::new();
    for (name, workload) in [("GetItem", Workload::Get), ("Query", Workload::Query)] {
        for (server, items) in [(small, SMALL_ITEMS), (large, context.effort.large_items)] {
            let plan = load::plan(server.address, workload, items, CLOSED_CONNECTIONS)?;
            lanes.push(lane(format!("{name} of {} items, {title}", millions(items)), pace(plan)));
        }
    }
    let effort = context.effort.in_short_turns();
    interleave("growth", effort.rounds, effort.duration, lanes)
}

/// Compares pairs of a small table and a large one: what each row is called, and which request it
/// is about.
pub fn slowdowns(
    series: &[Series],
    rows: &[&'static str],
    names: &[&str],
    load: &str,
) -> Vec<Finding> {
    rows.iter()
        .copied()
        .zip(names)
        .zip(series.chunks(2))
        .filter_map(|((row, name), pair)| {
            let (small, large) = (pair[0].latency()?, pair[1].latency()?);
            let by = |of| pair[1].latency_by(&pair[0], of);
            let (median, tail) = (by(|latency| latency.p50), by(|latency| latency.p99));
            Some(Finding {
                row,
                what: format!("{name} latency, large table against small, {load}"),
                target: format!("median and p99 ≤ {SLOWDOWN_MAX} ×"),
                measured: format!(
                    "median {}, p99 {}",
                    slowdown(median, large.p50, small.p50),
                    slowdown(tail, large.p99, small.p99)
                ),
                verdict: Verdict::of(median.median <= SLOWDOWN_MAX && tail.median <= SLOWDOWN_MAX),
            })
        })
        .collect()
}

fn slowdown(ratio: Ratio, large: f64, small: f64) -> String {
    let Ratio { median, low, high } = ratio;
    let (large, small) = (milliseconds(large), milliseconds(small));
    format!("{median:.2} × (range {low:.2} to {high:.2}; {large} against {small})")
}

fn memory(while_loading: Memory, while_reading: Memory, items: u64) -> Finding {
    let most = while_loading.anonymous_mib.max(while_reading.anonymous_mib);
    let limit = f64::from(CACHE_MIB_DEFAULT) + MEMORY_ALLOWANCE_MIB;
    Finding {
        row: "memory",
        what: format!(
            "highest memory with two tables of {} items, cache {CACHE_MIB_DEFAULT} MiB",
            millions(items)
        ),
        target: format!("≤ cache + {MEMORY_ALLOWANCE_MIB} MiB = {limit} MiB"),
        measured: format!(
            "{most:.0} MiB ({:.0} while loading, {:.0} while reading)",
            while_loading.anonymous_mib, while_reading.anonymous_mib
        ),
        verdict: Verdict::of(most <= limit),
    }
}

fn millions(items: u64) -> String {
    match items {
        items if items >= 1_000_000 && items % 1_000_000 == 0 => {
            format!("{} million", items / 1_000_000)
        }
        items => count(items as f64),
    }
}
