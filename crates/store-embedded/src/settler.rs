//! Making groups durable, then visible, then acknowledged; in this order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use zenobe_store::{Error, Result};

use crate::failure;
use crate::group::Group;
use crate::shared::Shared;

/// How often a sync waits for one more turn of the other threads, and how long: on busy processors one turn can
/// take some milliseconds, which bring enough writes.
const GATHERING_TURNS_MAX: usize = 4;
const GATHERING_MAX: Duration = Duration::from_millis(1);

/// What is in flight is divided into about so many syncs: one under way, one being written for, one gathering.
const SYNCS_IN_FLIGHT_MAX: usize = 3;

/// How long a sync of little beside what is in flight waits for more.
const LINGERING_MAX: Duration = Duration::from_millis(1);

/// The thread that syncs the log while the next groups are written.
pub(crate) struct Settler {
    unsettled: Arc<Unsettled>,
    thread: Option<JoinHandle<()>>,
}

/// Groups that have been written and wait for a sync, which covers them all.
#[derive(Default)]
pub(crate) struct Unsettled {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    groups: Vec<Group>,
    /// How many batches the groups have.
    batches: usize,
    /// How many batches the thread waits for.
    awaited_batches: usize,
    is_closed: bool,
}

impl Settler {
    pub fn start(shared: Arc<Shared>) -> Result<Settler> {
        Settler::start_with(shared, work)
    }

    pub fn start_with(
        shared: Arc<Shared>,
        work: impl FnOnce(&Shared, &Unsettled) + Send + 'static,
    ) -> Result<Settler> {
        let unsettled = Arc::new(Unsettled::default());
        let theirs = Arc::clone(&unsettled);
        let thread =
            crate::spawn("zenobe-sync", move || guard(&shared, || work(&shared, &theirs)))?;
        Ok(Settler { unsettled, thread: Some(thread) })
    }

    /// Takes over a group, in the order in which groups were written.
    pub fn settle(&self, group: Group) {
        let mut state = self.unsettled.state.lock();
        state.batches += group.batches.len();
        state.groups.push(group);
        if state.batches >= state.awaited_batches {
            self.unsettled.changed.notify_one();
        }
    }
}

impl Drop for Settler {
    /// Waits until everything that was handed over has been settled. If the thread has ended by a defect, what is left is
    /// dropped, which tells whoever waits for it.
    fn drop(&mut self) {
        self.unsettled.state.lock().is_closed = true;
        self.unsettled.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Whoever waits for what a panic dropped is told by the channel of the answer. The rest must not wait for ever: a defect
/// disables writes like a failing disk, until the committer has recovered.
fn guard(shared: &Shared, settle: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(settle)).is_err() {
        let detail = "the thread that syncs the log panicked".to_owned();
        failure::disable_writes(shared, &Error::Io { detail }, Vec::new());
    }
}

fn work(shared: &Shared, unsettled: &Unsettled) {
    while let Some(groups) = unsettled.next(shared) {
        sync_and_settle(shared, groups);
    }
}

impl Unsettled {
    /// Waits for something to sync. `None` at the end.
    pub fn next(&self, shared: &Shared) -> Option<Vec<Group>> {
        let mut state = self.state.lock();
        while state.groups.is_empty() {
            if state.is_closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
        gather(&mut state);
        self.linger(shared, &mut state);
        state.batches = 0;
        state.awaited_batches = 0;
        Some(std::mem::take(&mut state.groups))
    }

    /// A sync of a small part of what is in flight gains nothing by beginning now: it waits for its share, or for a
    /// moment at most.
    fn linger(&self, shared: &Shared, state: &mut MutexGuard<'_, State>) {
        let end = Instant::now() + LINGERING_MAX;
        loop {
            state.awaited_batches = shared.queue.in_flight_batches().div_ceil(SYNCS_IN_FLIGHT_MAX);
            let is_small = state.batches < state.awaited_batches && !state.is_closed;
            if !is_small || self.changed.wait_until(state, end).timed_out() {
                break;
            }
        }
    }
}

/// Lets writes that are about to be written come in first, as long as there are any. A sync and what follows it
/// cost the same however few they serve, so when the processors are busy, fewer syncs serve everyone sooner. With a
/// processor to spare this returns at once.
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

/// Makes groups durable and settles them. All groups before them have been settled.
fn sync_and_settle(shared: &Shared, groups: Vec<Group>) {
    let synced = match groups.iter().rev().find_map(|group| group.view.as_ref()) {
        Some(view) => view.database().sync_log(),
        // They only waited for groups before them.
        None => Ok(()),
    };
    match synced {
        Ok(()) => settle(shared, groups),
        Err(error) => failure::disable_writes(shared, &error, groups),
    }
}

/// Publishes and acknowledges groups that are durable.
pub(crate) fn settle(shared: &Shared, groups: Vec<Group>) {
    let epoch = shared.queue.epoch();
    let is_current = |group: &Group| group.batches.iter().all(|pending| pending.epoch == epoch);
    let (groups, stale): (Vec<Group>, Vec<Group>) = groups.into_iter().partition(is_current);
    if !stale.is_empty() {
        // A failure came in between. These may be durable or not, but they follow what has failed.
        let detail = shared.queue.failure().unwrap_or_else(|| "an earlier write failed".to_owned());
        failure::fail_groups(shared, &Error::Io { detail }, stale);
    }
    if let Some(view) = groups.iter().rev().find_map(|group| group.view.as_ref()) {
        groups.iter().for_each(|group| change_values(shared, group));
        shared.publish(Arc::clone(view));
    }
    let last = groups.last().and_then(|group| group.batches.last());
    if let Some(pending) = last {
        shared.overlay.settle(pending.last_order);
    }
    for group in groups {
        acknowledge(shared, group);
    }
}

/// What is cached must not be older than what is about to be published.
fn change_values(shared: &Shared, group: &Group) {
    let Some(view) = &group.view else { return };
    for pending in &group.batches {
        let operations = pending.operations.iter().zip(pending.are_declared.iter().copied());
        shared.values.change(view.state(), operations);
    }
    for counter in &group.counters {
        shared.values.forget(view.state(), counter);
    }
}

fn acknowledge(shared: &Shared, group: Group) {
    let (count, size_bytes) = (group.batches.len(), group.size_bytes());
    // Counted before anyone is told, so that statistics are never behind what a caller knows.
    let written = group.batches.iter().filter(|pending| !pending.operations.is_empty()).count();
    shared.commit_groups.fetch_add(u64::from(group.view.is_some()), Ordering::Relaxed);
    shared.commit_batches.fetch_add(written as u64, Ordering::Relaxed);
    let mut settled = Vec::with_capacity(count);
    for (pending, outcome) in group.batches.into_iter().zip(group.outcomes) {
        // A write whose future was dropped has nobody waiting for its answer.
        let _ = pending.answer.send(Ok(outcome));
        settled.push(pending.operations);
    }
    for operations in settled {
        shared.overlay.remove(&operations);
    }
    shared.queue.release(count, size_bytes);
}
