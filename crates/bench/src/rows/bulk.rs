//! Loads a million items, then keeps writing: does the store keep up with the network?

use std::time::Duration;

use zenobe_load::{Plan, Workload};

use crate::Result;
use crate::load::{self, Loaded, aimed_at, lane};
use crate::measure::{Latency, interleave, median};
use crate::outcome::{Finding, Outcome, Section, Verdict, count, milliseconds};
use crate::progress;
use crate::subjects::bare::BareServer;
use crate::subjects::server::{Keeping, Server};

use super::Context;

const ITEMS: u64 = 1_000_000;
const BATCH_ITEMS: f64 = 25.0;
/// The least rate of the slowest second, as a part of the median.
const SLOWEST_SHARE_MIN: f64 = 0.5;
const TAIL_MAX: f64 = 20.0;
/// As a multiple of the usual duration, long enough for compactions to run.
const SUSTAINED_FACTOR: u32 = 7;
/// The part of the highest sustained rate to request. Client and server share the cores, and single
/// requests cost both of them about twice as much as the batches that form at the highest rate.
const SUSTAINED_PART: f64 = 0.5;
const BARE_CONNECTIONS: usize = 16;

pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    let server = Server::start(context.binary, &context.scratch.path("bulk"), Keeping::Os)?;
    let put = load::plan(server.address, Workload::Put, ITEMS, 64)?;
    let loaded = load::prepare("bulk load", &put)?;
    let wire = wire_limit(context, &put)?;
    let rate = ITEMS as f64 / loaded.elapsed.as_secs_f64();
    let mut findings = vec![steadiness(&loaded, rate)];
    findings.push(sustained(context, put, "tail-os", "`os`, 64 connections")?);
    drop(server);

    let server = Server::start(context.binary, &context.scratch.path("bulk-sync"), Keeping::Sync)?;
    let put = load::plan(server.address, Workload::Put, context.effort.items, 256)?;
    load::prepare("bulk load", &put)?;
    findings.push(sustained(context, put, "tail-sync", "`sync`, 256 connections")?);
    let sections =
        vec![Section { heading: "Load".to_owned(), text: describe(&loaded, rate, wire) }];
    Ok(Outcome { findings, sections, charts: Vec::new() })
}

/// Compactions must not stall the load.
fn steadiness(loaded: &Loaded, rate: f64) -> Finding {
    let share = loaded.slowest() / median(loaded.rates.iter().copied());
    Finding {
        row: "load",
        what: "load of 1 million items with BatchWriteItem, `os`".to_owned(),
        target: format!("slowest second ≥ {:.0} % of the median second", SLOWEST_SHARE_MIN * 100.0),
        measured: format!("{:.0} % ({} items/s over all)", share * 100.0, count(rate)),
        verdict: Verdict::of(share >= SLOWEST_SHARE_MIN),
    }
}

/// The items per second that the network alone would carry: the same batches, answered without
/// being read.
fn wire_limit(context: &Context<'_>, plan: &Plan) -> Result<f64> {
    let file = context.scratch.path("batch.json");
    let bare = BareServer::start(&file, r#"{"UnprocessedItems":{}}"#)?;
    let mut plan = aimed_at(plan, bare.address)?;
    plan.workload = Workload::BatchWrite;
    plan.connections = BARE_CONNECTIONS;
    progress::show("bulk load: the same batches to the bare server");
    Ok(load::sample(&plan, context.effort.duration)?.requests_per_second * BATCH_ITEMS)
}

fn sustained(
    context: &Context<'_>,
    mut plan: Plan,
    row: &'static str,
    mode: &str,
) -> Result<Finding> {
    progress::show(&format!("sustained writes, {mode}"));
    plan.warmup = Duration::from_secs(1);
    let duration = context.effort.duration * SUSTAINED_FACTOR;
    let highest = load::sample(&plan, duration)?.requests_per_second;
    // An open loop: a closed one would stop sending while the server stalls, and barely notice.
    let plan = load::open_loop(plan, highest * SUSTAINED_PART);
    let bare = BareServer::start(&context.scratch.path("put.json"), "{}")?;
    let bare_plan = aimed_at(&plan, bare.address)?;
    let lanes = vec![lane("the server", plan), lane("the bare server", bare_plan)];
    let title = format!("sustained writes, {mode}");
    let series = interleave(&title, context.effort.rounds, duration, lanes)?;
    let [server, bare] = [&series[0], &series[1]].map(|each| Tails::new(each.latencies()));
    let loops = format!(
        "open loops of {} s at {} requests/s, half of what the server sustains",
        duration.as_secs(),
        count(series[0].rate())
    );
    Ok(tail_finding(&server, &bare, &loops, row, mode))
}

/// The latencies of the same load in several runs, shortest tail first.
struct Tails(Vec<Latency>);

impl Tails {
    fn new(mut runs: Vec<Latency>) -> Tails {
        runs.sort_by(|one, other| tail(one).total_cmp(&tail(other)));
        Tails(runs)
    }

    /// The middle run counts: a single stall of the machine must not decide.
    fn middle(&self) -> &Latency {
        &self.0[self.0.len() / 2]
    }

    fn describe(&self) -> String {
        let middle = self.middle();
        let [least, most] = [0, self.0.len() - 1].map(|place| tail(&self.0[place]));
        format!(
            "{:.1} × ({} against {}; between {least:.1} × and {most:.1} × in {} runs)",
            tail(middle),
            milliseconds(middle.p999),
            milliseconds(middle.p50),
            self.0.len()
        )
    }
}

/// The 99.9th percentile as a multiple of the median.
fn tail(latency: &Latency) -> f64 {
    latency.p999 / latency.p50
}

/// The bare server has a tail as well. It is the machine's, because the bare server has nothing to
/// flush, to compact or to wait for.
fn tail_finding(
    server: &Tails,
    bare: &Tails,
    loops: &str,
    row: &'static str,
    mode: &str,
) -> Finding {
    Finding {
        row,
        what: format!("p99.9 of PutItem under sustained load, {mode}"),
        target: format!("≤ {TAIL_MAX} × the median"),
        measured: format!("{}; the bare server {}; {loops}", server.describe(), bare.describe()),
        verdict: Verdict::of(tail(server.middle()) <= TAIL_MAX),
    }
}

fn describe(loaded: &Loaded, rate: f64, wire: f64) -> String {
    format!(
        "1 million items were loaded in {:.1} s ({} items/s). The median second brought {} items, the slowest {} (the last, \
         incomplete second not counted); compactions that stall writes would drive the two apart. A bare server that discards the same batches \
         takes {} items/s.",
        loaded.elapsed.as_secs_f64(),
        count(rate),
        count(median(loaded.rates.iter().copied())),
        count(loaded.slowest()),
        count(wire)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_run_decides_the_tail() {
        let finding = |tails: &[f64]| {
            let latency = |p999| Latency { p50: 1.0, p99: p999, p999 };
            let runs = tails.iter().map(|tail| latency(*tail)).collect();
            let bare = Tails::new(vec![latency(30.0)]);
            tail_finding(&Tails::new(runs), &bare, "open loops", "tail-os", "`os`")
        };
        assert_eq!(finding(&[90.0, 20.0, 5.0]).verdict, Verdict::Met);
        let measured = finding(&[90.0, 20.0, 5.0]).measured;
        assert!(measured.starts_with("20.0 ×"), "{measured}");
        assert!(measured.contains("between 5.0 × and 90.0 ×"), "{measured}");
        assert!(measured.contains("the bare server 30.0 ×"), "{measured}");
        assert_eq!(finding(&[5.0, 21.0, 90.0]).verdict, Verdict::Missed);
    }

    #[test]
    fn a_second_in_which_little_is_loaded_misses_the_target() {
        let verdict = |rates: &[f64]| {
            let loaded = Loaded { elapsed: Duration::from_secs(3), rates: rates.to_vec() };
            steadiness(&loaded, 90.0).verdict
        };
        assert_eq!(verdict(&[100.0, 50.0, 120.0]), Verdict::Met);
        assert_eq!(verdict(&[100.0, 49.0, 120.0]), Verdict::Missed);
    }
}
