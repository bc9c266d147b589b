//! Comparison operators and their arguments.

use std::cmp::Ordering;

use zenobe_expression::{Comparator, Condition, Operand};
use zenobe_value::{AttributeType, AttributeValue, Path};

use crate::constraints::Enumeration;
use crate::error::ApiError;
use crate::json::attribute_value::WireValue;
use crate::messages::{legacy, value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComparisonOperator {
    Compare(Comparator),
    Between,
    In,
    BeginsWith,
    Contains,
    NotContains,
    Null,
    NotNull,
}

/// In the order in which DynamoDB lists them.
pub(crate) static COMPARISON_OPERATOR: Enumeration<ComparisonOperator> = Enumeration(&[
    ("IN", ComparisonOperator::In),
    ("NULL", ComparisonOperator::Null),
    ("BETWEEN", ComparisonOperator::Between),
    ("LT", ComparisonOperator::Compare(Comparator::Less)),
    ("NOT_CONTAINS", ComparisonOperator::NotContains),
    ("EQ", ComparisonOperator::Compare(Comparator::Equal)),
    ("GT", ComparisonOperator::Compare(Comparator::Greater)),
    ("NOT_NULL", ComparisonOperator::NotNull),
    ("NE", ComparisonOperator::Compare(Comparator::NotEqual)),
    ("LE", ComparisonOperator::Compare(Comparator::LessOrEqual)),
    ("BEGINS_WITH", ComparisonOperator::BeginsWith),
    ("GE", ComparisonOperator::Compare(Comparator::GreaterOrEqual)),
    ("CONTAINS", ComparisonOperator::Contains),
]);

/// An operator with arguments of the right number and types.
#[derive(Debug, Clone)]
pub(crate) enum Comparison {
    Compare(Comparator, AttributeValue),
    /// The bounds are ordered.
    Between(AttributeValue, AttributeValue),
    In(Vec<AttributeValue>),
    BeginsWith(AttributeValue),
    Contains(AttributeValue),
    NotContains(AttributeValue),
    Null,
    NotNull,
}

impl Comparison {
    pub(crate) fn check(
        operator: ComparisonOperator,
        arguments: Vec<WireValue>,
    ) -> Result<Comparison, ApiError> {
        let arguments: Vec<AttributeValue> = arguments
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|fault| value::value_fault(&fault))?;
        let comparison = Comparison::of(operator, arguments)?;
        comparison.check_types(operator)?;
        comparison.check_bounds()?;
        Ok(comparison)
    }

    /// The condition that a top-level attribute satisfies this comparison.
    pub(crate) fn into_condition(self, attribute: String) -> Condition {
        let path = Path::top_level(attribute);
        let literal = |value: AttributeValue| Operand::literal(&value);
        match self {
            Comparison::Null => Condition::AttributeNotExists(path),
            Comparison::NotNull => Condition::AttributeExists(path),
            Comparison::NotContains(element) => Condition::not_contains(path, literal(element)),
            Comparison::Compare(comparator, value) => {
                Condition::Compare { left: Operand::Path(path), comparator, right: literal(value) }
            }
            Comparison::Between(low, high) => Condition::Between {
                operand: Operand::Path(path),
                low: literal(low),
                high: literal(high),
            },
            Comparison::In(list) => Condition::In {
                operand: Operand::Path(path),
                list: list.into_iter().map(literal).collect(),
            },
            Comparison::BeginsWith(prefix) => {
                Condition::BeginsWith { operand: Operand::Path(path), prefix: literal(prefix) }
            }
            Comparison::Contains(element) => {
                Condition::Contains { container: Operand::Path(path), element: literal(element) }
            }
        }
    }

    /// Combines the operator with its arguments, if their number is right.
    fn of(
        operator: ComparisonOperator,
        arguments: Vec<AttributeValue>,
    ) -> Result<Comparison, ApiError> {
        let fault = || legacy::argument_count(COMPARISON_OPERATOR.name_of(&operator));
        let count = arguments.len();
        let mut arguments = arguments.into_iter();
        let mut argument = || arguments.next().ok_or_else(fault);
        Ok(match (operator, count) {
            (ComparisonOperator::Compare(comparator), 1) => {
                Comparison::Compare(comparator, argument()?)
            }
            (ComparisonOperator::BeginsWith, 1) => Comparison::BeginsWith(argument()?),
            (ComparisonOperator::Contains, 1) => Comparison::Contains(argument()?),
            (ComparisonOperator::NotContains, 1) => Comparison::NotContains(argument()?),
            (ComparisonOperator::Between, 2) => Comparison::Between(argument()?, argument()?),
            (ComparisonOperator::In, 1..) => Comparison::In(arguments.collect()),
            (ComparisonOperator::Null, 0) => Comparison::Null,
            (ComparisonOperator::NotNull, 0) => Comparison::NotNull,
            _ => return Err(fault()),
        })
    }

    /// All arguments must have one type, and the operator must support it.
    fn check_types(&self, operator: ComparisonOperator) -> Result<(), ApiError> {
        let arguments = self.arguments();
        let Some(first) = arguments.first().map(|argument| argument.attribute_type()) else {
            return Ok(());
        };
        if arguments.iter().any(|argument| argument.attribute_type() != first) {
            return Err(legacy::argument_types_differ());
        }
        if !operator.takes(first) {
            let operator = COMPARISON_OPERATOR.name_of(&operator);
            return Err(legacy::argument_type(operator, &first.to_string()));
        }
        Ok(())
    }

    fn check_bounds(&self) -> Result<(), ApiError> {
        match self {
            Comparison::Between(low, high)
                if low.compare_scalars(high) == Some(Ordering::Greater) =>
            {
                Err(legacy::between_reversed())
            }
            _ => Ok(()),
        }
    }

    fn arguments(&self) -> Vec<&AttributeValue> {
        match self {
            Comparison::Null | Comparison::NotNull => Vec::new(),
            Comparison::In(list) => list.iter().collect(),
            Comparison::Between(low, high) => vec![low, high],
            Comparison::Compare(_, value)
            | Comparison::BeginsWith(value)
            | Comparison::Contains(value)
            | Comparison::NotContains(value) => vec![value],
        }
    }
}

impl ComparisonOperator {
    fn takes(self, attribute_type: AttributeType) -> bool {
        use AttributeType::{B, N, S};
        match self {
            ComparisonOperator::Compare(Comparator::Equal | Comparator::NotEqual) => true,
            ComparisonOperator::BeginsWith => matches!(attribute_type, S | B),
            _ => matches!(attribute_type, S | N | B),
        }
    }
}
