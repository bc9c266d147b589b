//! The hottest keys of every table and global index, and how hot their partitions are.
//!
//! Each has sketches ([`sketch`]) of the keys that were accessed and of those that met limits, for the
//! last one to two minutes, and figures of its partitions for an hour ([`heat`]). Contributor Insights
//! and `zenobe top` show them.
//!
//! All metered tables are counted, whether or not they have Contributor Insights: to find a hot key,
//! you need the last minutes, not only the next ones.
//!
//! Threads collect their requests ([`pending`]) and add them to the sketches a few dozen at a time.
//! A report adds what is pending before it reads the sketches.
//!
//! **Bounded memory.** At most [`RESOURCES_MAX`] tables and indexes are tracked; a new one replaces one
//! that is no longer used, or is left out. Each has four sketches of two windows, with 64 keys of up to
//! 256 bytes, and an hour of up to 32 partitions. That is at most 64 MB for a server under attack, and
//! some kilobytes for an ordinary table.

pub mod heat;
mod pending;
mod resource;
pub mod sketch;

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxBuildHasher;
use zenobe_engine::command::TableName;
use zenobe_engine::request_facts::RequestFacts;
use zenobe_engine::schema::{IndexId, Namespace, TableId};
use zenobe_engine::throughput::cause::Resource;
use zenobe_monitoring::striped::Striped;
use zenobe_store::system_time_ms;

use self::pending::{PartCount, Pending};
use crate::observer::{ObservedRequest, RequestObserver};

pub use resource::{RankedKeys, ResourceKeys, Total};

/// How many tables and indexes are tracked.
pub const RESOURCES_MAX: usize = 256;
const MINUTE_MS: u64 = 60_000;

type ResourceId = (TableId, Option<IndexId>);

pub struct HotKeys {
    pending: Striped<Pending>,
    /// The hash is a cheap one: ids are our own.
    resources: RwLock<HashMap<ResourceId, Arc<Mutex<ResourceKeys>>, FxBuildHasher>>,
    /// For the keys of items. Its seed is secret, so nobody can choose keys that collide.
    hasher: RandomState,
    /// Parts of requests that were not counted, because too many tables and indexes were in use.
    uncounted: AtomicU64,
    /// The last minute in which no table or index could be replaced, so that no further search is made
    /// in it.
    full_minute: AtomicU64,
    started: Instant,
    started_at_ms: u64,
}

impl Default for HotKeys {
    fn default() -> HotKeys {
        HotKeys {
            pending: Striped::default(),
            resources: RwLock::default(),
            hasher: RandomState::new(),
            uncounted: AtomicU64::new(0),
            full_minute: AtomicU64::new(0),
            started: Instant::now(),
            started_at_ms: system_time_ms(),
        }
    }
}

impl RequestObserver for HotKeys {
    fn observe(&self, request: ObservedRequest<'_>) {
        self.count(request.facts, request.elapsed, self.now_ms() / MINUTE_MS);
    }
}

impl HotKeys {
    fn count(&self, facts: &RequestFacts, elapsed: Duration, minute: u64) {
        let mut pending = self.pending.local();
        pending.add(facts, elapsed, minute);
        if pending.is_full() {
            self.settle(&mut pending);
        }
    }

    /// Adds a thread's requests to the sketches.
    fn settle(&self, pending: &mut Pending) {
        for (position, resource) in pending.resources() {
            let mut parts = pending.parts_of(position).peekable();
            while let Some((_, PartCount { minute, .. })) = parts.peek() {
                let Some(keys) = self.find(resource_id(resource), resource, *minute) else {
                    self.uncounted.fetch_add(1, Ordering::Relaxed);
                    parts.next();
                    continue;
                };
                let mut keys = keys.lock();
                parts.by_ref().for_each(|(key, count)| keys.add(key, count, &self.hasher));
            }
        }
        pending.clear();
    }

    fn settle_all(&self) {
        self.pending.iter().for_each(|mut pending| self.settle(&mut pending));
    }

    fn find(
        &self,
        id: ResourceId,
        resource: &Arc<Resource>,
        minute: u64,
    ) -> Option<Arc<Mutex<ResourceKeys>>> {
        if let Some(found) = self.resources.read().get(&id) {
            return Some(Arc::clone(found));
        }
        if self.full_minute.load(Ordering::Relaxed) == minute {
            return None;
        }
        let mut resources = self.resources.write();
        if resources.len() >= RESOURCES_MAX && !resources.contains_key(&id) {
            let last_used = resources.iter().map(|(id, keys)| (keys.lock().last_used(), *id));
            match last_used.min() {
                Some((used, oldest)) if used < minute => resources.remove(&oldest),
                _ => {
                    self.full_minute.store(minute, Ordering::Relaxed);
                    return None;
                }
            };
        }
        let new = || Arc::new(Mutex::new(ResourceKeys::new(Arc::clone(resource), minute)));
        Some(Arc::clone(resources.entry(id).or_insert_with(new)))
    }

    /// The time since the epoch, which does not follow changes of the machine's clock after the start.
    pub fn now_ms(&self) -> u64 {
        let elapsed_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.started_at_ms.saturating_add(elapsed_ms)
    }

    /// The current minute since the epoch.
    pub fn minute(&self) -> u64 {
        self.now_ms() / MINUTE_MS
    }

    /// Parts of requests that were not counted, because too many tables and indexes were in use.
    pub fn uncounted(&self) -> u64 {
        self.settle_all();
        self.uncounted.load(Ordering::Relaxed)
    }

    /// The tables and indexes of a namespace, or of all: oldest tables first, each before its indexes.
    pub fn resources(&self, namespace: Option<&Namespace>) -> Vec<Arc<Mutex<ResourceKeys>>> {
        self.settle_all();
        let resources = self.resources.read();
        let mut found: Vec<_> = resources.iter().map(|(id, keys)| (*id, keys.clone())).collect();
        drop(resources);
        let is_shown = |keys: &Mutex<ResourceKeys>| {
            namespace.is_none_or(|it| *keys.lock().resource.table.namespace == *it)
        };
        found.retain(|(_, keys)| is_shown(keys));
        found.sort_by_key(|(id, _)| *id);
        found.into_iter().map(|(_, keys)| keys).collect()
    }

    /// A table and its global indexes.
    pub fn of_table(&self, table: &TableName) -> Vec<Arc<Mutex<ResourceKeys>>> {
        let mut found = self.resources(Some(&table.namespace));
        found.retain(|keys| keys.lock().resource.table == *table);
        found
    }

    /// Forgets everything: another database, whose tables may have the same ids, takes the place of
    /// this one.
    pub fn clear(&self) {
        self.pending.iter().for_each(|mut pending| pending.clear());
        self.resources.write().clear();
    }

    /// When the windows of the sketches begin.
    pub fn window_start_ms(&self) -> u64 {
        (self.minute().saturating_sub(1) * MINUTE_MS).max(self.started_at_ms)
    }
}

fn resource_id(resource: &Resource) -> ResourceId {
    (resource.table_id, resource.index.as_ref().map(|(_, id)| *id))
}

#[cfg(test)]
mod tests;
