//! A store that yields to other tasks before and after each operation, so that requests interleave.
//! Without it, tasks on a store that never waits almost never meet in the middle of a request.
//!
//! The seed determines how often it yields. On one thread, each seed gives a different
//! interleaving, and always the same one.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{BoxFuture, FutureExt};

use crate::layer::Layer;
use crate::{
    CommitOutcome, Decide, Direction, Key, KeyRange, Result, Store, Value, Visitor, WriteSet,
};

/// How often it yields in a row, at most.
const YIELDS_MAX: u64 = 3;

pub struct YieldingStore {
    below: Arc<dyn Store>,
    seed: u64,
    pauses: AtomicU64,
}

impl YieldingStore {
    pub fn new(below: Arc<dyn Store>, seed: u64) -> YieldingStore {
        YieldingStore { below, seed, pauses: AtomicU64::new(0) }
    }

    async fn pause(&self) {
        let number = self.pauses.fetch_add(1, Ordering::Relaxed);
        let random = BuildHasherDefault::<DefaultHasher>::new().hash_one((self.seed, number));
        for _ in 0..random % (YIELDS_MAX + 1) {
            crate::yield_now().await;
        }
    }

    async fn around<T>(&self, operation: BoxFuture<'_, T>) -> T {
        self.pause().await;
        let outcome = operation.await;
        self.pause().await;
        outcome
    }
}

impl Layer for YieldingStore {
    fn below(&self) -> &Arc<dyn Store> {
        &self.below
    }

    fn get<'a>(&'a self, key: &'a [u8]) -> BoxFuture<'a, Result<Option<Value>>> {
        self.around(self.below.get(key)).boxed()
    }

    fn get_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        self.around(self.below.get_many(keys)).boxed()
    }

    fn scan_then_get<'a>(
        &'a self,
        range: KeyRange,
        direction: Direction,
        entries_max: Option<usize>,
        visit: &'a mut Visitor<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<Option<Value>>>> {
        async move {
            // Others may also go first between the scan and the reading of the keys.
            if entries_max != Some(0) {
                let scan = self.below.scan_then_get(range, direction, entries_max, visit, &[]);
                self.around(scan).await?;
            }
            if keys.is_empty() { Ok(Vec::new()) } else { Layer::get_many(self, keys).await }
        }
        .boxed()
    }

    fn write<'a>(
        &'a self,
        set: WriteSet<'a>,
        decide: &'a mut Decide<'a>,
    ) -> BoxFuture<'a, Result<CommitOutcome>> {
        self.around(self.below.write(set, decide)).boxed()
    }
}
