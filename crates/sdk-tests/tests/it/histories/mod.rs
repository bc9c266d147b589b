//! Histories of a real server over HTTP: clients read and write a few items, alone and in
//! transactions, while the server is killed and restarted. One order of all operations, each
//! between its call and its response, must explain all responses across all items (strict
//! serialisability).
//!
//! An operation without a response may or may not have happened. Each history is checked here, and
//! is left in `target/tmp/histories` for another checker (`cargo xtask histories`), together with
//! altered copies that must not pass.
//!
//! `ZENOBE_HISTORIES` sets how many to record, `ZENOBE_SEED` which.

mod client;
mod event;

pub use client::HistoryClient;
pub use event::{Event, KEYS, Outcome};

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::{fs, thread};

use rand::RngExt;
use zenobe_testing::linearizability::{Timed, is_linearizable};
use zenobe_testing::{Seed, ServerProcess, TemporaryDirectory};

use event::{Seen, State, Write};

const HISTORIES_DEFAULT: u64 = 24;
const CLIENTS: usize = 6;
/// The most operations of each client before the server is killed. All clients together stay within
/// the checker's limit.
const OPERATIONS_PER_LIFE_MAX: usize = 7;
const LIVES: usize = 2;
pub const TABLE: &str = "histories";

/// A clock that all clients share. It never shows the same time twice.
#[derive(Default)]
pub struct Clock(AtomicU64);

impl Clock {
    pub fn now(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

#[test]
fn histories_over_http_are_serialisable() {
    let seed = Seed::announce("histories");
    let directory = TemporaryDirectory::new("histories");
    let output = output_directory("histories");
    let mut server = ServerProcess::start(directory.path());
    crate::tables::create_simple(&mut server.client(), TABLE);
    check(&write_skew(), false, &output.join("skew.wrong.jsonl"));
    let (mut operations, mut unknown, mut refused) = (0, 0, 0);
    let count = std::env::var("ZENOBE_HISTORIES");
    for number in 0..count.map_or(HISTORIES_DEFAULT, |text| text.parse().expect("a number")) {
        let mut history = Vec::new();
        let clock = Clock::default();
        for life in 0..LIVES {
            let part = number << 16 | (life as u64) << 8;
            history.extend(live_and_die(server, seed, part, number, &clock));
            server = ServerProcess::start(directory.path());
        }
        let mut last = HistoryClient::new(&[server.address()], number, CLIENTS);
        history.push(last.read_everything(&clock));

        check_with_lies(&history, &output.join(format!("{number:04}")));
        operations += history.len();
        let count = |outcome| history.iter().filter(|told| told.event.outcome == outcome).count();
        unknown += count(Outcome::Unknown);
        refused += count(Outcome::Refused);
    }
    eprintln!("histories: {operations} operations, {unknown} without an answer, {refused} refused");
    assert!(unknown > 0 && refused > 0, "{unknown} without an answer, {refused} refused");
}

/// The directory of the histories, below cargo's own one for what tests write.
pub fn output_directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        fs::remove_dir_all(&path).expect("old histories can be removed");
    }
    fs::create_dir_all(&path).expect("a directory can be created");
    path
}

/// Starts all clients, and kills the server under them after some responses.
fn live_and_die(
    server: ServerProcess,
    seed: Seed,
    part: u64,
    history: u64,
    clock: &Clock,
) -> Vec<Timed<Event>> {
    let address = server.address();
    let answers = seed.generator(part | 0xff).random_range(1..CLIENTS * OPERATIONS_PER_LIFE_MAX);
    let (answered, counted) = mpsc::channel();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let random = seed.generator(part | number as u64);
                let answered = answered.clone();
                scope.spawn(move || {
                    let client = HistoryClient::new(&[address], history, number);
                    client.play(OPERATIONS_PER_LIFE_MAX, random, clock, &answered)
                })
            })
            .collect();
        drop(answered);
        // Fewer arrive if clients could not connect or have finished.
        counted.iter().take(answers).for_each(drop);
        server.kill();
        clients.into_iter().flat_map(|client| client.join().expect("a client ends well")).collect()
    })
}

/// Checks a history that ends with a read of everything. Altered copies of it must not pass.
pub fn check_with_lies(history: &[Timed<Event>], name: &Path) {
    let file = |suffix: &str| PathBuf::from(format!("{}{suffix}", name.display()));
    check(history, true, &file(".jsonl"));
    for (lie, altered) in lies(history) {
        check(&altered, false, &file(&format!("-{lie}.wrong.jsonl")));
    }
}

/// Checks a history, and writes it to a file for another checker.
fn check(history: &[Timed<Event>], is_legal: bool, file: &Path) {
    let lines =
        history.iter().map(|told| format!("{}\n", told.event.line(told.called, told.returned)));
    fs::write(file, lines.collect::<String>()).expect("a history can be written");
    let found = is_linearizable(State::default(), history);
    assert_eq!(found, is_legal, "{}: {history:#?}", file.display());
}

/// Altered copies of a history that no server may produce: one invents a value, one forgets an
/// acknowledged write. The latter needs an item that nobody deleted and whose write was
/// acknowledged: a write without a response may never have happened.
fn lies(history: &[Timed<Event>]) -> Vec<(&'static str, Vec<Timed<Event>>)> {
    let mut lies = Vec::new();
    // The last event reads everything, long after all others.
    let mut forgetful = history.to_vec();
    let last = forgetful.last_mut().expect("a history ends with a read");
    let is_deleted = |key| history.iter().any(|told| told.event.deletes(key));
    let is_written = |key| history.iter().any(|told| told.event.has_written(key));
    let mut seen = last.event.before.iter_mut();
    if let Some(seen) = seen.find(|seen| is_written(seen.key) && !is_deleted(seen.key)) {
        seen.value = None;
        lies.push(("forgets", forgetful));
    }
    let mut inventive = history.to_vec();
    let last = inventive.last_mut().expect("a history ends with a read");
    last.event.before[0].value = Some(-1);
    lies.push(("invents", inventive));
    lies
}

/// Two transactions that each write one item on condition that both are missing. Each item alone is
/// consistent, but no order of the two explains both successes.
fn write_skew() -> Vec<Timed<Event>> {
    let missing = |key| Seen { key, value: None };
    let transaction = |key: usize| Event {
        client: key,
        conditions: vec![missing(0), missing(1)],
        writes: vec![Write::Set { key, value: 1 }],
        before: vec![],
        after: vec![],
        outcome: Outcome::Done,
    };
    let timed = |(called, key)| Timed { called, returned: called + 10, event: transaction(key) };
    [(0, 0), (1, 1)].map(timed).to_vec()
}
