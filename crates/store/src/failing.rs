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
    /// This many are committed. All after them fail with this error and commit nothing, as if the process had died.
    RefusedAfter { writes: usize, error: Error },
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
            WriteFailure::RefusedAfter { writes: 0, error } => WriteFailure::Refused(error.clone()),
            WriteFailure::RefusedAfter { writes, .. } => {
                *writes -= 1;
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
            WriteFailure::None | WriteFailure::RefusedAfter { .. } => self.below.write(set, decide),
        }
    }
}
