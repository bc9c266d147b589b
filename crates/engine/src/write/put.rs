//! The checks of a put that need the table but not the old item.

use std::sync::Arc;

use zenobe_value::EncodedItem;
use zenobe_value::limits::ITEM_SIZE_BYTES_MAX;

use crate::catalog::Table;
use crate::change::index_key_checks;
use crate::command::PutItem;
use crate::error::{Error, Result};
use crate::keys::{PrimaryKey, check_paths};

use super::intent::{Intent, WriteAction};

/// Comes before the lookup of the table.
pub(crate) fn check_size(item: &EncodedItem) -> Result<()> {
    if item.as_item().size_bytes() > ITEM_SIZE_BYTES_MAX {
        return Err(Error::ItemTooLarge);
    }
    Ok(())
}

/// `item` is the command's item, encoded once however often the write is prepared.
pub(crate) fn prepare_put<'c>(
    table: Arc<Table>,
    command: &'c PutItem,
    item: &EncodedItem,
) -> Result<Intent<'c>> {
    let key = PrimaryKey::from_item(&table.definition().keys, &command.item)?;
    index_key_checks::check_put(&table, item.as_item())?;
    if let Some(condition) = &command.condition {
        check_paths(&table, condition.paths().into_iter())?;
    }
    Ok(Intent::new(table, key, command.condition.as_ref(), WriteAction::Put(item.clone())))
}
