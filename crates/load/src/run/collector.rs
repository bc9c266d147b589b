//! Merges the workers' windows.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Course;
use super::recorder::{WINDOW, warmup_windows};
use super::window::{Handover, Window};
use crate::{Interval, OperationReport, Plan, Report};

pub struct Collector<'a> {
    course: Course,
    workers: usize,
    warmup_windows: u64,
    open: BTreeMap<u64, Open>,
    total: Window,
    intervals: Vec<Interval>,
    observer: &'a mut dyn FnMut(&Interval),
}

impl<'a> Collector<'a> {
    pub fn new(
        plan: &Plan,
        course: Course,
        observer: &'a mut dyn FnMut(&Interval),
    ) -> Collector<'a> {
        Collector {
            course,
            workers: plan.workers(),
            warmup_windows: warmup_windows(&course),
            open: BTreeMap::new(),
            total: Window::default(),
            intervals: Vec::new(),
            observer,
        }
    }

    pub fn take(&mut self, handover: Handover) {
        let number = handover.number;
        let open = self.open.entry(number).or_insert_with(|| Open {
            handed_over: 0,
            end: handover.end,
            sum: Window::default(),
        });
        open.handed_over += 1;
        open.end = open.end.max(handover.end);
        open.sum.add(handover.window);
        while let Some(first) = self.open.first_entry()
            && first.get().handed_over == self.workers
        {
            let (number, open) = first.remove_entry();
            self.close(number, open);
        }
    }

    /// Closes the remaining windows: some workers may have skipped the last second.
    pub fn finish(mut self, stopped: bool) -> Report {
        while let Some((number, open)) = self.open.pop_first() {
            self.close(number, open);
        }
        let last_answer = self.total.last_answer.unwrap_or(self.course.measured_from);
        let total = self.total;
        let operations = total.tallies().map(|(operation, tally)| OperationReport {
            operation,
            requests: tally.requests,
            errors: tally.errors,
            latency: tally.latency.clone(),
        });
        Report {
            requests: total.requests(),
            elapsed: last_answer.saturating_duration_since(self.course.measured_from),
            latency: total.latency(),
            service: total.service(),
            operations: operations.collect(),
            unsent: total.unsent.as_ref().map_or(0, |unsent| unsent.len()),
            errors: total.errors,
            error_messages: total.error_messages,
            intervals: self.intervals,
            bytes_sent: total.bytes_sent,
            bytes_received: total.bytes_received,
            items: total.items,
            throttled: total.throttled,
            reconnects: total.reconnects,
            stopped,
        }
    }

    fn close(&mut self, number: u64, Open { end, sum, .. }: Open) {
        let warmup = number < self.warmup_windows;
        let interval = self.interval(number, warmup, end, &sum);
        // A run that ends on a full second has nothing in the next.
        if interval.length.is_zero() && sum.is_empty() {
            return;
        }
        (self.observer)(&interval);
        if !warmup {
            self.intervals.push(interval);
            self.total.add(sum);
        }
    }

    fn interval(&self, number: u64, warmup: bool, end: Instant, window: &Window) -> Interval {
        let (begin, index) = match warmup {
            true => (self.course.start, number),
            false => (self.course.measured_from, number - self.warmup_windows),
        };
        let start = WINDOW * index as u32;
        let latency = window.latency();
        let percentile = |percent| Duration::from_nanos(latency.value_at_percentile(percent));
        Interval {
            start,
            length: end.saturating_duration_since(begin + start),
            warmup,
            requests: window.requests(),
            errors: window.error_count(),
            p50: percentile(50.0),
            p90: percentile(90.0),
            p99: percentile(99.0),
            max: Duration::from_nanos(latency.max()),
        }
    }
}

/// A second for which some workers' windows are still missing.
struct Open {
    handed_over: usize,
    end: Instant,
    sum: Window,
}
