//! Writes: the one item that a statement names, and the command that it lowers to.

use zenobe_engine::Engine;
use zenobe_engine::command::{
    DeleteItem, PutItem, RuleSet, TableName, TransactAction, UpdateItem, WriteOutcome,
};
use zenobe_engine::error::{Error, Result as EngineResult};
use zenobe_engine::schema::KeySchema;
use zenobe_expression::Condition;
use zenobe_expression::partiql::Predicate;
use zenobe_value::{AttributeValue, Attributes, EncodedItem, Path};

use super::BoundStatement;
use crate::error::ApiError;
use crate::messages::item::condition_failed;
use crate::messages::partiql as messages;
use crate::partiql::statement_error;

/// Why a WHERE clause names no single item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyFault {
    Missing,
    Repeated { attribute: String },
}

impl KeyFault {
    pub(crate) fn error(&self) -> ApiError {
        match self {
            KeyFault::Missing => messages::key_equality_missing(),
            KeyFault::Repeated { attribute } => messages::key_equality_repeated(attribute),
        }
    }
}

/// The command of a write. `Ok(None)` for a SELECT.
pub(crate) fn action(
    bound: BoundStatement<'_>,
    table: TableName,
    keys: &KeySchema,
) -> Result<Option<TransactAction>, KeyFault> {
    let exists = || Condition::AttributeExists(Path::top_level(&*keys.partition[0].name));
    let is_absent = || Condition::AttributeNotExists(Path::top_level(&*keys.partition[0].name));
    Ok(Some(match bound {
        BoundStatement::Select(_) => return Ok(None),
        BoundStatement::Insert { item, .. } => {
            TransactAction::Put(PutItem { table, item, condition: Some(is_absent()) })
        }
        // An UPDATE never creates an item.
        BoundStatement::Update { update, predicate, .. } => {
            let (key, rest) = split(predicate.as_ref(), keys)?;
            let condition = Some(joined([exists()].into_iter().chain(rest)));
            TransactAction::Update(UpdateItem { table, key, update: Some(update), condition })
        }
        // Deleting a missing item succeeds, whatever other conditions there are.
        BoundStatement::Delete { predicate, .. } => {
            let (key, rest) = split(predicate.as_ref(), keys)?;
            let condition = match rest.is_empty() {
                true => None,
                false => Some(Condition::Or(vec![is_absent(), joined(rest)])),
            };
            TransactAction::Delete(DeleteItem { table, key, condition })
        }
        BoundStatement::Exists(select) => {
            let (key, rest) = split_leniently(select.predicate.as_ref(), keys)?;
            let condition = joined([exists()].into_iter().chain(rest));
            TransactAction::Check { table, key, condition }
        }
    }))
}

/// The key of the item that an action writes.
pub(crate) fn written_key(action: &TransactAction, keys: &KeySchema) -> Option<Attributes> {
    match action {
        TransactAction::Put(put) => {
            let value = |name: &String| Some((name.clone(), put.item.get(name)?.clone()));
            keys.attributes().map(|key| value(&key.name)).collect()
        }
        TransactAction::Update(update) => Some(update.key.clone()),
        TransactAction::Delete(delete) => Some(delete.key.clone()),
        TransactAction::Check { key, .. } => Some(key.clone()),
    }
}

/// Runs a write on its own.
pub(crate) async fn run(engine: &Engine, action: TransactAction) -> EngineResult<WriteOutcome> {
    match action {
        TransactAction::Put(put) => engine.put_item(put).await,
        TransactAction::Update(update) => engine.update_item_as(RuleSet::PartiQl, update).await,
        TransactAction::Delete(delete) => engine.delete_item(delete).await,
        TransactAction::Check { .. } => unreachable!("EXISTS is refused outside transactions"),
    }
}

/// Words a failed write. A failed condition comes with the item if the request asked for it.
pub(crate) fn failure(error: Error, is_insert: bool, shows_item: bool) -> ApiError {
    match error {
        Error::ConditionFailed { item } => {
            let item = item.filter(|_| shows_item);
            if is_insert { duplicate(item) } else { condition_failed(item) }
        }
        other => statement_error(other),
    }
}

fn duplicate(item: Option<EncodedItem>) -> ApiError {
    messages::duplicate_item().with_item(item)
}

/// The key that a WHERE clause pins, and its other conditions.
fn split(
    predicate: Option<&Predicate<'_>>,
    keys: &KeySchema,
) -> Result<(Attributes, Vec<Condition>), KeyFault> {
    let (key, rest) = split_leniently(predicate, keys)?;
    let mut conjuncts = Vec::new();
    predicate.into_iter().for_each(|predicate| collect(predicate, &mut conjuncts));
    for (attribute, value) in &key {
        let mut values = conjuncts.iter().filter_map(|predicate| predicate.equality(attribute));
        if values.any(|other| other != value) {
            return Err(KeyFault::Repeated { attribute: attribute.clone() });
        }
    }
    Ok((key, rest))
}

/// Like [`split`], but a second value for a key, which no item can have, is an ordinary condition.
pub(crate) fn split_leniently(
    predicate: Option<&Predicate<'_>>,
    keys: &KeySchema,
) -> Result<(Attributes, Vec<Condition>), KeyFault> {
    let mut conjuncts = Vec::new();
    predicate.into_iter().for_each(|predicate| collect(predicate, &mut conjuncts));
    let mut key = Attributes::new();
    for attribute in keys.attributes() {
        let name = &attribute.name;
        let mut values = conjuncts.iter().filter_map(|predicate| predicate.equality(name));
        let value: &AttributeValue = values.next().ok_or(KeyFault::Missing)?;
        key.insert(name.clone(), value.clone());
    }
    let is_said = |predicate: &Predicate<'_>| {
        key.iter().any(|(attribute, value)| predicate.equality(attribute) == Some(value))
    };
    let rest = conjuncts.into_iter().filter(|predicate| !is_said(predicate));
    let rest = rest.map(Predicate::lower).collect();
    Ok((key, rest))
}

/// The parts of a top-level AND, however they are grouped.
fn collect<'p, 's>(predicate: &'p Predicate<'s>, conjuncts: &mut Vec<&'p Predicate<'s>>) {
    match predicate {
        Predicate::And(parts) => parts.iter().for_each(|part| collect(part, conjuncts)),
        other => conjuncts.push(other),
    }
}

fn joined(conditions: impl IntoIterator<Item = Condition>) -> Condition {
    let mut conditions: Vec<Condition> = conditions.into_iter().collect();
    match conditions.len() {
        1 => conditions.remove(0),
        _ => Condition::And(conditions),
    }
}
