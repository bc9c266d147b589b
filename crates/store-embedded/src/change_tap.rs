//! The change tap: the keys that commits change, for a move, which copies the store while it is in use
//! ([`crate::handover`]). Off, it costs a load per publication.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use zenobe_store::copying::{CHANGES_MAX, ChangedKeys, CopyError, CopyResult};
use zenobe_store::{CommitOutcome, Mutation};

#[derive(Default)]
pub(crate) struct ChangeTap {
    is_on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    changed: ChangedKeys,
    loss: Option<Loss>,
}

/// Why it is not known what has changed.
#[derive(Clone, Copy)]
enum Loss {
    /// The store failed, and recovered as much as it found.
    Failure,
    /// So much has changed since the last look.
    Excess(usize),
}

impl ChangeTap {
    /// A commit either finds the tap open, or has published its snapshot before this returns. Both sides write first and
    /// read then, so one of them sees the other.
    pub fn open(&self) {
        *self.state.lock() = State::default();
        self.is_on.store(true, Ordering::SeqCst);
    }

    pub fn close(&self) {
        self.is_on.store(false, Ordering::SeqCst);
        *self.state.lock() = State::default();
    }

    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::SeqCst)
    }

    pub fn record(&self, mutations: &[Mutation], outcome: &CommitOutcome) {
        let mut state = self.state.lock();
        if state.loss.is_some() {
            return;
        }
        state.changed.add(mutations, outcome);
        let changes = state.changed.len();
        if changes > CHANGES_MAX {
            *state = State { changed: ChangedKeys::default(), loss: Some(Loss::Excess(changes)) };
        }
    }

    /// The store failed. Recovery may find writes that were never published.
    pub fn lose(&self) {
        self.state.lock().loss = Some(Loss::Failure);
    }

    pub fn take(&self) -> CopyResult<ChangedKeys> {
        let mut state = self.state.lock();
        match state.loss {
            Some(Loss::Failure) => Err(CopyError::ChangesLost(
                "the store had to recover from a failure, so it is unknown what has changed since; start again"
                    .to_owned(),
            )),
            Some(Loss::Excess(left)) => Err(CopyError::TooFast { left }),
            None => Ok(std::mem::take(&mut state.changed)),
        }
    }
}
