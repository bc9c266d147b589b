//! GetItem.

use zenobe_engine::command::{GetItem, ReadOutcome, TableName};
use zenobe_expression::ExpressionKind;

use super::enumerations::ReturnCapacity;
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::attribute_value::WireAttributes;
use crate::json::decode::{OrderedMap, request, shape};
use crate::json::{Writer, write_item};
use crate::legacy::attributes_to_get;
use crate::parameters::expressions::{Placeholders, check_names_are_used, check_not_mixed};
use crate::parameters::items;
use crate::parameters::returns::return_capacity;
use crate::render::write_consumed_member;
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let mut input: GetItemInput = request(body)?;
    let capacity = check_constraints(&input)?;
    let table_name = input.table_name.take();
    let table = context.item_table(table_name.as_deref())?;
    let command = lowered(table, input)?;
    let outcome = match context.options.as_of {
        None => context.engine.get_item(&command).await,
        Some(_) => Box::pin(context.reads().get_item(&command)).await,
    };
    let outcome = outcome.map_err(|error| context.items(error))?;
    Ok(render(table_name.as_deref().unwrap_or_default(), &outcome, capacity))
}

shape! {
    struct GetItemInput {
        "TableName" => table_name: String,
        "Key" => key: WireAttributes,
        "AttributesToGet" => attributes_to_get: Vec<String>,
        "ConsistentRead" => consistent_read: bool,
        "ReturnConsumedCapacity" => return_consumed_capacity: String,
        "ProjectionExpression" => projection_expression: String,
        "ExpressionAttributeNames" => expression_attribute_names: OrderedMap<String>,
    }
}

fn check_constraints(input: &GetItemInput) -> Result<ReturnCapacity, ApiError> {
    let mut violations = Violations::new();
    let names = input.attributes_to_get.as_deref();
    attributes_to_get::check_length(names, "attributesToGet", &mut violations);
    let capacity = return_capacity(input.return_consumed_capacity.as_deref(), &mut violations);
    violations.required(input.key.as_ref().map(|_| ()), "key");
    violations.table_name(input.table_name.as_deref());
    violations.finish()?;
    Ok(capacity)
}

fn lowered(table: TableName, input: GetItemInput) -> Result<GetItem, ApiError> {
    let expressions = [(ExpressionKind::Projection, input.projection_expression.is_some())];
    let legacy = [("AttributesToGet", input.attributes_to_get.is_some())];
    check_not_mixed(&legacy, &expressions)?;
    check_names_are_used(input.expression_attribute_names.as_ref(), &expressions)?;
    let key = items::attributes(input.key.unwrap_or_default())?;
    attributes_to_get::check_distinct(input.attributes_to_get.as_deref())?;
    let placeholders = Placeholders::check(input.expression_attribute_names, None)?;
    let mut expressions = placeholders.expressions();
    let projection = expressions.projection(input.projection_expression.as_deref())?;
    expressions.finish()?;
    let legacy_projection = input.attributes_to_get.map(attributes_to_get::projection);
    Ok(GetItem {
        table,
        key,
        projection: projection.or(legacy_projection),
        consistent: input.consistent_read.unwrap_or(false),
    })
}

/// `table` is what the request calls its table.
fn render(table: &str, outcome: &ReadOutcome, capacity: ReturnCapacity) -> Reply {
    // The JSON takes somewhat more space than the item, so the buffer rarely grows more than once.
    let item_size_bytes = outcome.item.as_ref().map_or(0, |item| item.as_bytes().len());
    let mut writer = Writer::with_capacity(2 * item_size_bytes + 128);
    writer.object(|writer| {
        if let Some(item) = &outcome.item {
            write_item(writer.name("Item"), item.as_item());
        }
        write_consumed_member(writer, table, &outcome.consumed, capacity);
    });
    Reply(writer.finish())
}
