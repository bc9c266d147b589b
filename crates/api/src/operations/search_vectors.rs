//! SearchVectors. Tables here have no vector indexes, so a well-formed search does not find its index.

use zenobe_engine::command::TableName;
use zenobe_expression::{Comparator, Condition, ExpressionKind};
use zenobe_value::AttributeValue;

use crate::constraints::{TableNameRule, Violations, printed_list};
use crate::error::ApiError;
use crate::json::attribute_value::{WireAttributes, WireValue};
use crate::json::decode::{OrderedMap, request, shape};
use crate::messages::constraint::java_object;
use crate::messages::engine::index_not_found;
use crate::messages::value::value_fault;
use crate::messages::vector;
use crate::parameters::expressions::{Placeholders, check_names_are_used, check_values_are_used};
use crate::parameters::returns::return_capacity;
use crate::{Context, Reply};

const DIMENSIONS_MAX: usize = 4_096;
const TOP_MAX: i32 = 100;

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: SearchVectorsInput = request(body)?;
    let table: TableName = context.table_name(input.table_name.as_deref(), TableNameRule::Item)?;
    let index = constrained(&input)?;
    check_search(input)?;
    context.engine.current_table(&table).await.map_err(|error| context.items(error))?;
    Err(index_not_found(&index))
}

shape! {
    struct SearchVectorsInput {
        "TableName" => table_name: String,
        "IndexName" => index_name: String,
        "ReturnConsumedCapacity" => return_consumed_capacity: String,
        "ExpressionAttributeNames" => expression_attribute_names: OrderedMap<String>,
        "ExpressionAttributeValues" => expression_attribute_values: WireAttributes,
        "ProjectionExpression" => projection_expression: String,
        "SearchVector" => search_vector: Vec<WireValue>,
        "SearchConditionExpression" => search_condition_expression: String,
        "TopK" => top_k: i32,
    }
}

/// Checks the constraints and returns the index's name.
fn constrained(input: &SearchVectorsInput) -> Result<String, ApiError> {
    let mut violations = Violations::new();
    if let Some(name) = &input.index_name {
        violations.name(name, "indexName");
    }
    let index = violations.required(input.index_name.clone(), "indexName");
    return_capacity(input.return_consumed_capacity.as_deref(), &mut violations);
    let vector = input.search_vector.as_deref();
    if let Some(vector) = vector {
        let print = || printed_list(vector, |_| java_object("AttributeValue"));
        violations.count(vector.len(), "searchVector", 1, DIMENSIONS_MAX, print);
    }
    violations.required(vector, "searchVector");
    if let Some(count) = input.top_k {
        violations.range(count.into(), "topK", 1, i64::MAX);
    }
    violations.required(input.top_k, "topK");
    violations.finish()?;
    Ok(index)
}

/// Checks everything about a search that does not depend on its index.
fn check_search(input: SearchVectorsInput) -> Result<(), ApiError> {
    if let Some(count) = input.top_k.filter(|count| *count > TOP_MAX) {
        return Err(vector::top_out_of_range(count, TOP_MAX));
    }
    for value in input.search_vector.unwrap_or_default() {
        if !is_single_precision(&value.map_err(|fault| value_fault(&fault))?) {
            return Err(vector::invalid_values());
        }
    }
    let condition_text = input.search_condition_expression.as_deref();
    let projection_text = input.projection_expression.as_deref();
    let condition = (ExpressionKind::SearchCondition, condition_text.is_some());
    let projection = (ExpressionKind::Projection, projection_text.is_some());
    let names = input.expression_attribute_names;
    check_names_are_used(names.as_ref(), &[projection, condition])?;
    check_values_are_used(input.expression_attribute_values.as_ref(), &[condition])?;
    let placeholders = Placeholders::check(names, input.expression_attribute_values)?;
    let mut expressions = placeholders.expressions();
    let condition = expressions.search_condition(condition_text)?;
    expressions.projection(projection_text)?;
    expressions.finish()?;
    if condition.is_some_and(|condition| !is_conjunction_of_equalities(&condition)) {
        return Err(vector::invalid_comparator());
    }
    Ok(())
}

fn is_single_precision(value: &AttributeValue) -> bool {
    match value {
        AttributeValue::N(number) => number.to_string().parse().is_ok_and(f32::is_finite),
        _ => false,
    }
}

fn is_conjunction_of_equalities(condition: &Condition) -> bool {
    match condition {
        Condition::And(conditions) => conditions.iter().all(is_conjunction_of_equalities),
        Condition::Compare { comparator, .. } => *comparator == Comparator::Equal,
        _ => false,
    }
}
