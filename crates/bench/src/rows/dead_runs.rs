//! What a poller of a drained queue costs others: a partition whose items have all been deleted is
//! a run of tombstones, which a Query of it must skip. Meanwhile other requests must not wait.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use zenobe_load::Workload;

use crate::measure::{Lane, Sample, Series, interleave};
use crate::outcome::{Finding, Outcome, Section, Verdict, count, milliseconds};
use crate::subjects::server::{Keeping, Server};
use crate::{Result, answers, load, progress};

use super::Context;
use super::write_batches::{BATCH_ITEMS, LOADERS, write_batches};

const TABLE: &str = "queue";
const LIVE: &str = "live";
const PAGE_ITEMS: u64 = 10;
/// Enough that requests overlap, too few to saturate the machine.
const CONNECTIONS: usize = 32;
const REQUESTS_PER_SECOND: f64 = 2_000.0;
const SLOWDOWN_MAX: f64 = 2.0;
/// Each drains a partition twice.
const ROUNDS_MAX: usize = 3;

pub fn measure(context: &Context<'_>) -> Result<Outcome> {
    let effort = context.effort;
    let items = effort.drained_items.next_multiple_of(LOADERS * BATCH_ITEMS);
    let server = Server::start(context.binary, &context.scratch.path("dead-runs"), Keeping::Os)?;
    let address = server.address;
    let get = load::plan(address, Workload::Get, effort.items, CONNECTIONS)?;
    // An open loop: a closed one would stop sending while the server stalls, and barely notice.
    let get = load::open_loop(get, REQUESTS_PER_SECOND);
    load::prepare("dead runs", &get)?;
    create_table(address)?;
    write(address, LIVE, 0..LOADERS * BATCH_ITEMS, put)?;

    // Both lanes follow the same writes. They differ in what is polled and in nothing else.
    let drained = std::cell::Cell::new(0);
    let lane = |name: &'static str, is_dead: bool| {
        let (drained, get) = (&drained, &get);
        Lane::new(name, move |duration| {
            drained.set(drained.get() + 1);
            let queue = format!("queue#{}", drained.get());
            progress::show(&format!(
                "dead runs: draining a queue of {} items",
                count(items as f64)
            ));
            write(address, &queue, 0..items, put)?;
            write(address, &queue, 0..items, delete)?;
            let (polled, found) = if is_dead { (&*queue, 0) } else { (LIVE, PAGE_ITEMS) };
            let poller = Poller { address, partition: polled, found, begins_after: get.warmup };
            poller.beside(|| load::sample(get, duration))
        })
    };
    let lanes = vec![lane("a live partition", false), lane("the drained queue", true)];
    let rounds = effort.rounds.min(ROUNDS_MAX);
    let series = interleave("dead runs", rounds, effort.duration, lanes)?;
    let note = format!(
        "GetItem on a table of {} items in an open loop of {REQUESTS_PER_SECOND} requests/s, while another client queries a partition of another \
         table in a loop, right after {} items of that table were put and deleted. Durability `os`.",
        count(effort.items as f64),
        count(items as f64)
    );
    Ok(Outcome {
        findings: vec![finding(&series[0], &series[1], items)?],
        sections: vec![Section::of_series("GetItem beside a poller", &note, &series)],
        charts: Vec::new(),
    })
}

fn finding(live: &Series, dead: &Series, items: u64) -> Result<Finding> {
    let by = dead.latency_by(live, |latency| latency.p99);
    let p99 = |series: &Series| series.latency().map(|latency| milliseconds(latency.p99));
    let (live, dead) = p99(live).zip(p99(dead)).ok_or("the lanes send requests")?;
    Ok(Finding {
        row: "dead-runs",
        what: format!(
            "p99 of GetItem while a drained queue of {} items is polled, against a live one",
            count(items as f64)
        ),
        target: format!("≤ {SLOWDOWN_MAX} ×"),
        measured: format!(
            "{:.2} × (range {:.2} to {:.2}; {dead} against {live})",
            by.median, by.low, by.high
        ),
        verdict: Verdict::of(by.median <= SLOWDOWN_MAX),
    })
}

fn create_table(address: SocketAddr) -> Result<()> {
    let request = json!({
        "TableName": TABLE,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
        ],
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
    });
    answers::call(address, "CreateTable", &request).map(drop)
}

fn put(partition: &str, number: u64) -> Value {
    json!({"PutRequest": {"Item": {
        "pk": {"S": partition},
        "sk": {"N": number.to_string()},
        "job": {"S": format!("send the letter {number}")},
    }}})
}

fn delete(partition: &str, number: u64) -> Value {
    json!({"DeleteRequest": {"Key": {"pk": {"S": partition}, "sk": {"N": number.to_string()}}}})
}

fn write(
    address: SocketAddr,
    partition: &str,
    numbers: Range<u64>,
    request: fn(&str, u64) -> Value,
) -> Result<()> {
    write_batches(address, TABLE, numbers, |number| request(partition, number))
}

/// A client that queries a partition in a loop.
struct Poller<'a> {
    address: SocketAddr,
    partition: &'a str,
    /// How many items each page has to show.
    found: u64,
    /// The first polls are the most expensive: afterwards the store removes the tombstones. So they
    /// must not fall into the warm-up.
    begins_after: Duration,
}

impl Poller<'_> {
    /// Polls during the measurement.
    fn beside(&self, measure: impl FnOnce() -> Result<Sample>) -> Result<Sample> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let poller = scope.spawn(|| self.poll_until(&is_over));
            let sample = measure();
            is_over.store(true, Ordering::Relaxed);
            match poller.join().map_err(|_| "the poller panicked")?? {
                0 => Err("the poller got no answer".into()),
                _ => sample,
            }
        })
    }

    /// Returns how many polls were answered.
    fn poll_until(&self, is_over: &AtomicBool) -> Result<u64> {
        let query = json!({
            "TableName": TABLE,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": self.partition}},
            "Limit": PAGE_ITEMS,
        });
        thread::sleep(self.begins_after);
        let mut polls = 0;
        while !is_over.load(Ordering::Relaxed) {
            let page: Value = serde_json::from_str(&answers::call(self.address, "Query", &query)?)?;
            if page["Count"] != self.found {
                return Err(format!("the page has {} items", page["Count"]).into());
            }
            polls += 1;
        }
        Ok(polls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Latency;

    #[test]
    fn the_slowdown_is_that_of_the_ninety_ninth_percentile() {
        let series = |p99: f64| {
            let latency = Some(Latency { p50: 1.0, p99, p999: 9.0 * p99 });
            Series::new("test", vec![Sample { latency, ..Sample::of_rate(1.0) }])
        };
        let verdict = |p99| finding(&series(3.0), &series(p99), 200).unwrap().verdict;
        assert_eq!(verdict(6.0), Verdict::Met);
        assert_eq!(verdict(6.1), Verdict::Missed);
    }
}
