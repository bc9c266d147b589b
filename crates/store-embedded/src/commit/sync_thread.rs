//! The thread that syncs the log, and the commit window in which it collects groups.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use zenobe_store::Result;

use super::CommitGroup;

/// How often the window waits for one more turn of the other threads, and how long: on busy processors one turn can
/// take some milliseconds, which bring enough writes.
const GATHERING_TURNS_MAX: usize = 4;
const GATHERING_MAX: Duration = Duration::from_millis(1);

/// What is in flight is divided into about so many syncs: one under way, one being written for, one collecting.
const SYNCS_IN_FLIGHT_MAX: usize = 3;

/// How long a sync of little beside what is in flight waits for more.
const WINDOW_MAX: Duration = Duration::from_millis(1);

/// Dropping it waits until every group that it was given has been published or has failed.
pub(super) struct SyncThread {
    groups: Arc<SyncQueue>,
    thread: Option<JoinHandle<()>>,
}

impl SyncThread {
    /// `sync` works through the queue until it ends. If it panics, `after_panic` follows.
    pub fn start(
        sync: impl FnOnce(&SyncQueue) + Send + 'static,
        after_panic: impl FnOnce() + Send + 'static,
    ) -> Result<SyncThread> {
        let groups = Arc::new(SyncQueue::default());
        let theirs = Arc::clone(&groups);
        let thread = crate::spawn("zenobe-sync", move || {
            if catch_unwind(AssertUnwindSafe(|| sync(&theirs))).is_err() {
                after_panic();
            }
        })?;
        Ok(SyncThread { groups, thread: Some(thread) })
    }

    /// Takes over a group that has been written. Groups come in the commit order.
    pub fn push(&self, group: CommitGroup) {
        let mut state = self.groups.state.lock();
        state.writes += group.writes.len();
        state.groups.push(group);
        if state.writes >= state.awaited_writes {
            self.groups.changed.notify_one();
        }
    }
}

impl Drop for SyncThread {
    fn drop(&mut self) {
        self.groups.state.lock().is_closed = true;
        self.groups.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // What a panic left in the queue is dropped with it, which tells the waiting writes.
            let _ = thread.join();
        }
    }
}

/// Groups that have been written and wait for a sync.
#[derive(Default)]
pub(super) struct SyncQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    groups: Vec<CommitGroup>,
    /// How many writes the groups have.
    writes: usize,
    /// How many writes the thread waits for.
    awaited_writes: usize,
    is_closed: bool,
}

impl SyncQueue {
    /// Waits for groups to sync, and then for the end of the commit window. `None` at the end.
    pub fn next(&self, in_flight_writes: impl Fn() -> usize) -> Option<Vec<CommitGroup>> {
        let mut state = self.state.lock();
        while state.groups.is_empty() {
            if state.is_closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
        gather(&mut state);
        self.collect(&mut state, in_flight_writes);
        state.writes = 0;
        state.awaited_writes = 0;
        Some(std::mem::take(&mut state.groups))
    }

    /// The commit window. A sync costs the same however few writes it covers, so one that would cover less than its
    /// share of what is in flight waits for more, or for a millisecond at most.
    fn collect(&self, state: &mut MutexGuard<'_, State>, in_flight_writes: impl Fn() -> usize) {
        let end = Instant::now() + WINDOW_MAX;
        loop {
            state.awaited_writes = in_flight_writes().div_ceil(SYNCS_IN_FLIGHT_MAX);
            let is_small = state.writes < state.awaited_writes && !state.is_closed;
            if !is_small || self.changed.wait_until(state, end).timed_out() {
                break;
            }
        }
    }
}

/// Lets writes that are about to be written come in first, as long as there are any. With a processor to spare this
/// returns at once.
fn gather(state: &mut MutexGuard<'_, State>) {
    let begin = Instant::now();
    for _ in 0..GATHERING_TURNS_MAX {
        let count = state.groups.len();
        MutexGuard::unlocked(state, std::thread::yield_now);
        if state.groups.len() <= count || begin.elapsed() > GATHERING_MAX {
            break;
        }
    }
}
