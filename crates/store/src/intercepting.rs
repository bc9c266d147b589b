//! A store where something happens right before a write, as if it had come a moment earlier. For tests.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;

use crate::layer::Layer;
use crate::{CommitOutcome, Decide, Result, Store, WriteSet};

/// What happens before a write, if anything does. The write begins when it has ended.
type Interception = dyn FnMut(WriteSet<'_>) -> Option<BoxFuture<'static, ()>> + Send;

pub struct InterceptingStore {
    below: Arc<dyn Store>,
    interception: Mutex<Box<Interception>>,
}

impl InterceptingStore {
    /// Nothing happens until [`InterceptingStore::intercept`] says so.
    pub fn new(below: Arc<dyn Store>) -> InterceptingStore {
        InterceptingStore { below, interception: Mutex::new(Box::new(|_| None)) }
    }

    /// From now on each write asks `interception` what happens before it.
    pub fn intercept(
        &self,
        interception: impl FnMut(WriteSet<'_>) -> Option<BoxFuture<'static, ()>> + Send + 'static,
    ) {
        *self.interception.lock() = Box::new(interception);
    }
}

impl Layer for InterceptingStore {
    fn below(&self) -> &Arc<dyn Store> {
        &self.below
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<CommitOutcome>> {
        let before = (self.interception.lock())(set);
        async move {
            if let Some(before) = before {
                before.await;
            }
            self.below.write(set, decide).await
        }
        .boxed()
    }
}
