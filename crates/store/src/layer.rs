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
/// [`Store`].
pub trait Layer: Send + Sync + 'static {
    fn below(&self) -> &Arc<dyn Store>;

    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        self.below().get(key)
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        self.below().get_many(keys)
    }

    fn scan<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        visit: &'a mut Visitor<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        self.below().scan(range, direction, visit)
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

    fn scan<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        visit: &'a mut Visitor<'a>,
    ) -> BoxFuture<'a, Result<()>> {
        Layer::scan(self, range, direction, visit)
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
