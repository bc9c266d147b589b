//! A store that yields to other tasks before and after each operation, so that requests interleave.
//! Without it tasks on an idle machine almost never meet in the middle of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::{BoxFuture, FutureExt};
use zenobe_store::layer::Layer;
use zenobe_store::{Decide, Key, Result, Store, Value, WriteOutcome, WriteSet};

pub struct HesitantStore {
    below: Arc<dyn Store>,
    hesitations: AtomicUsize,
}

impl HesitantStore {
    pub fn new(below: Arc<dyn Store>) -> HesitantStore {
        HesitantStore { below, hesitations: AtomicUsize::new(0) }
    }

    /// Yields to others, in rotation zero to three times.
    async fn hesitate(&self) {
        for _ in 0..self.hesitations.fetch_add(1, Ordering::Relaxed) % 4 {
            tokio::task::yield_now().await;
        }
    }

    async fn around<T>(&self, operation: BoxFuture<'_, T>) -> T {
        self.hesitate().await;
        let outcome = operation.await;
        self.hesitate().await;
        outcome
    }
}

impl Layer for HesitantStore {
    fn below(&self) -> &Arc<dyn Store> {
        &self.below
    }

    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        self.around(self.below.get(key)).boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        self.around(self.below.get_many(keys)).boxed()
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<WriteOutcome>> {
        self.around(self.below.write(set, decide)).boxed()
    }
}
