//! Load, `kill -9`, restart, and a check of every item, again and again.
//!
//! Each writer owns its keys and sends one request at a time. After a kill, the state of the store
//! is therefore known up to that one request: it happened or it did not, with nothing in between. A
//! counter that all writers share checks the order of writes to one hot key.

mod ledger;
#[cfg(target_os = "linux")]
mod power_cuts;
mod verify;
mod writer;

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use rand::RngExt;
use serde_json::json;
use zenobe_testing::{Client, Seed, ServerOptions, ServerProcess, TemporaryDirectory};

use crate::recovery;
use ledger::Ledger;

const WRITERS: usize = 6;
/// How many acknowledged writes the server lives for.
const LIFE_WRITES: std::ops::Range<u64> = 1..400;
const TABLE: &str = "ledger";

#[test]
fn acknowledged_writes_survive_kill_minus_nine() {
    check("kill -9", 50, ServerProcess::kill);
}

#[test]
fn acknowledged_writes_survive_a_clean_stop() {
    check("SIGTERM", 4, ServerProcess::stop);
}

fn check(name: &str, rounds: u64, end: fn(ServerProcess)) {
    let seed = Seed::announce(name);
    let directory = TemporaryDirectory::new("kill");
    let mut server = start(&directory);
    create_table(&mut server.client());
    let mut ledgers: Vec<_> = (0..WRITERS).map(Ledger::new).collect();
    let mut counter = Counter::default();
    let started = Instant::now();
    let mut acknowledged = 0;
    for round in 0..rounds {
        let mut random = seed.generator(round << 8 | 0xff);
        let life = random.random_range(LIFE_WRITES);
        for outcome in live_and_die(server, life, end, &mut ledgers, seed, round) {
            acknowledged += outcome.acknowledged;
            counter.note(outcome);
        }
        // Recovery must survive an interruption.
        if random.random_ratio(1, 4) {
            recovery::interrupt(directory.path(), &options(), &mut random);
        }
        server = start(&directory);
        let client = &mut server.client();
        verify::items(client, &mut ledgers, round);
        verify::indexes(client);
        verify::counts(client);
        counter.verify(client);
    }
    let elapsed = started.elapsed();
    eprintln!("{name}: {acknowledged} acknowledged writes over {rounds} endings in {elapsed:.1?}");
    assert!(acknowledged > rounds * 10, "hardly anything was written: {acknowledged} writes");
}

fn start(directory: &TemporaryDirectory) -> ServerProcess {
    ServerProcess::start_with(directory.path(), &options())
}

fn options() -> ServerOptions {
    let arguments = ["--durability", "sync"].map(Into::into).to_vec();
    ServerOptions { arguments, ..ServerOptions::default() }
}

/// Returns the id of the response.
fn create_table(client: &mut Client) -> String {
    let definitions = [("pk", "S"), ("sk", "N"), ("g", "S"), ("version", "N"), ("l", "N")]
        .map(|(name, kind)| json!({"AttributeName": name, "AttributeType": kind}));
    let keys = |partition: &str, sort: &str| {
        json!([
            {"AttributeName": partition, "KeyType": "HASH"},
            {"AttributeName": sort, "KeyType": "RANGE"},
        ])
    };
    let request = json!({
        "TableName": TABLE,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": definitions,
        "KeySchema": keys("pk", "sk"),
        "GlobalSecondaryIndexes": [{
            "IndexName": "by-group",
            "KeySchema": keys("g", "version"),
            "Projection": {"ProjectionType": "ALL"},
        }],
        "LocalSecondaryIndexes": [{
            "IndexName": "by-level",
            "KeySchema": keys("pk", "l"),
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }],
        "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    });
    let reply = client.call("CreateTable", &request).expect("the server answers");
    assert!(reply.is_success(), "{}", reply.body);
    reply.request_id().to_owned()
}

/// Starts all writers, ends the server under them after some writes, and returns what each writer
/// saw.
fn live_and_die(
    server: ServerProcess,
    life: u64,
    end: fn(ServerProcess),
    ledgers: &mut [Ledger],
    seed: Seed,
    round: u64,
) -> Vec<writer::Outcome> {
    let address = server.address();
    let (acknowledged, counted) = mpsc::channel();
    thread::scope(|scope| {
        let writers: Vec<_> = ledgers
            .iter_mut()
            .enumerate()
            .map(|(number, ledger)| {
                let random = seed.generator(round << 8 | number as u64);
                let acknowledged = acknowledged.clone();
                scope
                    .spawn(move || writer::run(Client::new(address), ledger, random, &acknowledged))
            })
            .collect();
        drop(acknowledged);
        // Fewer arrive only if the server is already gone, which ending it will show.
        counted.iter().take(life as usize).for_each(drop);
        end(server);
        writers.into_iter().map(|writer| writer.join().expect("a writer ends well")).collect()
    })
}

/// What is known about the shared counter.
#[derive(Default)]
struct Counter {
    acknowledged: i64,
    /// Increments without a response.
    uncertain: i64,
    /// The largest value that any writer saw.
    seen: i64,
}

impl Counter {
    fn note(&mut self, outcome: writer::Outcome) {
        self.acknowledged += outcome.increments;
        self.uncertain += i64::from(outcome.increment_pending);
        self.seen = self.seen.max(outcome.counter_seen);
    }

    /// The stored value shows how many of the uncertain increments happened.
    fn verify(&mut self, client: &mut Client) {
        let stored = crate::tables::get(client, TABLE, &writer::counter_key());
        let value = stored.map_or(0, |item| crate::tables::number(&item, "value"));
        let possible = self.acknowledged..=self.acknowledged + self.uncertain;
        assert!(possible.contains(&value), "the counter is {value}, but should be in {possible:?}");
        assert!(value >= self.seen, "the counter is {value}, but a writer saw {}", self.seen);
        (self.acknowledged, self.uncertain) = (value, 0);
    }
}
