//! Expected: the condition of a write, attribute by attribute.

use zenobe_expression::{Comparator, Condition};

use super::conditions::{
    AttributeCondition, COMPARISON_OPERATOR, Comparison, ComparisonOperator, ConditionalOperator,
    check_conditional_operator, joined,
};
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::json::attribute_value::WireValue;
use crate::json::decode::{OrderedMap, shape};
use crate::messages::legacy;
use crate::parameters::items;

shape! {
    struct ExpectedAttributeValue {
        "Value" => value: WireValue,
        "Exists" => exists: bool,
        "ComparisonOperator" => comparison_operator: String,
        "AttributeValueList" => attribute_value_list: Vec<WireValue>,
    }
}

/// An Expected with parsed operators.
#[derive(Debug)]
pub(crate) struct Expected(Vec<Expectation>);

#[derive(Debug)]
struct Expectation {
    attribute: String,
    operator: Option<ComparisonOperator>,
    given: ExpectedAttributeValue,
}

/// The constraints on the operators.
pub(crate) fn with_operators(
    expected: OrderedMap<ExpectedAttributeValue>,
    violations: &mut Violations,
) -> Expected {
    let with_operator = |(attribute, given): (String, ExpectedAttributeValue)| {
        let path = format!("expected.{attribute}.member.comparisonOperator");
        let operator = given.comparison_operator.as_deref();
        let operator = violations.enumeration(operator, &path, &COMPARISON_OPERATOR);
        Expectation { attribute, operator, given }
    };
    Expected(expected.0.into_iter().map(with_operator).collect())
}

/// The condition, after all checks. `None` for an empty map.
pub(crate) fn condition(
    expected: Option<Expected>,
    operator: Option<ConditionalOperator>,
) -> Result<Option<Condition>, ApiError> {
    let expectations = expected.map(|Expected(expectations)| expectations).unwrap_or_default();
    let count = expectations.len();
    let conditions: Vec<AttributeCondition> =
        expectations.into_iter().map(Expectation::check).collect::<Result<_, _>>()?;
    check_conditional_operator(operator, count)?;
    Ok(joined(conditions, operator))
}

impl Expectation {
    fn check(self) -> Result<AttributeCondition, ApiError> {
        let Expectation { attribute, operator, given } = self;
        items::check_name(&attribute)?;
        if given.value.is_some() && given.attribute_value_list.is_some() {
            return Err(legacy::value_and_list(&attribute));
        }
        let comparison = match operator {
            Some(operator) => by_operator(&attribute, operator, given)?,
            None => by_existence(&attribute, given)?,
        };
        Ok(AttributeCondition { attribute, comparison })
    }
}

fn by_operator(
    attribute: &str,
    operator: ComparisonOperator,
    given: ExpectedAttributeValue,
) -> Result<Comparison, ApiError> {
    if given.exists.is_some() {
        return Err(legacy::exists_and_operator(attribute));
    }
    let arguments = given.attribute_value_list.or(given.value.map(|value| vec![value]));
    let takes_none = matches!(operator, ComparisonOperator::Null | ComparisonOperator::NotNull);
    match arguments {
        None if !takes_none => {
            Err(legacy::operator_without_value(COMPARISON_OPERATOR.name_of(&operator), attribute))
        }
        arguments => Comparison::check(operator, arguments.unwrap_or_default()),
    }
}

fn by_existence(attribute: &str, given: ExpectedAttributeValue) -> Result<Comparison, ApiError> {
    if given.attribute_value_list.is_some() {
        return Err(legacy::list_without_operator(attribute));
    }
    match (given.exists, given.value) {
        (Some(false), None) => Ok(Comparison::Null),
        (Some(false), Some(_)) => Err(legacy::value_not_allowed(attribute)),
        (Some(true), None) => Err(legacy::value_required("true", attribute)),
        (None, None) => Err(legacy::value_required("null", attribute)),
        (_, Some(value)) => {
            Comparison::check(ComparisonOperator::Compare(Comparator::Equal), vec![value])
        }
    }
}
