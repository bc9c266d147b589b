//! Many clients write, the server is killed again and again, and a consumer follows the stream
//! across all of it. In the end its copy, built from the records alone, equals the table.

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use rand::RngExt;
use serde_json::{Value, json};
use zenobe_testing::{Client, Seed, ServerOptions, ServerProcess, TemporaryDirectory, wait_until};

use super::consumer::{Consumer, copy_of};
use super::writer::{self, EXPIRES};
use crate::recovery;
use crate::tables::{enable_time_to_live, end_stream, scan, stream_arn};

pub const TABLE: &str = "source";

const ROUNDS: u64 = 20;
const WRITERS: u64 = 8;
/// How many acknowledged writes the server lives for.
const LIFE_WRITES: std::ops::Range<usize> = 1..500;

#[test]
fn a_table_can_be_rebuilt_from_its_stream() {
    let seed = Seed::announce("rebuild");
    let directory = TemporaryDirectory::new("rebuild");
    let mut server = start(&directory);
    let stream = create_table(&mut server.client());
    let mut consumer = Consumer::new(&stream);
    let started = Instant::now();
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        acknowledged += live_and_die(server, &mut consumer, seed, round);
        let mut random = seed.generator(round << 8 | 0xfe);
        if random.random_ratio(1, 4) {
            recovery::interrupt(directory.path(), &options(), &mut random);
        }
        server = start(&directory);
    }

    let client = &mut server.client();
    wait_for_expiry(client);
    end_stream(client, TABLE);
    let end = consumer.follow(client, &mut seed.generator(u64::MAX));
    end.expect("the last server lives until the stream ends");
    assert_eq!(consumer.copy, copy_of(scan(client, TABLE, None)), "the copy differs");

    let Consumer { records, expired, .. } = consumer;
    let (shards, elapsed) = (consumer.shard_count(), started.elapsed());
    eprintln!(
        "rebuild: {acknowledged} acknowledged writes, {records} records, {expired} of expiry, in {shards} shards \
         over {ROUNDS} kills in {elapsed:.1?}"
    );
    assert!(acknowledged > ROUNDS * 10, "hardly anything was written");
    assert!(expired > 0, "nothing expired");
    assert!(shards > 6, "no shard rolled over");
}

fn start(directory: &TemporaryDirectory) -> ServerProcess {
    ServerProcess::start_with(directory.path(), &options())
}

fn options() -> ServerOptions {
    let arguments =
        ["--durability", "sync", "--stream-shards", "3", "--stream-shard-records", "100"];
    ServerOptions { arguments: arguments.map(Into::into).to_vec(), ..ServerOptions::default() }
}

/// Returns the stream's ARN.
fn create_table(client: &mut Client) -> String {
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
        "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    });
    client.expect("CreateTable", &request);
    enable_time_to_live(client, TABLE, EXPIRES);
    stream_arn(client, TABLE)
}

/// Starts all writers and the consumer, kills the server under them, and counts the acknowledged
/// writes.
fn live_and_die(server: ServerProcess, consumer: &mut Consumer, seed: Seed, round: u64) -> u64 {
    let address = server.address();
    let mut random = seed.generator(round << 8 | 0xff);
    let life = random.random_range(LIFE_WRITES);
    let (acknowledged, counted) = mpsc::channel();
    thread::scope(|scope| {
        let write = |number| {
            let (random, acknowledged) =
                (seed.generator(round << 8 | number), acknowledged.clone());
            scope.spawn(move || writer::run(Client::new(address), random, &acknowledged))
        };
        let writers: Vec<_> = (0..WRITERS).map(write).collect();
        let reading = scope.spawn(move || {
            let outcome = consumer.follow(&mut Client::new(address), &mut random);
            assert!(outcome.is_err(), "the stream of a living table has no end");
        });
        drop(acknowledged);
        // Fewer arrive only if the server is already gone, which the kill will show.
        counted.iter().take(life).for_each(drop);
        server.kill();
        reading.join().expect("the consumer ends well");
        writers.into_iter().map(|writer| writer.join().expect("a writer ends well")).sum()
    })
}

/// Waits until every item that must expire is gone, so that the table no longer changes.
fn wait_for_expiry(client: &mut Client) {
    let expires = |item: &Value| !item[EXPIRES].is_null();
    wait_until(|| !scan(client, TABLE, None).iter().any(expires));
}
