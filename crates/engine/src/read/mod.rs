//! Reads: single items, and pages of a table or an index.
//!
//! Every read sees the latest durable state, so eventually consistent and consistent reads differ
//! only in what they cost. There are two exceptions. On a store with a replica
//! ([`zenobe_store::Replica`]), eventually consistent reads use it, and go to the store itself if it
//! can't answer; to a test that wants lagging reads ([`crate::lateness`]), a past state is such a
//! replica. An engine with caches ([`crate::cache`]) asks them first.

mod as_of;
mod cached;
mod page;
mod page_command;
mod page_partitions;
mod query;
mod query_range;
mod scan;
mod select;
mod source;
mod start_key;
mod time_slice;

use std::sync::Arc;

use zenobe_expression::Projection;
use zenobe_store::{Key, Replica, Value};
use zenobe_value::EncodedItem;

use crate::Engine;
use crate::capacity_units::read_halves;
use crate::catalog::{GuardCheck, Table};
use crate::change::size_bytes;
use crate::command::{Consumed, GetItem, PageOutcome, ReadOutcome, TableName};
use crate::error::{Error, Result};
use crate::keys::{PrimaryKey, check_paths};
use crate::throughput::cause::Access;
use crate::throughput::{Demand, Ticket};
use crate::write::decode_stored;

use page::Read;

pub use as_of::Reads;
pub(crate) use query::exported_items;

impl Engine {
    pub async fn get_item(&self, command: &GetItem) -> Result<ReadOutcome> {
        let mut table = self.table(&command.table).await?;
        loop {
            match self.get_once(&table, command).await {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) => table = self.refresh(&table).await?,
                // No other definition would admit it, and a throttled request must not cost a read of the store.
                Err(error @ Error::Throttled(_)) => return Err(error),
                Err(error) => table = self.refresh_after(&table, error).await?,
            }
        }
    }

    /// The page, if it was read with the table's current definition. Otherwise `None`, and `table`
    /// is current.
    async fn accept_read(
        &self,
        read: Result<Read>,
        table: &mut Arc<Table>,
    ) -> Result<Option<PageOutcome>> {
        match read {
            Ok(Read { outcome, is_current: true, .. }) => return Ok(Some(outcome)),
            Err(error @ Error::Throttled(_)) => return Err(error),
            read if self.is_current(table).await? => return Ok(Some(read?.outcome)),
            _ => {}
        }
        *table = self.refresh(table).await?;
        Ok(None)
    }

    /// `None` if the definition is stale.
    async fn get_once(&self, table: &Table, command: &GetItem) -> Result<Option<ReadOutcome>> {
        let key = item_key(table, command)?;
        if let Some(cache) = self.item_cache_for(command.consistent) {
            return self.get_through(cache, table, key, command).await;
        }
        let ticket = self.admit_get(table, &key, command.consistent)?;
        let stored = match self.read_replica(table, &key, command.consistent).await {
            Some(stored) => stored,
            None => match self.read_current(table, key).await? {
                Some(stored) => stored,
                None => return Ok(None),
            },
        };
        let outcome = read_outcome(command, stored.as_ref())?;
        ticket.settle(outcome.consumed.table_halves);
        Ok(Some(outcome))
    }

    /// Admits the read of one item.
    pub(crate) fn admit_get<'t>(
        &self,
        table: &'t Table,
        key: &Key,
        consistent: bool,
    ) -> Result<Ticket<'t>> {
        let halves_min = read_halves(0, consistent);
        self.admit(table, Demand::item(Access::Read, table, key, halves_min))
    }

    /// A copy of the store to read from, if the read may be a little behind and there is one.
    pub(crate) fn replica(
        &self,
        table: &TableName,
        index: Option<&str>,
        consistent: bool,
    ) -> Option<Arc<dyn Replica>> {
        if consistent {
            return None;
        }
        match &self.lateness {
            Some(late) => late.replica(self.clock.now_ms(), table, index),
            None if self.is_shared() => self.store.replica(),
            None => None,
        }
    }

    /// The value of a key of the table as a replica has it, or `None` if no replica can say. That a
    /// replica knows another definition says nothing about which of the two is stale.
    async fn read_replica(
        &self,
        table: &Table,
        key: &Key,
        consistent: bool,
    ) -> Option<Option<Value>> {
        let replica = self.replica(table.name(), None, consistent)?;
        // On the heap, so that reads without a replica don't have to make room for it.
        let read = Box::pin(async move {
            let values = replica.get_many(&[key.clone(), table.guard_key().clone()]).await.ok()?;
            let [stored, version] = <[Option<Value>; 2]>::try_from(values).ok()?;
            (table.check_guard(version.as_ref()) == GuardCheck::Current).then_some(stored)
        });
        read.await
    }

    /// The value of a key of the table, or `None` if the definition is stale. Makes at most one
    /// round trip to a shared store, which may be far away.
    async fn read_current(&self, table: &Table, key: Key) -> Result<Option<Option<Value>>> {
        if self.is_shared() {
            let values = self.store.get_many(&[key, table.guard_key().clone()]).await?;
            let [stored, version] =
                <[Option<Value>; 2]>::try_from(values).expect("a store answers for every key");
            let is_current = table.check_guard(version.as_ref()) == GuardCheck::Current;
            return Ok(is_current.then_some(stored));
        }
        let stored = self.store.get(&key).await?;
        Ok(self.is_current(table).await?.then_some(stored))
    }

    /// Whether the definition is still the table's. Versions only rise: a definition that is
    /// current after a read was current throughout. Another engine on the same store may change it
    /// at any time, this one only after invalidating it.
    pub(crate) async fn is_current(&self, table: &Table) -> Result<bool> {
        if !self.is_shared() && !table.is_invalid() {
            return Ok(true);
        }
        let version = self.store.get(table.guard_key()).await?;
        Ok(table.check_guard(version.as_ref()) == GuardCheck::Current)
    }
}

/// The key of the item that a GetItem reads.
pub(crate) fn item_key(table: &Table, command: &GetItem) -> Result<Key> {
    let key = PrimaryKey::from_parameter(&table.definition().keys, &command.key)?;
    if let Some(projection) = &command.projection {
        check_paths(table, projection.paths().iter())?;
    }
    Ok(key.item_key(table))
}

fn read_outcome(command: &GetItem, stored: Option<&Value>) -> Result<ReadOutcome> {
    let item = stored.map(decode_stored).transpose()?;
    Ok(item_outcome(command, item))
}

fn item_outcome(command: &GetItem, item: Option<EncodedItem>) -> ReadOutcome {
    let mut consumed = Consumed::none(&command.table, None);
    consumed.table_halves = read_halves(size_bytes(item.as_ref()), command.consistent);
    let item = item.map(|item| project(item, command.projection.as_ref()));
    ReadOutcome { item, consumed }
}

/// What a caller gets of an item.
pub(crate) fn project(item: EncodedItem, projection: Option<&Projection>) -> EncodedItem {
    match projection {
        Some(projection) => projection.apply(item.as_item()),
        None => item,
    }
}

/// Decodes what `get_many` found.
pub(crate) fn decode_all(values: &[Option<Value>]) -> Result<Vec<Option<EncodedItem>>> {
    values.iter().map(|value| value.as_ref().map(decode_stored).transpose()).collect()
}
