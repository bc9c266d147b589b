//! The cache of items.
//!
//! **Which value an entry may have.** An entry must not show a state from before a write that this
//! engine has acknowledged. Two things could make it do so: a reader that read before the write and
//! keeps its value after it, and two writers of one key that commit in one order and arrive here in
//! the other. So each write announces itself before it starts and says when it has ended. Keys are
//! divided into *stripes*, which count writes that have begun and those in flight:
//!
//! - A reader may keep what it has read if no write of the stripe was in flight when it started
//!   and none has begun since.
//! - A writer may replace the entry with what it has written if no other write of the stripe
//!   overlapped it. Otherwise nobody here knows which was the last, and the entry is removed.
//!
//! A write whose end this engine does not see (its client has gone, or its store does not answer) may
//! still be committed later. It removes the entry and closes the stripe for a while.

use std::sync::Arc;

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;
use zenobe_store::Key;
use zenobe_value::EncodedItem;

use crate::clock::Clock;

use super::entries::{Entries, Entry, TimeToLive, shard_count, total};
use super::{CacheOptions, CacheStatistics};

const STRIPES_PER_SHARD: usize = 256;

/// How long a write may continue after its caller has stopped waiting for it. A write to a shared store
/// that does not answer fails after a minute.
const UNSETTLED_MS: u64 = 120_000;

pub(crate) struct ItemCache {
    clock: Arc<dyn Clock>,
    shards: Box<[Mutex<CacheShard>]>,
}

struct CacheShard {
    /// `None` where there is no item.
    entries: Entries<Option<EncodedItem>>,
    stripes: Box<[Stripe; STRIPES_PER_SHARD]>,
}

#[derive(Clone, Copy, Default)]
struct Stripe {
    writes_begun: u64,
    writes_in_flight: u32,
    /// Nothing is cached before this time.
    closed_until_ms: u64,
}

impl Stripe {
    fn is_quiet(&self, now_ms: u64) -> bool {
        self.writes_in_flight == 0 && self.closed_until_ms <= now_ms
    }
}

pub(crate) enum Lookup {
    /// The item, or that there is none.
    Hit(Option<EncodedItem>),
    /// With a ticket, the caller may keep what it is about to read.
    Miss(Option<FillTicket>),
}

/// The state of a key's stripe before a read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FillTicket {
    writes_begun: u64,
    at_ms: u64,
}

impl ItemCache {
    pub fn new(options: CacheOptions, clock: Arc<dyn Clock>) -> ItemCache {
        let CacheOptions { size_bytes_max, time_to_live_ms } = options;
        let count = shard_count(size_bytes_max);
        let time_to_live = TimeToLive { ms: time_to_live_ms };
        let shard = |_| {
            Mutex::new(CacheShard {
                entries: Entries::new(size_bytes_max / count, time_to_live),
                stripes: Box::new([Stripe::default(); STRIPES_PER_SHARD]),
            })
        };
        ItemCache { clock, shards: (0..count).map(shard).collect() }
    }

    pub fn look_up(&self, key: &[u8]) -> Lookup {
        // Read before the store is, so that no entry is older than it says.
        let at_ms = self.clock.now_ms();
        let hash = xxh3_64(key);
        let mut shard = self.shard(hash).lock();
        if let Some(item) = shard.entries.get(key, at_ms) {
            return Lookup::Hit(item);
        }
        let stripe = shard.stripe(hash);
        let ticket = FillTicket { writes_begun: stripe.writes_begun, at_ms };
        Lookup::Miss(stripe.is_quiet(at_ms).then_some(ticket))
    }

    /// Keeps what was read after the look-up that gave the ticket.
    pub fn fill(&self, key: Key, ticket: FillTicket, item: Option<&EncodedItem>) {
        let hash = xxh3_64(&key);
        let mut shard = self.shard(hash).lock();
        let is_unchanged = shard.stripe(hash).writes_begun == ticket.writes_begun;
        // A reader that started later may have been faster.
        let is_newer = shard.entries.since_ms(&key).is_none_or(|since_ms| since_ms < ticket.at_ms);
        if is_unchanged && is_newer {
            shard.keep(key, item, ticket.at_ms);
        }
    }

    /// Announces writes of these keys. Call one of the methods of the result when they have ended.
    pub fn begin_writes<'a>(&self, keys: impl Iterator<Item = &'a Key>) -> UncommittedWrites<'_> {
        let at_ms = self.clock.now_ms();
        let writes = keys.map(|key| self.begin_write(key, at_ms)).collect();
        UncommittedWrites { cache: self, at_ms, writes }
    }

    fn begin_write(&self, key: &Key, now_ms: u64) -> WriteInFlight {
        let hash = xxh3_64(key);
        let mut shard = self.shard(hash).lock();
        let stripe = shard.stripe(hash);
        let is_alone = stripe.is_quiet(now_ms);
        stripe.writes_begun += 1;
        stripe.writes_in_flight += 1;
        let alone_as = is_alone.then_some(stripe.writes_begun);
        WriteInFlight { key: key.clone(), hash, alone_as }
    }

    pub fn statistics(&self) -> CacheStatistics {
        total(self.shards.iter().map(|shard| shard.lock().entries.statistics()))
    }

    fn shard(&self, hash: u64) -> &Mutex<CacheShard> {
        &self.shards[hash as usize % self.shards.len()]
    }
}

impl CacheShard {
    fn stripe(&mut self, hash: u64) -> &mut Stripe {
        &mut self.stripes[(hash >> 32) as usize % STRIPES_PER_SHARD]
    }

    fn keep(&mut self, key: Key, item: Option<&EncodedItem>, since_ms: u64) {
        let value = item.map(EncodedItem::compact);
        let value_size_bytes = value.as_ref().map_or(0, |item| item.as_bytes().len());
        self.entries.insert(key, Entry { value, since_ms, value_size_bytes });
    }
}

/// Writes that may be committed at any time from now on. If it is dropped, their outcome is unknown.
pub(crate) struct UncommittedWrites<'a> {
    cache: &'a ItemCache,
    at_ms: u64,
    writes: Vec<WriteInFlight>,
}

struct WriteInFlight {
    key: Key,
    hash: u64,
    /// The number of this write in its stripe, if no other was in flight when it began.
    alone_as: Option<u64>,
}

impl UncommittedWrites<'_> {
    /// Ends the writes: each key has this item now, or none.
    pub fn written<'i>(mut self, items: impl Iterator<Item = Option<&'i EncodedItem>>) {
        let at_ms = self.at_ms;
        for (WriteInFlight { key, hash, alone_as }, item) in self.writes.drain(..).zip(items) {
            let mut shard = self.cache.shard(hash).lock();
            let writes_begun = shard.end_write(hash).writes_begun;
            match alone_as == Some(writes_begun) {
                true => shard.keep(key, item, at_ms),
                false => shard.entries.remove(&key),
            }
        }
    }

    /// Ends the writes: the items have changed, and are not worth keeping or not known.
    pub fn changed(mut self) {
        for WriteInFlight { key, hash, .. } in self.writes.drain(..) {
            let mut shard = self.cache.shard(hash).lock();
            shard.end_write(hash);
            shard.entries.remove(&key);
        }
    }

    /// Ends the writes: nothing was written.
    pub fn nothing_written(mut self) {
        for WriteInFlight { hash, .. } in self.writes.drain(..) {
            self.cache.shard(hash).lock().end_write(hash);
        }
    }
}

impl CacheShard {
    fn end_write(&mut self, hash: u64) -> &mut Stripe {
        let stripe = self.stripe(hash);
        stripe.writes_in_flight -= 1;
        stripe
    }
}

impl Drop for UncommittedWrites<'_> {
    fn drop(&mut self) {
        for WriteInFlight { key, hash, .. } in self.writes.drain(..) {
            let closed_until_ms = self.cache.clock.now_ms().saturating_add(UNSETTLED_MS);
            let mut shard = self.cache.shard(hash).lock();
            shard.end_write(hash).closed_until_ms = closed_until_ms;
            shard.entries.remove(&key);
        }
    }
}

#[cfg(test)]
#[path = "items/tests.rs"]
mod tests;
