//! TransactGetItems.

use zenobe_engine::command::{GetItem, TransactGet, TransactGetOutcome};
use zenobe_expression::ExpressionKind;

use super::enumerations::ReturnCapacity;
use super::transact_write_items::ACTIONS_MAX;
use crate::constraints::{Violations, printed_list};
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::attribute_value::WireAttributes;
use crate::json::decode::{OrderedMap, request, shape};
use crate::messages::constraint::{Constraint, java_object};
use crate::parameters::expressions::{Placeholders, check_names_are_used};
use crate::parameters::items;
use crate::parameters::returns::return_capacity;
use crate::render::{TableArns, write_consumed_list_member, write_item_responses_member};
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: TransactGetItemsInput = request(body)?;
    let (gets, capacity) = constrained(input)?;
    let arns = TableArns::among(gets.iter().filter_map(|get| get.table_name.as_deref()));
    let get = |get| lowered(context, get);
    let command = TransactGet { gets: gets.into_iter().map(get).collect::<Result<_, _>>()? };
    let outcome =
        context.engine.transact_get(&command).await.map_err(|error| context.items(error))?;
    Ok(render(&arns, &outcome, capacity))
}

shape! {
    struct TransactGetItemsInput {
        "TransactItems" => transact_items: Vec<TransactGetItem>,
        "ReturnConsumedCapacity" => return_consumed_capacity: String,
    }

    struct TransactGetItem {
        "Get" => get: Get,
    }

    struct Get {
        "Key" => key: WireAttributes,
        "TableName" => table_name: String,
        "ProjectionExpression" => projection_expression: String,
        "ExpressionAttributeNames" => expression_attribute_names: OrderedMap<String>,
    }
}

fn constrained(input: TransactGetItemsInput) -> Result<(Vec<Get>, ReturnCapacity), ApiError> {
    let mut violations = Violations::new();
    let capacity = return_capacity(input.return_consumed_capacity.as_deref(), &mut violations);
    let given = input.transact_items.is_some();
    let items = violations.required(input.transact_items, "transactItems");
    if given {
        let print = || printed_list(&items, |_| java_object("TransactGetItem"));
        violations.count(items.len(), "transactItems", 1, ACTIONS_MAX, print);
    }
    for (position, item) in items.iter().enumerate() {
        let path = format!("transactItems.{}.member.get", position + 1);
        check_members(item.get.as_ref(), &path, &mut violations);
    }
    violations.finish()?;
    Ok((items.into_iter().filter_map(|item| item.get).collect(), capacity))
}

fn check_members(get: Option<&Get>, path: &str, violations: &mut Violations) {
    let Some(get) = get else {
        return violations.add(None, path, Constraint::NotNull);
    };
    if get.key.is_none() {
        violations.add(None, &format!("{path}.key"), Constraint::NotNull);
    }
    violations.nested_table_name(get.table_name.as_deref(), &format!("{path}.tableName"));
}

fn lowered(context: &Context<'_>, get: Get) -> Result<GetItem, ApiError> {
    let table = context.item_table(get.table_name.as_deref())?;
    let expressions = [(ExpressionKind::Projection, get.projection_expression.is_some())];
    check_names_are_used(get.expression_attribute_names.as_ref(), &expressions)?;
    let key = items::attributes(get.key.unwrap_or_default())?;
    let placeholders = Placeholders::check(get.expression_attribute_names, None)?;
    let mut expressions = placeholders.expressions();
    let projection = expressions.projection(get.projection_expression.as_deref())?;
    expressions.finish()?;
    Ok(GetItem { table, key, projection, consistent: true })
}

fn render(arns: &TableArns, outcome: &TransactGetOutcome, capacity: ReturnCapacity) -> Reply {
    let items = outcome.items.iter().flatten();
    let encoded_size_bytes: usize = items.map(|item| item.as_bytes().len()).sum();
    // The JSON takes somewhat more space than the items, so the buffer rarely grows more than once.
    let mut writer = Writer::with_capacity(2 * encoded_size_bytes + 256);
    writer.object(|writer| {
        write_item_responses_member(writer, &outcome.items);
        let consumed = outcome.consumed.iter().map(|one| (arns.shown(&one.table), one));
        write_consumed_list_member(writer, consumed, capacity);
    });
    Reply(writer.finish())
}
