//! Lists of backups, and how much they take.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use zenobe_store::{Direction, KeyRange};

use crate::Engine;
use crate::error::Result;
use crate::keyspace;
use crate::row::corrupt;
use crate::schema::Namespace;

use super::{Backup, Content};

/// Which backups to list.
#[derive(Debug, Clone)]
pub struct ListBackups<'a> {
    pub namespace: &'a Namespace,
    /// Those of tables with this name, or of all.
    pub table: Option<&'a str>,
    /// Those of users, those that the database made by itself, or both.
    pub users: bool,
    pub systems: bool,
    /// Of their creation, in milliseconds since the epoch.
    pub created_at_ms: Range<u64>,
    /// The id and the table of the backup after which the list begins; it need not exist.
    pub after: Option<(&'a str, &'a str)>,
    pub limit: usize,
}

/// Backups by the time of their creation, oldest first.
#[derive(Debug, Clone)]
pub struct BackupList {
    pub backups: Vec<Backup>,
    pub has_more: bool,
}

/// The backups of tables with one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupSize {
    pub namespace: Namespace,
    pub table: String,
    pub backups: u64,
    /// What they take in the store: their own rows, or what a deleted table has left. A backup that is being copied takes undo
    /// rows of its table, which count as the table's history.
    pub size_bytes: u64,
}

impl Engine {
    pub async fn list_backups(&self, request: &ListBackups<'_>) -> Result<BackupList> {
        let now_ms = self.trusted_clock.read().past_ms;
        let prefix = keyspace::namespace_backups_prefix(request.namespace);
        let range = KeyRange::prefix(match request.table {
            Some(table) => keyspace::table_backups_prefix(request.namespace, table),
            None => prefix.clone(),
        });
        // By id, which begins with the time, and table. Never more than a page and one.
        let mut first: BTreeMap<(String, String), Backup> = BTreeMap::new();
        let mut failure = None;
        let mut visit = |key: &[u8], row: &[u8]| {
            let Some((table, id)) = keyspace::parts_of_backup_row(&prefix, key) else {
                failure = Some(corrupt("the key of a backup's row".to_owned()));
                return ControlFlow::Break(());
            };
            let place = (id, table);
            let is_full = first.len() > request.limit;
            let is_late = is_full && first.last_key_value().is_some_and(|last| *last.0 < place);
            let is_early =
                request.after.is_some_and(|(id, table)| (&*place.0, &*place.1) <= (id, table));
            if is_late || is_early {
                return ControlFlow::Continue(());
            }
            match Backup::decode(row) {
                Ok(backup) if request.shows(&backup, now_ms) => drop(first.insert(place, backup)),
                Ok(_) => {}
                Err(error) => {
                    failure = Some(error);
                    return ControlFlow::Break(());
                }
            }
            if first.len() > request.limit + 1 {
                first.pop_last();
            }
            ControlFlow::Continue(())
        };
        self.store.scan(range, Direction::Forward, &mut visit).await?;
        if let Some(error) = failure {
            return Err(error);
        }
        let has_more = first.len() > request.limit;
        Ok(BackupList { backups: first.into_values().take(request.limit).collect(), has_more })
    }

    /// How many backups there are and what they take, by table.
    pub async fn backup_sizes(&self) -> Result<Vec<BackupSize>> {
        let mut sizes: Vec<BackupSize> = Vec::new();
        let mut failure = None;
        let mut visit = |_: &[u8], row: &[u8]| {
            match Backup::decode(row) {
                Ok(backup) => count(backup, &mut sizes),
                Err(error) => failure = Some(error),
            }
            if failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let range = KeyRange::prefix(keyspace::backups_prefix());
        self.store.scan(range, Direction::Forward, &mut visit).await?;
        failure.map_or(Ok(sizes), Err)
    }
}

impl ListBackups<'_> {
    fn shows(&self, backup: &Backup, now_ms: u64) -> bool {
        let is_of_type = match backup.expires_at_ms() {
            Some(expires_at_ms) => self.systems && expires_at_ms > now_ms,
            None => self.users,
        };
        is_of_type && self.created_at_ms.contains(&backup.created_at_ms)
    }
}

/// Adds a backup to the sizes. Backups come by table.
fn count(backup: Backup, sizes: &mut Vec<BackupSize>) {
    let size_bytes = match backup.content {
        Content::Remains { .. } => backup.statistics.size_bytes,
        Content::Held { .. } => 0,
        Content::Copied { size_bytes } => size_bytes,
    };
    let (namespace, table) = (backup.definition.namespace, backup.definition.name);
    match sizes.last_mut() {
        Some(size) if size.namespace == namespace && size.table == table => {
            size.backups += 1;
            size.size_bytes += size_bytes;
        }
        _ => sizes.push(BackupSize { namespace, table, backups: 1, size_bytes }),
    }
}
