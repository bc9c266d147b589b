//! Many items at once, for work that fills tables: restores, imports, bulk puts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use zenobe_store::Key;
use zenobe_value::EncodedItem;

use crate::Engine;
use crate::catalog::Table;
use crate::change::index_key_checks::check_put;
use crate::error::{Error, Result};
use crate::keys::PrimaryKey;
use crate::lease::Lease;
use crate::write::check_size;
use crate::write::commit::{Committed, Terms, commit};
use crate::write::intent::{Intent, WriteAction};

/// What becomes of an item whose attribute has another type than the key of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexKeyCheck {
    /// It is refused, as PutItem refuses it.
    Strict,
    /// It is stored but not indexed, like items written before the index.
    Lenient,
}

impl Engine {
    /// Puts items into a table in one atomic write, while the lease holds. Returns the error of
    /// each item that can't be put; the others are written. Of items with the same key the last one
    /// counts.
    ///
    /// Putting the same items again changes nothing, so a caller may repeat what it is not sure of.
    /// The write is as large as the caller makes it: some hundreds of items or a megabyte is a good
    /// size.
    ///
    /// # Errors
    /// [`Error::TableNotFound`] if the table is gone. Nothing is written then, nor after any other
    /// error.
    pub async fn load_items(
        &self,
        table: &Arc<Table>,
        items: &[EncodedItem],
        index_key_check: IndexKeyCheck,
        lease: &Lease,
    ) -> Result<Vec<Option<Error>>> {
        let mut table = Arc::clone(table);
        let mut errors: Vec<Option<Error>> = items.iter().map(|_| None).collect();
        loop {
            let (positions, intents) = prepare_all(&table, items, index_key_check, &mut errors);
            if intents.is_empty() {
                return Ok(errors);
            }
            match commit(self, &intents, Terms::Lease(lease)).await? {
                Committed::Written(_) => return Ok(errors),
                Committed::Refused(refusals) => {
                    for (position, refusal) in positions.into_iter().zip(refusals) {
                        errors[position] = refusal.or(errors[position].take());
                    }
                }
                Committed::Stale(stale) => table = self.replacement(&table, &stale).await?,
                Committed::Replayed(_) => unreachable!("there is no token"),
            }
        }
    }

    /// The newer definition of a table, if it is the same table.
    async fn replacement(&self, table: &Table, stale: &Table) -> Result<Arc<Table>> {
        let gone = || Error::TableNotFound { name: table.name().name.clone() };
        if table.definition().filling.is_some() {
            // Only its owner changes it, and that would be us.
            return Err(gone());
        }
        let newer = self.refresh(stale).await?;
        match newer.definition().id == table.definition().id {
            true => Ok(newer),
            false => Err(gone()),
        }
    }
}

/// The intents of the items without an error, and the positions of these items.
fn prepare_all<'i>(
    table: &Arc<Table>,
    items: &[EncodedItem],
    index_key_check: IndexKeyCheck,
    errors: &mut [Option<Error>],
) -> (Vec<usize>, Vec<Intent<'i>>) {
    let names: Vec<&str> =
        table.definition().keys.attributes().map(|key| key.name.as_str()).collect();
    // Items that are read in the order of their keys, as restores read them, have no need for it.
    let mut by_key: Option<HashMap<Key, usize>> = None;
    let mut positions: Vec<usize> = Vec::with_capacity(items.len());
    let mut intents: Vec<Intent<'i>> = Vec::with_capacity(items.len());
    for (position, item) in items.iter().enumerate() {
        if errors[position].is_some() {
            continue;
        }
        let intent = match prepare(table, &names, item, index_key_check) {
            Ok(intent) => intent,
            Err(error) => {
                errors[position] = Some(error);
                continue;
            }
        };
        let is_ascending = || intents.last().is_none_or(|last| last.item_key < intent.item_key);
        if by_key.is_none() && !is_ascending() {
            let keys = intents.iter().map(|intent| intent.item_key.clone());
            by_key = Some(keys.zip(0..).collect());
        }
        let earlier = match &mut by_key {
            None => None,
            Some(by_key) => match by_key.entry(intent.item_key.clone()) {
                Entry::Occupied(earlier) => Some(*earlier.get()),
                Entry::Vacant(vacant) => {
                    vacant.insert(intents.len());
                    None
                }
            },
        };
        match earlier {
            Some(earlier) => {
                positions[earlier] = position;
                intents[earlier] = intent;
            }
            None => {
                positions.push(position);
                intents.push(intent);
            }
        }
    }
    (positions, intents)
}

fn prepare<'i>(
    table: &Arc<Table>,
    names: &[&str],
    item: &EncodedItem,
    index_key_check: IndexKeyCheck,
) -> Result<Intent<'i>> {
    check_size(item)?;
    let key = item.as_item().decode_some(names);
    let key = PrimaryKey::from_item(&table.definition().keys, &key)?;
    if index_key_check == IndexKeyCheck::Strict {
        check_put(table, item.as_item())?;
    }
    Ok(Intent::new(Arc::clone(table), key, None, WriteAction::Put(item.clone())))
}
