//! The tables of a store: their definitions as stored rows, and an immutable map of them in memory.
//!
//! Lookups read the map without locks. Within an engine, changes of definitions run one after the
//! other (`edit`) and swap the map after their commit. Other engines may share the store. The
//! version row that every item write guards shows when a definition is stale, and a name that is
//! missing from the map is looked up in the store. Callers that walk the whole map follow the store
//! first ([`Catalog::follow`]).

mod account;
pub(crate) mod definition_row;
pub(crate) mod edit;
mod table;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use arc_swap::ArcSwap;
use rustc_hash::FxBuildHasher;
use zenobe_store::{Direction, KeyRange, Reader, Store, read_counter};

use crate::command::TableName;
use crate::error::{Error, Result};
use crate::keyspace;
use crate::options::Limits;
use crate::schema::TableDefinition;

use account::LastRaised;
pub(crate) use table::HistoryKeys;
pub use table::{GuardCheck, StatisticsKeys, Table, TableIndex};

/// Every request looks up its table, so the hash is a cheap one. An account could make its names
/// collide with another's, which costs the other a few microseconds at most: the tables of an
/// account are limited.
pub type Tables = HashMap<TableName, Arc<Table>, FxBuildHasher>;

pub(crate) struct Catalog {
    tables: ArcSwap<Tables>,
    /// Held from before a definition's row is read or written until the map agrees with it.
    changing: tokio::sync::Mutex<LastRaised>,
    limits: Limits,
    /// Whether other engines also change definitions.
    is_shared: AtomicBool,
    /// The store's count of changes when the map last agreed with all definitions.
    changes: AtomicI64,
}

impl Catalog {
    /// Reads every definition in the store.
    pub(crate) async fn load(
        store: &dyn Reader,
        limits: Limits,
        is_shared: bool,
    ) -> Result<Catalog> {
        // Counted before the rows are read: a change in between is followed later.
        let changes = read_counter(store, &keyspace::catalog_changes()).await?;
        Ok(Catalog {
            tables: ArcSwap::from_pointee(load_tables(store).await?),
            changing: tokio::sync::Mutex::default(),
            limits,
            is_shared: AtomicBool::new(is_shared),
            changes: AtomicI64::new(changes),
        })
    }

    pub(crate) fn set_shared(&self, is_shared: bool) {
        self.is_shared.store(is_shared, Ordering::SeqCst);
    }

    fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    /// Makes the map agree with the store on all tables, if any engine has changed a definition
    /// since the last time. Returns whether one had. Does nothing for an engine that does not share
    /// its store.
    pub(crate) async fn follow(&self, store: &dyn Store) -> Result<bool> {
        if !self.is_shared() {
            return Ok(false);
        }
        let changes = read_counter(store, &keyspace::catalog_changes()).await?;
        if changes == self.changes.load(Ordering::SeqCst) {
            return Ok(false);
        }
        let _changing = self.changing.lock().await;
        let mut stored = load_tables(store).await?;
        let known = self.tables.load();
        for (name, table) in &mut stored {
            // Callers that compare handles must not mistake the same definition for another.
            if let Some(known) = known.get(name).filter(|known| known.is_same_version(table)) {
                *table = Arc::clone(known);
            }
        }
        self.tables.store(Arc::new(stored));
        self.changes.store(changes, Ordering::SeqCst);
        Ok(true)
    }

    pub(crate) fn get(&self, name: &TableName) -> Option<Arc<Table>> {
        self.tables.load().get(name).cloned()
    }

    pub(crate) fn tables(&self) -> Arc<Tables> {
        self.tables.load_full()
    }

    /// The table with this name: from the map, or from the store if another engine created it.
    pub(crate) async fn find(&self, store: &dyn Reader, name: &TableName) -> Result<Arc<Table>> {
        match self.get(name) {
            Some(table) => Ok(table),
            // On the heap, so that requests for known tables don't have to make room for it.
            None => Box::pin(self.find_stored(store, name)).await,
        }
    }

    async fn find_stored(&self, store: &dyn Reader, name: &TableName) -> Result<Arc<Table>> {
        // Asked without the lock first, so that requests for missing tables never wait for a change
        // of an existing one.
        let stored = self.stored(store, name).await?;
        if stored.is_none_or(|definition| definition.filling.is_some()) {
            return Err(Error::TableNotFound { name: name.name.clone() });
        }
        let _changing = self.changing.lock().await;
        // The previous holder of the lock may have loaded the same table.
        match self.get(name) {
            Some(table) => Ok(table),
            None => self.reload(store, name).await,
        }
    }

    /// The definition that replaces `stale`, which the store has shown to be outdated.
    pub(crate) async fn refresh(&self, store: &dyn Reader, stale: &Table) -> Result<Arc<Table>> {
        // On the heap, because it is rare.
        Box::pin(self.find_newer(store, stale)).await
    }

    async fn find_newer(&self, store: &dyn Reader, stale: &Table) -> Result<Arc<Table>> {
        let replaced = |table: &Arc<Table>| {
            let (new, old) = (table.definition(), stale.definition());
            (new.id, new.version) > (old.id, old.version)
        };
        if let Some(table) = self.get(stale.name()).filter(replaced) {
            return Ok(table);
        }
        let _changing = self.changing.lock().await;
        // A change that was running when the store replied has swapped the map by now.
        if let Some(table) = self.get(stale.name()).filter(replaced) {
            return Ok(table);
        }
        let table = self.reload(store, stale.name()).await?;
        if !replaced(&table) {
            // Returning it again would send the caller in circles.
            let detail =
                format!("the version row of table {} disagrees with it", stale.name().name);
            return Err(Error::Corrupt { detail });
        }
        Ok(table)
    }

    /// The table with this name, whether or not a job is still filling it.
    pub(crate) async fn find_ready_or_filling(
        &self,
        store: &dyn Reader,
        name: &TableName,
    ) -> Result<Arc<Table>> {
        loop {
            match self.find(store, name).await {
                Err(Error::TableNotFound { .. }) => {}
                found => return found,
            }
            match self.stored(store, name).await? {
                None => return Err(Error::TableNotFound { name: name.name.clone() }),
                Some(definition) if definition.filling.is_some() => {
                    return Ok(Arc::new(Table::new(Arc::new(definition))));
                }
                // Its job has ended, or it was created, between the two reads.
                Some(_) => {}
            }
        }
    }

    /// The table with this name, if a job is filling it. Such tables are not in the map.
    pub(crate) async fn find_filling(
        &self,
        store: &dyn Reader,
        name: &TableName,
    ) -> Result<Option<Arc<Table>>> {
        let stored = self.stored(store, name).await?;
        let filling = stored.filter(|definition| definition.filling.is_some());
        Ok(filling.map(|definition| Arc::new(Table::new(Arc::new(definition)))))
    }

    async fn stored(
        &self,
        store: &dyn Reader,
        name: &TableName,
    ) -> Result<Option<TableDefinition>> {
        let row = store.get(&keyspace::table_row(&name.namespace, &name.name)).await?;
        row.map(|row| definition_row::decode_row(&row)).transpose()
    }

    /// Makes the map agree with the store on one name. The caller holds `changing`.
    async fn reload(&self, store: &dyn Reader, name: &TableName) -> Result<Arc<Table>> {
        let stored = self.stored(store, name).await?;
        let Some(definition) = stored.filter(|definition| definition.filling.is_none()) else {
            self.remove(name);
            return Err(Error::TableNotFound { name: name.name.clone() });
        };
        let table = Arc::new(Table::new(Arc::new(definition)));
        self.insert(Arc::clone(&table));
        Ok(table)
    }

    fn insert(&self, table: Arc<Table>) {
        let mut tables = Tables::clone(&self.tables.load());
        tables.insert(table.name().clone(), table);
        self.tables.store(Arc::new(tables));
    }

    fn remove(&self, name: &TableName) {
        let mut tables = Tables::clone(&self.tables.load());
        tables.remove(name);
        self.tables.store(Arc::new(tables));
    }
}

/// A row that doesn't decode is an error: continuing without a table would mean losing it.
async fn load_tables(store: &dyn Reader) -> Result<Tables> {
    let mut tables = Tables::default();
    let mut failure = None;
    let mut visit = |key: &[u8], row: &[u8]| match loaded_table(key, row) {
        Ok(table) => {
            // Nothing may find a table before it is filled.
            if table.definition().filling.is_none() {
                tables.insert(table.name().clone(), Arc::new(table));
            }
            ControlFlow::Continue(())
        }
        Err(error) => {
            tracing::error!(?key, %error, "a table's definition does not decode");
            failure = Some(error);
            ControlFlow::Break(())
        }
    };
    let range = KeyRange::prefix(keyspace::tables_prefix());
    store.scan(range, Direction::Forward, &mut visit).await?;
    failure.map_or(Ok(tables), Err)
}

fn loaded_table(key: &[u8], row: &[u8]) -> Result<Table> {
    let definition = definition_row::decode_row(row)?;
    if keyspace::table_row(&definition.namespace, &definition.name) != key {
        let detail = format!("the row of table {} is under another name", definition.name);
        return Err(Error::Corrupt { detail });
    }
    Ok(Table::new(Arc::new(definition)))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use futures_util::FutureExt;
    use futures_util::future::join_all;
    use zenobe_store::memory::MemoryStore;

    use super::*;
    use crate::command::{CreateTable, TableName};
    use crate::schema::{KeyAttribute, KeySchema, Namespace, ScalarType};
    use crate::{Engine, EngineOptions};

    pub(crate) fn create_table(name: &TableName) -> CreateTable {
        let partition = KeyAttribute { name: "pk".into(), scalar_type: ScalarType::S };
        let keys = KeySchema { partition: vec![partition], sort: Vec::new() };
        CreateTable::on_demand(name.clone(), BTreeMap::from([("pk".into(), ScalarType::S)]), keys)
    }

    /// Requests that all miss a new table of another engine load it once.
    #[tokio::test]
    async fn a_missing_table_is_loaded_once() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::shared());
        let open = || Engine::open(Arc::clone(&store), EngineOptions::default());
        let (one, other) = (open().await.unwrap(), open().await.unwrap());
        let namespace = Arc::new(Namespace { account: "1".into(), region: "r".into() });
        let name = TableName { namespace, name: "t".into() };
        one.create_table(create_table(&name)).await.unwrap();

        let changing = other.catalog.changing.lock().await;
        let mut finds: Vec<_> = (0..5).map(|_| other.table(&name).boxed()).collect();
        for find in &mut finds {
            assert!(find.now_or_never().is_none(), "it waits for whoever changes the map");
        }
        drop(changing);
        let tables: Vec<_> = join_all(finds).await.into_iter().map(Result::unwrap).collect();
        assert!(tables.iter().all(|table| Arc::ptr_eq(table, &tables[0])));
    }
}
