//! The commit order: decided batches wait here to be committed.
//!
//! The queue also says whether the store takes writes at all, and bounds what is in flight: a write is
//! admitted before it locks anything, so back-pressure never holds a key.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_channel::oneshot;
use parking_lot::{Condvar, Mutex};
use zenobe_store::{Error, Operation, Result, WriteOutcome};

use crate::options::Options;

/// How much one group may hold. Beyond it, a larger group makes everyone wait longer without making the
/// sync any cheaper.
const GROUP_BYTES_MAX: usize = 8 << 20;
const GROUP_BATCHES_MAX: usize = 4096;

/// What a writer commits by itself: some hundred items, in about a millisecond. Others on its thread wait meanwhile.
pub(crate) const SELF_SERVICE_BYTES_MAX: usize = 256 << 10;

/// What an operation takes in memory beside its key and value, roughly.
const OPERATION_OVERHEAD_BYTES: usize = 128;

pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    in_flight_batches_max: usize,
    in_flight_bytes_max: usize,
}

struct State {
    is_closed: bool,
    /// Why writes are refused since a failure.
    failure: Option<String>,
    /// Changes with every failure. What was admitted before one must not be committed after it.
    epoch: u64,
    waiting: VecDeque<Pending>,
    waiting_bytes: usize,
    in_flight_batches: usize,
    in_flight_bytes: usize,
    /// The last place given out in the commit order.
    last_order: u64,
    /// Writes that wait to be admitted.
    blocked: Vec<Waker>,
    /// Whether the committer has to commit what waits.
    is_called: bool,
    /// Whether the committer sleeps until it is woken.
    is_asleep: bool,
    /// Whether a group has been settled since the committer last looked.
    is_stirred: bool,
}

/// A batch with its place in the commit order.
pub(crate) struct Pending {
    pub operations: Arc<Vec<Operation>>,
    /// Which of the operations put a declared key.
    pub are_declared: Vec<bool>,
    pub last_order: u64,
    pub epoch: u64,
    pub size_bytes: usize,
    pub answer: oneshot::Sender<Result<WriteOutcome>>,
}

pub(crate) struct Placed {
    pub first_order: u64,
    pub answer: oneshot::Receiver<Result<WriteOutcome>>,
}

/// What the committer has to do next.
pub(crate) enum Next {
    /// Take a group, under the lock that keeps groups in order.
    Commit,
    /// Nothing for a while.
    Idle,
    /// Others have committed.
    Stirred,
    Recover,
    Finish,
}

impl Queue {
    pub fn new(options: &Options) -> Queue {
        Queue {
            state: Mutex::new(State {
                is_closed: false,
                failure: None,
                epoch: 0,
                waiting: VecDeque::new(),
                waiting_bytes: 0,
                in_flight_batches: 0,
                in_flight_bytes: 0,
                last_order: 0,
                blocked: Vec::new(),
                is_called: false,
                is_asleep: false,
                is_stirred: false,
            }),
            changed: Condvar::new(),
            in_flight_batches_max: options.in_flight_batches_max.max(1),
            in_flight_bytes_max: options.in_flight_bytes_max.max(1),
        }
    }

    /// Resolves to the current epoch as soon as one more write may be in flight.
    pub fn poll_admission(&self, context: &mut Context<'_>) -> Poll<Result<u64>> {
        let mut state = self.state.lock();
        if let Err(error) = state.check_open() {
            return Poll::Ready(Err(error));
        }
        let has_room = state.in_flight_batches < self.in_flight_batches_max
            && state.in_flight_bytes < self.in_flight_bytes_max;
        if has_room {
            return Poll::Ready(Ok(state.epoch));
        }
        // A task that is polled again for another reason is woken twice, which does no harm.
        state.blocked.push(context.waker().clone());
        Poll::Pending
    }

    /// Gives a decided batch its place in the commit order.
    pub fn push(
        &self,
        epoch: u64,
        operations: Arc<Vec<Operation>>,
        are_declared: Vec<bool>,
    ) -> Result<Placed> {
        let (sender, receiver) = oneshot::channel();
        let size_bytes = operations.iter().map(operation_size_bytes).sum();
        let mut state = self.state.lock();
        state.check_open()?;
        if state.epoch != epoch {
            let detail = "the store recovered from a failure while this write was being decided";
            return Err(Error::Io { detail: detail.to_owned() });
        }
        let first_order = state.last_order + 1;
        // A batch without operations has a place too: it waits for what comes before it.
        state.last_order += operations.len().max(1) as u64;
        state.in_flight_batches += 1;
        state.in_flight_bytes += size_bytes;
        let last_order = state.last_order;
        let pending =
            Pending { operations, are_declared, last_order, epoch, size_bytes, answer: sender };
        state.waiting.push_back(pending);
        state.waiting_bytes += size_bytes;
        Ok(Placed { first_order, answer: receiver })
    }

    /// Waits for work; for so long, if `idle_after` is given, that there is time for something else.
    pub fn next(&self, idle_after: Option<Duration>) -> Next {
        let mut state = self.state.lock();
        loop {
            if state.failure.is_some() && !state.is_closed {
                return Next::Recover;
            }
            if state.is_called || state.is_closed && !state.waiting.is_empty() {
                return Next::Commit;
            }
            if state.is_closed {
                return Next::Finish;
            }
            match idle_after {
                None if std::mem::take(&mut state.is_stirred) => return Next::Stirred,
                None => {
                    state.is_asleep = true;
                    self.changed.wait(&mut state);
                    state.is_asleep = false;
                }
                Some(duration) => {
                    if self.changed.wait_for(&mut state, duration).timed_out()
                        && !std::mem::take(&mut state.is_stirred)
                    {
                        return Next::Idle;
                    }
                }
            }
        }
    }

    /// Takes what is to be committed next. The caller holds the lock that keeps groups in order.
    pub fn take_group(&self) -> Vec<Pending> {
        let mut state = self.state.lock();
        let group = state.take_group();
        // For the rest, if this was too much for one group.
        state.is_called = !state.waiting.is_empty();
        group
    }

    /// Takes all that waits, unless it is more than a writer should commit by itself. The caller holds the lock that keeps
    /// groups in order.
    pub fn take_small_group(&self) -> Option<Vec<Pending>> {
        let mut state = self.state.lock();
        if state.waiting_bytes > SELF_SERVICE_BYTES_MAX {
            return None;
        }
        state.waiting_bytes = 0;
        Some(state.waiting.drain(..).collect())
    }

    /// Has the committer commit what waits.
    pub fn call_committer(&self) {
        self.state.lock().is_called = true;
        self.changed.notify_all();
    }

    /// Says that a group is no longer in flight.
    pub fn release(&self, batches: usize, size_bytes: usize) {
        let mut state = self.state.lock();
        state.in_flight_batches -= batches;
        state.in_flight_bytes -= size_bytes;
        let blocked = std::mem::take(&mut state.blocked);
        state.is_stirred = true;
        let is_asleep = state.is_asleep;
        drop(state);
        if is_asleep {
            self.changed.notify_all();
        }
        blocked.into_iter().for_each(Waker::wake);
    }

    /// Refuses writes from now on. Yields what waited, and the last place that was given out.
    pub fn fail(&self, detail: String) -> (Vec<Pending>, u64) {
        let mut state = self.state.lock();
        state.failure = Some(detail);
        state.epoch += 1;
        let waiting = Vec::from(std::mem::take(&mut state.waiting));
        state.waiting_bytes = 0;
        let blocked = std::mem::take(&mut state.blocked);
        let last_order = state.last_order;
        drop(state);
        self.changed.notify_all();
        blocked.into_iter().for_each(Waker::wake);
        (waiting, last_order)
    }

    /// Takes writes again after a failure. Nothing is in flight then, whatever a defect left uncounted.
    pub fn recover(&self) {
        let mut state = self.state.lock();
        state.failure = None;
        state.in_flight_batches = 0;
        state.in_flight_bytes = 0;
    }

    /// Refuses writes from now on; what waits is still committed.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let blocked = std::mem::take(&mut state.blocked);
        drop(state);
        self.changed.notify_all();
        blocked.into_iter().for_each(Waker::wake);
    }

    /// Waits, but not after the store has been closed. Says whether it has been.
    pub fn wait_unless_closed(&self, duration: Duration) -> bool {
        let end = Instant::now() + duration;
        let mut state = self.state.lock();
        while !state.is_closed && !self.changed.wait_until(&mut state, end).timed_out() {}
        state.is_closed
    }

    pub fn in_flight_batches(&self) -> usize {
        self.state.lock().in_flight_batches
    }

    pub fn epoch(&self) -> u64 {
        self.state.lock().epoch
    }

    pub fn failure(&self) -> Option<String> {
        self.state.lock().failure.clone()
    }
}

impl State {
    fn check_open(&self) -> Result<()> {
        match &self.failure {
            _ if self.is_closed => Err(Error::Closed),
            Some(detail) => Err(Error::WritesDisabled { detail: detail.clone() }),
            None => Ok(()),
        }
    }

    fn take_group(&mut self) -> Vec<Pending> {
        let mut size_bytes = 0;
        let fits = |pending: &&Pending| {
            let fits = size_bytes < GROUP_BYTES_MAX;
            size_bytes += pending.size_bytes;
            fits
        };
        let count = self.waiting.iter().take(GROUP_BATCHES_MAX).take_while(fits).count();
        let group: Vec<Pending> = self.waiting.drain(..count).collect();
        self.waiting_bytes -= group.iter().map(|pending| pending.size_bytes).sum::<usize>();
        group
    }
}

fn operation_size_bytes(operation: &Operation) -> usize {
    OPERATION_OVERHEAD_BYTES
        + match operation {
            Operation::Put { key, value } => key.len() + value.len(),
            Operation::Append { log, value, .. } => log.len() + value.len(),
            Operation::ForgetLog { log } => log.len(),
            Operation::Delete { key } | Operation::Add { key, .. } => key.len(),
            Operation::DeleteRange { range } => {
                range.start.len() + range.end.as_ref().map_or(0, |end| end.len())
            }
        }
}
