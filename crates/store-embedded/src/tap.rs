//! What commits change, for whoever copies the store while it is in use. Off, it costs a load per publication.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use zenobe_store::copying::{CopyError, Result, Touched};
use zenobe_store::{CommitOutcome, Mutation};

#[derive(Default)]
pub(crate) struct Tap {
    is_on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    touched: Touched,
    is_lost: bool,
}

impl Tap {
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
        self.state.lock().touched.add(mutations, outcome);
    }

    /// The store failed: writes may turn up that nobody has heard of.
    pub fn lose(&self) {
        self.state.lock().is_lost = true;
    }

    pub fn take(&self) -> Result<Touched> {
        let mut state = self.state.lock();
        match state.is_lost {
            true => Err(CopyError::TailLost(
                "the store had to recover from a failure, so it is unknown what has changed since; start again"
                    .to_owned(),
            )),
            false => Ok(std::mem::take(&mut state.touched)),
        }
    }
}
