//! The tables that jobs fill.

use std::sync::Arc;

use zenobe_store::{Batch, Key, KeyRange, Value, WriteSet, write_with};
use zenobe_value::Attributes;

use super::job::continued;
use super::{FailedTable, JobRow, NewJob, key_of};
use crate::Engine;
use crate::catalog::Table;
use crate::command::{CreateTable, TableName};
use crate::error::{Error, Result};
use crate::lease::Lease;
use crate::schema::{Filling, RestoreSource};
use crate::tables::prefixes_of_table;

impl Engine {
    /// Creates the table that a job will fill.
    ///
    /// # Errors
    /// [`Error::TableExists`] if the name is taken.
    pub async fn create_filling_table(
        &self,
        request: CreateTable,
        filling: Filling,
        lease: &Lease,
    ) -> Result<Arc<Table>> {
        self.new_table(request, Some(filling), lease, &[], |_, _| Ok(())).await
    }

    /// Starts a job and creates the table that it will fill, in one write, so that neither is ever
    /// there without the other. The job has no token. `claim` gets the values of `also`, further
    /// keys that the write reads and locks, and adds to the same write.
    ///
    /// # Errors
    /// [`Error::TableExists`] or [`Error::TableFilling`] if the name is taken, and those of `claim`.
    pub(crate) async fn start_filling_job(
        &self,
        new: NewJob,
        request: CreateTable,
        source: Option<RestoreSource>,
        also: &[Key],
        claim: impl Fn(&JobRow, &[Option<Value>], &mut Batch) -> Result<()> + Send + Sync,
    ) -> Result<Arc<Table>> {
        let row = self.new_job_row(new);
        let filling = Filling { job_kind: row.kind.clone(), job_id: row.id.clone(), source };
        let nobodys = Lease::default();
        let add = |reads: &[Option<Value>], batch: &mut Batch| {
            batch.put(key_of(&row), row.encode());
            claim(&row, reads, batch)
        };
        let table = self.new_table(request, Some(filling), &nobodys, also, add).await?;
        self.background.wake();
        Ok(table)
    }

    /// The table that a job is filling, if it still does.
    pub async fn filling_table(
        &self,
        name: &TableName,
        job_id: &str,
    ) -> Result<Option<Arc<Table>>> {
        let table = self.catalog.find_filling(&*self.store, name).await?;
        let is_owned = |table: &Arc<Table>| {
            let filling = table.definition().filling.as_ref();
            filling.is_some_and(|filling| filling.job_id == job_id)
        };
        Ok(table.filter(is_owned))
    }

    /// Stores the end of a job, whose progress was `before`, and settles the table that it was filling, in one
    /// write.
    pub(super) async fn end_job(
        &self,
        before: &Attributes,
        ended: &JobRow,
        table: FailedTable,
        lease: &Lease,
    ) -> Result<()> {
        let name = ended.table.as_ref().map(|name| TableName {
            namespace: Arc::new(ended.namespace.clone()),
            name: name.clone(),
        });
        let filled = match &name {
            Some(name) => self.filling_table(name, &ended.id).await?,
            None => None,
        };
        let key = key_of(ended);
        let put_row = |stored: Option<&Value>, batch: &mut Batch| {
            continued(stored, before)?;
            batch.put(key.clone(), ended.encode());
            Ok(())
        };
        match (filled, table) {
            (None, _) => self.write_end(&key, lease, put_row).await,
            (Some(filled), FailedTable::Keep) => {
                let (store, catalog) = (&*self.store, &self.catalog);
                catalog.finish_filling(store, &filled, lease, &key, put_row).await
            }
            (Some(filled), FailedTable::Delete) => {
                let prefixes = prefixes_of_table(filled.definition().id);
                let discard = |stored: Option<&Value>, batch: &mut Batch| {
                    put_row(stored, batch)?;
                    prefixes.iter().for_each(|prefix| self.discard(prefix, batch));
                    Ok(())
                };
                self.catalog.abandon(&*self.store, &filled, lease, &key, discard).await?;
                self.background.reclaim(prefixes.map(KeyRange::prefix).to_vec());
                Ok(())
            }
        }
    }

    async fn write_end(
        &self,
        key: &Key,
        lease: &Lease,
        put_row: impl Fn(Option<&Value>, &mut Batch) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let set = WriteSet { guards: lease.guards(), keys: std::slice::from_ref(key) };
        let written = write_with(&*self.store, set, |reads| {
            let (guards, rows) = reads.split_at(lease.guards().len());
            lease.check(guards)?;
            let mut batch = Batch::new();
            put_row(rows[0].as_ref(), &mut batch)?;
            Ok::<_, Error>((batch, ()))
        });
        written.await??;
        Ok(())
    }
}
