//! One fault while clients are at work, and what they were told about it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use zenobe_testing::linearizability::{NEVER, Timed};
use zenobe_testing::{Client, Seed, SetOnDrop, wait_for};

use super::faults::Fault;
use super::ledger::{Availability, Ledger, Writer};
use super::nodes::{Node, RECOVERY_TIME_MAX};
use super::report::RoundReport;
use super::stores::Stores;
use crate::histories::{Clock, Event, HistoryClient, KEYS, Outcome, check_with_lies};

/// Histories that are recorded side by side, each with its own items.
const HISTORIES: u64 = 3;
const CLIENTS: usize = 6;
const WRITERS: usize = 6;
/// The operations of a history's client before, during and after the fault. All clients together
/// stay within the checker's limit.
const OPERATIONS: [usize; 3] = [5, 8, 5];
/// The longest pause between two operations, in each phase.
const PAUSE_MS_MAX: [u64; 3] = [10, 600, 10];
/// Each operation without an answer doubles the orders that a checker must try.
const UNKNOWN_PER_CLIENT_MAX: usize = 2;
/// A part of a seed's randomness for each user, behind those of rounds.
const PARTS_PER_ROUND: u64 = 1 << 8;

pub struct Round<'a> {
    pub number: u64,
    pub seed: Seed,
    pub fault: Fault,
    /// Where histories are kept.
    pub output: &'a Path,
}

/// What all threads of a round share.
struct Course {
    clock: Clock,
    /// 0 before the fault, 1 while it lasts, 2 afterwards.
    phase: AtomicU8,
    is_over: AtomicBool,
    availability: Availability,
}

impl Round<'_> {
    pub fn run(&self, nodes: &mut [Node], stores: &mut Stores, ledger: &mut Ledger) -> RoundReport {
        let addresses: Vec<SocketAddr> = nodes.iter().map(Node::address).collect();
        let course = Course {
            clock: Clock::default(),
            phase: AtomicU8::new(0),
            is_over: AtomicBool::new(false),
            availability: Availability::new(),
        };
        let mut random = self.random(0);
        let (histories, new) = thread::scope(|scope| {
            let (course, addresses) = (&course, &addresses[..]);
            let _end = SetOnDrop(&course.is_over);
            let writers: Vec<_> = (0..WRITERS)
                .map(|number| {
                    let random = self.random(1 + number as u64);
                    scope.spawn(move || {
                        let availability = &course.availability;
                        let writer = Writer::new(addresses, self.number, number, availability);
                        writer.run(random, &course.is_over)
                    })
                })
                .collect();
            let clients: Vec<Vec<_>> = (0..HISTORIES)
                .map(|history| {
                    let client = |number: usize| {
                        let random = self.random(100 + history * CLIENTS as u64 + number as u64);
                        let client = HistoryClient::new(addresses, self.history(history), number);
                        scope.spawn(move || play(client, random, course))
                    };
                    (0..CLIENTS).map(client).collect()
                })
                .collect();
            thread::sleep(Duration::from_millis(random.random_range(100..700)));
            course.phase.store(1, Ordering::Relaxed);
            self.fault.strike(nodes, stores, &mut random);
            nodes.iter().for_each(Node::wait_until_well);
            course.phase.store(2, Ordering::Relaxed);
            let histories: Vec<Vec<Timed<Event>>> = clients
                .into_iter()
                .map(|clients| {
                    let ended = clients.into_iter().map(|client| client.join());
                    ended.flat_map(|played| played.expect("a client ends well")).collect()
                })
                .collect();
            course.is_over.store(true, Ordering::Relaxed);
            let mut new = Ledger::default();
            for writer in writers {
                new.add(writer.join().expect("a writer ends well"));
            }
            (histories, new)
        });
        let mut report = RoundReport {
            operations: new.acknowledged + new.unknown + new.unavailable,
            longest_unavailability: course.availability.longest(),
            ..RoundReport::default()
        };
        for (history, events) in (0..).zip(histories) {
            self.check(history, events, &addresses, &course.clock, &mut report);
        }
        let reader = addresses[random.random_range(0..addresses.len())];
        ledger.add_and_check(new, &mut Client::new(reader));
        report
    }

    fn random(&self, part: u64) -> StdRng {
        self.seed.generator(self.number * PARTS_PER_ROUND + part)
    }

    fn history(&self, number: u64) -> u64 {
        self.number * HISTORIES + number
    }

    fn check(
        &self,
        number: u64,
        mut events: Vec<Timed<Event>>,
        nodes: &[SocketAddr],
        clock: &Clock,
        report: &mut RoundReport,
    ) {
        let history = self.history(number);
        let mut last = HistoryClient::new(nodes, history, CLIENTS + number as usize);
        events.push(last.read_everything(clock));
        report.events += events.len() as u64;
        let is_unknown = |told: &&Timed<Event>| told.event.outcome == Outcome::Unknown;
        report.events_unknown += events.iter().filter(is_unknown).count() as u64;
        check_with_lies(&events, &self.output.join(format!("{history:05}-{:?}", self.fault)));
    }
}

/// Takes as many steps in each phase as there are, and waits for the next phase.
fn play(mut client: HistoryClient, mut random: StdRng, course: &Course) -> Vec<Timed<Event>> {
    let mut history: Vec<Timed<Event>> = Vec::new();
    let mut known = None;
    let mut unknown = 0;
    for phase in 0..OPERATIONS.len() {
        wait_until_phase(course, phase);
        client.reconnect();
        for _ in 0..OPERATIONS[phase] {
            let is_last = phase + 1 == OPERATIONS.len();
            if !is_last && usize::from(course.phase.load(Ordering::Relaxed)) > phase {
                break;
            }
            let pause_ms = random.random_range(0..=PAUSE_MS_MAX[phase]);
            thread::sleep(Duration::from_millis(pause_ms));
            let told = client.step(&mut random, known.as_deref(), &course.clock);
            known = None;
            let Some(told) = told else { continue };
            if told.returned == NEVER {
                unknown += 1;
            } else if told.event.before.len() == KEYS {
                known = Some(told.event.before.clone());
            }
            history.push(told);
            if unknown == UNKNOWN_PER_CLIENT_MAX {
                return history;
            }
        }
    }
    history
}

fn wait_until_phase(course: &Course, phase: usize) {
    let has_come = || usize::from(course.phase.load(Ordering::Relaxed)) >= phase;
    let came = wait_for(2 * RECOVERY_TIME_MAX, || has_come().then_some(()));
    assert!(came.is_some(), "the fault does not end");
}
