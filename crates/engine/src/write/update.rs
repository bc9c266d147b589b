//! The checks of an update that need the table but not the old item.

use std::sync::Arc;

use zenobe_expression::{Action as UpdateAction, Condition, SetOperand, SetValue, Update};
use zenobe_value::{AttributeType, AttributeValue, Path};

use crate::catalog::Table;
use crate::change::index_key_checks;
use crate::command::UpdateItem;
use crate::error::{Error, IndexKeyError, Result};
use crate::keys::{PrimaryKey, check_paths, is_empty};
use crate::schema::KeyAttribute;

use super::intent::{Intent, SizeRule, WriteAction};

pub(crate) fn prepare_update(
    table: Arc<Table>,
    command: &UpdateItem,
    size_rule: SizeRule,
) -> Result<Intent<'_>> {
    let key = PrimaryKey::from_parameter(&table.definition().keys, &command.key)?;
    let mut touched = Vec::new();
    if let Some(update) = &command.update {
        check_targets(&table, update)?;
        check_results(&table, update)?;
        let paths = update.paths();
        check_paths(&table, paths.iter().copied())?;
        touched.extend(paths.into_iter().map(Path::root));
    }
    check_paths(&table, command.condition.iter().flat_map(Condition::paths))?;
    let (key_attributes, update) = (&command.key, command.update.as_ref());
    let action = WriteAction::Update { key: key_attributes, update, touched, size_rule };
    Ok(Intent::new(table, key, command.condition.as_ref(), action))
}

/// No action may touch the table's key, not even to set its current value.
fn check_targets(table: &Table, update: &Update) -> Result<()> {
    let is_target = |key: &&KeyAttribute| update.targets().any(|target| target.root() == key.name);
    match table.definition().keys.attributes().find(is_target) {
        Some(key) => Err(Error::UpdateOfKey { attribute: key.name.clone() }),
        None => Ok(()),
    }
}

/// Rejects values that can't be the index keys they are meant for, before anything is read, if the
/// request alone shows it.
fn check_results(table: &Table, update: &Update) -> Result<()> {
    index_key_checks::first_by_name(table, |index| {
        let mut keys = index.keys.attributes();
        keys.find_map(|key| Some((key.name.as_str(), result_fault(key, update)?)))
    })
}

fn result_fault(key: &KeyAttribute, update: &Update) -> Option<IndexKeyError> {
    let result = update.actions.iter().find_map(|action| result_for(key, action))?;
    let expected = key.scalar_type;
    let actual = match result {
        Foreseen::Literal(literal) => literal.attribute_type(),
        Foreseen::Number => AttributeType::N,
    };
    match result {
        _ if actual != expected.attribute_type() => {
            Some(IndexKeyError::TypeMismatch { expected, actual })
        }
        Foreseen::Literal(literal) if is_empty(literal) => {
            Some(IndexKeyError::UpdatedEmpty { scalar_type: expected })
        }
        _ => None,
    }
}

/// What the request alone reveals about an action's result.
#[derive(Clone, Copy)]
enum Foreseen<'u> {
    Literal(&'u AttributeValue),
    /// Arithmetic always yields a number.
    Number,
}

/// The value that an action would give a key attribute.
fn result_for<'u>(key: &KeyAttribute, action: &'u UpdateAction) -> Option<Foreseen<'u>> {
    let target = action.target();
    if !target.is_top_level() || target.root() != key.name {
        return None;
    }
    match action {
        UpdateAction::Set { value: SetValue::Operand(SetOperand::Literal(value)), .. }
        | UpdateAction::Add { value, .. }
        | UpdateAction::LegacyAdd { value, .. } => Some(Foreseen::Literal(value)),
        UpdateAction::Set { value: SetValue::Add(..) | SetValue::Subtract(..), .. } => {
            Some(Foreseen::Number)
        }
        UpdateAction::Set { .. }
        | UpdateAction::Remove { .. }
        | UpdateAction::Delete { .. }
        | UpdateAction::LegacyDelete { .. } => None,
    }
}
