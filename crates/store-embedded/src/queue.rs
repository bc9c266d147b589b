//! The commit order: decided batches wait here for the committer.
//!
//! The queue also says whether the store takes writes at all, and bounds what is in flight: a write is
//! admitted before it locks anything, so back-pressure never holds a key.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_channel::oneshot;
use parking_lot::{Condvar, Mutex, MutexGuard};
use zenobe_store::{Error, Operation, Result, WriteOutcome};

use crate::options::Options;

/// How much one group may hold. Beyond it, a larger group makes everyone wait longer without making the
/// sync any cheaper.
const GROUP_BYTES_MAX: usize = 8 << 20;
const GROUP_BATCHES_MAX: usize = 4096;

/// How often a group waits for one more turn of the other threads, and how long: on busy processors one turn can
/// take some milliseconds, which bring enough writes.
const GATHERING_TURNS_MAX: usize = 4;
const GATHERING_MAX: Duration = Duration::from_millis(1);

/// What is in flight is divided into about so many groups: one being synced, one written, one gathering.
const GROUPS_IN_FLIGHT_MAX: usize = 3;

/// How long a group that is small beside those before it waits for more.
const LINGERING_MAX: Duration = Duration::from_millis(1);

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
    in_flight_batches: usize,
    in_flight_bytes: usize,
    /// The last place given out in the commit order.
    last_order: u64,
    /// Writes that wait to be admitted.
    blocked: Vec<Waker>,
    /// Whether the committer waits for its group to grow.
    is_lingering: bool,
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
    Commit(Vec<Pending>),
    Idle,
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
                in_flight_batches: 0,
                in_flight_bytes: 0,
                last_order: 0,
                blocked: Vec::new(),
                is_lingering: false,
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
        if state.waiting.len() == 1 || state.is_lingering && !state.is_group_small() {
            self.changed.notify_all();
        }
        Ok(Placed { first_order, answer: receiver })
    }

    /// Waits for work; for so long, if `idle_after` is given, that there is time for something else.
    pub fn next(&self, idle_after: Option<Duration>) -> Next {
        let mut state = self.state.lock();
        loop {
            self.gather(&mut state);
            if !state.waiting.is_empty() {
                return Next::Commit(state.take_group());
            }
            if state.is_closed {
                return Next::Finish;
            }
            if state.failure.is_some() {
                return Next::Recover;
            }
            match idle_after {
                None => self.changed.wait(&mut state),
                Some(duration) => {
                    if self.changed.wait_for(&mut state, duration).timed_out()
                        && state.waiting.is_empty()
                    {
                        return Next::Idle;
                    }
                }
            }
        }
    }

    /// Lets writes that are about to be enqueued come in first, as long as there are any. A group costs its sync,
    /// its snapshot and its wake-ups however small it is, so when the processors are busy, fewer groups serve
    /// everyone sooner. With a processor to spare this returns at once.
    fn gather(&self, state: &mut MutexGuard<'_, State>) {
        let begin = Instant::now();
        for _ in 0..GATHERING_TURNS_MAX {
            let count = state.waiting.len();
            if count == 0 || count >= GROUP_BATCHES_MAX {
                return;
            }
            MutexGuard::unlocked(state, std::thread::yield_now);
            if state.waiting.len() <= count || begin.elapsed() > GATHERING_MAX {
                break;
            }
        }
        self.linger(state);
    }

    /// While a large group is being synced, a small one behind it gains nothing by being written now. It waits for its
    /// share of what is in flight: for more writes, for the sync to end, or at most for a moment.
    fn linger(&self, state: &mut MutexGuard<'_, State>) {
        let end = Instant::now() + LINGERING_MAX;
        state.is_lingering = true;
        while state.is_group_small() && !self.changed.wait_until(state, end).timed_out() {}
        state.is_lingering = false;
    }

    /// Says that a group is no longer in flight.
    pub fn release(&self, batches: usize, size_bytes: usize) {
        let mut state = self.state.lock();
        state.in_flight_batches -= batches;
        state.in_flight_bytes -= size_bytes;
        let blocked = std::mem::take(&mut state.blocked);
        let is_lingering = state.is_lingering;
        drop(state);
        if is_lingering {
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
        let mut state = self.state.lock();
        if !state.is_closed {
            self.changed.wait_for(&mut state, duration);
        }
        state.is_closed
    }

    /// Whether nothing is in flight but so many batches.
    pub fn holds_only(&self, batches: usize) -> bool {
        self.state.lock().in_flight_batches == batches
    }

    /// Counts a batch that nobody will release.
    #[cfg(test)]
    pub fn leak(&self) {
        self.state.lock().in_flight_batches += 1;
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

    fn is_group_small(&self) -> bool {
        !self.waiting.is_empty()
            && !self.is_closed
            && self.waiting.len() * GROUPS_IN_FLIGHT_MAX < self.in_flight_batches
    }

    fn take_group(&mut self) -> Vec<Pending> {
        let mut size_bytes = 0;
        let fits = |pending: &&Pending| {
            let fits = size_bytes < GROUP_BYTES_MAX;
            size_bytes += pending.size_bytes;
            fits
        };
        let count = self.waiting.iter().take(GROUP_BATCHES_MAX).take_while(fits).count();
        self.waiting.drain(..count).collect()
    }
}

fn operation_size_bytes(operation: &Operation) -> usize {
    OPERATION_OVERHEAD_BYTES
        + match operation {
            Operation::Put { key, value } => key.len() + value.len(),
            Operation::Append { log, value } => log.len() + value.len(),
            Operation::Delete { key } | Operation::Add { key, .. } => key.len(),
            Operation::DeleteRange { range } => {
                range.start.len() + range.end.as_ref().map_or(0, |end| end.len())
            }
        }
}
