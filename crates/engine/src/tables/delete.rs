//! DeleteTable: one atomic write removes the definition, the items and everything derived from
//! them, or turns them into garbage.

use zenobe_store::{Batch, Key, KeyRange, Mutation};

use crate::Engine;
use crate::command::TableName;
use crate::error::{Error, Result};
use crate::keyspace;
use crate::schema::{IndexStatus, TableDefinition, TableDescription, TableId};
use crate::streams;

impl Engine {
    /// Deletes a table. The name is free again when this returns; reclaiming the space is
    /// background work.
    pub async fn delete_table(&self, name: &TableName) -> Result<TableDescription> {
        let last_seen = self.describe_table(name).await?;
        let moment = self.trusted_clock.read();
        let decide = |definition: &TableDefinition| {
            check_deletable(definition)?;
            let mut batch = Batch::new();
            self.discard_table(definition, &last_seen, moment.plausible_ms, &mut batch);
            streams::retire(definition, moment.stamp_ms, &mut batch);
            Ok(batch)
        };
        let table = self.catalog.remove_table(&*self.store, name, decide).await?;
        self.announcements.announce(name);
        let prefixes = prefixes_of_table(table.definition().id);
        self.background.reclaim(prefixes.map(KeyRange::prefix).to_vec());
        Ok(TableDescription { definition: table.definition().clone(), ..last_seen })
    }
}

impl Engine {
    /// Discards what belongs to a table. With point-in-time recovery, its items and their history stay as a backup. They also
    /// stay for backups that are still being copied, until the last of these is complete.
    fn discard_table(
        &self,
        definition: &TableDefinition,
        last_seen: &TableDescription,
        now_ms: u64,
        batch: &mut Batch,
    ) {
        let items = keyspace::item_prefix(definition.id);
        let is_kept = |prefix: &&Key| definition.undo_era().is_some() && **prefix == items;
        let prefixes = prefixes_of_table(definition.id);
        for prefix in prefixes.iter().filter(|prefix| !is_kept(prefix)) {
            self.discard(prefix, batch);
        }
        if definition.history_eras > 0 {
            let log = keyspace::undo_rows_prefix(definition.id);
            batch.mutations.push(Mutation::ForgetLog { log });
        }
        if definition.history.is_some() {
            self.keep_as_backup(definition, last_seen, now_ms, batch);
        }
    }
}

fn check_deletable(definition: &TableDefinition) -> Result<()> {
    if definition.filling.is_some() {
        return Err(Error::TableFilling { name: definition.name.clone() });
    }
    if definition.deletion_protection {
        return Err(Error::DeletionProtected);
    }
    if definition.indexes().any(|index| index.status != IndexStatus::Active) {
        return Err(Error::IndexesInFlux);
    }
    Ok(())
}

/// Everything that belongs to a table, except its streams, which stay readable for a day.
pub(crate) fn prefixes_of_table(id: TableId) -> [Key; 8] {
    [
        keyspace::item_prefix(id),
        keyspace::local_indexes_prefix(id),
        keyspace::global_indexes_prefix(id),
        keyspace::statistics_prefix(id),
        keyspace::collection_size_prefix(id),
        keyspace::backfill_progress_prefix(id),
        keyspace::expiry_prefix(id),
        keyspace::partition_maps_prefix(id),
    ]
}
