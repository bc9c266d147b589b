//! The thread that syncs the log, and the channel through which it gets its groups.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread::JoinHandle;

use zenobe_store::Result;

use super::CommitGroup;

/// Dropping it waits until every group that it was given has been published or has failed.
pub(super) struct SyncThread {
    /// Absent only while this is dropped, which ends the thread.
    groups: Option<mpsc::Sender<CommitGroup>>,
    thread: Option<JoinHandle<()>>,
}

impl SyncThread {
    /// `sync` works through the channel until it ends. If it panics, `after_panic` follows.
    pub fn start(
        sync: impl FnOnce(&mpsc::Receiver<CommitGroup>) + Send + 'static,
        after_panic: impl FnOnce() + Send + 'static,
    ) -> Result<SyncThread> {
        let (groups, received) = mpsc::channel();
        let thread = crate::spawn("zenobe-sync", move || {
            if catch_unwind(AssertUnwindSafe(|| sync(&received))).is_err() {
                after_panic();
            }
        })?;
        Ok(SyncThread { groups: Some(groups), thread: Some(thread) })
    }

    /// Takes over a group that has been written. Groups come in the commit order, and the queue bounds how many.
    pub fn push(&self, group: CommitGroup) {
        if let Some(groups) = &self.groups {
            // A thread that has panicked takes none. The group is dropped, which tells its waiting writes.
            let _ = groups.send(group);
        }
    }
}

impl Drop for SyncThread {
    fn drop(&mut self) {
        self.groups.take();
        if let Some(thread) = self.thread.take() {
            // A panic has been caught and reported by the thread itself.
            let _ = thread.join();
        }
    }
}
