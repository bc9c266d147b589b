//! Changes of definitions. Each is one store write: the row under the table's name and the table's
//! version row change together, both locked exclusively. No item write is decided in the meantime,
//! and the next one finds its definition stale.

use std::sync::Arc;

use zenobe_store::{Batch, Key, Store, Value, WriteSet, write_with};

use super::account::{self, AccountCapacity};
use super::{Catalog, Table, definition_row};
use crate::command::TableName;
use crate::error::{Error, LimitError, Result};
use crate::keyspace;
use crate::lease::Lease;
use crate::row::{corrupt, decode_number, encode_number};
use crate::schema::{TableDefinition, TableId};

/// A changed definition. The version is set when it is written.
pub(crate) struct Edit {
    pub(crate) definition: TableDefinition,
    /// Further writes in the same batch, under the same locks.
    pub(crate) batch: Batch,
}

impl Edit {
    pub(crate) fn new(definition: TableDefinition) -> Edit {
        Edit { definition, batch: Batch::new() }
    }
}

pub(crate) struct Changed {
    pub(crate) before: Arc<Table>,
    pub(crate) after: Arc<Table>,
}

/// How often a change starts over because another engine has raised the capacity of the account.
const ACCOUNT_ATTEMPTS_MAX: usize = 20;

/// Why a write of a definition was not committed.
pub(super) enum Refusal {
    /// The name belongs to another table than the one whose version row was locked.
    OtherTable,
    /// The change would have no effect.
    Unchanged(Box<TableDefinition>),
    /// The change raises capacity, and the account's total has not been computed since the last raise.
    AccountUnknown,
    Error(Error),
}

impl Refusal {
    /// The error of a change that can't be repeated with another table.
    fn into_error(self, table: &Table) -> Error {
        match self {
            Refusal::Error(error) => error,
            Refusal::OtherTable | Refusal::Unchanged(_) | Refusal::AccountUnknown => {
                Error::TableNotFound { name: table.name().name.clone() }
            }
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Error(error)
    }
}

impl Catalog {
    /// Writes the definition of a new table, unless the account has no room for it. `build` gets the
    /// table's id once the name is known to be free, and the values of `also`, further keys that the
    /// write reads and locks. The batch that it returns is part of the same write.
    pub(crate) async fn create(
        &self,
        store: &dyn Store,
        name: &TableName,
        lease: &Lease,
        also: &[Key],
        build: impl Fn(TableId, &[Option<Value>]) -> Result<Edit> + Send + Sync,
    ) -> Result<Arc<Table>> {
        let mut last_raised = self.changing.lock().await;
        let own = [
            keyspace::table_row(&name.namespace, &name.name),
            keyspace::table_id_sequence(),
            keyspace::namespace_table_count(&name.namespace),
        ];
        let mut account = last_raised.get(&name.namespace);
        for _ in 0..ACCOUNT_ATTEMPTS_MAX {
            let mut keys = [&own[..], also].concat();
            let raises_at = add_account_key(&mut keys, account, name);
            let decide = |reads: &[Option<Value>]| {
                let (guards, reads) = reads.split_at(lease.guards().len());
                lease.check(guards)?;
                if let Some(row) = &reads[0] {
                    let name = name.name.clone();
                    return Err(Refusal::from(match definition_row::decode_row(row)?.filling {
                        Some(_) => Error::TableFilling { name },
                        None => Error::TableExists { name },
                    }));
                }
                let id = stored_number(reads[1].as_ref())? + 1;
                let also = &reads[own.len()..own.len() + also.len()];
                let Edit { definition, mut batch } = build(TableId(id), also)?;
                let raises = raises_at.and_then(|at| reads[at].as_ref());
                let units_max = self.limits.account_capacity_units_max;
                let raised =
                    account::check(None, &definition, account, raises, units_max, &mut batch)?;
                let count = stored_number(reads[2].as_ref())?;
                if count >= self.limits.tables_max {
                    return Err(Error::Limit(LimitError::Tables).into());
                }
                self.put_definition(&mut batch, &keys[0], &definition);
                batch.put(keys[1].clone(), encode_number(id));
                batch.put(keys[2].clone(), encode_number(count + 1));
                Ok((batch, (definition, raised)))
            };
            let set = WriteSet { guards: lease.guards(), keys: &keys };
            let (definition, raised) = match write(store, set, decide).await? {
                Ok(written) => written,
                Err(Refusal::AccountUnknown) => {
                    account = Some(AccountCapacity::read(store, &name.namespace).await?);
                    continue;
                }
                Err(Refusal::Error(error)) => return Err(error),
                Err(Refusal::OtherTable | Refusal::Unchanged(_)) => {
                    unreachable!("a new table replaces none")
                }
            };
            if let Some(raised) = raised {
                last_raised.set(&name.namespace, raised);
            }
            let table = Arc::new(Table::new(Arc::new(definition)));
            if table.definition().filling.is_none() {
                self.insert(Arc::clone(&table));
            }
            return Ok(table);
        }
        Err(Error::Conflict)
    }

    /// Makes the table that a job has filled ready. `job` is the key of the job's row; `end_job`
    /// gets its value and adds the end of the job to the same write.
    pub(crate) async fn finish_filling(
        &self,
        store: &dyn Store,
        filled: &Table,
        lease: &Lease,
        job: &Key,
        end_job: impl Fn(Option<&Value>, &mut Batch) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let _changing = self.changing.lock().await;
        let finish = |keys: &[Key], mut definition: TableDefinition, reads: &[Option<Value>]| {
            definition.filling = None;
            definition.version += 1;
            let mut batch = Batch::new();
            end_job(reads[2].as_ref(), &mut batch)?;
            self.put_definition(&mut batch, &keys[0], &definition);
            Ok((batch, definition))
        };
        let definition =
            change_filled(store, filled, lease, std::slice::from_ref(job), finish).await?;
        self.insert(Arc::new(Table::new(Arc::new(definition))));
        Ok(())
    }

    /// Removes a table that a job was filling. `end_job` as in [`Catalog::finish_filling`].
    pub(crate) async fn abandon(
        &self,
        store: &dyn Store,
        filled: &Table,
        lease: &Lease,
        job: &Key,
        end_job: impl Fn(Option<&Value>, &mut Batch) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let _changing = self.changing.lock().await;
        let count = keyspace::namespace_table_count(&filled.name().namespace);
        let abandon = |keys: &[Key], _: TableDefinition, reads: &[Option<Value>]| {
            let mut batch = Batch::new();
            end_job(reads[2].as_ref(), &mut batch)?;
            let count = stored_number(reads[3].as_ref())?;
            batch.delete(keys[0].clone());
            batch.delete(keys[1].clone());
            batch.put(keys[3].clone(), encode_number(count.saturating_sub(1)));
            self.count_change(&mut batch);
            Ok((batch, ()))
        };
        change_filled(store, filled, lease, &[job.clone(), count], abandon).await
    }

    /// Lets `decide` edit the definition that is stored now. An edit that changes nothing is not
    /// written.
    pub(crate) async fn change(
        &self,
        store: &dyn Store,
        name: &TableName,
        decide: impl FnMut(&TableDefinition) -> Result<Edit> + Send,
    ) -> Result<Changed> {
        self.change_leased(store, name, &Lease::default(), decide).await
    }

    /// Like [`Catalog::change`], for work under a lease.
    pub(crate) async fn change_leased(
        &self,
        store: &dyn Store,
        name: &TableName,
        lease: &Lease,
        mut decide: impl FnMut(&TableDefinition) -> Result<Edit> + Send,
    ) -> Result<Changed> {
        let decide = |before: &TableDefinition, _: &[Option<Value>]| decide(before);
        self.change_under(store, name, lease, |_| Vec::new(), decide).await
    }

    /// Like [`Catalog::change`], while `lease` holds. `also` are further keys that the edit's batch
    /// writes and that other decisions depend on; `decide` gets their values.
    pub(crate) async fn change_under(
        &self,
        store: &dyn Store,
        name: &TableName,
        lease: &Lease,
        also: impl Fn(TableId) -> Vec<Key> + Send,
        mut decide: impl FnMut(&TableDefinition, &[Option<Value>]) -> Result<Edit> + Send,
    ) -> Result<Changed> {
        let mut last_raised = self.changing.lock().await;
        let mut known = self.known(store, name).await?;
        let row_key = keyspace::table_row(&name.namespace, &name.name);
        let (mut account, mut account_attempts) = (last_raised.get(&name.namespace), 0);
        // Repeats if the change raises the capacity of the account, or if another engine deletes and
        // recreates the table in between.
        loop {
            let mut keys = vec![row_key.clone(), known.guard_key().clone()];
            keys.extend(also(known.definition().id));
            let also_end = keys.len();
            let raises_at = add_account_key(&mut keys, account, name);
            let edit = |reads: &[Option<Value>]| {
                let (guards, reads) = reads.split_at(lease.guards().len());
                lease.check(guards)?;
                let before = stored_definition(reads, &known)?;
                let Edit { mut definition, mut batch } = decide(&before, &reads[2..also_end])?;
                if definition == before && batch.is_empty() {
                    return Err(Refusal::Unchanged(Box::new(before)));
                }
                let raises = raises_at.and_then(|at| reads[at].as_ref());
                let units_max = self.limits.account_capacity_units_max;
                let raised = account::check(
                    Some(&before),
                    &definition,
                    account,
                    raises,
                    units_max,
                    &mut batch,
                )?;
                definition.version = before.version + 1;
                self.put_definition(&mut batch, &row_key, &definition);
                Ok((batch, (before, definition, raised)))
            };
            known.invalidate();
            let set = WriteSet { guards: lease.guards(), keys: &keys };
            let (before, after, raised) = match write(store, set, edit).await? {
                Ok(written) => written,
                Err(Refusal::Unchanged(definition)) => (*definition.clone(), *definition, None),
                Err(Refusal::OtherTable) => {
                    known = self.reload(store, name).await?;
                    continue;
                }
                Err(Refusal::AccountUnknown) if account_attempts < ACCOUNT_ATTEMPTS_MAX => {
                    account_attempts += 1;
                    account = Some(AccountCapacity::read(store, &name.namespace).await?);
                    continue;
                }
                Err(Refusal::AccountUnknown) => {
                    return Err(self.refused(store, name, Error::Conflict).await);
                }
                Err(Refusal::Error(error)) => return Err(self.refused(store, name, error).await),
            };
            if let Some(raised) = raised {
                last_raised.set(&name.namespace, raised);
            }
            let [before, after] = [before, after].map(|it| Arc::new(Table::new(Arc::new(it))));
            self.insert(Arc::clone(&after));
            return Ok(Changed { before, after });
        }
    }

    /// Removes a definition, unless `decide` objects. The batch that `decide` returns is part of
    /// the same write.
    pub(crate) async fn remove_table(
        &self,
        store: &dyn Store,
        name: &TableName,
        mut decide: impl FnMut(&TableDefinition) -> Result<Batch> + Send,
    ) -> Result<Arc<Table>> {
        let _changing = self.changing.lock().await;
        let mut known = self.known(store, name).await?;
        loop {
            let keys = [
                keyspace::table_row(&name.namespace, &name.name),
                known.guard_key().clone(),
                keyspace::namespace_table_count(&name.namespace),
            ];
            let remove = |reads: &[Option<Value>]| {
                let definition = stored_definition(reads, &known)?;
                let mut batch = decide(&definition)?;
                let count = stored_number(reads[2].as_ref())?;
                let count = count.checked_sub(1).ok_or_else(|| {
                    corrupt(format!("no tables are counted, but there is {}", name.name))
                })?;
                batch.delete(keys[0].clone());
                batch.delete(keys[1].clone());
                batch.put(keys[2].clone(), encode_number(count));
                self.count_change(&mut batch);
                Ok((batch, definition))
            };
            known.invalidate();
            let set = WriteSet { guards: &[], keys: &keys };
            match write(store, set, remove).await? {
                Ok(definition) => {
                    self.remove(name);
                    return Ok(Arc::new(Table::new(Arc::new(definition))));
                }
                Err(Refusal::OtherTable) => known = self.reload(store, name).await?,
                Err(Refusal::Unchanged(_) | Refusal::AccountUnknown) => {
                    unreachable!("a removal always has an effect, and raises nothing")
                }
                Err(Refusal::Error(error)) => return Err(self.refused(store, name, error).await),
            }
        }
    }

    async fn known(&self, store: &dyn Store, name: &TableName) -> Result<Arc<Table>> {
        if let Some(table) = self.get(name) {
            return Ok(table);
        }
        match self.find_filling(store, name).await? {
            Some(_) => Err(Error::TableFilling { name: name.name.clone() }),
            None => self.reload(store, name).await,
        }
    }

    /// Nothing was written, so the stored definition is current: the map gets a valid handle again,
    /// or loses a table that is gone.
    async fn refused(&self, store: &dyn Store, name: &TableName, error: Error) -> Error {
        // If the store fails here as well, the handle stays invalidated, which is always safe.
        let _ = self.reload(store, name).await;
        error
    }

    fn put_definition(&self, batch: &mut Batch, row_key: &Key, definition: &TableDefinition) {
        batch.put(row_key.clone(), definition_row::encode_row(definition));
        batch.put(keyspace::version_row(definition.id), encode_number(definition.version));
        self.count_change(batch);
    }

    /// Notifies the other engines on the store that definitions have changed.
    fn count_change(&self, batch: &mut Batch) {
        if self.is_shared() {
            batch.add(keyspace::catalog_changes(), 1);
        }
    }
}

/// Adds the row that counts the raises of the account's capacity, if the account has been added up.
/// Returns where it is.
fn add_account_key(
    keys: &mut Vec<Key>,
    account: Option<AccountCapacity>,
    name: &TableName,
) -> Option<usize> {
    account?;
    keys.push(keyspace::namespace_capacity_raises(&name.namespace));
    Some(keys.len() - 1)
}

async fn write<T: Send>(
    store: &dyn Store,
    set: WriteSet<'_>,
    decide: impl FnMut(&[Option<Value>]) -> Result<(Batch, T), Refusal> + Send,
) -> Result<Result<T, Refusal>> {
    let written = write_with(store, set, decide).await?;
    Ok(written.map(|(value, _)| value))
}

/// Changes a table that a job has been filling, while the job's lease holds. `decide` gets the keys of the
/// table's row and its version row followed by `also`, the stored definition, and the values of the keys.
async fn change_filled<T: Send>(
    store: &dyn Store,
    filled: &Table,
    lease: &Lease,
    also: &[Key],
    decide: impl Fn(&[Key], TableDefinition, &[Option<Value>]) -> Result<(Batch, T)> + Send + Sync,
) -> Result<T> {
    let name = filled.name();
    let row_key = keyspace::table_row(&name.namespace, &name.name);
    let keys = [&[row_key, filled.guard_key().clone()], also].concat();
    let change = |reads: &[Option<Value>]| {
        let (guards, reads) = reads.split_at(lease.guards().len());
        lease.check(guards)?;
        let definition = stored_definition(reads, filled)?;
        Ok(decide(&keys, definition, reads)?)
    };
    let set = WriteSet { guards: lease.guards(), keys: &keys };
    write(store, set, change).await?.map_err(|refusal| refusal.into_error(filled))
}

/// The definition, from the reads of a write that declares a table's row and the version row of
/// `known`.
fn stored_definition(reads: &[Option<Value>], known: &Table) -> Result<TableDefinition, Refusal> {
    let Some(row) = &reads[0] else {
        return Err(Error::TableNotFound { name: known.name().name.clone() }.into());
    };
    let definition = definition_row::decode_row(row)?;
    if definition.id != known.definition().id {
        return Err(Refusal::OtherTable);
    }
    if reads[1].as_deref() != Some(&definition.version.to_be_bytes()[..]) {
        let detail = format!("the version row of table {} disagrees with it", definition.name);
        return Err(corrupt(detail).into());
    }
    Ok(definition)
}

/// The number in a row that may be missing.
pub(super) fn stored_number(row: Option<&Value>) -> Result<u64> {
    row.map_or(Ok(0), |row| decode_number(row))
}
