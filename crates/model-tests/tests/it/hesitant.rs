//! A store that hesitates: before and after each operation it lets other tasks run, so that whatever can happen in
//! between does. Without it tasks on an idle machine hardly ever meet in the middle of a request.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::{BoxFuture, FutureExt};
use zenobe_store::{
    Decide, Direction, Key, KeyRange, Reader, Result, Statistics, Store, Value, Visitor,
    WriteOutcome, WriteSet,
};

pub struct HesitantStore {
    store: Arc<dyn Store>,
    hesitations: AtomicUsize,
}

impl HesitantStore {
    pub fn new(store: Arc<dyn Store>) -> HesitantStore {
        HesitantStore { store, hesitations: AtomicUsize::new(0) }
    }

    /// Lets others go first, none to three times in turn.
    async fn hesitate(&self) {
        for _ in 0..self.hesitations.fetch_add(1, Ordering::Relaxed) % 4 {
            tokio::task::yield_now().await;
        }
    }
}

impl Reader for HesitantStore {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move {
            self.hesitate().await;
            let value = self.store.get(key).await;
            self.hesitate().await;
            value
        }
        .boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move {
            self.hesitate().await;
            let values = self.store.get_many(keys).await;
            self.hesitate().await;
            values
        }
        .boxed()
    }

    fn scan<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        visit: &'a mut Visitor<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        self.store.scan(range, direction, visit)
    }
}

impl Store for HesitantStore {
    fn snapshot(&self) -> Arc<dyn Reader> {
        self.store.snapshot()
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<WriteOutcome>> {
        async move {
            self.hesitate().await;
            let outcome = self.store.write(set, decide).await;
            self.hesitate().await;
            outcome
        }
        .boxed()
    }

    fn checkpoint<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Result<()>> {
        self.store.checkpoint(directory)
    }

    fn reclaim<'a>(&'a self, range: KeyRange) -> BoxFuture<'a, Result<()>> {
        self.store.reclaim(range)
    }

    fn statistics(&self) -> Statistics {
        self.store.statistics()
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        self.store.close()
    }
}
