//! The checks of a delete that need the table but not the old item.

use std::sync::Arc;

use crate::catalog::Table;
use crate::command::DeleteItem;
use crate::error::Result;
use crate::keys::{PrimaryKey, check_paths};

use super::intent::{Intent, WriteAction};

pub(crate) fn prepare_delete(table: Arc<Table>, command: &DeleteItem) -> Result<Intent<'_>> {
    let key = PrimaryKey::from_parameter(&table.definition().keys, &command.key)?;
    if let Some(condition) = &command.condition {
        check_paths(&table, condition.paths().into_iter())?;
    }
    Ok(Intent::new(table, key, command.condition.as_ref(), WriteAction::Delete))
}
