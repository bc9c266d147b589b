//! The time-to-live setting of a table.

use zenobe_store::{KeyRange, Value};

use crate::Engine;
use crate::catalog::edit::Edit;
use crate::command::{TableName, UpdateTimeToLive};
use crate::error::{Error, Result, TimeToLiveError};
use crate::keyspace;
use crate::lease::Lease;
use crate::schema::TableDefinition;

impl Engine {
    pub async fn update_time_to_live(&self, request: UpdateTimeToLive) -> Result<()> {
        let now_ms = self.clock.now_ms();
        let interval_ms = self.limits.time_to_live_change_interval_ms;
        let decide = |before: &TableDefinition, _: &[Option<Value>]| {
            let mut edit = Edit::new(before.clone());
            apply(&mut edit.definition, &request, now_ms, interval_ms)
                .map_err(Error::TimeToLive)?;
            let entries = keyspace::expiry_prefix(before.id);
            if edit.definition.ttl_attribute.is_none() {
                self.discard(&entries, &mut edit.batch);
                edit.batch.delete(keyspace::expiry_backfill_progress(before.id));
            } else if self.is_shared() {
                // The previous index had the same keys, and may not be gone yet.
                edit.batch.delete_range(KeyRange::prefix(entries.clone()));
                edit.batch.delete(keyspace::garbage_row(&entries));
            }
            Ok(edit)
        };
        let garbage = |id| vec![keyspace::garbage_row(&keyspace::expiry_prefix(id))];
        let (name, nobodys) = (&request.table, Lease::default());
        self.catalog.change_under(&*self.store, name, &nobodys, garbage, decide).await?;
        // Existing items get their entries in the background.
        self.background.wake();
        Ok(())
    }

    /// The attribute that holds the items' expiry, if time to live is enabled.
    pub async fn describe_time_to_live(&self, name: &TableName) -> Result<Option<String>> {
        Ok(self.current_table(name).await?.definition().ttl_attribute.clone())
    }
}

fn apply(
    definition: &mut TableDefinition,
    request: &UpdateTimeToLive,
    now_ms: u64,
    interval_ms: u64,
) -> Result<(), TimeToLiveError> {
    match &definition.ttl_attribute {
        Some(current) if *current != request.attribute => {
            return Err(TimeToLiveError::OtherAttribute { current: current.clone() });
        }
        Some(_) if request.enabled => return Err(TimeToLiveError::AlreadyEnabled),
        None if !request.enabled => return Err(TimeToLiveError::AlreadyDisabled),
        Some(_) | None => {}
    }
    if let Some(changed_at_ms) = definition.ttl_changed_at_ms
        && now_ms.saturating_sub(changed_at_ms) < interval_ms
    {
        return Err(TimeToLiveError::ChangedTooOften);
    }
    definition.ttl_attribute = request.enabled.then(|| request.attribute.clone());
    definition.ttl_changed_at_ms = Some(now_ms);
    definition.ttl_indexed = false;
    Ok(())
}
