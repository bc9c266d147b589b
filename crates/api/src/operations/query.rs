//! Query.

use zenobe_engine::command::{PageRequest, Query, RuleSet, Select, TableName};
use zenobe_engine::error::{Error, PageError};
use zenobe_expression::ExpressionKind;

use super::enumerations::{ReturnCapacity, SELECT};
use super::page::{self, Selected};
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::attribute_value::WireAttributes;
use crate::json::decode::{OrderedMap, request, shape};
use crate::legacy::conditions::{
    ConditionalOperator, UncheckedCondition, WireCondition, conditional_operator, with_operators,
};
use crate::legacy::{attributes_to_get, filters, key_conditions};
use crate::messages;
use crate::parameters::expressions::{
    Placeholders, check_names_are_used, check_not_mixed, check_values_are_used,
};
use crate::parameters::returns::return_capacity;
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let mut input: QueryInput = request(body)?;
    let constrained = constrained(&mut input)?;
    let table_name = input.table_name.take();
    let table = context.item_table(table_name.as_deref())?;
    let (select, capacity) = (constrained.select, constrained.capacity);
    let filter_is_legacy = constrained.query_filter.is_some();
    let conditions_are_legacy = constrained.key_conditions.is_some();
    let command = lowered(table, input, constrained)?;
    let outcome =
        context.reads().query(RuleSet::Expressions, &command).await.map_err(
            |error| match error {
                Error::Page(PageError::FilterOnKey { attribute }) if filter_is_legacy => {
                    messages::page::query_filter_on_key(&attribute)
                }
                Error::Page(PageError::TooManyKeyConditions { .. }) if conditions_are_legacy => {
                    messages::page::key_conditions_count()
                }
                error => context.items(error),
            },
        )?;
    Ok(page::render(table_name.as_deref().unwrap_or_default(), &outcome, select, capacity))
}

shape! {
    struct QueryInput {
        "TableName" => table_name: String,
        "IndexName" => index_name: String,
        "Select" => select: String,
        "AttributesToGet" => attributes_to_get: Vec<String>,
        "Limit" => limit: i32,
        "ConsistentRead" => consistent_read: bool,
        "KeyConditions" => key_conditions: OrderedMap<WireCondition>,
        "QueryFilter" => query_filter: OrderedMap<WireCondition>,
        "ConditionalOperator" => conditional_operator: String,
        "ScanIndexForward" => scan_index_forward: bool,
        "ExclusiveStartKey" => exclusive_start_key: WireAttributes,
        "ReturnConsumedCapacity" => return_consumed_capacity: String,
        "ProjectionExpression" => projection_expression: String,
        "FilterExpression" => filter_expression: String,
        "KeyConditionExpression" => key_condition_expression: String,
        "ExpressionAttributeNames" => expression_attribute_names: OrderedMap<String>,
        "ExpressionAttributeValues" => expression_attribute_values: WireAttributes,
    }
}

/// The constrained members, as narrower types.
struct Constrained {
    select: Option<Select>,
    limit: Option<u32>,
    capacity: ReturnCapacity,
    conditional_operator: Option<ConditionalOperator>,
    key_conditions: Option<Vec<UncheckedCondition>>,
    query_filter: Option<Vec<UncheckedCondition>>,
}

fn constrained(input: &mut QueryInput) -> Result<Constrained, ApiError> {
    let mut violations = Violations::new();
    let capacity = return_capacity(input.return_consumed_capacity.as_deref(), &mut violations);
    let names = input.attributes_to_get.as_deref();
    attributes_to_get::check_length(names, "attributesToGet", &mut violations);
    let query_filter = input.query_filter.take();
    let query_filter =
        query_filter.map(|filter| with_operators(filter, "queryFilter", &mut violations));
    let select = violations.enumeration(input.select.as_deref(), "select", &SELECT);
    let operator = input.conditional_operator.as_deref();
    let conditional_operator = conditional_operator(operator, &mut violations);
    let key_conditions = input.key_conditions.take();
    let key_conditions =
        key_conditions.map(|given| with_operators(given, "keyConditions", &mut violations));
    violations.table_name(input.table_name.as_deref());
    if let Some(name) = &input.index_name {
        violations.name(name, "indexName");
    }
    violations.finish()?;
    let limit = input.limit.map(positive_limit).transpose()?;
    Ok(Constrained { select, limit, capacity, conditional_operator, key_conditions, query_filter })
}

fn positive_limit(limit: i32) -> Result<u32, ApiError> {
    let positive = u32::try_from(limit).ok().filter(|limit| *limit > 0);
    positive.ok_or_else(messages::page::query_limit)
}

fn lowered(
    table: TableName,
    input: QueryInput,
    constrained: Constrained,
) -> Result<Query, ApiError> {
    check_combination(&input, &constrained)?;
    let selected = Selected {
        select: constrained.select,
        attributes_to_get: input.attributes_to_get.is_some(),
        projection_expression: input.projection_expression.is_some(),
        index: input.index_name.is_some(),
    };
    let legacy_filter =
        filters::condition(constrained.query_filter, constrained.conditional_operator)?;
    attributes_to_get::check_distinct(input.attributes_to_get.as_deref())?;
    let start_key = page::start_key(input.exclusive_start_key)?;
    if constrained.key_conditions.is_none() && input.key_condition_expression.is_none() {
        return Err(messages::page::key_conditions_required());
    }
    let names = input.expression_attribute_names;
    let placeholders = Placeholders::check(names, input.expression_attribute_values)?;
    let mut expressions = placeholders.expressions();
    let conditions = expressions.key_condition(input.key_condition_expression.as_deref())?;
    let filter = expressions.filter(input.filter_expression.as_deref())?;
    let projection = expressions.projection(input.projection_expression.as_deref())?;
    expressions.finish()?;
    let key_conditions = match conditions.transpose()? {
        Some(conditions) => conditions,
        None => {
            let legacy = constrained.key_conditions.unwrap_or_default();
            key_conditions::lowered(legacy, input.index_name.is_some())?
        }
    };
    selected.check(messages::page::query_projection_required)?;
    let legacy_projection = input.attributes_to_get.map(attributes_to_get::projection);
    let page = PageRequest {
        filter: filter.or(legacy_filter),
        projection: projection.or(legacy_projection),
        select: constrained.select,
        limit: constrained.limit,
        start_key,
        consistent: input.consistent_read.unwrap_or(false),
    };
    let forward = input.scan_index_forward.unwrap_or(true);
    Ok(Query { table, index: input.index_name, key_conditions, forward, page })
}

/// KeyConditions may come with the other expressions, but not with KeyConditionExpression.
fn check_combination(input: &QueryInput, constrained: &Constrained) -> Result<(), ApiError> {
    let has_key_expression = input.key_condition_expression.is_some();
    let legacy = [
        ("AttributesToGet", input.attributes_to_get.is_some()),
        ("QueryFilter", constrained.query_filter.is_some()),
        ("ConditionalOperator", constrained.conditional_operator.is_some()),
        ("KeyConditions", constrained.key_conditions.is_some() && has_key_expression),
    ];
    let filter = (ExpressionKind::Filter, input.filter_expression.is_some());
    let key_condition = (ExpressionKind::KeyCondition, has_key_expression);
    let projection = (ExpressionKind::Projection, input.projection_expression.is_some());
    let expressions = [projection, filter, key_condition];
    check_not_mixed(&legacy, &expressions)?;
    check_names_are_used(input.expression_attribute_names.as_ref(), &expressions)?;
    let values = input.expression_attribute_values.as_ref();
    check_values_are_used(values, &[filter, key_condition])
}
