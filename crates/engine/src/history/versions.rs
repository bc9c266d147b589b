//! The history of one item.

use std::ops::ControlFlow;

use zenobe_store::stamp::stamped_key;
use zenobe_store::{Direction, KeyRange, Stamp, Value};
use zenobe_value::{Attributes, EncodedItem};

use crate::Engine;
use crate::command::TableName;
use crate::error::{Error, HistoryError, Result};
use crate::keys::PrimaryKey;
use crate::keyspace;
use crate::schema::TableDefinition;
use crate::write::decode_stored;

use super::RecoveryWindow;

/// What a page of versions may add up to.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// A page holds at least three rows, however large: a version, its start and its predecessor.
const PAGE_ROWS_MIN: usize = 3;

/// What an item was, newest first.
#[derive(Debug, Clone)]
pub struct ItemHistory {
    pub table: std::sync::Arc<TableDefinition>,
    pub versions: Vec<Version>,
    /// Whether there are older versions than these.
    pub more: bool,
    pub window: RecoveryWindow,
}

#[derive(Debug, Clone)]
pub struct Version {
    /// When the change that made it was committed; `None` if it predates the history.
    pub since: Option<Stamp>,
    /// `None` if there was no item.
    pub item: Option<EncodedItem>,
}

impl Engine {
    /// The newest `limit` versions of an item, fewer if they are large, and whether there are more. `before` continues after the version with that
    /// stamp.
    pub async fn item_history(
        &self,
        name: &TableName,
        key: &Attributes,
        before: Option<Stamp>,
        limit: usize,
    ) -> Result<ItemHistory> {
        let table = self.current_table(name).await?;
        let definition = table.definition();
        let (Some(settings), Some(history)) = (&definition.history, table.history()) else {
            return Err(HistoryError::Off { table: definition.name.clone() }.into());
        };
        let window = RecoveryWindow::new(settings, self.trusted_clock.read().plausible_ms, 0);
        let key = PrimaryKey::from_parameter(&definition.keys, key)?;
        let item_key = key.item_key(&table);
        let now = self.store.snapshot();
        let undo_key = keyspace::undo_key(&history.prefix, &item_key);
        let mut rows = KeyRange::prefix(undo_key.clone());
        if let Some(before) = before {
            rows.end = Some(stamped_key(&undo_key, before.next()));
        }
        let oldest = Stamp::first_of_ms(window.earliest_ms);
        let mut collected = Collected { limit, oldest, ..Collected::default() };
        let mut visit =
            |row: &[u8], image: &[u8]| match keyspace::parts_of_undo(table.item_prefix(), row) {
                Some((_, stamp)) => collected.visit(stamp, image),
                None => {
                    collected.damage = true;
                    ControlFlow::Break(())
                }
            };
        now.scan(rows, Direction::Reverse, &mut visit).await?;
        if collected.damage {
            return Err(Error::Corrupt { detail: "the key of an undo row".to_owned() });
        }
        let current = if before.is_none() { now.get(&item_key).await? } else { None };
        let (versions, more) = collected.finish(before.is_none(), current)?;
        Ok(ItemHistory { table: definition.clone(), versions, more, window })
    }
}

/// Undo rows, newest first. A row holds the image that was current until its stamp. At that stamp began the image of the row
/// before it in this order.
#[derive(Default)]
struct Collected {
    limit: usize,
    oldest: Stamp,
    rows: Vec<(Stamp, Option<Value>)>,
    size_bytes: usize,
    more: bool,
    damage: bool,
}

impl Collected {
    fn visit(&mut self, stamp: Stamp, image: &[u8]) -> ControlFlow<()> {
        if stamp < self.oldest {
            return ControlFlow::Break(());
        }
        let is_full = self.rows.len() >= PAGE_ROWS_MIN && self.size_bytes >= PAGE_BYTES_MAX;
        if self.rows.len() > self.limit || is_full {
            self.more = true;
            return ControlFlow::Break(());
        }
        let image = (!image.is_empty()).then(|| Value::copy_from_slice(image));
        self.size_bytes += image.as_ref().map_or(0, |image| image.len());
        self.rows.push((stamp, image));
        ControlFlow::Continue(())
    }

    fn finish(self, from_now: bool, current: Option<Value>) -> Result<(Vec<Version>, bool)> {
        let decode = |image: Option<Value>| image.as_ref().map(decode_stored).transpose();
        let mut rows = self.rows.into_iter();
        // The image of each row is a version; the current one comes first.
        let mut image = match from_now {
            true => Some(current),
            false => rows.next().map(|(_, image)| image),
        };
        let mut versions = Vec::new();
        let mut more = self.more;
        while let Some(shown) = image.take() {
            if versions.len() == self.limit {
                more = true;
                break;
            }
            let next = rows.next();
            let since = next.as_ref().map(|(stamp, _)| *stamp);
            versions.push(Version { since, item: decode(shown)? });
            image = next.map(|(_, image)| image);
        }
        // It began with a row that was left for the next page.
        if more && versions.last().is_some_and(|last| last.since.is_none()) {
            versions.pop();
        }
        Ok((versions, more))
    }
}
