//! A store on top of another. A [`Layer`] overrides what it does differently; everything else
//! passes through.
//!
//! An engine that a test has asked to be late reads past states from [`recent`](crate::recent). The
//! other layers are for tests: [`yielding`](crate::yielding) lets other tasks go first,
//! [`redeciding`](crate::redeciding) decides three times and commits the last decision,
//! [`failing`](crate::failing) refuses writes or loses their answers, and
//! [`intercepting`](crate::intercepting) has something happen right before a write. Tests that need
//! something else have layers of their own.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::{
    CommitOutcome, Decide, Direction, Inspection, Key, KeyRange, LogEnd, Reader, Replica, Result,
    Statistics, Store, Value, Visitor, WriteSet,
};

/// Every method passes through unless it is overridden. Everything that implements this is a
/// [`Store`]. A scan is a [`Layer::scan_then_get`] without keys.
pub trait Layer: Send + Sync + 'static {
    fn below(&self) -> &Arc<dyn Store>;

    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        self.below().get(key)
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        self.below().get_many(keys)
    }

    fn scan_then_get<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        entries_max: Option<usize>,
        visit: &'a mut Visitor<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        self.below().scan_then_get(range, direction, entries_max, visit, keys)
    }

    fn snapshot(&self) -> Arc<dyn Reader> {
        self.below().snapshot()
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<CommitOutcome>> {
        self.below().write(set, decide)
    }

    fn log_ends<'a>(
        &'a self,
        start: &'a [u8],
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<(Key, LogEnd)>>> {
        self.below().log_ends(start, count_max)
    }

    fn seal(&self, key: Key, value: Option<Value>) -> BoxFuture<'_, Result<()>> {
        self.below().seal(key, value)
    }

    fn checkpoint<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Result<()>> {
        self.below().checkpoint(directory)
    }

    fn reclaim<'a>(&'a self, range: KeyRange) -> BoxFuture<'a, Result<()>> {
        self.below().reclaim(range)
    }

    fn statistics(&self) -> Statistics {
        self.below().statistics()
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Option<Inspection>>> {
        self.below().inspect()
    }

    fn is_shared(&self) -> bool {
        self.below().is_shared()
    }

    fn replica(&self) -> Option<Arc<dyn Replica>> {
        self.below().replica()
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        self.below().close()
    }
}

impl<L: Layer> Reader for L {
    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        Layer::get(self, key)
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        Layer::get_many(self, keys)
    }

    fn scan_then_get<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        entries_max: Option<usize>,
        visit: &'a mut Visitor<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        Layer::scan_then_get(self, range, direction, entries_max, visit, keys)
    }
}

impl<L: Layer> Store for L {
    fn snapshot(&self) -> Arc<dyn Reader> {
        Layer::snapshot(self)
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<CommitOutcome>> {
        Layer::write(self, set, decide)
    }

    fn log_ends<'a>(
        &'a self,
        start: &'a [u8],
        count_max: usize,
    ) -> BoxFuture<'a, Result<Vec<(Key, LogEnd)>>> {
        Layer::log_ends(self, start, count_max)
    }

    fn seal(&self, key: Key, value: Option<Value>) -> BoxFuture<'_, Result<()>> {
        Layer::seal(self, key, value)
    }

    fn checkpoint<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Result<()>> {
        Layer::checkpoint(self, directory)
    }

    fn reclaim<'a>(&'a self, range: KeyRange) -> BoxFuture<'a, Result<()>> {
        Layer::reclaim(self, range)
    }

    fn statistics(&self) -> Statistics {
        Layer::statistics(self)
    }

    fn inspect(&self) -> BoxFuture<'_, Result<Option<Inspection>>> {
        Layer::inspect(self)
    }

    fn is_shared(&self) -> bool {
        Layer::is_shared(self)
    }

    fn replica(&self) -> Option<Arc<dyn Replica>> {
        Layer::replica(self)
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        Layer::close(self)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use futures_util::FutureExt;

    use super::*;
    use crate::failing::FailingStore;
    use crate::memory::MemoryStore;
    use crate::recent::FrozenReplica;

    /// Notes the limits of scans.
    struct NotingStore {
        below: Arc<dyn Store>,
        limits: parking_lot::Mutex<Vec<Option<usize>>>,
    }

    impl Layer for NotingStore {
        fn below(&self) -> &Arc<dyn Store> {
            &self.below
        }

        fn scan_then_get<'a>(
            &'a self,
            range: KeyRange,
            direction: Direction,
            entries_max: Option<usize>,
            visit: &'a mut Visitor<'a>,
            keys: &'a [Key],
        ) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
            self.limits.lock().push(entries_max);
            self.below.scan_then_get(range, direction, entries_max, visit, keys)
        }
    }

    /// Otherwise a store across a network would fetch more entries than are wanted.
    #[test]
    fn layers_and_replicas_pass_on_the_limit_of_a_scan() {
        let below: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let noting = Arc::new(NotingStore { below, limits: parking_lot::Mutex::default() });
        let layer = FailingStore::new(noting.clone());
        let replica = FrozenReplica(noting.clone());
        for reader in [&layer as &dyn Reader, &replica] {
            let mut visit = |_: &[u8], _: &[u8]| ControlFlow::Continue(());
            let forward = Direction::Forward;
            let limited = reader.scan_then_get(KeyRange::all(), forward, Some(3), &mut visit, &[]);
            limited.now_or_never().expect("memory never waits").unwrap();
            let mut visit = |_: &[u8], _: &[u8]| ControlFlow::Continue(());
            let unlimited = reader.scan(KeyRange::all(), forward, &mut visit);
            unlimited.now_or_never().expect("memory never waits").unwrap();
        }
        assert_eq!(*noting.limits.lock(), [Some(3), None, Some(3), None]);
    }
}
