//! A snapshot in the hands of a caller. One taken while there is no published state waits for one with its first
//! read, and stays with that.

use std::sync::{Arc, OnceLock};

use futures_util::future::{BoxFuture, FutureExt};
use zenobe_store::{Direction, Key, KeyRange, Reader, Result, Value, Visitor};

use crate::inner::Inner;
use crate::scan::scan;
use crate::snapshot::Snapshot;

pub(crate) struct SnapshotReader {
    store: Arc<Inner>,
    snapshot: OnceLock<Arc<Snapshot>>,
}

impl SnapshotReader {
    pub fn new(store: Arc<Inner>) -> SnapshotReader {
        let snapshot = store.published.get().map_or_else(OnceLock::new, OnceLock::from);
        SnapshotReader { store, snapshot }
    }

    /// Whether it has its state already.
    pub fn has_begun(&self) -> bool {
        self.snapshot.get().is_some()
    }

    async fn snapshot(&self) -> Result<&Arc<Snapshot>> {
        if let Some(snapshot) = self.snapshot.get() {
            return Ok(snapshot);
        }
        let snapshot = self.store.published.wait().await?;
        // Another read may have been first; then its snapshot is this reader's.
        Ok(self.snapshot.get_or_init(|| snapshot))
    }
}

impl Reader for SnapshotReader {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        async move { self.snapshot().await?.read(key) }.boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move { self.snapshot().await?.read_many(keys) }.boxed()
    }

    fn scan<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        visit: &'a mut Visitor<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        async move {
            let snapshot = self.snapshot().await?;
            scan(snapshot, &self.store.dead_runs, range, direction, visit).await
        }
        .boxed()
    }
}
