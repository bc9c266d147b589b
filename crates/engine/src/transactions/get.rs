//! TransactGetItems: items from one snapshot.

use std::collections::HashSet;
use std::sync::Arc;

use zenobe_store::Key;
use zenobe_value::EncodedItem;

use crate::Engine;
use crate::capacity_units::transactional_get_halves;
use crate::catalog::{GuardCheck, Table};
use crate::change::size_bytes;
use crate::command::{GetItem, TransactGet, TransactGetOutcome, TransactionalUnits};
use crate::error::{Error, Result};
use crate::read::{decode_all, item_key, project};
use crate::throughput::cause::Access;
use crate::throughput::{Demand, Ticket};

use super::{ConsumedByTable, all_admitted, cancelled, replace};

/// The largest total size of one transaction's items, before projection.
const ITEMS_SIZE_BYTES_MAX: u64 = 4 * 1024 * 1024;

impl Engine {
    pub async fn transact_get(&self, command: &TransactGet) -> Result<TransactGetOutcome> {
        let mut tables = Vec::with_capacity(command.gets.len());
        for get in &command.gets {
            tables.push(self.table(&get.table).await?);
        }
        loop {
            match self.transact_get_once(&command.gets, &tables).await {
                Err(_) if self.refresh_stale(&mut tables).await? => {}
                Err(error) => return Err(error),
                Ok(Ok(items)) => {
                    check_size(&items)?;
                    return Ok(outcome(&command.gets, items));
                }
                Ok(Err(stale)) => replace(&mut tables, &self.refresh(&stale).await?),
            }
        }
    }

    /// The items, or a table whose definition is stale. Both are read from the same state.
    async fn transact_get_once(
        &self,
        gets: &[GetItem],
        tables: &[Arc<Table>],
    ) -> Result<Result<Vec<Option<EncodedItem>>, Arc<Table>>> {
        let mut keys = item_keys(gets, tables)?;
        let tickets =
            keys.iter().zip(tables).map(|(key, table)| self.admit_transact_get(table, key));
        let tickets = all_admitted(tickets.collect())?;
        keys.extend(tables.iter().map(|table| table.guard_key().clone()));
        let values = self.store.snapshot().get_many(&keys).await?;
        let (items, versions) = values.split_at(gets.len());
        for (table, version) in tables.iter().zip(versions) {
            if table.check_guard(version.as_ref()) != GuardCheck::Current {
                return Ok(Err(Arc::clone(table)));
            }
        }
        let items = decode_all(items)?;
        for (ticket, item) in tickets.into_iter().zip(&items) {
            ticket.settle(transactional_get_halves(item.as_ref()));
        }
        Ok(Ok(items))
    }

    fn admit_transact_get<'t>(&self, table: &'t Table, key: &Key) -> Result<Ticket<'t>> {
        let halves_min = transactional_get_halves(None);
        self.admit(table, Demand::item(Access::Read, table, key, halves_min))
    }
}

fn check_size(items: &[Option<EncodedItem>]) -> Result<()> {
    let items_size_bytes: u64 = items.iter().map(|item| size_bytes(item.as_ref())).sum();
    if items_size_bytes > ITEMS_SIZE_BYTES_MAX {
        return Err(Error::TransactionTooLarge);
    }
    Ok(())
}

fn outcome(gets: &[GetItem], items: Vec<Option<EncodedItem>>) -> TransactGetOutcome {
    let mut consumed = ConsumedByTable::new(TransactionalUnits::Read);
    let mut projected = Vec::with_capacity(items.len());
    for (get, item) in gets.iter().zip(items) {
        let halves = transactional_get_halves(item.as_ref());
        consumed.of(&get.table).table_halves += halves;
        let item = item.map(|item| project(item, get.projection.as_ref()));
        // Unlike in GetItem, a projection that matches nothing yields no item here.
        projected.push(item.filter(|item| get.projection.is_none() || !item.as_item().is_empty()));
    }
    TransactGetOutcome { items: projected, consumed: consumed.tables }
}

fn item_keys(gets: &[GetItem], tables: &[Arc<Table>]) -> Result<Vec<Key>> {
    let checked: Vec<Result<Key>> =
        gets.iter().zip(tables).map(|(get, table)| item_key(table, get)).collect();
    let mut seen = HashSet::new();
    if !checked.iter().flatten().all(|key| seen.insert(key.clone())) {
        return Err(Error::DuplicateTransactionItems);
    }
    if checked.iter().any(Result::is_err) {
        return Err(cancelled(checked.into_iter().map(Result::err)));
    }
    checked.into_iter().collect()
}
