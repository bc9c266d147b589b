//! KeyConditions: one comparison per key attribute.

use zenobe_expression::{Comparator, KeyCondition, KeyOperator};

use super::conditions::{AttributeCondition, Comparison, UncheckedCondition, checked};
use crate::error::ApiError;
use crate::messages::page;

/// A table's key has at most two attributes, an index's up to eight.
const TABLE_CONDITIONS_MAX: usize = 2;
const INDEX_CONDITIONS_MAX: usize = 8;

pub(crate) fn lowered(
    conditions: Vec<UncheckedCondition>,
    of_index: bool,
) -> Result<Vec<KeyCondition>, ApiError> {
    let conditions = checked(conditions)?;
    let count_max = if of_index { INDEX_CONDITIONS_MAX } else { TABLE_CONDITIONS_MAX };
    if conditions.is_empty() || conditions.len() > count_max {
        return Err(page::key_conditions_count());
    }
    Ok(conditions.into_iter().map(key_condition).collect())
}

fn key_condition(condition: AttributeCondition) -> KeyCondition {
    let operator = match condition.comparison {
        Comparison::Compare(Comparator::Equal, value) => KeyOperator::Equal(value),
        Comparison::Compare(Comparator::Less, value) => KeyOperator::Less(value),
        Comparison::Compare(Comparator::LessOrEqual, value) => KeyOperator::LessOrEqual(value),
        Comparison::Compare(Comparator::Greater, value) => KeyOperator::Greater(value),
        Comparison::Compare(Comparator::GreaterOrEqual, value) => {
            KeyOperator::GreaterOrEqual(value)
        }
        Comparison::Between(low, high) => KeyOperator::Between(low, high),
        Comparison::BeginsWith(prefix) => KeyOperator::BeginsWith(prefix),
        Comparison::Compare(Comparator::NotEqual, _)
        | Comparison::In(_)
        | Comparison::Contains(_)
        | Comparison::NotContains(_)
        | Comparison::Null
        | Comparison::NotNull => KeyOperator::NotIndexable,
    };
    KeyCondition { attribute: condition.attribute, operator }
}
