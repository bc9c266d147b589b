//! Records a worker's measurements in the window of their second.

use std::mem;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::window::{Handover, Window, empty_histogram};
use super::{Course, Event};
use crate::MeasuredOperation;

pub const WINDOW: Duration = Duration::from_secs(1);

pub struct LatencyRecorder {
    window: Window,
    number: u64,
    window_end: Instant,
    course: Course,
    /// In an open loop the service time differs from the latency.
    open_loop: bool,
    events: Sender<Event>,
    pub under_way: u64,
    pub last_progress: Instant,
}

/// The times of one operation.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// When it should have been sent. In a closed loop, when it was sent.
    pub due: Instant,
    pub sent: Instant,
    pub answered: Instant,
}

impl LatencyRecorder {
    pub fn new(course: Course, open_loop: bool, events: Sender<Event>) -> LatencyRecorder {
        LatencyRecorder {
            window: Window::default(),
            number: 0,
            window_end: end_of_window(&course, course.start),
            course,
            open_loop,
            events,
            under_way: 0,
            last_progress: course.start,
        }
    }

    /// The window that contains this time.
    #[inline]
    pub fn window(&mut self, now: Instant) -> &mut Window {
        if now >= self.window_end {
            self.roll(now);
        }
        &mut self.window
    }

    /// The window of the last response.
    #[inline]
    pub fn current(&mut self) -> &mut Window {
        &mut self.window
    }

    #[inline]
    pub fn succeed(&mut self, operation: MeasuredOperation, times: Times) {
        self.last_progress = times.answered;
        if self.is_left_over(&times) {
            return;
        }
        let open_loop = self.open_loop;
        let window = self.window(times.answered);
        window.last_answer = Some(times.answered);
        let tally = window.tally(operation);
        tally.requests += 1;
        record(&mut tally.latency, times.answered - times.due);
        if open_loop {
            let service = tally.service.get_or_insert_with(empty_histogram);
            record(service, times.answered - times.sent);
        }
    }

    pub fn fail(
        &mut self,
        operation: MeasuredOperation,
        times: Times,
        name: &str,
        message: Option<String>,
    ) {
        self.last_progress = times.answered;
        if self.is_left_over(&times) {
            return;
        }
        let window = self.window(times.answered);
        window.last_answer = Some(times.answered);
        window.fail(operation, name, message);
    }

    /// Records an operation that was due but never sent.
    pub fn leave_unsent(&mut self, due: Instant, now: Instant) {
        let unsent = self.window.unsent.get_or_insert_with(|| Box::new(empty_histogram()));
        record(unsent, now.saturating_duration_since(due));
    }

    /// Records the operations that were still running when the worker gave up on them.
    pub fn give_up(&mut self) {
        let count = mem::take(&mut self.under_way);
        if count > 0 {
            *self.window.errors.entry("(no answer)".to_owned()).or_default() += count;
        }
    }

    /// Hands over all windows that have ended.
    pub fn roll(&mut self, now: Instant) {
        while now >= self.window_end && !self.is_last() {
            self.hand_over(self.window_end);
            self.number += 1;
            self.window_end = end_of_window(&self.course, self.window_end);
        }
    }

    pub fn finish(mut self, now: Instant) {
        self.roll(now);
        let end = self.window.last_answer.or(self.course.end).unwrap_or(now);
        self.hand_over(end);
    }

    /// The last window stays open for responses that arrive after the end.
    fn is_last(&self) -> bool {
        self.course.end.is_some_and(|end| self.window_end >= end)
    }

    fn hand_over(&mut self, end: Instant) {
        let window = mem::take(&mut self.window);
        let handover = Handover { number: self.number, end, window };
        // Nobody receives only if the run has already failed.
        let _ = self.events.send(Event::Window(handover));
    }

    /// Operations left over from the warm-up's schedule must not count as measured.
    fn is_left_over(&self, times: &Times) -> bool {
        self.open_loop
            && times.due < self.course.measured_from
            && times.answered >= self.course.measured_from
    }
}

/// The last window of the warm-up ends with it.
fn end_of_window(course: &Course, start: Instant) -> Instant {
    let end = start + WINDOW;
    if start < course.measured_from { end.min(course.measured_from) } else { end }
}

/// How many windows the warm-up has.
pub fn warmup_windows(course: &Course) -> u64 {
    let warmup = course.measured_from - course.start;
    warmup.as_nanos().div_ceil(WINDOW.as_nanos()) as u64
}

#[inline]
fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(time.as_nanos() as u64);
}
