//! DeleteItem.

use zenobe_engine::command::{DeleteItem, TableName};

use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::attribute_value::WireAttributes;
use crate::json::decode::{OrderedMap, request, shape};
use crate::legacy::conditions::conditional_operator;
use crate::legacy::expected::{self, ExpectedAttributeValue};
use crate::parameters::returns::{
    WriteReturns, return_capacity, return_collection_metrics, return_item_on_failure, return_values,
};
use crate::parameters::{ConditionParameters, items};
use crate::render::write_reply_with_old;
use crate::{Context, Reply};

pub(crate) async fn handle(context: &Context<'_>, body: &[u8]) -> Result<Reply, ApiError> {
    let input: DeleteItemInput = request(body)?;
    context.check_named(input.table_name.as_deref(), input.key.is_some())?;
    let table_name = input.table_name.clone();
    let parameters = constrained(input)?;
    let table = context.item_table(table_name.as_deref())?;
    let returns = parameters.returns;
    let command = lowered(table, parameters)?;
    let outcome =
        context.engine.delete_item(command).await.map_err(|error| returns.failure(error))?;
    Ok(write_reply_with_old(table_name.as_deref().unwrap_or_default(), &outcome, &returns))
}

shape! {
    struct DeleteItemInput {
        "TableName" => table_name: String,
        "Key" => key: WireAttributes,
        "Expected" => expected: OrderedMap<ExpectedAttributeValue>,
        "ConditionalOperator" => conditional_operator: String,
        "ReturnValues" => return_values: String,
        "ReturnConsumedCapacity" => return_consumed_capacity: String,
        "ReturnItemCollectionMetrics" => return_item_collection_metrics: String,
        "ConditionExpression" => condition_expression: String,
        "ExpressionAttributeNames" => expression_attribute_names: OrderedMap<String>,
        "ExpressionAttributeValues" => expression_attribute_values: WireAttributes,
        "ReturnValuesOnConditionCheckFailure" => return_values_on_condition_check_failure: String,
    }
}

/// A request that passed the API model's constraints.
struct Constrained {
    key: WireAttributes,
    condition: ConditionParameters,
    returns: WriteReturns,
}

fn constrained(input: DeleteItemInput) -> Result<Constrained, ApiError> {
    let mut violations = Violations::new();
    let capacity = return_capacity(input.return_consumed_capacity.as_deref(), &mut violations);
    violations.table_name(input.table_name.as_deref());
    let values = return_values(input.return_values.as_deref(), &mut violations);
    let metrics = input.return_item_collection_metrics.as_deref();
    let collection_metrics = return_collection_metrics(metrics, &mut violations);
    let key = violations.required(input.key, "key");
    let conditional_operator =
        conditional_operator(input.conditional_operator.as_deref(), &mut violations);
    let expected =
        input.expected.map(|expected| expected::with_operators(expected, &mut violations));
    let on_failure = input.return_values_on_condition_check_failure.as_deref();
    let item_on_failure = return_item_on_failure(on_failure, &mut violations);
    violations.finish()?;
    Ok(Constrained {
        key,
        condition: ConditionParameters {
            expression: input.condition_expression,
            names: input.expression_attribute_names,
            values: input.expression_attribute_values,
            expected,
            conditional_operator,
        },
        returns: WriteReturns { values, capacity, collection_metrics, item_on_failure },
    })
}

fn lowered(table: TableName, parameters: Constrained) -> Result<DeleteItem, ApiError> {
    let Constrained { key, condition, returns } = parameters;
    condition.check_combination()?;
    let key = items::attributes(key)?;
    returns.check_old_or_none()?;
    let condition = condition.bind()?;
    Ok(DeleteItem { table, key, condition })
}
