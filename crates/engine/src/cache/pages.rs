//! The cache of pages, by the exact parameters of the Query or Scan.

use std::sync::Arc;

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;
use zenobe_store::Key;
use zenobe_value::item_size_bytes;

use crate::Engine;
use crate::catalog::Table;
use crate::clock::Clock;
use crate::command::{Consumed, PageOutcome, Query, RuleSet, Scan, TableName};
use crate::error::Result;

use super::entries::{Entries, Entry, TimeToLive, shard_count, total};
use super::parameters::parameters;
use super::{CacheOptions, CacheStatistics};

pub(crate) struct PageCache {
    clock: Arc<dyn Clock>,
    shards: Box<[Mutex<Entries<Arc<PageOutcome>>>]>,
}

/// What a page answers.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) enum CachedRequest<'a> {
    Query(RuleSet, &'a Query),
    Scan(RuleSet, &'a Scan),
}

impl CachedRequest<'_> {
    fn table(&self) -> &TableName {
        match self {
            CachedRequest::Query(_, query) => &query.table,
            CachedRequest::Scan(_, scan) => &scan.table,
        }
    }

    /// A page belongs to a version of a table. So a request that was checked against another
    /// definition, or another table of that name, never finds it.
    fn key(&self, table: &Table) -> Option<Key> {
        let definition = table.definition();
        parameters(&(definition.id, definition.version, self))
    }
}

impl PageCache {
    /// As in DAX, pages are not cached if their time to live is 0.
    pub fn new(options: CacheOptions, clock: Arc<dyn Clock>) -> Option<PageCache> {
        let CacheOptions { size_bytes_max, time_to_live_ms } = options;
        let count = shard_count(size_bytes_max);
        let time_to_live = TimeToLive { ms: time_to_live_ms };
        let shard = |_| Mutex::new(Entries::new(size_bytes_max / count, time_to_live));
        let shards = (0..count).map(shard).collect();
        (time_to_live_ms > 0).then_some(PageCache { clock, shards })
    }

    pub fn statistics(&self) -> CacheStatistics {
        total(self.shards.iter().map(|shard| shard.lock().statistics()))
    }

    fn look_up(&self, key: &Key, now_ms: u64) -> Option<PageOutcome> {
        let page = self.shard(key).lock().get(key, now_ms)?;
        let consumed = Consumed::none(&page.consumed.table, None);
        Some(PageOutcome { consumed, ..(*page).clone() })
    }

    fn keep(&self, key: Key, page: &PageOutcome, since_ms: u64) {
        let page = page.clone();
        let start_key_size_bytes = page.last_evaluated_key.as_ref().map_or(0, item_size_bytes);
        let value_size_bytes = page.items.bytes_len()
            + size_of::<usize>() * page.items.len()
            + size_of::<PageOutcome>()
            + start_key_size_bytes;
        let entry = Entry { value: Arc::new(page), since_ms, value_size_bytes };
        self.shard(&key).lock().insert(key, entry);
    }

    fn shard(&self, key: &[u8]) -> &Mutex<Entries<Arc<PageOutcome>>> {
        &self.shards[xxh3_64(key) as usize % self.shards.len()]
    }
}

impl Engine {
    /// The page of a request from the cache, or else from `read`.
    pub(crate) async fn page_through(
        &self,
        cache: &PageCache,
        request: CachedRequest<'_>,
        read: impl Future<Output = Result<PageOutcome>>,
    ) -> Result<PageOutcome> {
        let at_ms = cache.clock.now_ms();
        let table = self.table(request.table()).await?;
        let Some(key) = request.key(&table).filter(|_| !table.is_invalid()) else {
            return read.await;
        };
        if let Some(page) = cache.look_up(&key, at_ms) {
            return Ok(page);
        }
        let page = read.await?;
        // Versions only rise: if it is the same afterwards, the page was read with it.
        if self.table(request.table()).await.is_ok_and(|now| now.is_same_version(&table)) {
            cache.keep(key, &page, at_ms);
        }
        Ok(page)
    }
}
