//! A store whose writes fail when a test says so.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, ready};
use parking_lot::Mutex;

use crate::layer::Layer;
use crate::{CommitOutcome, Decide, Error, Result, Store, WriteSet};

/// What becomes of the next writes.
#[derive(Debug, Clone)]
pub enum WriteFailure {
    /// They are committed.
    None,
    /// They fail with this error, and commit nothing.
    Refused(Error),
    /// So many are committed. The one after them fails with this error and commits nothing; later ones are committed again.
    RefusedOnce { after: usize, error: Error },
    /// They are committed, but the caller gets this error.
    AnswerLost(Error),
}

pub struct FailingStore {
    below: Arc<dyn Store>,
    failure: Mutex<WriteFailure>,
}

impl FailingStore {
    /// Nothing fails until [`FailingStore::set`] says so.
    pub fn new(below: Arc<dyn Store>) -> FailingStore {
        FailingStore { below, failure: Mutex::new(WriteFailure::None) }
    }

    pub fn set(&self, failure: WriteFailure) {
        *self.failure.lock() = failure;
    }

    /// What becomes of one write.
    fn take(&self) -> WriteFailure {
        let mut failure = self.failure.lock();
        match &mut *failure {
            WriteFailure::RefusedOnce { after: 0, error } => {
                let refused = WriteFailure::Refused(error.clone());
                *failure = WriteFailure::None;
                refused
            }
            WriteFailure::RefusedOnce { after, .. } => {
                *after -= 1;
                WriteFailure::None
            }
            other => other.clone(),
        }
    }
}

impl Layer for FailingStore {
    fn below(&self) -> &Arc<dyn Store> {
        &self.below
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<CommitOutcome>> {
        match self.take() {
            WriteFailure::Refused(error) => ready(Err(error)).boxed(),
            WriteFailure::AnswerLost(error) => {
                let write = self.below.write(set, decide);
                async move { write.await.and(Err(error)) }.boxed()
            }
            WriteFailure::None | WriteFailure::RefusedOnce { .. } => self.below.write(set, decide),
        }
    }
}
