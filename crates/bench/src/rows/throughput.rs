//! What metering and throttling cost the requests that they let pass.

use std::path::Path;

use serde_json::json;
use zenobe_load::Workload;

use crate::measure::{Lane, Series, interleave};
use crate::outcome::{Finding, Outcome, Section};
use crate::subjects::server::{Keeping, Server};
use crate::{Result, answers, load};

use super::{Context, Effort};

const CONNECTIONS: usize = 64;
const OFF: &str = "off";
const MODES: [Mode; 2] = [
    Mode { name: "observe", share_min: 0.97, rows: ["observe-get", "observe-put"] },
    Mode { name: "enforce", share_min: 0.95, rows: ["enforce-get", "enforce-put"] },
];
const OPERATIONS: [(&str, Workload); 2] = [("GetItem", Workload::Get), ("PutItem", Workload::Put)];
/// AWS's quota for a table. Requests are measured in short turns, and what a table saves between its turns is far more
/// than a turn can exceed this by. So nothing is throttled; if it were, the measurement would fail.
const UNITS: u64 = 40_000;

/// A mode that costs something.
struct Mode {
    name: &'static str,
    /// The least share of the rate of `off`.
    share_min: f64,
    /// One for each operation.
    rows: [&'static str; OPERATIONS.len()],
}

pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    let effort = context.effort.in_short_turns();
    let servers = start_all(context, &effort)?;
    let mut outcome = Outcome::default();
    for (number, (operation, workload)) in OPERATIONS.into_iter().enumerate() {
        let series = compare(operation, workload, &servers, &effort)?;
        for (mode, metered) in MODES.iter().zip(&series[1..]) {
            let what = format!("{operation} with `--throughput {}`", mode.name);
            let of = format!("{operation} with `{OFF}`");
            let row = mode.rows[number];
            let finding = Finding::share(row, what, mode.share_min, &of, metered, &series[0]);
            outcome.findings.push(finding);
        }
        let note = format!(
            "{CONNECTIONS} connections, durability `os`. Three servers hold the same table, which has {UNITS} read and write units; \
             nothing is throttled. Each run begins when its server is idle."
        );
        let heading = format!("Throughput modes: {operation}");
        outcome.sections.push(Section::of_series(&heading, &note, &series));
    }
    Ok(outcome)
}

struct Metered {
    mode: &'static str,
    server: Server,
}

/// One server for each mode, `off` first.
fn start_all(context: &Context<'_>, effort: &Effort) -> Result<Vec<Metered>> {
    let modes = MODES.iter().map(|mode| mode.name);
    let start = |mode: &'static str| {
        let data = context.scratch.path(&format!("throughput-{mode}"));
        load_table(context.binary, &data, effort)?;
        let options = ["--throughput", mode];
        let server = Server::start_with(context.binary, &data, Keeping::Os, &options)?;
        Ok(Metered { mode, server })
    };
    std::iter::once(OFF).chain(modes).map(start).collect()
}

/// Loads the table by a server that throttles nothing.
fn load_table(binary: &Path, data: &Path, effort: &Effort) -> Result<()> {
    let server = Server::start_with(binary, data, Keeping::Os, &["--throughput", OFF])?;
    let plan = load::plan(server.address, Workload::Put, effort.items, CONNECTIONS)?;
    load::prepare("throughput modes", &plan)?;
    let units = json!({"ReadCapacityUnits": UNITS, "WriteCapacityUnits": UNITS});
    let request = json!({
        "TableName": plan.table, "BillingMode": "PROVISIONED", "ProvisionedThroughput": units,
    });
    answers::call(server.address, "UpdateTable", &request)?;
    server.stop()
}

fn compare(
    operation: &str,
    workload: Workload,
    servers: &[Metered],
    effort: &Effort,
) -> Result<Vec<Series>> {
    let title = "throughput modes";
    let mut lanes: Vec<Lane<'_>> = Vec::with_capacity(servers.len());
    for Metered { mode, server } in servers {
        let plan = load::plan(server.address, workload, effort.items, CONNECTIONS)?;
        load::warm_up(&plan, effort.duration)?;
        let name = format!("{operation}, `{mode}`");
        lanes.push(server.at_rest(title, &name, move |duration| load::sample(&plan, duration)));
    }
    interleave(title, effort.rounds, effort.duration, lanes)
}
