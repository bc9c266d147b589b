//! One action of a transaction: its constraints, its size, and the command that it lowers to.

use zenobe_engine::command::{DeleteItem, PutItem, TableName, TransactAction, UpdateItem};
use zenobe_value::Attributes;

use super::wire::{ActionKind, WireAction};
use crate::Context;
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::attribute_value::WireAttributes;
use crate::messages::constraint::Constraint;
use crate::parameters::expressions::Placeholders;
use crate::parameters::returns::return_item_on_failure_at;
use crate::parameters::{ConditionParameters, items};

/// An action that passed the API model's constraints.
#[derive(Debug)]
pub(super) struct ConstrainedAction {
    action: WireAction,
    /// Whether to return the item if the condition fails.
    pub item_on_failure: bool,
}

impl WireAction {
    /// `path` is that of the element of TransactItems.
    pub fn constrained(self, path: &str, violations: &mut Violations) -> ConstrainedAction {
        let path = |member: &str| format!("{path}.{}.{member}", self.kind.member());
        let mut required = |given: bool, member: &str| {
            if !given {
                violations.add(None, &path(member), Constraint::NotNull);
            }
        };
        required(self.attributes.is_some(), self.kind.attributes_member());
        if self.kind == ActionKind::Update {
            required(self.update_expression.is_some(), "updateExpression");
        }
        if self.kind == ActionKind::Check {
            required(self.condition_expression.is_some(), "conditionExpression");
        }
        violations.nested_table_name(self.table_name.as_deref(), &path("tableName"));
        let on_failure = self.return_values_on_condition_check_failure.as_deref();
        let on_failure_path = path("returnValuesOnConditionCheckFailure");
        let item_on_failure = return_item_on_failure_at(on_failure, &on_failure_path, violations);
        ConstrainedAction { action: self, item_on_failure }
    }

    /// The action's share of the transaction's size: its item or key, its expressions and their
    /// placeholders.
    pub fn payload_size_bytes(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let names = self.names.iter().flat_map(|names| &names.0);
        let names_size_bytes: usize = names.map(|(key, name)| key.len() + name.len()).sum();
        attributes_size_bytes(self.attributes.as_ref())
            + attributes_size_bytes(self.values.as_ref())
            + names_size_bytes
            + text(&self.update_expression)
            + text(&self.condition_expression)
    }
}

impl ActionKind {
    fn member(self) -> &'static str {
        match self {
            ActionKind::Check => "conditionCheck",
            ActionKind::Put => "put",
            ActionKind::Delete => "delete",
            ActionKind::Update => "update",
        }
    }

    fn attributes_member(self) -> &'static str {
        if self == ActionKind::Put { "item" } else { "key" }
    }
}

impl ConstrainedAction {
    /// The action as sent.
    pub fn wire(&self) -> &WireAction {
        &self.action
    }

    pub fn lowered(
        self,
        context: &Context<'_>,
        request_size_bytes: usize,
    ) -> Result<TransactAction, ApiError> {
        let mut action = self.action;
        let table = context.item_table(action.table_name.as_deref())?;
        let attributes = action.attributes.take().unwrap_or_default();
        match action.kind {
            ActionKind::Put => put(table, attributes, action.into_condition(), request_size_bytes),
            ActionKind::Delete => delete(table, attributes, action.into_condition()),
            ActionKind::Check => check(table, attributes, action.into_condition()),
            ActionKind::Update => update(table, attributes, action),
        }
    }
}

impl WireAction {
    fn into_condition(self) -> ConditionParameters {
        ConditionParameters {
            expression: self.condition_expression,
            names: self.names,
            values: self.values,
            ..ConditionParameters::default()
        }
    }
}

fn put(
    table: TableName,
    item: WireAttributes,
    condition: ConditionParameters,
    request_size_bytes: usize,
) -> Result<TransactAction, ApiError> {
    condition.check_combination()?;
    let item = items::attributes(item)?;
    items::check_size(&item, request_size_bytes)?;
    Ok(TransactAction::Put(PutItem { table, item, condition: condition.bind()? }))
}

fn delete(
    table: TableName,
    key: WireAttributes,
    condition: ConditionParameters,
) -> Result<TransactAction, ApiError> {
    condition.check_combination()?;
    let key = items::attributes(key)?;
    Ok(TransactAction::Delete(DeleteItem { table, key, condition: condition.bind()? }))
}

fn check(
    table: TableName,
    key: WireAttributes,
    condition: ConditionParameters,
) -> Result<TransactAction, ApiError> {
    let key = items::attributes(key)?;
    // The model requires the expression, so there is a condition.
    let condition = condition.bind()?.ok_or_else(ApiError::internal_server_error)?;
    Ok(TransactAction::Check { table, key, condition })
}

fn update(
    table: TableName,
    key: WireAttributes,
    action: WireAction,
) -> Result<TransactAction, ApiError> {
    let key: Attributes = items::attributes(key)?;
    let placeholders = Placeholders::check(action.names, action.values)?;
    let mut expressions = placeholders.expressions();
    let update = expressions.update(action.update_expression.as_deref())?;
    let condition = expressions.condition(action.condition_expression.as_deref())?;
    expressions.finish()?;
    Ok(TransactAction::Update(UpdateItem { table, key, update, condition }))
}

fn attributes_size_bytes(attributes: Option<&WireAttributes>) -> usize {
    let attributes = attributes.iter().flat_map(|attributes| &attributes.0);
    attributes
        .map(|(name, value)| name.len() + value.as_ref().map_or(0, |value| value.size_bytes()))
        .sum()
}
