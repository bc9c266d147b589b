//! Reads of single items through the cache.
//!
//! Misses read the store itself, never a replica: what a replica does not show yet would stay in
//! the cache for its whole time to live, although this engine may have written it.

use zenobe_store::Key;

use crate::Engine;
use crate::cache::{FillTicket, ItemCache, Lookup};
use crate::catalog::Table;
use crate::command::{Consumed, GetItem, ReadOutcome};
use crate::error::Result;
use crate::write::decode_stored;

use super::{item_outcome, project};

impl Engine {
    /// `None` if the definition is stale.
    pub(super) async fn get_through(
        &self,
        cache: &ItemCache,
        table: &Table,
        key: Key,
        command: &GetItem,
    ) -> Result<Option<ReadOutcome>> {
        match cache.look_up(&key) {
            Lookup::Hit(item) if !table.is_invalid() => Ok(Some(ReadOutcome {
                item: item.map(|item| project(item, command.projection.as_ref())),
                consumed: Consumed::none(&command.table, None),
            })),
            // A definition that may have changed must be checked.
            Lookup::Hit(_) => Box::pin(self.get_and_keep(None, table, key, command)).await,
            Lookup::Miss(ticket) => {
                let ticket = ticket.map(|ticket| (cache, ticket));
                // On the heap, so that reads without a cache don't have to make room for it.
                Box::pin(self.get_and_keep(ticket, table, key, command)).await
            }
        }
    }

    async fn get_and_keep(
        &self,
        ticket: Option<(&ItemCache, FillTicket)>,
        table: &Table,
        key: Key,
        command: &GetItem,
    ) -> Result<Option<ReadOutcome>> {
        let admitted = self.admit_get(table, &key, command.consistent)?;
        let Some(stored) = self.read_current(table, key.clone()).await? else { return Ok(None) };
        let item = stored.as_ref().map(decode_stored).transpose()?;
        if let Some((cache, ticket)) = ticket {
            cache.fill(key, ticket, item.as_ref());
        }
        let outcome = item_outcome(command, item);
        admitted.settle(outcome.consumed.table_halves);
        Ok(Some(outcome))
    }
}
