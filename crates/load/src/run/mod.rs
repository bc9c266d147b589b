//! Sends the load and measures.
//!
//! Each worker is a thread with its own runtime and drives its share of the connections
//! ([`worker`]). It measures into windows of one second ([`window`]), which the calling thread
//! receives and merges ([`collector`]). While requests run, workers share nothing.

mod collector;
mod driver;
mod pace;
mod recorder;
mod timer;
mod window;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;

use crate::http::Connector;
use crate::workload::Surroundings;
use crate::{Interval, LoadError, Plan, Report, Result};

use self::collector::Collector;
use self::window::Handover;
use self::worker::Worker;

/// Ends a run early, from another thread. Clones stop the same run.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn new() -> Stop {
        Stop::default()
    }

    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs the plan on an existing table; see [`prepare`](crate::prepare). Calls `observer` once per
/// second.
pub fn run(plan: &Plan, observer: &mut dyn FnMut(&Interval)) -> Result<Report> {
    run_until(plan, &Stop::new(), observer)
}

/// Like [`run`], until stopped.
pub fn run_until(plan: &Plan, stop: &Stop, observer: &mut dyn FnMut(&Interval)) -> Result<Report> {
    plan.check()?;
    let connector = Connector::new(&plan.target)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let surroundings = Arc::new(Surroundings::new(plan, now.as_millis() as u64));
    let issued = Arc::new(AtomicU64::new(0));
    let (events, received) = mpsc::channel();
    thread::scope(|scope| {
        let mut starters = Vec::new();
        for number in 0..plan.workers() {
            let (starter, start) = oneshot::channel();
            starters.push(starter);
            let worker = Worker {
                number,
                plan,
                connector: connector.clone(),
                surroundings: surroundings.clone(),
                issued: issued.clone(),
                stop: stop.clone(),
                events: events.clone(),
            };
            let spawned = thread::Builder::new()
                .name(format!("load-{number}"))
                .spawn_scoped(scope, move || worker.work(start));
            // Dropping the starters ends the workers that already exist.
            spawned.map_err(LoadError::Runtime)?;
        }
        drop(events);
        let course = start(plan, starters, &received)?;
        let mut collector = Collector::new(plan, course, observer);
        for event in received {
            if let Event::Window(handover) = event {
                collector.take(handover);
            }
        }
        Ok(collector.finish(stop.is_stopped()))
    })
}

/// When the parts of a run start and end. All workers share it.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    pub start: Instant,
    pub measured_from: Instant,
    /// `None` if the number of operations ends the run.
    pub end: Option<Instant>,
}

/// Messages from workers.
pub enum Event {
    /// All connections are open, or opening one failed.
    Ready(Result<()>),
    Window(Handover),
}

/// Starts all workers at once, when all connections are open.
fn start(
    plan: &Plan,
    starters: Vec<oneshot::Sender<Course>>,
    events: &mpsc::Receiver<Event>,
) -> Result<Course> {
    for _ in 0..starters.len() {
        match events.recv() {
            Ok(Event::Ready(outcome)) => outcome?,
            Ok(Event::Window(_)) | Err(_) => {
                return Err(LoadError::Worker("it did not report that it is ready"));
            }
        }
    }
    // Slightly in the future, so that no worker starts late.
    let start = Instant::now() + Duration::from_millis(2);
    let warmup = if plan.operations_max.is_some() { Duration::ZERO } else { plan.warmup };
    let measured_from = start + warmup;
    let end = plan.operations_max.is_none().then(|| measured_from + plan.duration);
    let course = Course { start, measured_from, end };
    for starter in starters {
        // A worker that is gone shows by its missing windows.
        let _ = starter.send(course);
    }
    Ok(course)
}
