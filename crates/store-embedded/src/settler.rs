//! Making groups durable, then visible, then acknowledged; in this order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use zenobe_store::{Error, Result};

use crate::failure;
use crate::group::Group;
use crate::shared::Shared;

/// Written groups that may wait for a sync, which then covers them all. A second one would be acknowledged no
/// sooner for being written early, and what waits meanwhile makes it larger.
const WRITTEN_GROUPS_MAX: usize = 1;

/// The thread that syncs the log, so that the next group is written meanwhile.
pub(crate) struct Settler {
    groups: Option<SyncSender<Group>>,
    thread: Option<JoinHandle<()>>,
}

impl Settler {
    pub fn start(shared: Arc<Shared>) -> Result<Settler> {
        Settler::start_with(shared, work)
    }

    pub fn start_with(
        shared: Arc<Shared>,
        work: impl FnOnce(&Shared, &Receiver<Group>) + Send + 'static,
    ) -> Result<Settler> {
        let (sender, receiver) = sync_channel(WRITTEN_GROUPS_MAX);
        let thread =
            crate::spawn("zenobe-sync", move || guard(&shared, || work(&shared, &receiver)))?;
        Ok(Settler { groups: Some(sender), thread: Some(thread) })
    }

    pub fn settle(&self, shared: &Shared, group: Group) {
        let sent = self.groups.as_ref().map(|groups| groups.send(group));
        // The thread ends before its sender only by a defect.
        if let Some(Err(unsent)) = sent {
            let detail = "the thread that syncs the log has ended".to_owned();
            failure::disable_writes(shared, &Error::Io { detail }, vec![unsent.0]);
        }
    }
}

impl Drop for Settler {
    /// Waits until everything that was handed over has been settled.
    fn drop(&mut self) {
        self.groups.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Settles a group on the thread that has written it. Nothing else may be in flight.
pub(crate) fn settle_alone(shared: &Shared, group: Group) {
    guard(shared, || sync_and_settle(shared, vec![group]));
}

/// Whoever waits for what a panic dropped is told by the channel of the answer. The rest must not wait for ever: a defect
/// disables writes like a failing disk, until the committer has recovered.
fn guard(shared: &Shared, settle: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(settle)).is_err() {
        let detail = "what syncs the log panicked".to_owned();
        failure::disable_writes(shared, &Error::Io { detail }, Vec::new());
    }
}

fn work(shared: &Shared, receiver: &Receiver<Group>) {
    while let Ok(first) = receiver.recv() {
        let mut groups = vec![first];
        groups.extend(receiver.try_iter());
        sync_and_settle(shared, groups);
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
