//! What point-in-time recovery costs a PutItem.

use zenobe_load::{Plan, Workload};

use crate::measure::interleave;
use crate::outcome::{Finding, Outcome, Section};
use crate::rows::Context;
use crate::subjects::server::{Keeping, Server};
use crate::{Result, answers, load};

const SHARE_MIN: f64 = 0.8;
const RECOVERED_TABLE: &str = "zenobe-bench-recovered";

struct Mode {
    row: &'static str,
    name: &'static str,
    keeping: Keeping,
    connections: usize,
}

pub fn measure_os(context: &Context<'_>) -> Result<Outcome> {
    let (row, name) = ("history-put-os", "os");
    measure(context, Mode { row, name, keeping: Keeping::Os, connections: 64 })
}

pub fn measure_sync(context: &Context<'_>) -> Result<Outcome> {
    let (row, name) = ("history-put-sync", "sync");
    measure(context, Mode { row, name, keeping: Keeping::Sync, connections: 256 })
}

fn measure(context: &Context<'_>, mode: Mode) -> Result<Outcome> {
    let Mode { row, name, keeping, connections } = mode;
    let (effort, title) = (context.effort, "recovery");
    let server = Server::start(context.binary, &context.scratch.path(row), keeping)?;
    let plain = load::plan(server.address, Workload::Put, effort.items, connections)?;
    let recovered = Plan { table: RECOVERED_TABLE.to_owned(), ..plain.clone() };
    load::prepare(title, &plain)?;
    load::prepare(title, &recovered)?;
    answers::keep_history(server.address, &recovered.table, true)?;
    let lane = |name: &str, plan: Plan| {
        server.at_rest(title, name, move |duration| load::sample(&plan, duration))
    };
    let lanes = vec![lane("PutItem", plain), lane("PutItem with recovery", recovered)];
    let series = interleave(title, effort.rounds, effort.duration, lanes)?;
    let what = format!("PutItem with point-in-time recovery, `{name}`, {connections} connections");
    let finding = Finding::share(row, what, SHARE_MIN, "PutItem", &series[1], &series[0]);
    let heading = format!("History: PutItem with recovery, `{name}`");
    let note = format!(
        "{connections} connections, two tables of one server. Each change of a table with point-in-time recovery also writes the whole \
         earlier version of the item. Each run begins when the server is idle."
    );
    let sections = vec![Section::of_series(&heading, &note, &series)];
    Ok(Outcome { findings: vec![finding], sections, charts: Vec::new() })
}
