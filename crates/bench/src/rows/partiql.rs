//! PartiQL statements compared with the operations that they lower to.

use zenobe_load::Workload;

use crate::Result;
use crate::load::{self, lane};
use crate::measure::interleave;
use crate::outcome::{Chart, Finding, Outcome, Section};
use crate::subjects::server::{Keeping, Server};

use super::Context;

const CONNECTIONS: usize = 64;
/// The least rate of a statement as a part of its operation's. It is parsed once, and bound and
/// planned for each request.
const SHARE_MIN: f64 = 0.85;

pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    let effort = context.effort.in_short_turns();
    let server = Server::start(context.binary, &context.scratch.path("partiql"), Keeping::Os)?;
    let plan = |workload| load::plan(server.address, workload, effort.items, CONNECTIONS);
    let pairs = [
        ("GetItem", Workload::Get, "SELECT by the key", Workload::Select),
        ("PutItem of new items", Workload::PutIfAbsent, "INSERT", Workload::Insert),
        ("Query, page of 25 items", Workload::Query, "SELECT of such a page", Workload::SelectPage),
    ];
    let mut lanes = Vec::new();
    for (operation, workload, statement, workload_of_statement) in pairs {
        let (plan, plan_of_statement) = (plan(workload)?, plan(workload_of_statement)?);
        load::prepare("partiql", &plan)?;
        lanes.extend([lane(operation, plan), lane(statement, plan_of_statement)]);
    }
    let series = interleave("partiql", effort.rounds, effort.duration, lanes)?;
    let finding = |row, what, against, pair: usize| {
        let (operation, statement) = (&series[2 * pair], &series[2 * pair + 1]);
        Finding::share(row, what, SHARE_MIN, against, statement, operation)
    };
    Ok(Outcome {
        findings: vec![
            finding("select", "SELECT by the key, 64 connections", "GetItem", 0),
            finding("insert", "INSERT, `os`, 64 connections", "PutItem of new items", 1),
            finding("select-page", "SELECT of 25 items, 64 connections", "Query", 2),
        ],
        sections: vec![Section::of_series(
            "PartiQL and the operations behind it",
            "64 connections, durability `os`. Each statement does what the operation before it does, with its values as parameters.",
            &series,
        )],
        charts: vec![Chart::of_series("PartiQL and the operations behind it", &series)],
    })
}
