//! Nodes on one PostgreSQL, compared with what PostgreSQL itself does for a bare client and for
//! pgbench.

use std::time::Duration;

use zenobe_load::{Plan, Workload};

use crate::load::{self, lane};
use crate::measure::{Lane, Sample, Series, interleave};
use crate::outcome::{Chart, Finding, Outcome, Section, count};
use crate::subjects::bare_client::BareClient;
use crate::subjects::postgres::{Pgbench, Postgres};
use crate::subjects::server::{Keeping, Server};
use crate::{Result, progress};

use super::growth::slowdowns;
use super::{Context, Effort};

const READ_CONNECTIONS: usize = 64;
const WRITE_CONNECTIONS: usize = 256;
const READ_SHARE: f64 = 0.5;
const WRITE_FACTOR: f64 = 2.0;
const TWO_NODES_FACTOR: f64 = 1.3;

const SMALL_ITEMS: u64 = 10_000;
const LARGE_ITEMS_MAX: u64 = 1_000_000;
const GROWTH_CONNECTIONS: usize = 4;
const GROWN: [(&str, Workload); 3] =
    [("GetItem", Workload::Get), ("Query", Workload::Query), ("PutItem", Workload::Put)];
const GROWN_ROWS: [&str; 3] = ["nodes-growth-get", "nodes-growth-query", "nodes-growth-put"];

pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    let directory = context.scratch.beside("postgres")?;
    let postgres = Postgres::start(context.repository, &directory)?;
    postgres.create_table(context.effort.items)?;
    let nodes = [node(context, &postgres)?, node(context, &postgres)?];
    for workload in [Workload::Get, Workload::Query] {
        let plan = load::plan(nodes[0].address, workload, context.effort.items, READ_CONNECTIONS)?;
        load::prepare("many nodes", &plan)?;
    }
    let reads = reads(context, &postgres, &nodes[0])?;
    let writes = writes(context, &postgres, &nodes)?;
    let growth = growth(context, &nodes[0])?;
    let mut outcome = Outcome::default();
    for part in [reads, writes, growth] {
        outcome.add(part);
    }
    Ok(outcome)
}

fn node(context: &Context<'_>, postgres: &Postgres) -> Result<Server> {
    let data = context.scratch.path("node");
    Server::start_with(context.binary, &data, Keeping::Shared { url: postgres.url() }, &[])
}

fn reads(context: &Context<'_>, postgres: &Postgres, node: &Server) -> Result<Outcome> {
    let effort = context.effort.in_short_turns();
    let bare = BareClient::fastest(postgres, READ_CONNECTIONS, effort.items)?;
    let get = load::plan(node.address, Workload::Get, effort.items, READ_CONNECTIONS)?;
    let query = load::plan(node.address, Workload::Query, effort.items, READ_CONNECTIONS)?;
    let lanes = vec![
        Lane::new("bare client, one row", |duration| bare.sample(duration)),
        lane("GetItem through one node", get),
        lane("Query through one node, page of 25 items", query),
    ];
    let series = interleave("many nodes, reads", effort.rounds, effort.duration, lanes)?;
    let what = format!("GetItem through one node on PostgreSQL, {READ_CONNECTIONS} connections");
    let limit = "a bare client that selects one row";
    let finding = Finding::share("nodes-get", what, READ_SHARE, limit, &series[1], &series[0]);
    let note = format!(
        "{READ_CONNECTIONS} connections to the node, and as many of a bare `tokio-postgres` client to {}, on the same machine. The bare client has \
         {} (the faster of one thread and one per core), a prepared statement that selects one row of about 400 bytes by its key on each connection, \
         and no HTTP. While statements are in flight, the node's reads wait and share the next.",
        postgres.version()?,
        bare.describe(),
    );
    let sections = vec![Section::of_series("Many nodes: reads", &note, &series)];
    let charts = vec![Chart::of_series("Reads through a node on PostgreSQL", &series)];
    Ok(Outcome { findings: vec![finding], sections, charts })
}

fn writes(context: &Context<'_>, postgres: &Postgres, nodes: &[Server; 2]) -> Result<Outcome> {
    let effort = context.effort;
    let script = context.scratch.path("upsert.sql");
    let pgbench = Pgbench::fastest(postgres, &script, effort.items)?;
    let put = |node: &Server, connections| {
        load::plan(node.address, Workload::Put, effort.items, connections)
    };
    // What the other node has changed must be read first. So the node that is measured alone has a table of its own.
    let mut one = put(&nodes[0], WRITE_CONNECTIONS)?;
    one.table.push_str("-of-one-node");
    load::prepare("many nodes", &one)?;
    let both = [put(&nodes[0], WRITE_CONNECTIONS / 2)?, put(&nodes[1], WRITE_CONNECTIONS / 2)?];
    let lanes = vec![
        Lane::new("bare pgbench, one upsert per transaction", |duration| pgbench.sample(duration)),
        load::watched_lane("PutItem through one node", one, postgres.id()),
        Lane::new("PutItem through two nodes", |duration| together(&both, duration)),
    ];
    let series = interleave("many nodes, writes", effort.rounds, effort.duration, lanes)?;
    let what = format!("PutItem through one node on PostgreSQL, {WRITE_CONNECTIONS} connections");
    let against_pgbench =
        Finding::factor("nodes-put", what, WRITE_FACTOR, "pgbench", &series[1], &series[0]);
    let what = "PutItem through two nodes, half of the connections each".to_owned();
    let against_one =
        Finding::factor("nodes-two", what, TWO_NODES_FACTOR, "one node", &series[2], &series[1]);
    let note = format!(
        "{WRITE_CONNECTIONS} connections to one node, which has the table to itself, or half of them to each of two nodes that write to the same items. Every write is durable (`fsync` and `synchronous_commit` are on). \
         pgbench does one upsert of a row of about 400 bytes per transaction, prepared, with the number of clients that is fastest: {}. Clients, nodes and \
         PostgreSQL share the machine's cores. PostgreSQL itself takes {} of processor time for a transaction of pgbench, and {} for a \
         PutItem through one node.",
        pgbench.describe(),
        cpu_time(&series[0]),
        cpu_time(&series[1]),
    );
    let sections = vec![Section::of_series("Many nodes: writes", &note, &series)];
    let charts = vec![Chart::of_series("Writes through nodes on PostgreSQL", &series)];
    Ok(Outcome { findings: vec![against_pgbench, against_one], sections, charts })
}

fn cpu_time(series: &Series) -> String {
    series.cpu_us().map_or("–".to_owned(), |time| format!("{time:.0} µs"))
}

/// Runs both plans at once. Their rates add up.
fn together(plans: &[Plan; 2], duration: Duration) -> Result<Sample> {
    let [one, other] = std::thread::scope(|scope| {
        plans
            .each_ref()
            .map(|plan| scope.spawn(move || load::sample(plan, duration)))
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a client panicked".into())))
    });
    let (one, other) = (one?, other?);
    Ok(Sample { requests_per_second: one.requests_per_second + other.requests_per_second, ..one })
}

/// The same requests on a small table and on a large one, of the same store.
fn growth(context: &Context<'_>, node: &Server) -> Result<Outcome> {
    let large_items = context.effort.large_items.min(LARGE_ITEMS_MAX);
    let mut lanes: Vec<Lane<'_>> = Vec::new();
    for (name, workload) in GROWN {
        for items in [SMALL_ITEMS, large_items] {
            let mut plan = load::plan(node.address, workload, items, GROWTH_CONNECTIONS)?;
            plan.table = format!("{}-{items}", plan.table);
            // The tables of GetItem and PutItem are the same.
            load::prepare("many nodes, growth", &plan)?;
            lanes.push(lane(format!("{name} of {} items", count(items as f64)), plan));
        }
    }
    progress::show("many nodes, growth: measuring");
    let Effort { rounds, duration, .. } = context.effort.in_short_turns();
    let series = interleave("many nodes, growth", rounds, duration, lanes)?;
    let load = format!("{GROWTH_CONNECTIONS} connections, one node on PostgreSQL");
    let names = GROWN.map(|(name, _)| name);
    let findings = slowdowns(&series, &GROWN_ROWS, &names, &load);
    let note = format!(
        "Tables of {} and of {} items in the same PostgreSQL, through one node with {GROWTH_CONNECTIONS} connections and its default cache. The round trips of a request do \
         not depend on the size of its table, except that a PutItem of an item that the node does not remember takes one more, to read it.",
        count(SMALL_ITEMS as f64),
        count(large_items as f64),
    );
    let sections = vec![Section::of_series("Many nodes: growth", &note, &series)];
    Ok(Outcome { findings, sections, charts: Vec::new() })
}
