//! The shapes of a transaction's actions, and their common form.

use crate::json::attribute_value::WireAttributes;
use crate::json::decode::{OrderedMap, shape};

shape! {
    struct TransactWriteItemsInput {
        "TransactItems" => transact_items: Vec<TransactWriteItem>,
        "ReturnConsumedCapacity" => return_consumed_capacity: String,
        "ReturnItemCollectionMetrics" => return_item_collection_metrics: String,
        "ClientRequestToken" => client_request_token: String,
    }

    struct TransactWriteItem {
        "ConditionCheck" => condition_check: ConditionCheck,
        "Put" => put: Put,
        "Delete" => delete: Delete,
        "Update" => update: Update,
    }

    struct ConditionCheck {
        "Key" => key: WireAttributes,
        "TableName" => table_name: String,
        "ConditionExpression" => condition_expression: String,
        "ExpressionAttributeNames" => expression_attribute_names: OrderedMap<String>,
        "ExpressionAttributeValues" => expression_attribute_values: WireAttributes,
        "ReturnValuesOnConditionCheckFailure" => return_values_on_condition_check_failure: String,
    }

    struct Put {
        "Item" => item: WireAttributes,
        "TableName" => table_name: String,
        "ConditionExpression" => condition_expression: String,
        "ExpressionAttributeNames" => expression_attribute_names: OrderedMap<String>,
        "ExpressionAttributeValues" => expression_attribute_values: WireAttributes,
        "ReturnValuesOnConditionCheckFailure" => return_values_on_condition_check_failure: String,
    }

    struct Delete {
        "Key" => key: WireAttributes,
        "TableName" => table_name: String,
        "ConditionExpression" => condition_expression: String,
        "ExpressionAttributeNames" => expression_attribute_names: OrderedMap<String>,
        "ExpressionAttributeValues" => expression_attribute_values: WireAttributes,
        "ReturnValuesOnConditionCheckFailure" => return_values_on_condition_check_failure: String,
    }

    struct Update {
        "Key" => key: WireAttributes,
        "UpdateExpression" => update_expression: String,
        "TableName" => table_name: String,
        "ConditionExpression" => condition_expression: String,
        "ExpressionAttributeNames" => expression_attribute_names: OrderedMap<String>,
        "ExpressionAttributeValues" => expression_attribute_values: WireAttributes,
        "ReturnValuesOnConditionCheckFailure" => return_values_on_condition_check_failure: String,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActionKind {
    Check,
    Put,
    Delete,
    Update,
}

/// Any action as sent.
#[derive(Debug)]
pub(super) struct WireAction {
    pub kind: ActionKind,
    pub table_name: Option<String>,
    /// The item of a put, the key of anything else.
    pub attributes: Option<WireAttributes>,
    pub update_expression: Option<String>,
    pub condition_expression: Option<String>,
    pub names: Option<OrderedMap<String>>,
    pub values: Option<WireAttributes>,
    pub return_values_on_condition_check_failure: Option<String>,
}

impl TransactWriteItem {
    /// Should return exactly one.
    pub fn into_actions(self) -> Vec<WireAction> {
        let check = self.condition_check.map(WireAction::from);
        let put = self.put.map(WireAction::from);
        let delete = self.delete.map(WireAction::from);
        let update = self.update.map(WireAction::from);
        [check, put, delete, update].into_iter().flatten().collect()
    }
}

/// Moves a shape's members into an [`WireAction`].
macro_rules! action_from {
    ($shape:ident as $kind:ident, $attributes:ident $(, $update:ident)?) => {
        impl From<$shape> for WireAction {
            fn from(shape: $shape) -> WireAction {
                let on_failure = shape.return_values_on_condition_check_failure;
                WireAction {
                    kind: ActionKind::$kind,
                    table_name: shape.table_name,
                    attributes: shape.$attributes,
                    update_expression: None $(.or(shape.$update))?,
                    condition_expression: shape.condition_expression,
                    names: shape.expression_attribute_names,
                    values: shape.expression_attribute_values,
                    return_values_on_condition_check_failure: on_failure,
                }
            }
        }
    };
}

action_from!(ConditionCheck as Check, key);
action_from!(Put as Put, item);
action_from!(Delete as Delete, key);
action_from!(Update as Update, key, update_expression);
