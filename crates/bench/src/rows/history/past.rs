//! GetItem as of a time, for items with many versions.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use zenobe_load::{Plan, Workload};

use crate::load::{self, lane};
use crate::measure::{Lane, interleave};
use crate::outcome::{Finding, Outcome, Section, count};
use crate::rows::Context;
use crate::subjects::server::{Keeping, Server};
use crate::{Result, answers, progress};

const SHARE_MIN: f64 = 0.6;
const CONNECTIONS: usize = 64;
/// How many versions each item has besides the current one. The reads see the middle one.
const VERSIONS: usize = 10;
/// How long items are read before anything is measured.
const WARM_UP: Duration = Duration::from_secs(8);

pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    let (effort, title) = (context.effort.in_short_turns(), "reads as of a time");
    let server = Server::start(context.binary, &context.scratch.path("past"), Keeping::Os)?;
    let now = load::plan(server.address, Workload::Get, effort.items, CONNECTIONS)?;
    load::prepare(title, &now)?;
    answers::keep_history(server.address, &now.table, true)?;
    rewrite(title, &now, VERSIONS / 2)?;
    let past = load::as_of(&now, second_that_is_over()?)?;
    // Each round of first reads has a second of its own.
    let mut unread = Vec::new();
    for _ in 0..effort.rounds {
        unread.push(load::as_of(&now, second_that_is_over()?)?);
    }
    rewrite(title, &now, VERSIONS - VERSIONS / 2)?;
    check_differs(&now, &past)?;
    server.settle(title)?;
    for plan in [&now, &past] {
        progress::show(&format!("{title}: reading the items once"));
        load::warm_up(plan, WARM_UP)?;
    }
    let lanes = vec![lane("GetItem", now.clone()), lane("GetItem as of a time", past)];
    let series = interleave(title, effort.rounds, effort.duration, lanes)?;
    let what = format!("GetItem as of a time, items with {VERSIONS} earlier versions");
    let finding = Finding::share("history-get", what, SHARE_MIN, "GetItem", &series[1], &series[0]);
    let first_read = Lane::new("first GetItem as of a time", |duration| {
        let plan = unread.pop().ok_or("there is a second for each round")?;
        load::sample(&plan, duration)
    });
    let lanes = vec![lane("GetItem", now), first_read];
    let first = interleave(title, effort.rounds, effort.duration, lanes)?;
    let note = format!(
        "{CONNECTIONS} connections. Each of the {} items was written {} times; the reads see the version in the middle. As those of GetItem, most items have been read as \
         of the time before, in a run of {} s.",
        count(effort.items as f64),
        VERSIONS + 1,
        WARM_UP.as_secs(),
    );
    let first_note = "The same, but each round reads as of another second, for the first time.";
    let sections = vec![
        Section::of_series("History: GetItem as of a time", &note, &series),
        Section::of_series("History: the first GetItem as of a time", first_note, &first),
    ];
    Ok(Outcome { findings: vec![finding], sections, charts: Vec::new() })
}

fn rewrite(title: &str, plan: &Plan, times: usize) -> Result<()> {
    (0..times).try_for_each(|_| load::rewrite(title, plan).map(drop))
}

/// The current second since the epoch, once it is over. Client and server share a clock.
fn second_that_is_over() -> Result<u64> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let second = since_epoch.as_secs();
    std::thread::sleep(Duration::from_secs(second + 1).saturating_sub(since_epoch));
    Ok(second)
}

/// Reads that ignore the time would be fast, too.
fn check_differs(now: &Plan, past: &Plan) -> Result<()> {
    let key =
        json!({"TableName": now.table, "Key": {"pk": {"S": "user#000000000001"}}}).to_string();
    let mut bodies = Vec::new();
    for plan in [now, past] {
        let answer = zenobe_load::exchange(&plan.target, "GetItem", key.as_bytes())?;
        if !answer.is_success() || answer.body.len() < 100 {
            return Err(format!("GetItem found no item: {}", answer.error_message()).into());
        }
        bodies.push(answer.body);
    }
    match bodies[0] == bodies[1] {
        true => Err("the past is as the present".into()),
        false => Ok(()),
    }
}
