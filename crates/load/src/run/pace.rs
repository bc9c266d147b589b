//! When to send requests.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::timer::Timer;
use super::{Course, Stop};
use crate::{LoadError, Result};

/// Requests closer together than this are released in groups: a timer for each would cost more than
/// the request.
const RELEASE_DISTANCE_MIN: Duration = Duration::from_micros(50);

/// Decides when a connection may send its next request.
#[derive(Clone)]
pub enum Pace {
    Closed { end: Option<Instant>, budget: Option<Budget>, stop: Stop },
    Open(Rc<Schedule>),
}

impl Pace {
    /// Waits until the next request is due and returns its time. `None` ends the connection.
    #[inline]
    pub async fn next(&self, now: Instant) -> Option<Instant> {
        match self {
            Pace::Closed { end, budget, stop } => {
                let is_over = end.is_some_and(|end| now >= end) || stop.is_stopped();
                let is_spent = || budget.as_ref().is_some_and(|budget| !budget.take());
                (!is_over && !is_spent()).then_some(now)
            }
            Pace::Open(schedule) => schedule.next().await,
        }
    }
}

/// A number of operations shared by all connections.
#[derive(Clone)]
pub struct Budget {
    pub issued: Arc<AtomicU64>,
    pub operations_max: u64,
}

impl Budget {
    fn take(&self) -> bool {
        self.issued.fetch_add(1, Ordering::Relaxed) < self.operations_max
    }
}

/// The times at which a worker's requests are due, whether or not a connection is free to send
/// them.
///
/// The schedule is the queue. It adds a permit for each request that becomes due, connections take
/// permits in order, and n gives the due time of the n-th permit. When the server stalls, permits
/// pile up, and late requests are still measured from the time at which they were due.
pub struct Schedule {
    first: Instant,
    /// Fractional, so that the schedule does not drift from its rate.
    distance_nanoseconds: f64,
    /// `None` if time ends the run.
    count: Option<u64>,
    released: Cell<u64>,
    taken: Cell<u64>,
    /// When it was closed early.
    closed: Cell<Option<Instant>>,
    due: Semaphore,
}

impl Schedule {
    /// The share of one worker. The workers' requests are due in rotation.
    pub fn new(
        course: &Course,
        requests_per_second: f64,
        operations_max: Option<u64>,
        worker: usize,
        workers: usize,
    ) -> Schedule {
        let between = 1e9 / requests_per_second;
        let (worker, workers) = (worker as u64, workers as u64);
        Schedule {
            first: course.start + Duration::from_nanos((between * worker as f64) as u64),
            distance_nanoseconds: between * workers as f64,
            count: operations_max.map(|all| (all + workers - 1 - worker) / workers),
            released: Cell::new(0),
            taken: Cell::new(0),
            closed: Cell::new(None),
            due: Semaphore::new(0),
        }
    }

    /// Releases requests as they become due. Requests that nobody has taken at the end are left
    /// over.
    pub async fn release(&self, end: Option<Instant>) -> Result<()> {
        let mut timer = Timer::new().map_err(LoadError::Runtime)?;
        while let Some(due) = self.next_release(end) {
            let distance = Duration::from_nanos(self.distance_nanoseconds as u64);
            let group = RELEASE_DISTANCE_MIN.saturating_sub(distance);
            let wake = due.max(Instant::now() + group);
            timer.sleep_until(wake).await.map_err(LoadError::Runtime)?;
            let now = Instant::now();
            while self.next_release(end).is_some_and(|due| due <= now) {
                self.released.set(self.released.get() + 1);
                self.due.add_permits(1);
            }
        }
        match end {
            Some(end) => {
                timer.sleep_until(end).await.map_err(LoadError::Runtime)?;
                // Closing at once would take back the permits that were just released.
                tokio::task::yield_now().await;
                self.due.close();
            }
            // Otherwise taking the last permit closes it.
            None if self.count == Some(0) => self.due.close(),
            None => (),
        }
        Ok(())
    }

    /// Closes the schedule early; nothing becomes due any more.
    pub fn close(&self) {
        if self.closed.get().is_none() {
            self.closed.set(Some(Instant::now()));
            self.due.close();
        }
    }

    /// The due times before `end` of requests that nobody has taken.
    pub fn unsent(&self, end: Instant) -> impl Iterator<Item = Instant> {
        let end = self.closed.get().map_or(end, |closed| closed.min(end));
        let count = self.count.unwrap_or(u64::MAX);
        (self.taken.get()..count)
            .map(|number| self.due_at(number))
            .take_while(move |due| *due < end)
    }

    async fn next(&self) -> Option<Instant> {
        self.due.acquire().await.ok()?.forget();
        let number = self.taken.get();
        self.taken.set(number + 1);
        if self.count == Some(number + 1) {
            self.due.close();
        }
        Some(self.due_at(number))
    }

    /// When the next request is due, if that is before the end.
    fn next_release(&self, end: Option<Instant>) -> Option<Instant> {
        let number = self.released.get();
        let due = self.due_at(number);
        let is_over = end.is_some_and(|end| due >= end);
        let is_spent = self.count.is_some_and(|count| number >= count);
        (!is_over && !is_spent).then_some(due)
    }

    fn due_at(&self, number: u64) -> Instant {
        self.first + Duration::from_nanos((self.distance_nanoseconds * number as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_workers_together_keep_the_rate(
            rate in 1u32..100_000,
            seconds in 1u64..4,
            workers in 1usize..5,
        ) {
            let start = Instant::now();
            let end = start + Duration::from_secs(seconds);
            let course = Course { start, measured_from: start, end: Some(end) };
            let due = (0..workers).map(|worker| {
                let schedule = Schedule::new(&course, rate.into(), None, worker, workers);
                schedule.unsent(end).count() as u64
            });
            let due: u64 = due.sum();
            let expected = u64::from(rate) * seconds;
            // A time a fraction of a nanosecond before the end counts as before it.
            prop_assert!((expected..=expected + 1).contains(&due), "{due} of {expected}");
        }

        #[test]
        fn the_workers_together_send_the_number(operations in 0u64..1000, workers in 1usize..9) {
            let start = Instant::now();
            let course = Course { start, measured_from: start, end: None };
            let later = start + Duration::from_secs(3600);
            let due = (0..workers).map(|worker| {
                let schedule = Schedule::new(&course, 1000.0, Some(operations), worker, workers);
                schedule.unsent(later).count() as u64
            });
            prop_assert_eq!(due.sum::<u64>(), operations);
        }
    }
}
