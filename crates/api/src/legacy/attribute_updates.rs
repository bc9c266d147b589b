//! AttributeUpdates: an update of top-level attributes.

use zenobe_expression::{Action, SetOperand, SetValue, Update};
use zenobe_value::{AttributeType, AttributeValue, Path};

use crate::constraints::{Enumeration, Violations};
use crate::error::ApiError;
use crate::json::attribute_value::WireValue;
use crate::json::decode::{OrderedMap, shape};
use crate::messages::{legacy, value};
use crate::parameters::items;

shape! {
    struct AttributeValueUpdate {
        "Value" => value: WireValue,
        "Action" => action: String,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttributeAction {
    Add,
    Delete,
    Put,
}

static ATTRIBUTE_ACTION: Enumeration<AttributeAction> = Enumeration(&[
    ("ADD", AttributeAction::Add),
    ("DELETE", AttributeAction::Delete),
    ("PUT", AttributeAction::Put),
]);

/// AttributeUpdates with parsed actions.
#[derive(Debug)]
pub(crate) struct AttributeUpdates(Vec<(String, AttributeAction, Option<WireValue>)>);

/// The constraints on the actions. PUT is the default.
pub(crate) fn with_actions(
    updates: OrderedMap<AttributeValueUpdate>,
    violations: &mut Violations,
) -> AttributeUpdates {
    let with_action = |(attribute, update): (String, AttributeValueUpdate)| {
        let path = format!("attributeUpdates.{attribute}.member.action");
        let action = violations.enumeration(update.action.as_deref(), &path, &ATTRIBUTE_ACTION);
        (attribute, action.unwrap_or(AttributeAction::Put), update.value)
    };
    AttributeUpdates(updates.0.into_iter().map(with_action).collect())
}

pub(crate) fn update(AttributeUpdates(updates): AttributeUpdates) -> Result<Update, ApiError> {
    let action = |(attribute, action, value)| checked_action(attribute, action, value);
    let actions = updates.into_iter().map(action).collect::<Result<_, _>>()?;
    Ok(Update { actions })
}

fn checked_action(
    attribute: String,
    action: AttributeAction,
    value: Option<WireValue>,
) -> Result<Action, ApiError> {
    items::check_name(&attribute)?;
    let value = value.transpose().map_err(|fault| value::value_fault(&fault))?;
    let path = Path::top_level(attribute);
    match (action, value) {
        (AttributeAction::Delete, None) => Ok(Action::Remove { path }),
        (_, None) => Err(legacy::only_delete_without_value()),
        (AttributeAction::Put, Some(value)) => {
            Ok(Action::Set { path, value: SetValue::Operand(SetOperand::Literal(value.into())) })
        }
        (AttributeAction::Delete, Some(value)) if is_set(&value) => {
            Ok(Action::LegacyDelete { path, value: value.into() })
        }
        (AttributeAction::Delete, Some(value)) => {
            Err(legacy::delete_type(&value.attribute_type().to_string()))
        }
        (AttributeAction::Add, Some(value)) if is_addable(&value) => {
            Ok(Action::LegacyAdd { path, value: value.into() })
        }
        (AttributeAction::Add, Some(value)) => {
            Err(legacy::add_type(&value.attribute_type().to_string()))
        }
    }
}

fn is_set(value: &AttributeValue) -> bool {
    matches!(value.attribute_type(), AttributeType::Ss | AttributeType::Ns | AttributeType::Bs)
}

fn is_addable(value: &AttributeValue) -> bool {
    is_set(value) || matches!(value.attribute_type(), AttributeType::N | AttributeType::L)
}
