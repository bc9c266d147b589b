//! The log tap: the bytes of commit groups, for the backups that ship them. (The change tap, [`crate::change_tap`], has only
//! the keys, for moves.) Off, it costs a load per group.
//!
//! The leader copies and stamps each group that it writes ([`LogTap::stamp`]). The group waits with its writes until it is
//! durable and published, and then until the follower takes it. So only durable groups are shipped, in the commit order.
//!
//! What waits is bounded. A tap that overruns switches itself off: writes never wait for it, and the follower has to
//! start over with a new copy of the files.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use zenobe_store::shipping::{FollowError, LogGroup};
use zenobe_store::{Result, Stamp, system_time_ms};

use crate::inner::Inner;
use crate::{EmbeddedStore, commit};

#[derive(Default)]
pub(crate) struct LogTap {
    is_on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Which opening this is. What an earlier one left behind doesn't concern a later one.
    opening: u64,
    /// The first sequence number of the next group to be published.
    next: u64,
    /// Groups that are published, oldest first.
    groups: VecDeque<LogGroup>,
    bytes: usize,
    bytes_max: usize,
    /// Groups that were stamped and are not published yet.
    unpublished: usize,
    newest: Stamp,
    error: Option<FollowError>,
}

impl LogTap {
    /// Under the leader lock: every group that is written afterwards is recorded. `last` is the last sequence number by now.
    pub fn open(&self, last: u64, bytes_max: usize, not_before: Stamp) -> u64 {
        let mut state = self.state.lock();
        let newest = state.newest.max(not_before).max(now());
        let opening = state.opening + 1;
        *state = State { opening, next: last + 1, bytes_max, newest, ..State::default() };
        self.is_on.store(true, Ordering::SeqCst);
        opening
    }

    fn close(&self, opening: u64) {
        let mut state = self.state.lock();
        if state.opening == opening {
            self.is_on.store(false, Ordering::SeqCst);
            *state = State { opening, newest: state.newest, ..State::default() };
        }
    }

    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::SeqCst)
    }

    /// The stamp of a group that the leader has just written. `at_least` is the newest stamp among its own rows.
    pub fn stamp(&self, at_least: Stamp) -> Stamp {
        let mut state = self.state.lock();
        state.newest = state.newest.next().max(now()).max(at_least);
        state.unpublished += 1;
        state.newest
    }

    /// A group is durable and visible.
    pub fn push(&self, group: LogGroup) {
        let mut state = self.state.lock();
        // An earlier opening stamped it. It is in the files by now.
        if group.first < state.next || state.error.is_some() {
            return;
        }
        if group.first > state.next {
            return self.stop(&mut state, FollowError::Recovered);
        }
        state.next = group.next();
        state.unpublished = state.unpublished.saturating_sub(1);
        state.bytes += group.bytes.len();
        state.groups.push_back(group);
        if state.bytes > state.bytes_max {
            let limit_bytes = state.bytes_max;
            self.stop(&mut state, FollowError::Overrun { limit_bytes });
        }
    }

    /// The store failed. Recovery may find writes that were never published.
    pub fn lose(&self) {
        self.stop(&mut self.state.lock(), FollowError::Recovered);
    }

    pub fn end(&self) {
        let mut state = self.state.lock();
        // What has been published before is still there to be taken.
        self.is_on.store(false, Ordering::SeqCst);
        state.error.get_or_insert(FollowError::Ended);
    }

    fn stop(&self, state: &mut State, error: FollowError) {
        self.is_on.store(false, Ordering::SeqCst);
        state.groups = VecDeque::new();
        state.bytes = 0;
        state.error.get_or_insert(error);
    }
}

/// The time as a stamp.
fn now() -> Stamp {
    Stamp::first_of_ms(system_time_ms())
}

impl EmbeddedStore {
    /// Begins to record commit groups; an earlier recording ends. Their stamps are after `not_before`. At most `bytes_max`
    /// bytes wait to be taken.
    ///
    /// # Errors
    /// If the store is closed, or recovers from a failure.
    pub fn follow_log(&self, bytes_max: usize, not_before: Stamp) -> Result<LogFollower> {
        let opening = commit::open_log_tap(&self.inner, bytes_max, not_before)?;
        Ok(LogFollower { inner: Arc::clone(&self.inner), opening })
    }

    /// The number of the last entry that was written.
    ///
    /// # Errors
    /// If the store is closed, or recovers from a failure.
    pub fn last_sequence(&self) -> Result<u64> {
        let snapshot = self.inner.published.without_waiting()?;
        Ok(snapshot.database().rocks().latest_sequence_number())
    }

    /// The number of the last entry that is durable.
    ///
    /// # Errors
    /// If the store is closed, or recovers from a failure.
    pub fn durable_sequence(&self) -> Result<u64> {
        Ok(self.inner.published.without_waiting()?.database().horizon())
    }
}

/// Records commit groups until it is dropped.
pub struct LogFollower {
    inner: Arc<Inner>,
    opening: u64,
}

impl LogFollower {
    /// The oldest groups that nobody has taken: `bytes_max` bytes of them, or one more.
    ///
    /// # Errors
    /// If groups were lost. The ones before them are lost too, unless the store was closed.
    pub fn take(&self, bytes_max: usize) -> Result<Vec<LogGroup>, FollowError> {
        let mut state = self.inner.log_tap.state.lock();
        let mut taken = Vec::new();
        let mut bytes = 0;
        while bytes < bytes_max
            && let Some(group) = state.groups.pop_front()
        {
            bytes += group.bytes.len();
            taken.push(group);
        }
        state.bytes -= bytes;
        match &state.error {
            Some(error) if taken.is_empty() => Err(error.clone()),
            _ => Ok(taken),
        }
    }

    /// A stamp that is no later than that of any future group, if all groups up to it have been taken.
    pub fn complete_until(&self) -> Option<Stamp> {
        let mut state = self.inner.log_tap.state.lock();
        let is_whole = matches!(state.error, None | Some(FollowError::Ended));
        if !is_whole || !state.groups.is_empty() || state.unpublished > 0 {
            return None;
        }
        state.newest = state.newest.max(now());
        Some(state.newest)
    }

    /// A stamp that is no earlier than that of any group so far.
    pub fn newest_stamp(&self) -> Stamp {
        commit::wait_until_leader_unlocks(&self.inner);
        let mut state = self.inner.log_tap.state.lock();
        state.newest = state.newest.max(now());
        state.newest
    }

    pub fn waiting_bytes(&self) -> usize {
        self.inner.log_tap.state.lock().bytes
    }
}

impl Drop for LogFollower {
    fn drop(&mut self) {
        self.inner.log_tap.close(self.opening);
    }
}

#[cfg(test)]
mod tests {
    use super::{LogFollower, LogGroup};
    use crate::inner::Inner;
    use crate::options::Options;
    use std::sync::Arc;
    use zenobe_store::Stamp;
    use zenobe_store::shipping::FollowError;

    fn group(inner: &Inner, first: u64) -> LogGroup {
        let stamp = inner.log_tap.stamp(Stamp::default());
        LogGroup { first, entries: 2, stamp, bytes: vec![0; 10].into() }
    }

    /// Whatever goes wrong elsewhere, groups are handed out without a gap, or not at all.
    #[test]
    fn a_gap_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let inner = Arc::new(Inner::open(directory.path(), Options::default()).unwrap());
        let opening = inner.log_tap.open(10, 1_000, Stamp::default());
        let follower = LogFollower { inner: Arc::clone(&inner), opening };
        inner.log_tap.push(group(&inner, 9));
        inner.log_tap.push(group(&inner, 11));
        let taken = follower.take(usize::MAX).unwrap();
        assert_eq!(taken.iter().map(|group| group.first).collect::<Vec<_>>(), [11]);
        inner.log_tap.push(group(&inner, 15));
        assert_eq!(follower.take(usize::MAX), Err(FollowError::Recovered));
    }
}
