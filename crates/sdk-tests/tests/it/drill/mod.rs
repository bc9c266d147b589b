//! Nodes on PostgreSQL while things fail: nodes, stores, networks, clocks.
//!
//! In each round clients and writers are at work, one fault strikes, and everything recovers. Then
//! what they were told is checked: histories for strict serialisability ([`crate::histories`]), the
//! [`ledger`] for lost and repeated writes. In the end the stream must hold each change once.
//!
//! A short selection runs with the other tests, on one PostgreSQL. `cargo xtask cluster` runs all of
//! it, with three servers under Patroni. `ZENOBE_SEED` sets what happens, `ZENOBE_DRILL_ROUNDS` how
//! often, and `ZENOBE_CLUSTER_MINUTES` for how long.

mod faults;
mod ledger;
mod nodes;
mod patroni;
mod report;
mod round;
mod stores;

use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use zenobe_testing::{Client, Seed, wait_for};

use faults::{Fault, random_offset_s};
use ledger::{Ledger, Until};
use nodes::{Node, RECOVERY_TIME_MAX};
use report::Report;
use round::Round;
use stores::{DATABASE, Stores};

use crate::histories::{self, output_directory};
use crate::streams::consumer::{Consumer, copy_of};
use crate::tables::{self, create_simple};

const NODES: usize = 3;

#[test]
fn nodes_on_one_postgres_lose_nothing() {
    let seed = Seed::announce("drill");
    let rounds = match std::env::var("ZENOBE_DRILL_ROUNDS") {
        Ok(text) => text.parse().expect("ZENOBE_DRILL_ROUNDS is a number"),
        Err(_) => Fault::WITH_ONE_STORE.len(),
    };
    let mut done = 0;
    run(seed, "drill", Stores::one(), &Fault::WITH_ONE_STORE, || {
        done += 1;
        done <= rounds
    });
}

/// Needs Patroni and etcd, which `cargo xtask cluster` provides.
#[test]
#[ignore = "takes minutes, and needs what `cargo xtask cluster` installs"]
fn nodes_on_a_cluster_lose_nothing() {
    let seed = Seed::announce("cluster");
    let minutes: u64 = match std::env::var("ZENOBE_CLUSTER_MINUTES") {
        Ok(text) => text.parse().expect("ZENOBE_CLUSTER_MINUTES is a number"),
        Err(_) => 10,
    };
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let faults = [&Fault::WITH_ONE_STORE[..], &Fault::WITH_STANDBYS[..]].concat();
    run(seed, "cluster", Stores::patroni(), &faults, || Instant::now() < end);
}

/// Every fault strikes in turn, each time in another order.
fn run(
    seed: Seed,
    name: &str,
    mut stores: Stores,
    faults: &[Fault],
    mut goes_on: impl FnMut() -> bool,
) {
    let mut random = seed.generator(u64::MAX);
    let ports = stores.ports();
    let mut nodes: Vec<Node> =
        (0..NODES).map(|_| Node::start(&ports, DATABASE, random_offset_s(&mut random))).collect();
    let mut client = Client::new(nodes[0].address());
    create_simple(&mut client, histories::TABLE);
    let stream = ledger::create_table(&mut client);
    let output = output_directory(&format!("histories-{name}"));
    let mut report = Report::new(name, seed);
    let mut ledger = Ledger::default();
    let mut order = Vec::new();
    for number in 0.. {
        if !goes_on() {
            break;
        }
        if order.is_empty() {
            order = faults.to_vec();
            order.shuffle(&mut random);
        }
        let fault = order.pop().expect("there are faults");
        let round = Round { number, seed, fault, output: &output };
        report.add(fault, round.run(&mut nodes, &mut stores, &mut ledger));
    }
    let client = &mut Client::new(nodes[1].address());
    check_stream(client, &stream, &ledger, seed, &mut report);
    report.print(&ledger);
}

/// The stream holds each change once and in order, and nothing else: a copy that is made of its
/// records alone is the table.
fn check_stream(
    client: &mut Client,
    stream: &str,
    ledger: &Ledger,
    seed: Seed,
    report: &mut Report,
) {
    let expired = wait_for(RECOVERY_TIME_MAX, || Ledger::has_expired(client).then_some(()));
    assert!(expired.is_some(), "what must expire does not");
    tables::end_stream(client, ledger::TABLE);
    let mut consumer = Consumer::new(stream);
    let end = consumer.follow(client, &mut seed.generator(u64::MAX - 1));
    end.expect("the stream has an end");
    let until = Until::after_a_check();
    let items = ledger.check(client, until);
    let copied = until.lasting(consumer.copy.into_values().collect());
    assert!(copy_of(copied) == copy_of(items), "the copy differs from the table");
    report.records = consumer.records;
    report.expired = consumer.expired;
}
