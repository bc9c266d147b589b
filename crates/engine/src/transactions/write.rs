//! TransactWriteItems: conditions and writes on many items, decided and committed together.

use std::sync::Arc;

use zenobe_store::Key;
use zenobe_value::EncodedItem;

use crate::Engine;
use crate::background::TOKENS_LEASE;
use crate::capacity_units::TRANSACTION_FACTOR;
use crate::catalog::Table;
use crate::command::{
    ItemCollection, TableName, TransactAction, TransactWrite, TransactWriteOutcome,
    TransactionalUnits,
};
use crate::error::{CancellationReason, Error, IndexKeyError, KeyError, Result};
use crate::keys::{PrimaryKey, check_paths};
use crate::keyspace;
use crate::throughput::Ticket;
use crate::write::commit::{Committed, Terms, WrittenItem, commit};
use crate::write::intent::{Intent, SizeRule, WriteAction};
use crate::write::{check_size, prepare_delete, prepare_put, prepare_update};

use super::token::IdempotencyToken;
use super::{ConsumedByTable, all_admitted, cancelled, replace};

impl Engine {
    pub async fn transact_write(&self, command: TransactWrite) -> Result<TransactWriteOutcome> {
        let steps = command
            .actions
            .iter()
            .map(PreparedAction::new)
            .collect::<Result<Vec<PreparedAction<'_>>>>()?;
        let now_ms = self.clock.now_ms();
        let skew_ms = self.clock_skew_ms();
        let token =
            command.token.as_ref().map(|token| IdempotencyToken::new(token, now_ms, skew_ms));
        let terms = token.as_ref().map_or(Terms::None, Terms::Token);
        let mut tables = self.tables_of(&steps).await?;
        let committed = loop {
            let intents = match prepare(&steps, &tables) {
                Err(_) if self.refresh_stale(&mut tables).await? => continue,
                intents => intents?,
            };
            let admit = |intent| self.admit_write(intent, TRANSACTION_FACTOR);
            let tickets = all_admitted(intents.iter().map(admit).collect())?;
            let committed = match commit(self, &intents, terms).await {
                Err(Error::Conflict) => {
                    let reasons = vec![CancellationReason::Conflict; intents.len()];
                    return Err(Error::TransactionCancelled(reasons));
                }
                committed => committed?,
            };
            match committed {
                Committed::Stale(stale) => {
                    let fresh = self.refresh(&stale).await?;
                    replace(&mut tables, &fresh);
                }
                committed => {
                    self.settle_transaction(tickets, &intents, &committed);
                    break committed;
                }
            }
        };
        let outcome = match committed {
            Committed::Written(written) => outcome(&steps, written),
            Committed::Replayed(repeated) => {
                TransactWriteOutcome { consumed: repeated.consumed, collections: Vec::new() }
            }
            Committed::Refused(errors) => return Err(cancelled(errors)),
            Committed::Stale(_) => unreachable!("a stale definition is refreshed"),
        };
        if token.as_ref().is_some_and(IdempotencyToken::is_cleaner) {
            self.forget_some_tokens().await;
        }
        Ok(outcome)
    }

    /// A transaction whose conditions failed has consumed the units of its checks. A transaction that
    /// met a limit, or that has happened before, writes and consumes nothing.
    fn settle_transaction(
        &self,
        tickets: Vec<Ticket<'_>>,
        intents: &[Intent<'_>],
        committed: &Committed,
    ) {
        match committed {
            Committed::Written(written) => {
                for ((ticket, intent), written) in tickets.into_iter().zip(intents).zip(written) {
                    self.settle_write(ticket, &intent.table, written, TRANSACTION_FACTOR);
                }
            }
            Committed::Refused(errors) => {
                for (ticket, error) in tickets.into_iter().zip(errors) {
                    if let Some(error) = error {
                        self.settle_refused(ticket, error, TRANSACTION_FACTOR);
                    }
                }
            }
            Committed::Replayed(_) | Committed::Stale(_) => {}
        }
    }

    /// Transactions with tokens delete old tokens themselves, so that these can't pile up. The
    /// transaction itself is done: a failure here must not look like its failure.
    async fn forget_some_tokens(&self) {
        // On a shared store only one node does it.
        let lease = match self.is_shared() {
            true => self.leases.held(&keyspace::lease_row(TOKENS_LEASE)),
            false => Some(self.leases.alone()),
        };
        let Some(lease) = lease else { return };
        if let Err(error) = self.forget_expired_tokens(&lease).await {
            tracing::warn!(%error, "expired transaction tokens could not be removed");
        }
    }

    async fn tables_of(&self, steps: &[PreparedAction<'_>]) -> Result<Vec<Arc<Table>>> {
        let mut tables = Vec::with_capacity(steps.len());
        for step in steps {
            tables.push(self.table(step.table()).await?);
        }
        Ok(tables)
    }
}

/// An action whose item is encoded once, however often the action is prepared.
struct PreparedAction<'c> {
    action: &'c TransactAction,
    item: Option<EncodedItem>,
}

impl<'c> PreparedAction<'c> {
    fn new(action: &'c TransactAction) -> Result<PreparedAction<'c>> {
        let item = match action {
            TransactAction::Put(put) => Some(EncodedItem::encode(&put.item)),
            _ => None,
        };
        item.as_ref().map(check_size).transpose()?;
        Ok(PreparedAction { action, item })
    }

    fn table(&self) -> &'c TableName {
        match self.action {
            TransactAction::Put(put) => &put.table,
            TransactAction::Update(update) => &update.table,
            TransactAction::Delete(delete) => &delete.table,
            TransactAction::Check { table, .. } => table,
        }
    }

    fn prepare(&self, table: &Arc<Table>) -> Result<Intent<'c>> {
        let table = Arc::clone(table);
        match (self.action, &self.item) {
            (TransactAction::Put(put), Some(item)) => prepare_put(table, put, item),
            (TransactAction::Put(_), None) => unreachable!("a put's item is encoded"),
            (TransactAction::Update(update), _) => prepare_update(table, update, SizeRule::Flat),
            (TransactAction::Delete(delete), _) => prepare_delete(table, delete),
            (TransactAction::Check { key, condition, .. }, _) => {
                let key = PrimaryKey::from_parameter(&table.definition().keys, key)?;
                check_paths(&table, condition.paths().into_iter())?;
                Ok(Intent::new(table, key, Some(condition), WriteAction::Check))
            }
        }
    }
}

/// Checks all actions against their tables. Some faults fail the request, others cancel the
/// transaction.
fn prepare<'c>(steps: &[PreparedAction<'c>], tables: &[Arc<Table>]) -> Result<Vec<Intent<'c>>> {
    let mut prepared = Vec::with_capacity(steps.len());
    for (step, table) in steps.iter().zip(tables) {
        let intent = step.prepare(table);
        match intent {
            Err(error) if is_request_error(&error) => return Err(error),
            intent => prepared.push(intent),
        }
    }
    let mut keys: Vec<&Key> = prepared.iter().flatten().map(|intent| &intent.item_key).collect();
    keys.sort_unstable();
    if keys.windows(2).any(|neighbours| neighbours[0] == neighbours[1]) {
        return Err(Error::DuplicateTransactionItems);
    }
    if prepared.iter().any(Result::is_err) {
        return Err(cancelled(prepared.into_iter().map(Result::err)));
    }
    prepared.into_iter().collect()
}

/// Empty keys fail the whole request; other faults of keys cancel the transaction.
fn is_request_error(error: &Error) -> bool {
    matches!(
        error,
        Error::Key(KeyError::Empty { .. })
            | Error::IndexKey {
                error: IndexKeyError::Empty { .. } | IndexKeyError::UpdatedEmpty { .. },
                ..
            }
    )
}

fn outcome(steps: &[PreparedAction<'_>], written: Vec<WrittenItem>) -> TransactWriteOutcome {
    let mut consumed = ConsumedByTable::new(TransactionalUnits::Write);
    let mut collections: Vec<(TableName, ItemCollection)> = Vec::new();
    for (step, written) in steps.iter().zip(written) {
        let table = step.table();
        written.charge(consumed.of(table), TRANSACTION_FACTOR);
        if let Some(collection) = written.collection {
            let known = |(other, seen): &(TableName, ItemCollection)| {
                other == table && seen.key == collection.key
            };
            if !collections.iter().any(known) {
                collections.push((table.clone(), collection));
            }
        }
    }
    TransactWriteOutcome { consumed: consumed.tables, collections }
}
