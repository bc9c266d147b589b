//! UpdateItem.

use zenobe_engine::command::{TableName, UpdateItem, WriteOutcome};
use zenobe_expression::{ExpressionKind, Update};
use zenobe_value::EncodedItem;

use super::enumerations::ReturnValues;
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::attribute_value::WireAttributes;
use crate::json::decode::{OrderedMap, request, shape};
use crate::json::{Writer, write_attributes, write_item};
use crate::legacy::attribute_updates::{self, AttributeUpdates, AttributeValueUpdate};
use crate::legacy::conditions::{ConditionalOperator, conditional_operator};
use crate::legacy::expected::{self, Expected, ExpectedAttributeValue};
use crate::parameters::expressions::{
    Placeholders, check_names_are_used, check_not_mixed, check_values_are_used,
};
use crate::parameters::items;
use crate::parameters::returns::{
    WriteReturns, return_capacity, return_collection_metrics, return_item_on_failure, return_values,
};
use crate::render::write_reply;
use crate::{Context, Reply, Wording, messages};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let mut input: UpdateItemInput = request(body)?;
    check_newer(context, &input)?;
    let Constrained { returns, legacy } = constrained(&mut input)?;
    let table_name = input.table_name.take();
    let table = context.item_table(table_name.as_deref())?;
    let command = lowered(table, input, legacy)?;
    let shown_update =
        command.update.as_ref().filter(|_| returns_fragments(returns.values)).cloned();
    let outcome =
        context.engine.update_item(command).await.map_err(|error| returns.failure(error))?;
    let table_name = table_name.as_deref().unwrap_or_default();
    Ok(render(table_name, &outcome, &returns, shown_update.as_ref()))
}

shape! {
    struct UpdateItemInput {
        "TableName" => table_name: String,
        "Key" => key: WireAttributes,
        "AttributeUpdates" => attribute_updates: OrderedMap<AttributeValueUpdate>,
        "Expected" => expected: OrderedMap<ExpectedAttributeValue>,
        "ConditionalOperator" => conditional_operator: String,
        "ReturnValues" => return_values: String,
        "ReturnConsumedCapacity" => return_consumed_capacity: String,
        "ReturnItemCollectionMetrics" => return_item_collection_metrics: String,
        "UpdateExpression" => update_expression: String,
        "ConditionExpression" => condition_expression: String,
        "ExpressionAttributeNames" => expression_attribute_names: OrderedMap<String>,
        "ExpressionAttributeValues" => expression_attribute_values: WireAttributes,
        "ReturnValuesOnConditionCheckFailure" => return_values_on_condition_check_failure: String,
    }
}

/// The constrained members, as narrower types.
struct Constrained {
    returns: WriteReturns,
    legacy: Legacy,
}

struct Legacy {
    updates: Option<AttributeUpdates>,
    expected: Option<Expected>,
    conditional_operator: Option<ConditionalOperator>,
}

/// DynamoDB lists all violated constraints, in this order.
fn constrained(input: &mut UpdateItemInput) -> Result<Constrained, ApiError> {
    let mut violations = Violations::new();
    let capacity = return_capacity(input.return_consumed_capacity.as_deref(), &mut violations);
    violations.table_name(input.table_name.as_deref());
    let metrics = input.return_item_collection_metrics.as_deref();
    let collection_metrics = return_collection_metrics(metrics, &mut violations);
    let values = return_values(input.return_values.as_deref(), &mut violations);
    violations.required(input.key.as_ref().map(|_| ()), "key");
    let operator = input.conditional_operator.as_deref();
    let conditional_operator = conditional_operator(operator, &mut violations);
    let (updates, expected) = (input.attribute_updates.take(), input.expected.take());
    let legacy = Legacy {
        conditional_operator,
        expected: expected.map(|expected| expected::with_operators(expected, &mut violations)),
        updates: updates.map(|updates| attribute_updates::with_actions(updates, &mut violations)),
    };
    let on_failure = input.return_values_on_condition_check_failure.as_deref();
    let item_on_failure = return_item_on_failure(on_failure, &mut violations);
    violations.finish()?;
    let returns = WriteReturns { values, capacity, collection_metrics, item_on_failure };
    Ok(Constrained { returns, legacy })
}

/// The newer front end checks ReturnValues before everything except the table's name, and has its
/// own text for them.
fn check_newer(context: &Context<'_>, input: &UpdateItemInput) -> Result<(), ApiError> {
    context.check_named(input.table_name.as_deref(), input.key.is_some())?;
    let mut violations = Violations::new();
    return_values(input.return_values.as_deref(), &mut violations);
    match (context.options.wording, violations.finish()) {
        (Wording::Newer, Err(_)) => Err(messages::request::update_return_values()),
        _ => Ok(()),
    }
}

fn lowered(
    table: TableName,
    input: UpdateItemInput,
    legacy: Legacy,
) -> Result<UpdateItem, ApiError> {
    check_combination(&input, &legacy)?;
    let key = items::attributes(input.key.unwrap_or_default())?;
    let legacy_update = legacy.updates.map(attribute_updates::update).transpose()?;
    let legacy_condition = expected::condition(legacy.expected, legacy.conditional_operator)?;
    let names = input.expression_attribute_names;
    let placeholders = Placeholders::check(names, input.expression_attribute_values)?;
    let mut expressions = placeholders.expressions();
    let update = expressions.update(input.update_expression.as_deref())?;
    let condition = expressions.condition(input.condition_expression.as_deref())?;
    expressions.finish()?;
    Ok(UpdateItem {
        table,
        key,
        update: update.or(legacy_update),
        condition: condition.or(legacy_condition),
    })
}

fn check_combination(input: &UpdateItemInput, legacy: &Legacy) -> Result<(), ApiError> {
    let expressions = [
        (ExpressionKind::Update, input.update_expression.is_some()),
        (ExpressionKind::Condition, input.condition_expression.is_some()),
    ];
    let legacy =
        [("AttributeUpdates", legacy.updates.is_some()), ("Expected", legacy.expected.is_some())];
    check_not_mixed(&legacy, &expressions)?;
    check_names_are_used(input.expression_attribute_names.as_ref(), &expressions)?;
    check_values_are_used(input.expression_attribute_values.as_ref(), &expressions)
}

fn returns_fragments(values: ReturnValues) -> bool {
    matches!(values, ReturnValues::UpdatedOld | ReturnValues::UpdatedNew)
}

/// `table` is what the request calls its table; `update` is set if its targets are to be shown.
fn render(
    table: &str,
    outcome: &WriteOutcome,
    returns: &WriteReturns,
    update: Option<&Update>,
) -> Reply {
    let image = match returns.values {
        ReturnValues::None => None,
        ReturnValues::AllOld | ReturnValues::UpdatedOld => outcome.old.as_ref(),
        ReturnValues::AllNew | ReturnValues::UpdatedNew => outcome.new.as_ref(),
    };
    write_reply(table, outcome, returns, |writer| {
        match (image, returns_fragments(returns.values)) {
            (None, _) => {}
            (Some(image), false) => write_item(writer.name("Attributes"), image.as_item()),
            (Some(image), true) => write_fragments(writer, image, update),
        }
    })
}

/// The values at the update's targets. Writes no member if there are none.
fn write_fragments(writer: &mut Writer, image: &EncodedItem, update: Option<&Update>) {
    let fragments = update.map(|update| update.fragments(&image.as_item().decode()));
    if let Some(fragments) = fragments.filter(|fragments| !fragments.is_empty()) {
        write_attributes(writer.name("Attributes"), &fragments);
    }
}
