//! A write that has passed every check that needs no stored item.

use std::sync::Arc;

use zenobe_expression::{Condition, Update, UpdateError};
use zenobe_store::Key;
use zenobe_value::limits::{ITEM_SIZE_BYTES_MAX, NESTING_LEVELS_MAX};
use zenobe_value::{Attributes, EncodedItem, item_size_bytes};

use crate::catalog::Table;
use crate::change::index_key_checks;
use crate::error::{Error, Result};
use crate::keys::PrimaryKey;
use crate::ttl::{expires_at_s, is_due};

pub(crate) struct Intent<'c> {
    pub table: Arc<Table>,
    pub key: PrimaryKey,
    pub item_key: Key,
    pub condition: Option<&'c Condition>,
    pub action: WriteAction<'c>,
}

pub(crate) enum WriteAction<'c> {
    Put(EncodedItem),
    /// Puts an item where none has ever been, in a table to which nobody else writes. Nothing is read or locked for it, so it must
    /// not happen twice.
    Insert(EncodedItem),
    Delete,
    Update {
        key: &'c Attributes,
        update: Option<&'c Update>,
        /// The names of the top-level attributes that the update reads or changes.
        touched: Vec<&'c str>,
        size_rule: SizeRule,
    },
    /// A transaction's condition check: the item does not change.
    Check,
    /// Deletes the item if it has expired; otherwise it does not change.
    Expire {
        now_s: u64,
    },
}

/// How a write set names the item of an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Declaration {
    /// The item is only checked.
    Guard,
    /// The item is read and written.
    Key,
    /// The item is known to be absent.
    Nothing,
}

/// How to measure an updated item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SizeRule {
    /// UpdateItem counts the expression's own overhead, but not the key.
    Update,
    /// Transactions and PartiQL measure only the item.
    Flat,
}

impl<'c> Intent<'c> {
    pub fn new(
        table: Arc<Table>,
        key: PrimaryKey,
        condition: Option<&'c Condition>,
        action: WriteAction<'c>,
    ) -> Intent<'c> {
        let item_key = key.item_key(&table);
        Intent { table, key, item_key, condition, action }
    }

    /// Whether the item is only checked.
    pub fn is_check(&self) -> bool {
        matches!(self.action, WriteAction::Check)
    }

    pub fn declaration(&self) -> Declaration {
        match self.action {
            WriteAction::Check => Declaration::Guard,
            WriteAction::Insert(_) => Declaration::Nothing,
            _ => Declaration::Key,
        }
    }

    /// The item after the write, given the item before it.
    pub fn apply(&self, old: Option<&EncodedItem>) -> Result<Option<EncodedItem>> {
        let old_item = old.map(EncodedItem::as_item);
        if self.condition.is_some_and(|condition| !condition.evaluate(old_item)) {
            return Err(Error::ConditionFailed { item: old.cloned() });
        }
        match &self.action {
            WriteAction::Put(item) | WriteAction::Insert(item) => Ok(Some(item.clone())),
            WriteAction::Delete => Ok(None),
            WriteAction::Check => Ok(old.cloned()),
            WriteAction::Expire { now_s } => {
                let expires_at_s =
                    old_item.and_then(|item| expires_at_s(self.table.definition(), item));
                let is_due = expires_at_s.is_some_and(|expires_at_s| is_due(expires_at_s, *now_s));
                Ok(old.filter(|_| !is_due).cloned())
            }
            WriteAction::Update { key, update: None, .. } => {
                Ok(Some(old.cloned().unwrap_or_else(|| EncodedItem::encode(key))))
            }
            WriteAction::Update { key, update: Some(update), touched, size_rule } => {
                let item = match old {
                    Some(old) => Some(updated(old, update, touched)?),
                    None => created(update, key)?,
                };
                if let Some(item) = &item {
                    index_key_checks::check_update(&self.table, old_item, item.as_item())?;
                    check_updated_size(item, key, update, *size_rule)?;
                }
                Ok(item)
            }
        }
    }
}

/// Decodes and encodes only what the update touches: the rest of the item is copied as bytes.
fn updated(old: &EncodedItem, update: &Update, touched: &[&str]) -> Result<EncodedItem> {
    let old = old.as_item();
    let attributes = update.apply_to(old.decode_some(touched)).map_err(update_error)?;
    check_nesting(update, &attributes)?;
    Ok(old.splice(touched, &attributes))
}

fn created(update: &Update, key: &Attributes) -> Result<Option<EncodedItem>> {
    let created = update.create(key).map_err(update_error)?;
    let Some(attributes) = created else {
        return Ok(None);
    };
    check_nesting(update, &attributes)?;
    Ok(Some(EncodedItem::encode(&attributes)))
}

/// A value too large to compute is too large to store.
fn update_error(error: UpdateError) -> Error {
    match error {
        UpdateError::TooLarge => Error::UpdateTooLarge,
        other => Error::Update(other),
    }
}

/// Only attributes that the update touched can have become deeper.
fn check_nesting(update: &Update, attributes: &Attributes) -> Result<()> {
    let too_deep = update
        .targets()
        .filter_map(|target| attributes.get(target.root()))
        .any(|value| value.depth() > NESTING_LEVELS_MAX);
    if too_deep { Err(Error::NestedTooDeeply) } else { Ok(()) }
}

fn check_updated_size(
    item: &EncodedItem,
    key: &Attributes,
    update: &Update,
    size_rule: SizeRule,
) -> Result<()> {
    let item_size_bytes_new = item.as_item().size_bytes();
    let measured = match size_rule {
        SizeRule::Flat => item_size_bytes_new,
        SizeRule::Update => {
            let without_key = item_size_bytes_new - item_size_bytes(key);
            item_size_bytes_new.max(without_key + update.size_allowance_bytes())
        }
    };
    if measured > ITEM_SIZE_BYTES_MAX { Err(Error::UpdateTooLarge) } else { Ok(()) }
}
