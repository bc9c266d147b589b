//! Nodes on one PostgreSQL, compared with what PostgreSQL itself does for a bare client and for
//! pgbench.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use zenobe_load::{Plan, Workload};

use crate::load::{self, lane};
use crate::measure::{Lane, Sample, Series, interleave, median};
use crate::outcome::{Chart, Finding, Outcome, Section, count};
use crate::subjects::bare_client::BareClient;
use crate::subjects::postgres::{Pgbench, Postgres};
use crate::subjects::server::{Keeping, Server};
use crate::{Result, machine, progress};

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
    let put = |node: &Server, connections, table: &str| -> Result<Plan> {
        let mut plan = load::plan(node.address, Workload::Put, effort.items, connections)?;
        plan.table.push_str(table);
        Ok(plan)
    };
    let [one, other] = nodes;
    let half = WRITE_CONNECTIONS / 2;
    // What the other node has changed must be read first. So the node that is measured alone has a table of its own.
    let alone = [put(one, WRITE_CONNECTIONS, "-of-one-node")?];
    let apart = [put(one, half, "-of-one-node")?, put(other, half, "-of-other-node")?];
    for plan in &apart {
        load::prepare("many nodes", plan)?;
    }
    let together = [put(one, half, "")?, put(other, half, "")?];
    let processes = [one.id(), other.id()];
    let spendings = [Spending::default(), Spending::default(), Spending::default()];
    let [spending_alone, spending_together, spending_apart] = &spendings;
    let lanes = vec![
        Lane::new("bare pgbench, one upsert per transaction", |duration| pgbench.sample(duration)),
        Lane::new("PutItem through one node", |duration| {
            spending_alone.sample(&alone, &processes, postgres.id(), duration)
        }),
        Lane::new("PutItem through two nodes, the same items", |duration| {
            spending_together.sample(&together, &processes, postgres.id(), duration)
        }),
        Lane::new("PutItem through two nodes, a table each", |duration| {
            spending_apart.sample(&apart, &processes, postgres.id(), duration)
        }),
    ];
    let series = interleave("many nodes, writes", effort.rounds, effort.duration, lanes)?;
    let what = format!("PutItem through one node on PostgreSQL, {WRITE_CONNECTIONS} connections");
    let against_pgbench =
        Finding::factor("nodes-put", what, WRITE_FACTOR, "pgbench", &series[1], &series[0]);
    let against_one = |row, what: &str, two| {
        let what = format!("PutItem through two nodes, half of the connections each, {what}");
        Finding::factor(row, what, TWO_NODES_FACTOR, "one node", two, &series[1])
    };
    let findings = vec![
        against_pgbench,
        against_one("nodes-two", "the same items", &series[2]),
        against_one("nodes-two-apart", "a table each", &series[3]),
    ];
    let note = format!(
        "{WRITE_CONNECTIONS} connections to one node, which has the table to itself, or half of them to each of two nodes, which write to the same items or to a table each. \
         Every write is durable (`fsync` and `synchronous_commit` are on). \
         pgbench does one upsert of a row of about 400 bytes per transaction, prepared, with the number of clients that is fastest: {}. Clients, nodes and \
         PostgreSQL share the machine's cores. A transaction of pgbench takes PostgreSQL {} of processor time. \
         A PutItem takes, through one node: {}; through two that write to the same items: {}; with a table each: {}.",
        pgbench.describe(),
        cpu_time(&series[0]),
        spending_alone.describe(),
        spending_together.describe(),
        spending_apart.describe(),
    );
    let sections = vec![Section::of_series("Many nodes: writes", &note, &series)];
    let charts = vec![Chart::of_series("Writes through nodes on PostgreSQL", &series)];
    Ok(Outcome { findings, sections, charts })
}

fn cpu_time(series: &Series) -> String {
    series.cpu_us().map_or("–".to_owned(), |time| format!("{time:.0} µs"))
}

/// Where the processor time of requests goes, round by round.
#[derive(Default)]
struct Spending(RefCell<Vec<Spent>>);

/// Processor time per request, in microseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    client: f64,
    nodes: f64,
    postgres: f64,
    /// Of all cores, while they had nothing to do.
    idle: f64,
}

impl Spending {
    /// Runs all plans at once, after a warm-up that does not count. Their rates add up.
    fn sample(
        &self,
        plans: &[Plan],
        nodes: &[u32],
        postgres: u32,
        duration: Duration,
    ) -> Result<Sample> {
        at_once(plans, |plan| load::warm_up(plan, plan.warmup))?;
        let before = Spent::until_now(nodes, postgres)?;
        let start = Instant::now();
        let samples = at_once(plans, |plan| {
            load::sample(&Plan { warmup: Duration::ZERO, ..plan.clone() }, duration)
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let after = Spent::until_now(nodes, postgres)?;
        let requests_per_second = samples.iter().map(|sample| sample.requests_per_second).sum();
        self.0.borrow_mut().push(after.since(before, requests_per_second * seconds));
        Ok(Sample { requests_per_second, ..samples.into_iter().next().ok_or("no plan")? })
    }

    /// The medians of all rounds.
    fn describe(&self) -> String {
        let middle = |of: fn(&Spent) -> f64| median(self.0.borrow().iter().map(of));
        format!(
            "{:.0} µs of the client, {:.0} µs of the nodes and {:.0} µs of PostgreSQL, while {:.0} µs of the cores' time per PutItem pass idly",
            middle(|spent| spent.client),
            middle(|spent| spent.nodes),
            middle(|spent| spent.postgres),
            middle(|spent| spent.idle),
        )
    }
}

impl Spent {
    /// Of everything since it started.
    fn until_now(nodes: &[u32], postgres: u32) -> Result<Spent> {
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let nodes: Duration =
            nodes.iter().map(|node| machine::cpu_time(*node)).sum::<Result<_>>()?;
        Ok(Spent {
            client: us(machine::cpu_time_here()?),
            nodes: us(nodes),
            postgres: us(machine::cpu_time(postgres)?),
            idle: us(machine::idle_time()?),
        })
    }

    fn since(self, before: Spent, requests: f64) -> Spent {
        let per_request = |of: fn(&Spent) -> f64| (of(&self) - of(&before)).max(0.0) / requests;
        Spent {
            client: per_request(|spent| spent.client),
            nodes: per_request(|spent| spent.nodes),
            postgres: per_request(|spent| spent.postgres),
            idle: per_request(|spent| spent.idle),
        }
    }
}

fn at_once<T: Send>(plans: &[Plan], run: impl Fn(&Plan) -> Result<T> + Sync) -> Result<Vec<T>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = plans.iter().map(|plan| scope.spawn(|| run(plan))).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.map(|ended| ended.unwrap_or_else(|_| Err("a client panicked".into()))).collect()
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spent_time_is_per_request_and_the_median_of_the_rounds() {
        let before = Spent { client: 100.0, nodes: 50.0, postgres: 10.0, idle: 7.0 };
        let spending = Spending::default();
        for nodes in [350.0, 80.0, 250.0] {
            let after = Spent { client: 200.0, nodes, postgres: 160.0, idle: 7.0 };
            spending.0.borrow_mut().push(after.since(before, 10.0));
        }
        assert_eq!(
            spending.describe(),
            "10 µs of the client, 20 µs of the nodes and 15 µs of PostgreSQL, while 0 µs of the cores' time per PutItem pass idly"
        );
    }

    #[test]
    fn plans_run_at_once_and_one_failure_fails_all() {
        let address = "127.0.0.1:1".parse().unwrap();
        let plan = |connections| load::plan(address, Workload::Put, 1, connections).unwrap();
        let plans = [plan(1), plan(2)];
        let barrier = std::sync::Barrier::new(plans.len());
        let both = at_once(&plans, |plan| {
            barrier.wait();
            Ok(plan.connections)
        });
        assert_eq!(both.unwrap(), [1, 2]);
        let one_fails = |plan: &Plan| match plan.connections {
            1 => Ok(()),
            _ => Err("refused".into()),
        };
        assert_eq!(at_once(&plans, one_fails).unwrap_err().to_string(), "refused");
    }
}
