//! The loop of one connection.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::Stop;
use super::pace::Pace;
use super::recorder::{LatencyRecorder, Times};
use crate::MeasuredOperation;
use crate::http::{Call, Connection, Failure, Received, Request};
use crate::workload::{
    Generator, Step, UNPROCESSED, error_message, error_name, is_throttling, item_count, unprocessed,
};

/// The pause before trying an unreachable server again.
const FAILURE_PAUSE: Duration = Duration::from_millis(50);
const RETRY_PAUSE_FIRST: Duration = Duration::from_millis(10);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);

pub struct Driver {
    pub connection: Connection,
    pub generator: Generator,
    pub request: Request,
    pub pace: Pace,
    pub recorder: Rc<RefCell<LatencyRecorder>>,
    pub retry_throttled: bool,
    pub stop: Stop,
}

/// How an operation ended.
enum Outcome {
    Success,
    /// The server answered with this error, or succeeded but left part of the request undone.
    Refused {
        name: String,
        message: Option<String>,
    },
    NoAnswer(Failure),
}

impl Driver {
    pub async fn drive(mut self) {
        let mut now = Instant::now();
        while let Some(due) = self.pace.next(now).await {
            let sent = match &self.pace {
                Pace::Closed { .. } => due,
                Pace::Open(_) => Instant::now(),
            };
            self.recorder.borrow_mut().under_way += 1;
            let step = self.generator.next(&mut self.request);
            let outcome = self.carry_out(step).await;
            now = Instant::now();
            let must_pause = matches!(outcome, Outcome::NoAnswer(_));
            self.record(step, Times { due, sent, answered: now }, outcome);
            if must_pause {
                tokio::time::sleep(FAILURE_PAUSE).await;
                now = Instant::now();
            }
        }
    }

    #[inline]
    async fn carry_out(&mut self, step: Step) -> Outcome {
        let outcome = self.send(step).await;
        match outcome {
            Outcome::Success if step.continues => {
                self.generator.second(&mut self.request);
                self.send(step).await
            }
            outcome => outcome,
        }
    }

    /// Sends the rendered request. Retries it while it is throttled, if the plan says so.
    #[inline]
    async fn send(&mut self, step: Step) -> Outcome {
        let mut pause = RETRY_PAUSE_FIRST;
        loop {
            let outcome = match self.connection.exchange(self.request.bytes()).await {
                Ok(received) => self.examine(step, &received),
                Err(failure) => Outcome::NoAnswer(failure),
            };
            match &outcome {
                Outcome::Refused { name, .. }
                    if self.retry_throttled && is_throttling(name) && !self.stop.is_stopped() =>
                {
                    self.recorder.borrow_mut().window(Instant::now()).throttled += 1;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RETRY_PAUSE_MAX);
                }
                _ => return outcome,
            }
        }
    }

    /// Decides whether the response is a success, and counts its bytes.
    #[inline]
    fn examine(&mut self, step: Step, received: &Received) -> Outcome {
        let body = self.connection.body(received);
        let mut recorder = self.recorder.borrow_mut();
        // These bytes count towards the second of the previous response: the clock is read once per
        // request.
        let window = recorder.current();
        window.bytes_sent += self.request.bytes().len() as u64;
        window.bytes_received += received.size_bytes as u64;
        if received.status != 200 {
            let name = match error_name(body) {
                Some(name) => name.to_owned(),
                None => format!("HTTP {}", received.status),
            };
            return Outcome::Refused { name, message: error_message(body) };
        }
        match step.operation {
            MeasuredOperation::Call(Call::Query | Call::Scan) => {
                window.items += item_count(body).unwrap_or(0);
            }
            MeasuredOperation::Call(batch @ (Call::BatchGetItem | Call::BatchWriteItem)) => {
                if let Some(rest) = unprocessed(body) {
                    self.generator.repeat_batch(batch, rest, &mut self.request);
                    let name = UNPROCESSED.to_owned();
                    return Outcome::Refused { name, message: None };
                }
            }
            _ => (),
        }
        self.generator.succeeded(step, body);
        Outcome::Success
    }

    #[inline]
    fn record(&mut self, step: Step, times: Times, outcome: Outcome) {
        let mut recorder = self.recorder.borrow_mut();
        recorder.under_way -= 1;
        if self.connection.reconnects > 0 {
            recorder.current().reconnects += std::mem::take(&mut self.connection.reconnects);
        }
        match outcome {
            Outcome::Success => recorder.succeed(step.operation, times),
            Outcome::Refused { name, message } => {
                recorder.fail(step.operation, times, &name, message);
            }
            Outcome::NoAnswer(failure) => {
                let name = failure.name();
                let message = failure.into_io().to_string();
                recorder.fail(step.operation, times, name, Some(message));
            }
        }
    }
}
