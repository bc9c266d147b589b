//! BatchGetItem: as many items as fit in one response.

use std::sync::Arc;

use zenobe_store::{Key, Reader, Replica};
use zenobe_value::EncodedItem;

use crate::Engine;
use crate::cache::{ItemCache, Lookup};
use crate::capacity::read_halves;
use crate::catalog::Table;
use crate::change::size_bytes;
use crate::command::{BatchGet, BatchGetOutcome, BatchGetTable, BatchGetTableOutcome, Consumed};
use crate::error::Result;
use crate::history::AsOf;
use crate::keys::{PrimaryKey, check_paths};
use crate::read::{decode_all, project};

/// The largest total size of the items in one response, before projection.
const RESPONSE_SIZE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Bounds how much is read beyond a full response.
const READ_AT_ONCE: usize = 16;

impl Engine {
    pub async fn batch_get(&self, command: &BatchGet) -> Result<BatchGetOutcome> {
        self.batch_get_at(None, command).await
    }

    pub(crate) async fn batch_get_at(
        &self,
        as_of: Option<AsOf>,
        command: &BatchGet,
    ) -> Result<BatchGetOutcome> {
        let mut tables = Vec::with_capacity(command.tables.len());
        for request in &command.tables {
            tables.push(self.table(&request.table).await?);
        }
        loop {
            let mut batch = Batch::default();
            let outcome = self.batch_get_once(as_of, command, &tables, &mut batch).await;
            // Definitions are checked along with what the store says, as in GetItem.
            if outcome.is_ok() && !batch.has_read && !tables.iter().any(|table| table.is_invalid())
            {
                return outcome;
            }
            if !self.refresh_stale(&mut tables).await? {
                return outcome;
            }
        }
    }

    async fn batch_get_once(
        &self,
        as_of: Option<AsOf>,
        command: &BatchGet,
        tables: &[Arc<Table>],
        batch: &mut Batch,
    ) -> Result<BatchGetOutcome> {
        let requests = command.tables.iter().zip(tables);
        let keys = requests
            .map(|(request, table)| item_keys(request, table))
            .collect::<Result<Vec<Vec<Key>>>>()?;
        let mut outcomes = Vec::with_capacity(command.tables.len());
        for ((request, table), keys) in command.tables.iter().zip(tables).zip(&keys) {
            let past = self.past_if(table, as_of).await?;
            let may_be_behind = !request.consistent && as_of.is_none();
            let cache = self.item_cache_for(!may_be_behind);
            let source = Source {
                reader: past.as_ref().map_or(&*self.store, |past| past),
                // What a cache keeps must come from the store itself.
                replica: self.replica(table.name(), None, !may_be_behind || cache.is_some()),
                cache,
            };
            outcomes.push(get_some(&source, request, keys, batch).await?);
        }
        Ok(BatchGetOutcome { tables: outcomes })
    }
}

/// Where the items of a table are read from.
struct Source<'a> {
    reader: &'a dyn Reader,
    /// Asked before the reader, if there is one.
    replica: Option<Arc<dyn Replica>>,
    /// Asked before both.
    cache: Option<&'a ItemCache>,
}

struct Found {
    item: Option<EncodedItem>,
    is_cached: bool,
}

async fn get_some(
    source: &Source<'_>,
    request: &BatchGetTable,
    keys: &[Key],
    batch: &mut Batch,
) -> Result<BatchGetTableOutcome> {
    let mut items = Vec::new();
    let mut consumed = Consumed::none(&request.table, None);
    let mut processed = 0;
    'full: for some_keys in keys.chunks(READ_AT_ONCE) {
        for Found { item, is_cached } in source.read(some_keys).await? {
            batch.has_read |= !is_cached;
            let item_size_bytes = size_bytes(item.as_ref());
            if !batch.budget.take(item_size_bytes) {
                break 'full;
            }
            processed += 1;
            if !is_cached {
                consumed.table_halves += read_halves(item_size_bytes, request.consistent);
            }
            items.extend(item.map(|item| project(item, request.projection.as_ref())));
        }
    }
    let unprocessed = (processed..keys.len()).collect();
    Ok(BatchGetTableOutcome { items, unprocessed, consumed })
}

impl Source<'_> {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Found>> {
        match self.cache {
            Some(cache) => Box::pin(self.read_through(cache, keys)).await,
            None => {
                let items = self.read_stored(keys).await?.into_iter();
                Ok(items.map(|item| Found { item, is_cached: false }).collect())
            }
        }
    }

    async fn read_stored(&self, keys: &[Key]) -> Result<Vec<Option<EncodedItem>>> {
        if let Some(replica) = &self.replica
            && let Ok(values) = replica.get_many(keys).await
        {
            return decode_all(&values);
        }
        decode_all(&self.reader.get_many(keys).await?)
    }

    /// Reads what the cache doesn't have, all of it together, and keeps it there.
    async fn read_through(&self, cache: &ItemCache, keys: &[Key]) -> Result<Vec<Found>> {
        let looked_up: Vec<Lookup> = keys.iter().map(|key| cache.look_up(key)).collect();
        let misses = keys.iter().zip(&looked_up);
        let misses = misses.filter(|(_, lookup)| matches!(lookup, Lookup::Miss(_)));
        let misses: Vec<Key> = misses.map(|(key, _)| key.clone()).collect();
        let mut stored = match misses.is_empty() {
            true => Vec::new().into_iter(),
            false => self.read_stored(&misses).await?.into_iter(),
        };
        let found = keys.iter().zip(looked_up).map(|(key, lookup)| match lookup {
            Lookup::Hit(item) => Found { item, is_cached: true },
            Lookup::Miss(ticket) => {
                let item = stored.next().expect("a store answers for every key");
                if let Some(ticket) = ticket {
                    cache.fill(key.clone(), ticket, item.as_ref());
                }
                Found { item, is_cached: false }
            }
        });
        Ok(found.collect())
    }
}

fn item_keys(request: &BatchGetTable, table: &Arc<Table>) -> Result<Vec<Key>> {
    if let Some(projection) = &request.projection {
        check_paths(table, projection.paths().iter())?;
    }
    let schema = &table.definition().keys;
    let key = |key| Ok(PrimaryKey::from_parameter(schema, key)?.item_key(table));
    request.keys.iter().map(key).collect()
}

/// One attempt at a batch.
#[derive(Default)]
struct Batch {
    budget: Budget,
    /// Whether anything came from the store.
    has_read: bool,
}

/// The bytes left in a response. The first item always fits; after one that doesn't, nothing fits.
struct Budget {
    left_bytes: u64,
    used: bool,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { left_bytes: RESPONSE_SIZE_BYTES_MAX, used: false }
    }
}

impl Budget {
    fn take(&mut self, size_bytes: u64) -> bool {
        if self.used && size_bytes > self.left_bytes {
            self.left_bytes = 0;
            return false;
        }
        self.used |= size_bytes > 0;
        self.left_bytes = self.left_bytes.saturating_sub(size_bytes);
        true
    }
}
