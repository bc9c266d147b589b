//! The commit queue: decided writes wait here for a leader, in the commit order.
//!
//! The queue also decides whether the store accepts writes, bounds the writes that have no answer yet,
//! and tells the commit thread what to do.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_channel::oneshot;
use parking_lot::{Condvar, Mutex};
use zenobe_store::{CommitOutcome, Error, Mutation, Result};

use crate::options::Options;

/// The largest group. A larger one makes everyone wait longer without making the sync any cheaper.
const GROUP_BYTES_MAX: usize = 8 << 20;
const GROUP_WRITES_MAX: usize = 4096;

/// The largest group that a writer commits: some hundred items, in about a millisecond.
pub(super) const SMALL_GROUP_BYTES_MAX: usize = 256 << 10;

/// A mutation's approximate memory overhead beside its key and value.
const MUTATION_OVERHEAD_BYTES: usize = 128;

pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    unanswered_writes_max: usize,
    unanswered_bytes_max: usize,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// Whether new writes wait ([`Queue::pause`]).
    is_paused: bool,
    /// Why writes are refused since a failure.
    failure: Option<String>,
    /// Changes with every failure. What was admitted before one must not be committed after it.
    epoch: u64,
    queued: VecDeque<QueuedWrite>,
    queued_bytes: usize,
    /// Queued or committed, and not answered yet: those in flight, and those published a moment ago.
    unanswered_writes: usize,
    unanswered_bytes: usize,
    /// The last place given out in the commit order.
    last_place: u64,
    /// Writes that wait for their admission, and a pause that waits until every write has its answer.
    blocked: Vec<Waker>,
    /// Whether the commit thread has to lead.
    is_leader_wanted: bool,
    /// How many groups have been answered.
    answered_groups: u64,
    /// How many of them the horizon in the write-ahead log is known to cover.
    covered_groups: u64,
}

/// A decided write with its place in the commit order.
pub(super) struct QueuedWrite {
    pub mutations: Arc<Vec<Mutation>>,
    /// Which of the mutations put a key that the write declared: the value cache keeps those.
    pub declared_puts: Vec<bool>,
    /// The place of its last mutation. Every mutation of every write has a place of its own.
    pub last_place: u64,
    /// The epoch in which it was admitted.
    pub epoch: u64,
    pub size_bytes: usize,
    pub answer: oneshot::Sender<Result<CommitOutcome>>,
}

/// What a write gets when it is admitted. It reserves nothing: [`Queue::push`] refuses it after a failure or a pause.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteTicket {
    epoch: u64,
    /// Whether it is valid while writes are paused.
    ignores_pause: bool,
}

/// Where a queued write gets its outcome.
pub(super) type AnswerReceiver = oneshot::Receiver<Result<CommitOutcome>>;

/// What the commit thread has to do next.
pub(super) enum Task {
    Lead,
    /// Write the horizon, which will cover this many answered groups.
    WriteHorizon {
        answered_groups: u64,
    },
    Recover,
    Stop,
}

impl Queue {
    pub fn new(options: &Options) -> Queue {
        Queue {
            state: Mutex::default(),
            changed: Condvar::new(),
            unanswered_writes_max: options.unanswered_writes_max.max(1),
            unanswered_bytes_max: options.unanswered_bytes_max.max(1),
        }
    }

    /// Admits one more write, as soon as there is room for it and writes are not paused.
    pub(super) fn poll_ticket(&self, context: &mut Context<'_>) -> Poll<Result<WriteTicket>> {
        let mut state = self.state.lock();
        if let Err(error) = state.check_open() {
            return Poll::Ready(Err(error));
        }
        let has_room = !state.is_paused
            && state.unanswered_writes < self.unanswered_writes_max
            && state.unanswered_bytes < self.unanswered_bytes_max;
        if has_room {
            return Poll::Ready(Ok(WriteTicket { epoch: state.epoch, ignores_pause: false }));
        }
        // A task that is polled again for another reason is woken twice, which does no harm.
        state.blocked.push(context.waker().clone());
        Poll::Pending
    }

    /// Gives a decided write its place in the commit order. Yields the place of its first mutation, or `None` if the
    /// write needs another ticket and must be decided again, because writes are paused.
    pub(super) fn push(
        &self,
        ticket: WriteTicket,
        mutations: Arc<Vec<Mutation>>,
        declared_puts: Vec<bool>,
    ) -> Result<Option<(u64, AnswerReceiver)>> {
        let (answer, receiver) = oneshot::channel();
        let size_bytes = mutations.iter().map(mutation_size_bytes).sum();
        let mut state = self.state.lock();
        state.check_open()?;
        let WriteTicket { epoch, ignores_pause } = ticket;
        if state.is_paused && !ignores_pause {
            return Ok(None);
        }
        if state.epoch != epoch {
            let detail = "the store recovered from a failure while this write was being decided";
            return Err(Error::Io { detail: detail.to_owned() });
        }
        let first_place = state.last_place + 1;
        // A write without mutations has a place too: it waits for what comes before it.
        state.last_place += mutations.len().max(1) as u64;
        state.unanswered_writes += 1;
        state.unanswered_bytes += size_bytes;
        state.queued_bytes += size_bytes;
        let last_place = state.last_place;
        let write = QueuedWrite { mutations, declared_puts, last_place, epoch, size_bytes, answer };
        state.queued.push_back(write);
        Ok(Some((first_place, receiver)))
    }

    /// A ticket for a write that may be queued although writes are paused.
    pub(super) fn ticket_in_pause(&self) -> WriteTicket {
        WriteTicket { epoch: self.epoch(), ignores_pause: true }
    }

    /// Makes new writes wait until [`Queue::resume`].
    pub fn pause(&self) {
        self.state.lock().is_paused = true;
    }

    /// Resolves when every write has its answer. Writes must be paused.
    pub fn poll_drained(&self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut state = self.state.lock();
        if let Err(error) = state.check_open() {
            return Poll::Ready(Err(error));
        }
        if state.unanswered_writes == 0 {
            return Poll::Ready(Ok(()));
        }
        state.blocked.push(context.waker().clone());
        Poll::Pending
    }

    pub fn resume(&self) {
        let mut state = self.state.lock();
        state.is_paused = false;
        let blocked = std::mem::take(&mut state.blocked);
        drop(state);
        blocked.into_iter().for_each(Waker::wake);
    }

    /// Takes the writes of the next group. Only the leader calls this.
    pub(super) fn take(&self) -> Vec<QueuedWrite> {
        let mut state = self.state.lock();
        let writes = state.take();
        // The commit thread continues with what exceeds one group.
        state.is_leader_wanted = !state.queued.is_empty();
        writes
    }

    /// Takes all queued writes, unless they are more than a writer should commit. Only the leader calls this.
    pub(super) fn take_if_small(&self) -> Option<Vec<QueuedWrite>> {
        let mut state = self.state.lock();
        if state.queued_bytes > SMALL_GROUP_BYTES_MAX {
            return None;
        }
        state.queued_bytes = 0;
        Some(state.queued.drain(..).collect())
    }

    /// Has the commit thread lead.
    pub fn wake_commit_thread(&self) {
        self.state.lock().is_leader_wanted = true;
        self.changed.notify_all();
    }

    /// Waits for something that the commit thread has to do.
    pub(super) fn next_task(&self, idle_after: Duration) -> Task {
        let mut state = self.state.lock();
        loop {
            if state.failure.is_some() {
                return if state.is_closed { Task::Stop } else { Task::Recover };
            }
            if state.is_leader_wanted || state.is_closed && !state.queued.is_empty() {
                return Task::Lead;
            }
            if state.is_closed {
                return Task::Stop;
            }
            let answered_groups = state.answered_groups;
            if state.is_covered() {
                self.changed.wait(&mut state);
            } else if self.changed.wait_for(&mut state, idle_after).timed_out()
                && answered_groups == state.answered_groups
            {
                return Task::WriteHorizon { answered_groups };
            }
        }
    }

    /// The horizon in the write-ahead log now covers this many answered groups.
    pub(super) fn record_written_horizon(&self, answered_groups: u64) {
        self.state.lock().covered_groups = answered_groups;
        self.changed.notify_all();
    }

    /// Waits until every write has its answer and the write-ahead log says that all of them are durable, or until writes
    /// are refused.
    pub fn wait_until_idle(&self) {
        let mut state = self.state.lock();
        let is_idle = |state: &State| state.unanswered_writes == 0 && state.is_covered();
        while state.check_open().is_ok() && !is_idle(&state) {
            self.changed.wait(&mut state);
        }
    }

    /// Records that a group has been answered, so that other writes may be admitted.
    pub fn release(&self, writes: usize, size_bytes: usize) {
        let mut state = self.state.lock();
        state.unanswered_writes -= writes;
        state.unanswered_bytes -= size_bytes;
        // While every group is covered, the commit thread sleeps without looking at the time.
        let was_covered = state.is_covered();
        state.answered_groups += 1;
        let blocked = std::mem::take(&mut state.blocked);
        drop(state);
        if was_covered {
            self.changed.notify_all();
        }
        blocked.into_iter().for_each(Waker::wake);
    }

    /// Refuses writes from now on. Returns what was queued, and the last place in the commit order.
    pub(super) fn fail(&self, detail: String) -> (Vec<QueuedWrite>, u64) {
        let mut state = self.state.lock();
        state.failure = Some(detail);
        state.epoch += 1;
        let queued = Vec::from(std::mem::take(&mut state.queued));
        state.queued_bytes = 0;
        let blocked = std::mem::take(&mut state.blocked);
        let last_place = state.last_place;
        drop(state);
        self.changed.notify_all();
        blocked.into_iter().for_each(Waker::wake);
        (queued, last_place)
    }

    /// Accepts writes again after a failure. Every write has its answer then, even if a defect has left a count wrong.
    pub fn recover(&self) {
        let mut state = self.state.lock();
        state.failure = None;
        state.unanswered_writes = 0;
        state.unanswered_bytes = 0;
    }

    /// Refuses writes from now on. What is queued is still committed.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let blocked = std::mem::take(&mut state.blocked);
        drop(state);
        self.changed.notify_all();
        blocked.into_iter().for_each(Waker::wake);
    }

    /// Waits for this long, or until the store is closed. Returns whether it is closed.
    pub fn wait_unless_closed(&self, duration: Duration) -> bool {
        let end = Instant::now() + duration;
        let mut state = self.state.lock();
        while !state.is_closed && !self.changed.wait_until(&mut state, end).timed_out() {}
        state.is_closed
    }

    #[cfg(test)]
    pub fn unanswered_writes(&self) -> usize {
        self.state.lock().unanswered_writes
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
            Some(detail) => Err(Error::WritesRefused { detail: detail.clone() }),
            None => Ok(()),
        }
    }

    fn is_covered(&self) -> bool {
        self.answered_groups == self.covered_groups
    }

    fn take(&mut self) -> Vec<QueuedWrite> {
        let mut size_bytes = 0;
        let fits = |write: &&QueuedWrite| {
            let fits = size_bytes < GROUP_BYTES_MAX;
            size_bytes += write.size_bytes;
            fits
        };
        let count = self.queued.iter().take(GROUP_WRITES_MAX).take_while(fits).count();
        let writes: Vec<QueuedWrite> = self.queued.drain(..count).collect();
        self.queued_bytes -= writes.iter().map(|write| write.size_bytes).sum::<usize>();
        writes
    }
}

fn mutation_size_bytes(mutation: &Mutation) -> usize {
    MUTATION_OVERHEAD_BYTES
        + match mutation {
            Mutation::Put { key, value } => key.len() + value.len(),
            Mutation::Append { log, value, .. } => log.len() + value.len(),
            Mutation::ForgetLog { log } | Mutation::SetLogEnd { log, .. } => log.len(),
            Mutation::PutStamped(put) => put.clock.len() + put.key.len() + put.value.len(),
            Mutation::Advance { clock, .. } => clock.len(),
            Mutation::Delete { key } | Mutation::Add { key, .. } => key.len(),
            Mutation::DeleteRange { range } => {
                range.start.len() + range.end.as_ref().map_or(0, |end| end.len())
            }
        }
}
