//! Transactions: many items, all or nothing, from one state.

mod get;
pub(crate) mod token;
mod write;

use std::sync::Arc;

use crate::catalog::Table;
use crate::command::{Consumed, TableName, TransactionalUnits};
use crate::error::{CancellationReason, Error, Result};
use crate::throughput::Ticket;

/// Capacity per table, in the order of first mention.
struct ConsumedByTable {
    units: TransactionalUnits,
    tables: Vec<Consumed>,
}

impl ConsumedByTable {
    fn new(units: TransactionalUnits) -> ConsumedByTable {
        ConsumedByTable { units, tables: Vec::new() }
    }

    fn of(&mut self, table: &TableName) -> &mut Consumed {
        let position = self.tables.iter().position(|consumed| consumed.table == *table);
        let position = position.unwrap_or_else(|| {
            self.tables.push(Consumed::none(table, Some(self.units)));
            self.tables.len() - 1
        });
        &mut self.tables[position]
    }
}

/// Replaces a stale definition with the refreshed one, wherever a transaction mentions the table.
fn replace(tables: &mut [Arc<Table>], fresh: &Arc<Table>) {
    for table in tables.iter_mut().filter(|table| table.name() == fresh.name()) {
        *table = Arc::clone(fresh);
    }
}

/// All tickets, or the cancellation of a transaction of which some actions met a limit.
fn all_admitted<'t>(admitted: Vec<Result<Ticket<'t>>>) -> Result<Vec<Ticket<'t>>> {
    if admitted.iter().any(Result::is_err) {
        return Err(cancelled(admitted.into_iter().map(Result::err)));
    }
    admitted.into_iter().collect()
}

/// A cancelled transaction. Reports every failed condition, but only the first invalid action.
fn cancelled(errors: impl IntoIterator<Item = Option<Error>>) -> Error {
    let mut invalid_reported = false;
    let reason = |error: Option<Error>| match error {
        None => CancellationReason::None,
        Some(Error::ConditionFailed { item }) => CancellationReason::ConditionFailed { item },
        Some(Error::CollectionTooLarge) => CancellationReason::CollectionTooLarge,
        Some(Error::Throttled(throttled)) => CancellationReason::Throttled(throttled),
        Some(_) if invalid_reported => CancellationReason::None,
        Some(invalid) => {
            invalid_reported = true;
            CancellationReason::Invalid(Box::new(invalid))
        }
    };
    Error::TransactionCancelled(errors.into_iter().map(reason).collect())
}
