//! BatchGetItem: as many items as fit in one response.

use std::sync::Arc;

use zenobe_store::{Key, Reader, Replica};
use zenobe_value::EncodedItem;

use crate::Engine;
use crate::cache::{ItemCache, Lookup};
use crate::capacity_units::read_halves;
use crate::catalog::Table;
use crate::change::size_bytes;
use crate::command::{BatchGet, BatchGetOutcome, BatchGetTable, BatchGetTableOutcome, Consumed};
use crate::error::{Error, Result};
use crate::history::AsOf;
use crate::keys::{PrimaryKey, check_paths};
use crate::read::{decode_all, project};
use crate::throughput::Ticket;
use crate::throughput::cause::Throttled;

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
            let mut batch = BatchAttempt::default();
            let outcome = self.batch_get_once(as_of, command, &tables, &mut batch).await;
            let is_throttled = matches!(outcome, Err(Error::Throttled(_)));
            // Definitions are checked along with what the store says, as in GetItem.
            let is_cached = outcome.is_ok()
                && !batch.has_read
                && !tables.iter().any(|table| table.is_invalid());
            if is_throttled || is_cached || !self.refresh_stale(&mut tables).await? {
                return outcome;
            }
        }
    }

    async fn batch_get_once(
        &self,
        as_of: Option<AsOf>,
        command: &BatchGet,
        tables: &[Arc<Table>],
        batch: &mut BatchAttempt,
    ) -> Result<BatchGetOutcome> {
        let requests = command.tables.iter().zip(tables);
        let keys = requests
            .map(|(request, table)| item_keys(request, table))
            .collect::<Result<Vec<Vec<Key>>>>()?;
        let mut is_processed = false;
        let mut outcomes = Vec::with_capacity(command.tables.len());
        for ((request, table), keys) in command.tables.iter().zip(tables).zip(&keys) {
            let past = self.past_if(table, as_of).await?;
            let may_be_behind = !request.consistent && as_of.is_none();
            let cache = self.item_cache_for(!may_be_behind);
            let source = ItemSource {
                reader: past.as_ref().map_or(&*self.store, |past| past),
                // What a cache keeps must come from the store itself.
                replica: self.replica(table.name(), None, !may_be_behind || cache.is_some()),
                cache,
            };
            let outcome = self.get_some(&source, table, request, keys, batch).await?;
            is_processed |= outcome.unprocessed.len() < keys.len();
            outcomes.push(outcome);
        }
        match batch.throttled.take() {
            Some(throttled) if !is_processed => Err(Error::Throttled(throttled)),
            _ => Ok(BatchGetOutcome { tables: outcomes }),
        }
    }

    /// Reads the items of one table. Keys that meet a limit of throughput, or that don't fit in the
    /// response, are left unprocessed.
    async fn get_some(
        &self,
        source: &ItemSource<'_>,
        table: &Table,
        request: &BatchGetTable,
        keys: &[Key],
        batch: &mut BatchAttempt,
    ) -> Result<BatchGetTableOutcome> {
        let mut items = Vec::new();
        let mut consumed = Consumed::none(&request.table, None);
        let mut unprocessed = Vec::new();
        let mut is_full = false;
        for (chunk, first) in keys.chunks(READ_AT_ONCE).zip((0..).step_by(READ_AT_ONCE)) {
            let found = self.find(source, table, request, chunk, batch).await?;
            for (found, position) in found.into_iter().zip(first..) {
                let Some(ItemRead { item, ticket }) = found else {
                    unprocessed.push(position);
                    continue;
                };
                let item_size_bytes = size_bytes(item.as_ref());
                is_full = is_full || !batch.space.take(item_size_bytes);
                if is_full {
                    unprocessed.push(position);
                    continue;
                }
                if let Some(ticket) = ticket {
                    let halves = read_halves(item_size_bytes, request.consistent);
                    ticket.settle(halves);
                    consumed.table_halves += halves;
                }
                items.extend(item.map(|item| project(item, request.projection.as_ref())));
            }
            if is_full {
                unprocessed.extend(first + chunk.len()..keys.len());
                break;
            }
        }
        Ok(BatchGetTableOutcome { items, unprocessed, consumed })
    }

    /// Finds items in the cache, and reads the others together from the store; `None` for those
    /// whose reads are throttled.
    async fn find<'t>(
        &self,
        source: &ItemSource<'_>,
        table: &'t Table,
        request: &BatchGetTable,
        keys: &[Key],
        batch: &mut BatchAttempt,
    ) -> Result<Vec<Option<ItemRead<'t>>>> {
        let mut found = Vec::with_capacity(keys.len());
        let mut misses = Vec::new();
        for (key, position) in keys.iter().zip(0..) {
            let lookup = source.cache.map_or(Lookup::Miss(None), |cache| cache.look_up(key));
            let fill = match lookup {
                Lookup::Hit(item) => {
                    found.push(Some(ItemRead { item, ticket: None }));
                    continue;
                }
                Lookup::Miss(fill) => fill,
            };
            match self.admit_get(table, key, request.consistent) {
                Ok(ticket) => {
                    found.push(Some(ItemRead { item: None, ticket: Some(ticket) }));
                    misses.push((position, key.clone(), fill));
                }
                Err(Error::Throttled(reasons)) => {
                    Throttled::add(&mut batch.throttled, reasons);
                    found.push(None);
                }
                Err(error) => return Err(error),
            }
        }
        if misses.is_empty() {
            return Ok(found);
        }
        batch.has_read = true;
        let to_read: Vec<Key> = misses.iter().map(|(_, key, _)| key.clone()).collect();
        let stored = source.read(&to_read).await?;
        for ((position, key, fill), item) in misses.into_iter().zip(stored) {
            if let (Some(cache), Some(fill)) = (source.cache, fill) {
                cache.fill(key, fill, item.as_ref());
            }
            if let Some(Some(found)) = found.get_mut::<usize>(position) {
                found.item = item;
            }
        }
        Ok(found)
    }
}

/// Where the items of a table are read from.
struct ItemSource<'a> {
    reader: &'a dyn Reader,
    /// Asked before the reader, if there is one.
    replica: Option<Arc<dyn Replica>>,
    /// Asked before both.
    cache: Option<&'a ItemCache>,
}

/// An item, or that there is none.
struct ItemRead<'t> {
    item: Option<EncodedItem>,
    /// What the read may cost; reads from the cache are free.
    ticket: Option<Ticket<'t>>,
}

impl ItemSource<'_> {
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<EncodedItem>>> {
        if let Some(replica) = &self.replica
            && let Ok(values) = replica.get_many(keys).await
        {
            return decode_all(&values);
        }
        decode_all(&self.reader.get_many(keys).await?)
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
struct BatchAttempt {
    space: ResponseSpace,
    /// Whether anything came from the store.
    has_read: bool,
    /// The limits that its keys met.
    throttled: Option<Box<Throttled>>,
}

/// The bytes left in a response. The first item always fits; after one that doesn't, nothing fits.
struct ResponseSpace {
    left_bytes: u64,
    used: bool,
}

impl Default for ResponseSpace {
    fn default() -> ResponseSpace {
        ResponseSpace { left_bytes: RESPONSE_SIZE_BYTES_MAX, used: false }
    }
}

impl ResponseSpace {
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
