//! GetItem and Query compared with a bare server that sends the same bytes.

use zenobe_load::Workload;

use crate::load::{self, aimed_at, lane};
use crate::measure::interleave;
use crate::outcome::{Chart, Finding, Outcome, Section};
use crate::subjects::bare::BareServer;
use crate::subjects::server::{Keeping, Server};
use crate::{Result, answers};

use super::Context;

const CONNECTIONS: usize = 64;
const PAGE_ITEMS: usize = 25;

pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    let effort = context.effort.in_short_turns();
    let server = Server::start(context.binary, &context.scratch.path("reads"), Keeping::Sync)?;
    let get = load::plan(server.address, Workload::Get, effort.items, CONNECTIONS)?;
    let query = load::plan(server.address, Workload::Query, effort.items, CONNECTIONS)?;
    load::prepare("reads", &get)?;
    load::prepare("reads", &query)?;
    let item = answers::get_item(server.address, &get.table)?;
    let page = answers::query(server.address, &query.table, PAGE_ITEMS)?;
    let bare_item = BareServer::start(&context.scratch.path("item.json"), &item)?;
    let bare_page = BareServer::start(&context.scratch.path("page.json"), &page)?;

    let lanes = vec![
        lane(format!("bare server, {} bytes", item.len()), aimed_at(&get, bare_item.address)?),
        lane("GetItem", get),
        lane(format!("bare server, {} bytes", page.len()), aimed_at(&query, bare_page.address)?),
        lane(format!("Query, page of {PAGE_ITEMS} items"), query),
    ];
    let series = interleave("reads", effort.rounds, effort.duration, lanes)?;
    let (get, query) = ("GetItem, 64 connections", "Query page of 25 items, 64 connections");
    Ok(Outcome {
        findings: vec![
            Finding::share("get", get, 0.65, "the bare server", &series[1], &series[0]),
            Finding::share("query", query, 0.45, "the bare server", &series[3], &series[2]),
        ],
        sections: vec![Section::of_series(
            "Reads and the bare server",
            "64 connections, durability `sync` (which does not affect reads). The bare server is `hyper` with a single-threaded \
             runtime per core, as the server has; it reads each request and answers with the bytes that the server answered with.",
            &series,
        )],
        charts: vec![Chart::of_series("Reads and the bare server", &series)],
    })
}
