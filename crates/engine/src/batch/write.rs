//! BatchWriteItem: checks all requests first, then runs each as a write of its own.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use futures_util::future::join_all;
use zenobe_store::{Key, Value, decode_counter};
use zenobe_value::{Attributes, EncodedItem};

use crate::Engine;
use crate::catalog::Table;
use crate::change::index_key_checks;
use crate::command::{
    BatchWrite, BatchWriteOutcome, BatchWriteRequest, BatchWriteTable, BatchWriteTableOutcome,
    Consumed, ItemCollection, TableName, WriteOutcome,
};
use crate::error::{Error, KeyError, Result};
use crate::keys::{PrimaryKey, push_checked};
use crate::keyspace;
use crate::schema::TableDefinition;
use crate::throughput::cause::Throttled;
use crate::write::check_size;
use crate::write::intent::{Intent, WriteAction};

impl Engine {
    pub async fn batch_write(&self, command: BatchWrite) -> Result<BatchWriteOutcome> {
        let mut tables = Vec::with_capacity(command.tables.len());
        for table in &command.tables {
            let writes: Result<Vec<Write<'_>>> = table.requests.iter().map(Write::new).collect();
            tables.push((&table.table, writes?));
        }
        self.check_batch(&tables).await?;
        // The writes run side by side, so that they share group commits. They are independent: if
        // one fails, the rest still happen before the failure is reported.
        let writes = tables.iter().flat_map(|(name, writes)| {
            writes.iter().map(|write| self.write_item(name, |table| write.prepare(table)))
        });
        let outcomes = join_all(writes).await;
        drop(tables);
        let mut outcomes = processed(outcomes)?.into_iter();
        let mut by_table = Vec::with_capacity(command.tables.len());
        for BatchWriteTable { table, requests } in command.tables {
            let written: Vec<Option<WriteOutcome>> =
                outcomes.by_ref().take(requests.len()).collect();
            let mut outcome = self.table_outcome(&table, written.iter().flatten()).await?;
            let requests = requests.into_iter().zip(&written);
            let unprocessed = requests.filter(|(_, written)| written.is_none());
            outcome.unprocessed = unprocessed.map(|(request, _)| request).collect();
            by_table.push(outcome);
        }
        Ok(BatchWriteOutcome { tables: by_table })
    }

    async fn table_outcome(
        &self,
        name: &TableName,
        writes: impl Iterator<Item = &WriteOutcome>,
    ) -> Result<BatchWriteTableOutcome> {
        let mut consumed = Consumed::none(name, None);
        let mut keys: BTreeMap<Key, Attributes> = BTreeMap::new();
        for write in writes {
            consumed.add(&write.consumed);
            if let Some(collection) = &write.collection {
                keys.insert(
                    collection_counter(&write.table, &collection.key),
                    collection.key.clone(),
                );
            }
        }
        // Writes that ran side by side did not see each other's additions to a collection, so its
        // size is read again.
        let (counters, keys): (Vec<Key>, Vec<Attributes>) = keys.into_iter().unzip();
        let sizes = self.store.get_many(&counters).await?;
        let collection = |(key, size): (Attributes, Option<Value>)| {
            let size_bytes = u64::try_from(decode_counter(size.as_deref())?).unwrap_or(0);
            Ok(ItemCollection { key, size_bytes })
        };
        let collections = keys.into_iter().zip(sizes).map(collection).collect::<Result<_>>()?;
        Ok(BatchWriteTableOutcome { consumed, collections, unprocessed: Vec::new() })
    }

    /// Nothing is written unless every request is valid.
    async fn check_batch(&self, tables: &[(&TableName, Vec<Write<'_>>)]) -> Result<()> {
        let mut handles = Vec::with_capacity(tables.len());
        for (name, _) in tables {
            handles.push(self.table(name).await?);
        }
        loop {
            let checked = check_requests(tables, &handles);
            if !self.refresh_stale(&mut handles).await? {
                return checked;
            }
        }
    }
}

/// What each write did, or `None` if it met a limit of throughput. If they all did, the batch fails.
fn processed(outcomes: Vec<Result<WriteOutcome>>) -> Result<Vec<Option<WriteOutcome>>> {
    let mut throttled: Option<Box<Throttled>> = None;
    let mut processed = Vec::with_capacity(outcomes.len());
    for outcome in outcomes {
        match outcome {
            Err(Error::Throttled(reasons)) => {
                processed.push(None);
                Throttled::add(&mut throttled, reasons);
            }
            outcome => processed.push(Some(outcome?)),
        }
    }
    match throttled {
        Some(throttled) if processed.iter().all(Option::is_none) => {
            Err(Error::Throttled(throttled))
        }
        _ => Ok(processed),
    }
}

fn check_requests(tables: &[(&TableName, Vec<Write<'_>>)], handles: &[Arc<Table>]) -> Result<()> {
    let mut seen: HashSet<Key> = HashSet::new();
    let mut duplicates = false;
    for ((_, writes), table) in tables.iter().zip(handles) {
        for write in writes {
            duplicates |= !seen.insert(write.prepare(Arc::clone(table))?.item_key);
        }
    }
    if duplicates { Err(Error::DuplicateKeys) } else { Ok(()) }
}

enum Write<'c> {
    Put { item: &'c Attributes, encoded: EncodedItem },
    Delete { key: &'c Attributes },
}

impl<'c> Write<'c> {
    fn new(request: &'c BatchWriteRequest) -> Result<Write<'c>> {
        Ok(match request {
            BatchWriteRequest::Put(item) => {
                let encoded = EncodedItem::encode(item);
                check_size(&encoded)?;
                Write::Put { item, encoded }
            }
            BatchWriteRequest::Delete(key) => Write::Delete { key },
        })
    }

    fn prepare(&self, table: Arc<Table>) -> Result<Intent<'c>> {
        let keys = &table.definition().keys;
        let (key, action) = match self {
            Write::Put { item, encoded } => {
                let key = PrimaryKey::from_item(keys, item).map_err(batch_key_error)?;
                index_key_checks::check_put(&table, encoded.as_item())?;
                (key, WriteAction::Put(encoded.clone()))
            }
            Write::Delete { key } => (PrimaryKey::from_parameter(keys, key)?, WriteAction::Delete),
        };
        Ok(Intent::new(table, key, None, action))
    }
}

/// Batches say less than PutItem about a key that is missing or of the wrong type.
fn batch_key_error(error: KeyError) -> KeyError {
    match error {
        KeyError::Missing { .. } | KeyError::TypeMismatch { .. } => KeyError::SchemaMismatch,
        other => other,
    }
}

/// The counter of the item collection with this partition key.
fn collection_counter(table: &TableDefinition, partition: &Attributes) -> Key {
    let mut bytes = Vec::new();
    partition.values().for_each(|value| push_checked(value, &mut bytes));
    keyspace::collection_size(table.id, &bytes)
}
