//! Writes of single items. A command becomes an [`Intent`] once it has been checked against its
//! table; [`commit`] then executes intents, one for a plain write, many for a transaction.

mod collections;
pub(crate) mod commit;
mod delete;
pub(crate) mod intent;
mod put;
mod update;

use std::sync::Arc;

use zenobe_value::{DecodeError, EncodedItem};

use crate::Engine;
use crate::capacity_units::{PLAIN_FACTOR, item_write_halves};
use crate::catalog::Table;
use crate::command::{Consumed, DeleteItem, PutItem, RuleSet, TableName, UpdateItem, WriteOutcome};
use crate::error::{Error, Result};
use crate::throughput::cause::Access;
use crate::throughput::{Demand, Ticket};

use self::commit::{Committed, Terms, WrittenItem, commit};
use self::intent::{Intent, SizeRule};

pub(crate) use delete::prepare_delete;
pub(crate) use put::{check_size, prepare_put};
pub(crate) use update::prepare_update;

impl Engine {
    pub async fn put_item(&self, command: PutItem) -> Result<WriteOutcome> {
        let item = EncodedItem::encode(&command.item);
        check_size(&item)?;
        self.write_item(&command.table, |table| prepare_put(table, &command, &item)).await
    }

    pub async fn delete_item(&self, command: DeleteItem) -> Result<WriteOutcome> {
        self.write_item(&command.table, |table| prepare_delete(table, &command)).await
    }

    pub async fn update_item(&self, command: UpdateItem) -> Result<WriteOutcome> {
        self.update_item_as(RuleSet::Expressions, command).await
    }

    pub async fn update_item_as(
        &self,
        rules: RuleSet,
        command: UpdateItem,
    ) -> Result<WriteOutcome> {
        let size_rule = match rules {
            RuleSet::Expressions => SizeRule::Update,
            RuleSet::PartiQl => SizeRule::Flat,
        };
        self.write_item(&command.table, |table| prepare_update(table, &command, size_rule)).await
    }

    /// Prepares a write against the table's definition and commits it. Repeats that if the
    /// definition has changed.
    pub(crate) async fn write_item<'c>(
        &self,
        name: &'c TableName,
        prepare: impl Fn(Arc<Table>) -> Result<Intent<'c>> + Send,
    ) -> Result<WriteOutcome> {
        let mut table = self.table(name).await?;
        loop {
            let intents = match prepare(Arc::clone(&table)) {
                Ok(intent) => [intent],
                Err(error) => {
                    table = self.refresh_after(&table, error).await?;
                    continue;
                }
            };
            let ticket = self.admit_write(&intents[0], PLAIN_FACTOR)?;
            match commit(self, &intents, Terms::None).await? {
                Committed::Written(written) => {
                    let written = only(written);
                    self.settle_write(ticket, &table, &written, PLAIN_FACTOR);
                    return Ok(outcome(name, &table, written));
                }
                Committed::Refused(errors) => {
                    let error = only(errors).expect("a refused write has an error");
                    self.settle_refused(ticket, &error, PLAIN_FACTOR);
                    return Err(error);
                }
                Committed::Stale(stale) => table = self.refresh(&stale).await?,
                Committed::Replayed(_) => unreachable!("a plain write has no token"),
            }
        }
    }

    /// Admits a write, before anything is read or locked for it.
    pub(crate) fn admit_write<'i>(
        &self,
        intent: &'i Intent<'_>,
        table_factor: u64,
    ) -> Result<Ticket<'i>> {
        let halves_min = item_write_halves(0, table_factor);
        let (table, key) = (&intent.table, &intent.item_key);
        self.admit(table, Demand::item(Access::Write, table, key, halves_min))
    }
}

fn outcome(name: &TableName, table: &Table, written: WrittenItem) -> WriteOutcome {
    let mut consumed = Consumed::none(name, None);
    written.charge(&mut consumed, PLAIN_FACTOR);
    WriteOutcome {
        table: Arc::clone(table.definition()),
        old: written.old,
        new: written.new,
        consumed,
        collection: written.collection,
    }
}

/// The single element of the outcome of a single intent.
fn only<T>(elements: Vec<T>) -> T {
    let [element] = <[T; 1]>::try_from(elements)
        .unwrap_or_else(|elements| panic!("one intent, {} outcomes", elements.len()));
    element
}

/// Stored bytes that don't decode are an error, never an empty item.
pub(crate) fn decode_stored(value: &zenobe_store::Value) -> Result<EncodedItem> {
    EncodedItem::from_bytes(value.clone()).map_err(|error| corrupt_item(&error))
}

/// What the bytes of a stored item that don't decode mean.
pub(crate) fn corrupt_item(error: &DecodeError) -> Error {
    tracing::error!(%error, "a stored item does not decode");
    Error::Corrupt { detail: format!("a stored item: {error}") }
}
