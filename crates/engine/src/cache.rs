//! Caches for eventually consistent reads, in this process and above the store. They follow the
//! rules of DynamoDB Accelerator (DAX), and both are off unless the options say otherwise.
//!
//! - **Items** ([`ItemCache`]): GetItem and BatchGetItem by primary key. It keeps whole items, so
//!   that one entry answers every projection, and also remembers that a key has no item. This
//!   engine's own writes replace entries as soon as they are committed. What another engine writes
//!   to the same store shows when the entry's time to live is over.
//! - **Pages** ([`PageCache`]): Query and Scan by the exact parameters of the request. Writes don't
//!   touch it; a page answers for its whole time to live.
//!
//! Consistent reads, reads as of a time and TransactGetItems neither use nor fill them. A hit
//! consumes no capacity.
//!
//! The embedded store has a cache of its own (`value_cache`), which no reader can tell from the
//! store. It must know every write to do that, and has versions of snapshots to order them. A
//! shared store has other writers, so these caches know only their own writes and the age of what
//! they have read. Of the two designs, only the bounded map is the same, and that is `quick_cache`.

mod entries;
mod items;
mod pages;
mod parameters;

pub(crate) use items::{FillTicket, ItemCache, Lookup, UncommittedWrites};
pub(crate) use pages::{CachedRequest, PageCache};

use crate::Engine;

/// How large a cache may be, and how old its answers may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheOptions {
    /// The bytes of all entries, with an estimate of what the cache itself needs for each.
    pub size_bytes_max: usize,
    /// How long an entry answers. As in DAX, 0 means that items stay until they are written or
    /// evicted, and that pages are not cached at all.
    pub time_to_live_ms: u64,
}

impl CacheOptions {
    /// DAX's default: five minutes.
    pub const TIME_TO_LIVE_MS: u64 = 300_000;
}

/// What a cache has done since the engine was opened, and what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStatistics {
    pub hits: u64,
    pub misses: u64,
    /// The entries that made room for others.
    pub evictions: u64,
    pub entries: u64,
    pub size_bytes: u64,
}

impl Engine {
    /// `None` if items are not cached.
    pub fn item_cache_statistics(&self) -> Option<CacheStatistics> {
        self.item_cache.as_ref().map(ItemCache::statistics)
    }

    /// `None` if pages are not cached.
    pub fn query_cache_statistics(&self) -> Option<CacheStatistics> {
        self.query_cache.as_ref().map(PageCache::statistics)
    }

    /// The cache that may answer a read of an item.
    pub(crate) fn item_cache_for(&self, consistent: bool) -> Option<&ItemCache> {
        self.item_cache.as_ref().filter(|_| !consistent)
    }
}
