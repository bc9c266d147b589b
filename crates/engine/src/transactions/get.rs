//! TransactGetItems: items from one snapshot.

use std::collections::HashSet;

use zenobe_store::Key;

use crate::Engine;
use crate::capacity::transactional_read_halves;
use crate::catalog::Table;
use crate::change::size_bytes;
use crate::command::{GetItem, TransactGet, TransactGetOutcome, TransactionalUnits};
use crate::error::{Error, Result};
use crate::keys::{PrimaryKey, check_paths};
use crate::read::{decode_all, project};

use super::{ConsumedByTable, cancelled};

impl Engine {
    pub async fn transact_get(&self, command: &TransactGet) -> Result<TransactGetOutcome> {
        let keys = self.keys_to_get(&command.gets).await?;
        let values = self.store.snapshot().get_many(&keys).await?;
        let mut consumed = ConsumedByTable::new(TransactionalUnits::Read);
        let mut items = Vec::with_capacity(command.gets.len());
        for (get, item) in command.gets.iter().zip(decode_all(&values)?) {
            let halves = transactional_read_halves(size_bytes(item.as_ref()));
            consumed.of(&get.table).table_halves += halves;
            let item = item.map(|item| project(item, get.projection.as_ref()));
            // A projection that matches nothing yields no item here, unlike in GetItem.
            items.push(item.filter(|item| get.projection.is_none() || !item.as_item().is_empty()));
        }
        Ok(TransactGetOutcome { items, consumed: consumed.tables })
    }

    async fn keys_to_get(&self, gets: &[GetItem]) -> Result<Vec<Key>> {
        let mut checked = Vec::with_capacity(gets.len());
        for get in gets {
            let table = self.table(&get.table).await?;
            checked.push(item_key(&table, get));
        }
        let mut seen = HashSet::new();
        if !checked.iter().flatten().all(|key| seen.insert(key.clone())) {
            return Err(Error::DuplicateTransactionItems);
        }
        if checked.iter().any(Result::is_err) {
            return Err(cancelled(checked.into_iter().map(Result::err)));
        }
        checked.into_iter().collect()
    }
}

fn item_key(table: &Table, get: &GetItem) -> Result<Key> {
    let key = PrimaryKey::from_parameter(&table.definition().keys, &get.key)?;
    if let Some(projection) = &get.projection {
        check_paths(table, projection.paths().iter())?;
    }
    Ok(key.item_key(table))
}
