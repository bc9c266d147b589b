//! Conditions by comparison operator, shared by Expected, KeyConditions, QueryFilter and
//! ScanFilter.

mod comparison;
mod wire;

pub(crate) use comparison::{COMPARISON_OPERATOR, Comparison, ComparisonOperator};
pub(crate) use wire::Condition as WireCondition;

use zenobe_expression::Condition;

use crate::constraints::{Enumeration, Violations};
use crate::error::ApiError;
use crate::json::attribute_value::WireValue;
use crate::json::decode::OrderedMap;
use crate::messages::legacy;
use crate::parameters::items;

/// How to join several conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConditionalOperator {
    Or,
    And,
}

static CONDITIONAL_OPERATOR: Enumeration<ConditionalOperator> =
    Enumeration(&[("OR", ConditionalOperator::Or), ("AND", ConditionalOperator::And)]);

pub(crate) fn conditional_operator(
    given: Option<&str>,
    violations: &mut Violations,
) -> Option<ConditionalOperator> {
    violations.enumeration(given, "conditionalOperator", &CONDITIONAL_OPERATOR)
}

/// Rejects a ConditionalOperator that has nothing to join. `count` is the number of conditions in
/// the parameter that it belongs to.
pub(crate) fn check_conditional_operator(
    given: Option<ConditionalOperator>,
    count: usize,
) -> Result<(), ApiError> {
    match (given, count) {
        (None, _) | (_, 2..) => Ok(()),
        (Some(_), 0) => Err(legacy::conditional_operator_alone()),
        (Some(_), _) => Err(legacy::conditional_operator_on_one()),
    }
}

/// A condition of KeyConditions, QueryFilter or ScanFilter with a parsed operator.
#[derive(Debug, Clone)]
pub(crate) struct UncheckedCondition {
    attribute: String,
    operator: ComparisonOperator,
    arguments: Vec<WireValue>,
}

/// A condition on one top-level attribute.
#[derive(Debug, Clone)]
pub(crate) struct AttributeCondition {
    pub(crate) attribute: String,
    pub(crate) comparison: Comparison,
}

/// Parses the operators of a map of conditions; each is required. `path` is the map's.
pub(crate) fn with_operators(
    conditions: OrderedMap<WireCondition>,
    path: &str,
    violations: &mut Violations,
) -> Vec<UncheckedCondition> {
    let with_operator = |(attribute, condition): (String, WireCondition)| {
        let path = format!("{path}.{attribute}.member.comparisonOperator");
        let given = condition.comparison_operator.as_deref();
        let operator = violations.required_enumeration(given, &path, &COMPARISON_OPERATOR)?;
        let arguments = condition.attribute_value_list.unwrap_or_default();
        Some(UncheckedCondition { attribute, operator, arguments })
    };
    conditions.0.into_iter().filter_map(with_operator).collect()
}

/// Checks the values, their number and their types.
pub(crate) fn checked(
    conditions: Vec<UncheckedCondition>,
) -> Result<Vec<AttributeCondition>, ApiError> {
    let checked = |condition: UncheckedCondition| {
        items::check_name(&condition.attribute)?;
        let comparison = Comparison::check(condition.operator, condition.arguments)?;
        Ok(AttributeCondition { attribute: condition.attribute, comparison })
    };
    conditions.into_iter().map(checked).collect()
}

/// The condition that all (or, with OR, any) of the conditions hold; `None` if there are none.
pub(crate) fn joined(
    conditions: Vec<AttributeCondition>,
    operator: Option<ConditionalOperator>,
) -> Option<Condition> {
    let mut conditions: Vec<Condition> =
        conditions.into_iter().map(AttributeCondition::into_condition).collect();
    match (conditions.len(), operator) {
        (0, _) => None,
        (1, _) => conditions.pop(),
        (_, Some(ConditionalOperator::Or)) => Some(Condition::Or(conditions)),
        (_, Some(ConditionalOperator::And) | None) => Some(Condition::And(conditions)),
    }
}

impl AttributeCondition {
    pub(crate) fn into_condition(self) -> Condition {
        self.comparison.into_condition(self.attribute)
    }
}
