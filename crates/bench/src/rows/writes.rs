//! Writes of all kinds, in both durability modes, compared with their limits and with plain
//! PutItem.

use std::time::Duration;

use zenobe_load::{Plan, Workload};

use crate::Result;
use crate::load::{self, aimed_at};
use crate::measure::{Lane, Sample, Series, interleave};
use crate::outcome::{Chart, Finding, Outcome, Section, count};
use crate::subjects::bare::BareServer;
use crate::subjects::commit_loop::CommitLoop;
use crate::subjects::server::{Keeping, Server};

use super::Context;

/// The response to a write without returned values.
const ANSWER: &str = "{}";
const AT_REST: &str = "Each run begins when the server is idle, so that none pays for compactions that another left behind.";
const OS_CONNECTIONS: usize = 64;
const SYNC_CONNECTIONS: usize = 256;

// The names of the lanes, which identify their figures.
const BARE: &str = "bare server";
const LOOP: &str = "bare group-commit loop";
const PUT: &str = "PutItem";
const UPDATE: &str = "UpdateItem with condition and arithmetic";
const INDEXED: &str = "PutItem with an ALL index and a stream";
const TRANSACT: &str = "TransactWriteItems of two";
const COUNTER: &str = "hot counter";

pub fn measure_os(context: &Context<'_>) -> Result<Outcome> {
    let title = "writes, os";
    let store = Store::start(context, Keeping::Os, title, OS_CONNECTIONS)?;
    let lanes = store.lanes()?;
    let series = interleave(title, context.effort.rounds, context.effort.duration, lanes)?;
    let of = |name| find(&series, name);
    let put = "PutItem, `os`, 64 connections";
    let mut findings =
        vec![Finding::share("put-os", put, 0.5, "the bare server", of(PUT)?, of(BARE)?)];
    findings.extend(against_put(&series, "os")?);
    let note = format!(
        "{OS_CONNECTIONS} connections. An acknowledged write survives a crash of the process. The bare server answers \
         `{ANSWER}`, as these writes are answered. {AT_REST}"
    );
    let sections = vec![Section::of_series("Writes with durability `os`", &note, &series)];
    let charts = vec![Chart::of_series("Writes with durability os", &series)];
    Ok(Outcome { findings, sections, charts })
}

pub fn measure_sync(context: &Context<'_>) -> Result<Outcome> {
    let title = "writes, sync";
    let bytes = log_bytes_per_put(context)?;
    let file = context.scratch.path("commit-loop");
    let commits = CommitLoop::fastest(&file, SYNC_CONNECTIONS, bytes)?;
    let store = Store::start(context, Keeping::Sync, title, SYNC_CONNECTIONS)?;
    let mut lanes = store.lanes()?;
    let commit = |duration| Ok(Sample::of_rate(commits.writes_per_second(duration)?));
    lanes.insert(1, store.server.at_rest(title, LOOP, commit));
    lanes.push(store.lane(COUNTER, store.plan(Workload::Counter)?));
    let series = interleave(title, context.effort.rounds, context.effort.duration, lanes)?;
    let of = |name| find(&series, name);
    let limit = match of(BARE)?.rate() < of(LOOP)?.rate() {
        true => BARE,
        false => LOOP,
    };
    let put = "PutItem, `sync`, 256 connections";
    let mut findings = vec![Finding::share(
        "put-sync",
        put,
        0.6,
        &format!("the lower limit, here the {limit}"),
        of(PUT)?,
        of(limit)?,
    )];
    findings.extend(against_put(&series, "sync")?);
    let counter = "hot counter (every client adds to one item), `sync`";
    findings.push(Finding::share("counter", counter, 0.6, PUT, of(COUNTER)?, of(PUT)?));
    let note = format!(
        "{SYNC_CONNECTIONS} connections. An acknowledged write survives power loss. The bare loop writes as much as a PutItem \
         adds to the server's log (measured: {} bytes) and makes all waiting writers durable with one fdatasync. All \
         ways to do that are tried, and the fastest counts; here it was: {}. {AT_REST}",
        count(bytes as f64),
        commits.describe()
    );
    let sections = vec![Section::of_series("Writes with durability `sync`", &note, &series)];
    let charts = vec![Chart::of_series("Writes with durability sync", &series)];
    Ok(Outcome { findings, sections, charts })
}

/// A running server with its tables, and the bare server.
struct Store {
    server: Server,
    bare: BareServer,
    title: &'static str,
    items: u64,
    connections: usize,
}

impl Store {
    fn start(
        context: &Context<'_>,
        keeping: Keeping,
        title: &'static str,
        connections: usize,
    ) -> Result<Store> {
        let server = Server::start(context.binary, &context.scratch.path(title), keeping)?;
        let bare = BareServer::start(&context.scratch.path("empty.json"), ANSWER)?;
        let store = Store { server, bare, title, items: context.effort.items, connections };
        load::prepare(title, &store.plan(Workload::Put)?)?;
        load::prepare(title, &store.plan(Workload::PutIndexed)?)?;
        Ok(store)
    }

    fn plan(&self, workload: Workload) -> Result<Plan> {
        load::plan(self.server.address, workload, self.items, self.connections)
    }

    fn lanes(&self) -> Result<Vec<Lane<'_>>> {
        let put = self.plan(Workload::Put)?;
        Ok(vec![
            self.lane(BARE, aimed_at(&put, self.bare.address)?),
            self.lane(PUT, put),
            self.lane(UPDATE, self.plan(Workload::Update)?),
            self.lane(INDEXED, self.plan(Workload::PutIndexed)?),
            self.lane(TRANSACT, self.plan(Workload::Transact)?),
        ])
    }

    fn lane(&self, name: &str, plan: Plan) -> Lane<'_> {
        self.server.at_rest(self.title, name, move |duration| load::sample(&plan, duration))
    }
}

/// The rows that compare with PutItem in the same mode.
fn against_put(series: &[Series], mode: &str) -> Result<Vec<Finding>> {
    let put = find(series, PUT)?;
    let row = |row, name: &str, share| {
        let what = format!("{name}, `{mode}`");
        Ok(Finding::share(row, what, share, PUT, find(series, name)?, put))
    };
    let sync = mode == "sync";
    [
        row(if sync { "update-sync" } else { "update-os" }, UPDATE, 0.8),
        row(if sync { "indexed-sync" } else { "indexed-os" }, INDEXED, 0.55),
        row(if sync { "transact-sync" } else { "transact-os" }, TRANSACT, 0.45),
    ]
    .into_iter()
    .collect()
}

fn find<'a>(series: &'a [Series], name: &str) -> Result<&'a Series> {
    let found = series.iter().find(|each| each.name == name);
    found.ok_or_else(|| format!("{name} was not measured").into())
}

/// How much the server's log grows with a PutItem, measured on a store too fresh to have retired a
/// log.
fn log_bytes_per_put(context: &Context<'_>) -> Result<usize> {
    const ITEMS: u64 = 1000;
    const WRITES: u64 = 10_000;
    let server = Server::start(context.binary, &context.scratch.path("log"), Keeping::Sync)?;
    let mut plan = load::plan(server.address, Workload::Put, ITEMS, SYNC_CONNECTIONS)?;
    load::prepare("the log", &plan)?;
    plan.operations_max = Some(WRITES);
    plan.warmup = Duration::ZERO;
    let before = server.log_bytes()?;
    let report = load::run(&plan)?;
    let grown = server.log_bytes()?.saturating_sub(before);
    match (grown / report.requests) as usize {
        0 => Err("the server's log does not grow".into()),
        bytes => Ok(bytes),
    }
}
