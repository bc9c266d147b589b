//! Drives a share of the connections on one thread.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::{JoinSet, LocalSet};

use super::driver::Driver;
use super::pace::{Budget, Pace, Schedule};
use super::recorder::LatencyRecorder;
use super::{Course, Event, Stop};
use crate::exchange::runtime;
use crate::http::{Connection, Connector, Request};
use crate::workload::{Generator, Surroundings};
use crate::{Pacing, Plan, Result};

/// How often to check whether the run was stopped or a second passed without a response.
const TICK: Duration = Duration::from_millis(50);
/// A user who stops a run does not want to wait long for the last responses.
const STOPPED_TIMEOUT: Duration = Duration::from_secs(1);

pub struct Worker<'a> {
    pub number: usize,
    pub plan: &'a Plan,
    pub connector: Connector,
    pub surroundings: Arc<Surroundings>,
    pub issued: Arc<AtomicU64>,
    pub stop: Stop,
    pub events: Sender<Event>,
}

impl Worker<'_> {
    /// Opens the connections, waits for the start, and drives them to the end.
    pub fn work(self, start: oneshot::Receiver<Course>) {
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(error) => return self.tell(Event::Ready(Err(error))),
        };
        LocalSet::new().block_on(&runtime, async {
            let connections = self.open_connections().await;
            let (outcome, connections) = match connections {
                Ok(connections) => (Ok(()), connections),
                Err(error) => (Err(error), Vec::new()),
            };
            self.tell(Event::Ready(outcome));
            // No course means that another worker has failed and there is nothing to do.
            if let Ok(course) = start.await {
                tokio::time::sleep_until(course.start.into()).await;
                self.drive(connections, course).await;
            }
        });
    }

    async fn open_connections(&self) -> Result<Vec<(usize, Connection)>> {
        let mut connections = Vec::new();
        for number in (self.number..self.plan.connections).step_by(self.plan.workers()) {
            connections.push((number, self.connector.open().await?));
        }
        Ok(connections)
    }

    async fn drive(&self, connections: Vec<(usize, Connection)>, course: Course) {
        let schedule = self.schedule(&course);
        let open_loop = schedule.is_some();
        let recorder = LatencyRecorder::new(course, open_loop, self.events.clone());
        let recorder = Rc::new(RefCell::new(recorder));
        let mut tasks = JoinSet::new();
        for (number, connection) in connections {
            let generator = Generator::new(self.surroundings.clone(), self.plan.seed, number);
            let driver = Driver {
                connection,
                generator,
                request: Request::new(&self.plan.target),
                pace: self.pace(&course, schedule.as_ref()),
                recorder: recorder.clone(),
                retry_throttled: self.plan.retry_throttled,
                stop: self.stop.clone(),
            };
            tasks.spawn_local(driver.drive());
        }
        if let Some(schedule) = schedule.clone() {
            let end = course.end;
            tasks.spawn_local(async move {
                // Without its timer there is no open loop; the report then shows no requests.
                if schedule.release(end).await.is_err() {
                    schedule.close();
                }
            });
        }
        self.watch(&course, &mut tasks, schedule.as_deref(), &recorder).await;
        drop(tasks);
        let recorder = Rc::into_inner(recorder).expect("all tasks are gone").into_inner();
        self.finish(recorder, schedule.as_deref(), &course);
    }

    /// Waits until all connections have ended, or until responses have stopped coming.
    async fn watch(
        &self,
        course: &Course,
        tasks: &mut JoinSet<()>,
        schedule: Option<&Schedule>,
        recorder: &RefCell<LatencyRecorder>,
    ) {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                ended = tasks.join_next() => if ended.is_none() { break },
                _ = ticks.tick() => {
                    let now = Instant::now();
                    let mut recorder = recorder.borrow_mut();
                    recorder.roll(now);
                    let stopped = self.stop.is_stopped();
                    if let Some(schedule) = schedule.filter(|_| stopped) {
                        schedule.close();
                    }
                    let timeout = if stopped { STOPPED_TIMEOUT } else { self.plan.timeout };
                    let is_over = stopped || course.end.is_none_or(|end| now >= end);
                    let since = course.end.map_or(recorder.last_progress, |end| {
                        recorder.last_progress.max(end.min(now))
                    });
                    if is_over && recorder.under_way > 0 && now - since > timeout {
                        break;
                    }
                }
            }
        }
        tasks.shutdown().await;
    }

    fn finish(&self, mut recorder: LatencyRecorder, schedule: Option<&Schedule>, course: &Course) {
        let now = Instant::now();
        recorder.give_up();
        let end = course.end.map_or(now, |end| end.min(now));
        for due in schedule.into_iter().flat_map(|schedule| schedule.unsent(end)) {
            if due >= course.measured_from {
                recorder.leave_unsent(due, end);
            }
        }
        recorder.finish(now);
    }

    fn schedule(&self, course: &Course) -> Option<Rc<Schedule>> {
        match self.plan.pacing {
            Pacing::Closed => None,
            Pacing::Open { requests_per_second } => Some(Rc::new(Schedule::new(
                course,
                requests_per_second,
                self.plan.operations_max,
                self.number,
                self.plan.workers(),
            ))),
        }
    }

    fn pace(&self, course: &Course, schedule: Option<&Rc<Schedule>>) -> Pace {
        match schedule {
            Some(schedule) => Pace::Open(schedule.clone()),
            None => Pace::Closed {
                end: course.end,
                budget: self
                    .plan
                    .operations_max
                    .map(|operations_max| Budget { issued: self.issued.clone(), operations_max }),
                stop: self.stop.clone(),
            },
        }
    }

    fn tell(&self, event: Event) {
        // Nobody receives only if the run has already failed.
        let _ = self.events.send(event);
    }
}
