//! Key conditions: the part of the condition language that a query can turn into a key range.

use zenobe_value::AttributeValue;

use crate::bind::{Leaf, LeafOperand};
use crate::condition::Comparator;
use crate::error::ExpressionFault;
use crate::limits;
use crate::operator::Operator;
use crate::syntax::Tree;

/// A condition on one attribute. Only the table's schema says which attributes are keys.
///
/// Each of the legacy `KeyConditions` lowers to one: `EQ`, `LT`, `LE`, `GT`, `GE`, `BETWEEN` and
/// `BEGINS_WITH` have their operator here; all others are `NotIndexable`.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct KeyCondition {
    pub attribute: String,
    pub operator: KeyOperator,
}

#[derive(Debug, Clone, PartialEq, Hash)]
pub enum KeyOperator {
    Equal(AttributeValue),
    Less(AttributeValue),
    LessOrEqual(AttributeValue),
    Greater(AttributeValue),
    GreaterOrEqual(AttributeValue),
    /// Both bounds are inclusive.
    Between(AttributeValue, AttributeValue),
    BeginsWith(AttributeValue),
    /// Two bounds, each inclusive or exclusive. Only PartiQL can express it.
    Within {
        low: AttributeValue,
        low_inclusive: bool,
        high: AttributeValue,
        high_inclusive: bool,
    },
    /// A condition that no key range can answer. Only the legacy parameter can express it, and it
    /// is an error if the attribute turns out to be a key.
    NotIndexable,
}

impl KeyOperator {
    /// The operator as an expression writes it.
    pub fn name(&self) -> &'static str {
        match self {
            KeyOperator::Equal(_) => "=",
            KeyOperator::Less(_) => "<",
            KeyOperator::LessOrEqual(_) => "<=",
            KeyOperator::Greater(_) => ">",
            KeyOperator::GreaterOrEqual(_) => ">=",
            KeyOperator::Between(..) | KeyOperator::Within { .. } => "BETWEEN",
            KeyOperator::BeginsWith(_) => "begins_with",
            KeyOperator::NotIndexable => "none",
        }
    }

    pub fn values(&self) -> impl Iterator<Item = &AttributeValue> {
        let (first, second) = match self {
            KeyOperator::Equal(value)
            | KeyOperator::Less(value)
            | KeyOperator::LessOrEqual(value)
            | KeyOperator::Greater(value)
            | KeyOperator::GreaterOrEqual(value)
            | KeyOperator::BeginsWith(value) => (Some(value), None),
            KeyOperator::Between(low, high) | KeyOperator::Within { low, high, .. } => {
                (Some(low), Some(high))
            }
            KeyOperator::NotIndexable => (None, None),
        };
        first.into_iter().chain(second)
    }
}

/// The conditions of a bound expression, in text order.
pub(crate) fn key_conditions(tree: &Tree<Leaf<'_>>) -> Result<Vec<KeyCondition>, ExpressionFault> {
    let mut conditions = Vec::new();
    collect(tree, &mut conditions)?;
    Ok(conditions)
}

fn collect(
    tree: &Tree<Leaf<'_>>,
    conditions: &mut Vec<KeyCondition>,
) -> Result<(), ExpressionFault> {
    match tree {
        Tree::Or(_) => Err(ExpressionFault::KeyOperatorNotAllowed { operator: Operator::Or }),
        Tree::Not(_) => Err(ExpressionFault::KeyOperatorNotAllowed { operator: Operator::Not }),
        Tree::And(branches) => branches.iter().try_for_each(|branch| collect(branch, conditions)),
        Tree::Leaf(leaf) => {
            let mut condition = key_condition(leaf)?;
            if conditions.len() >= limits::KEY_ATTRIBUTES_MAX {
                // There are too many conditions, whatever they say. Their values are dropped: they
                // could all be the same large one.
                condition.operator = KeyOperator::NotIndexable;
            }
            if conditions.iter().any(|earlier| earlier.attribute == condition.attribute) {
                return Err(ExpressionFault::KeyAttributeRepeated);
            }
            conditions.push(condition);
            Ok(())
        }
    }
}

fn key_condition(leaf: &Leaf<'_>) -> Result<KeyCondition, ExpressionFault> {
    let operator = leaf.operator;
    check_operator(leaf)?;
    let (position, attribute) = key_attribute(&leaf.operands)?;
    let values: Vec<&AttributeValue> = leaf.operands.iter().filter_map(literal).collect();
    let operator = match (operator, values.as_slice()) {
        (Operator::Between, [low, high]) => KeyOperator::Between((*low).clone(), (*high).clone()),
        (Operator::BeginsWith, [prefix]) => KeyOperator::BeginsWith((*prefix).clone()),
        (Operator::Compare(comparator), [value]) => {
            let comparator = if position == 0 { comparator } else { comparator.mirrored() };
            comparison(comparator, (*value).clone())?
        }
        _ => unreachable!("one operand is the attribute and the others are literals"),
    };
    Ok(KeyCondition { attribute, operator })
}

fn check_operator(leaf: &Leaf<'_>) -> Result<(), ExpressionFault> {
    let operator = leaf.operator;
    match operator {
        Operator::Compare(Comparator::NotEqual) => {
            Err(ExpressionFault::KeyOperatorNotAllowed { operator })
        }
        Operator::Compare(_) => Ok(()),
        Operator::Between | Operator::BeginsWith => match leaf.operands[0] {
            LeafOperand::Path(_) => Ok(()),
            _ => Err(ExpressionFault::KeyAttributeNotFirst { operator }),
        },
        _ => Err(ExpressionFault::KeyOperatorNotAllowed { operator }),
    }
}

/// The only attribute among the operands, and its position.
fn key_attribute(operands: &[LeafOperand<'_>]) -> Result<(usize, String), ExpressionFault> {
    let mut found = None;
    for (position, operand) in operands.iter().enumerate() {
        match operand {
            LeafOperand::Value(_) => {}
            LeafOperand::Size(_) => return Err(ExpressionFault::KeyNestedOperation),
            LeafOperand::Path(_) if found.is_some() => {
                return Err(ExpressionFault::KeyMultipleAttributes);
            }
            LeafOperand::Path(path) if !path.is_top_level() => {
                return Err(ExpressionFault::KeyNestedAttribute);
            }
            LeafOperand::Path(path) => found = Some((position, path.root().to_owned())),
        }
    }
    found.ok_or(ExpressionFault::KeyAttributeMissing)
}

fn literal<'v>(operand: &LeafOperand<'v>) -> Option<&'v AttributeValue> {
    match operand {
        LeafOperand::Value(value) => Some(value),
        LeafOperand::Path(_) | LeafOperand::Size(_) => None,
    }
}

fn comparison(
    comparator: Comparator,
    value: AttributeValue,
) -> Result<KeyOperator, ExpressionFault> {
    Ok(match comparator {
        Comparator::Equal => KeyOperator::Equal(value),
        Comparator::Less => KeyOperator::Less(value),
        Comparator::LessOrEqual => KeyOperator::LessOrEqual(value),
        Comparator::Greater => KeyOperator::Greater(value),
        Comparator::GreaterOrEqual => KeyOperator::GreaterOrEqual(value),
        Comparator::NotEqual => {
            let operator = Operator::Compare(comparator);
            return Err(ExpressionFault::KeyOperatorNotAllowed { operator });
        }
    })
}
