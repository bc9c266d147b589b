//! BatchGetItem: as many items as fit in one response.

use std::sync::Arc;

use zenobe_store::{Key, Reader, Replica, Value};

use crate::Engine;
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
            let outcome = self.batch_get_once(as_of, command, &tables).await;
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
    ) -> Result<BatchGetOutcome> {
        let requests = command.tables.iter().zip(tables);
        let keys = requests
            .map(|(request, table)| item_keys(request, table))
            .collect::<Result<Vec<Vec<Key>>>>()?;
        let mut budget = Budget { left_bytes: RESPONSE_SIZE_BYTES_MAX, used: false };
        let mut outcomes = Vec::with_capacity(command.tables.len());
        for ((request, table), keys) in command.tables.iter().zip(tables).zip(&keys) {
            let past = self.past_if(table, as_of).await?;
            let reader: &dyn Reader = past.as_ref().map_or(&*self.store, |past| past);
            let replica = self.replica(request.consistent || as_of.is_some());
            let got = get_some(reader, replica.as_deref(), request, keys, &mut budget);
            outcomes.push(got.await?);
        }
        Ok(BatchGetOutcome { tables: outcomes })
    }
}

async fn get_some(
    reader: &dyn Reader,
    replica: Option<&dyn Replica>,
    request: &BatchGetTable,
    keys: &[Key],
    budget: &mut Budget,
) -> Result<BatchGetTableOutcome> {
    let mut items = Vec::new();
    let mut consumed = Consumed::none(&request.table, None);
    let mut processed = 0;
    'full: for some_keys in keys.chunks(READ_AT_ONCE) {
        for item in decode_all(&read_some(reader, replica, some_keys).await?)? {
            let item_size_bytes = size_bytes(item.as_ref());
            if !budget.take(item_size_bytes) {
                break 'full;
            }
            processed += 1;
            consumed.table_halves += read_halves(item_size_bytes, request.consistent);
            items.extend(item.map(|item| project(item, request.projection.as_ref())));
        }
    }
    let unprocessed = (processed..keys.len()).collect();
    Ok(BatchGetTableOutcome { items, unprocessed, consumed })
}

/// From a replica, if there is one and it can answer.
async fn read_some(
    reader: &dyn Reader,
    replica: Option<&dyn Replica>,
    keys: &[Key],
) -> Result<Vec<Option<Value>>> {
    if let Some(replica) = replica
        && let Ok(values) = replica.get_many(keys).await
    {
        return Ok(values);
    }
    Ok(reader.get_many(keys).await?)
}

fn item_keys(request: &BatchGetTable, table: &Arc<Table>) -> Result<Vec<Key>> {
    if let Some(projection) = &request.projection {
        check_paths(table, projection.paths().iter())?;
    }
    let schema = &table.definition().keys;
    let key = |key| Ok(PrimaryKey::from_parameter(schema, key)?.item_key(table));
    request.keys.iter().map(key).collect()
}

/// The bytes left in a response. The first item always fits; after one that doesn't, nothing fits.
struct Budget {
    left_bytes: u64,
    used: bool,
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
