//! One worker's measurements of one second.

use std::collections::BTreeMap;
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::MeasuredOperation;

/// Up to an hour, in nanoseconds, with a resolution of 100 ns.
pub fn empty_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(100, 3_600_000_000_000, 3).expect("the bounds are valid")
}

#[derive(Default)]
pub struct Window {
    tallies: [Option<Box<Tally>>; MeasuredOperation::ALL.len()],
    pub errors: BTreeMap<String, u64>,
    pub error_messages: BTreeMap<String, String>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub items: u64,
    pub throttled: u64,
    pub reconnects: u64,
    /// How long the operations that were never sent had waited at the end.
    pub unsent: Option<Box<Histogram<u64>>>,
    pub last_answer: Option<Instant>,
}

/// The numbers of one kind of operation.
pub struct Tally {
    pub requests: u64,
    pub errors: u64,
    pub latency: Histogram<u64>,
    /// `None` in a closed loop, where it equals the latency.
    pub service: Option<Histogram<u64>>,
}

/// A window that a worker hands over.
pub struct Handover {
    /// Windows of the same second have the same number. The warm-up's come first.
    pub number: u64,
    pub end: Instant,
    pub window: Window,
}

impl Window {
    #[inline]
    pub fn tally(&mut self, operation: MeasuredOperation) -> &mut Tally {
        self.tallies[operation.index()].get_or_insert_with(|| {
            Box::new(Tally { requests: 0, errors: 0, latency: empty_histogram(), service: None })
        })
    }

    pub fn tallies(&self) -> impl Iterator<Item = (MeasuredOperation, &Tally)> {
        let pairs = MeasuredOperation::ALL.into_iter().zip(&self.tallies);
        pairs.filter_map(|(operation, tally)| Some((operation, tally.as_deref()?)))
    }

    pub fn fail(&mut self, operation: MeasuredOperation, name: &str, message: Option<String>) {
        self.tally(operation).errors += 1;
        match self.errors.get_mut(name) {
            Some(count) => *count += 1,
            None => {
                self.errors.insert(name.to_owned(), 1);
            }
        }
        if let Some(message) = message.filter(|_| !self.error_messages.contains_key(name)) {
            self.error_messages.insert(name.to_owned(), message);
        }
    }

    pub fn add(&mut self, other: Window) {
        for (operation, tally) in other.tallies() {
            let sum = self.tally(operation);
            sum.requests += tally.requests;
            sum.errors += tally.errors;
            add(&mut sum.latency, &tally.latency);
            if let Some(service) = &tally.service {
                add(sum.service.get_or_insert_with(empty_histogram), service);
            }
        }
        if let Some(unsent) = &other.unsent {
            add(self.unsent.get_or_insert_with(|| Box::new(empty_histogram())), unsent);
        }
        for (name, count) in other.errors {
            *self.errors.entry(name).or_default() += count;
        }
        for (name, message) in other.error_messages {
            self.error_messages.entry(name).or_insert(message);
        }
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.items += other.items;
        self.throttled += other.throttled;
        self.reconnects += other.reconnects;
        self.last_answer = self.last_answer.max(other.last_answer);
    }

    /// The latency of all operations together.
    pub fn latency(&self) -> Histogram<u64> {
        let mut sum = empty_histogram();
        for (_, tally) in self.tallies() {
            add(&mut sum, &tally.latency);
        }
        if let Some(unsent) = &self.unsent {
            add(&mut sum, unsent);
        }
        sum
    }

    pub fn service(&self) -> Histogram<u64> {
        let mut sum = empty_histogram();
        for (_, tally) in self.tallies() {
            add(&mut sum, tally.service.as_ref().unwrap_or(&tally.latency));
        }
        sum
    }

    pub fn requests(&self) -> u64 {
        self.tallies().map(|(_, tally)| tally.requests).sum()
    }

    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    pub fn is_empty(&self) -> bool {
        self.requests() + self.error_count() == 0 && self.unsent.is_none()
    }
}

fn add(sum: &mut Histogram<u64>, part: &Histogram<u64>) {
    sum.add(part).expect("all histograms have the same bounds");
}
