//! A single comparison or function of a condition: first resolved, then checked.

use std::cmp::Ordering;

use zenobe_value::{AttributeType, AttributeValue, Path};

use super::Scope;
use crate::error::{Fault, OperandType};
use crate::limits;
use crate::operator::Operator;
use crate::syntax::{RawLeaf, RawOperand};

/// A leaf whose operands fit its operator in number and, where known, in type.
#[derive(Debug)]
pub(crate) struct Leaf<'v> {
    pub operator: Operator,
    pub operands: Vec<LeafOperand<'v>>,
}

#[derive(Debug)]
pub(crate) enum LeafOperand<'v> {
    Path(Path),
    Value(&'v AttributeValue),
    /// The arguments of `size`: one, once the leaf is checked.
    Size(Vec<LeafOperand<'v>>),
}

impl<'a> Scope<'_, 'a> {
    pub(super) fn leaf(&mut self, raw: &RawLeaf) -> Result<Leaf<'a>, Fault> {
        let operator = match raw {
            RawLeaf::Operation { operator, .. } => *operator,
            RawLeaf::Call(call) => Operator::condition_function(call.function.of(self.text))
                .expect("unknown functions were rejected by the static checks"),
        };
        let leaf = Leaf { operator, operands: self.leaf_operands(raw.operands())? };
        leaf.check()?;
        Ok(leaf)
    }

    fn leaf_operands(&mut self, raw: &[RawOperand]) -> Result<Vec<LeafOperand<'a>>, Fault> {
        raw.iter()
            .map(|operand| match operand {
                RawOperand::Path(path) => self.path(path).map(LeafOperand::Path),
                RawOperand::Value(placeholder) => self.value(*placeholder).map(LeafOperand::Value),
                // The static checks allow no other function here.
                RawOperand::Call(call) => {
                    self.leaf_operands(&call.arguments).map(LeafOperand::Size)
                }
            })
            .collect()
    }
}

impl Leaf<'_> {
    fn check(&self) -> Result<(), Fault> {
        check_counts(self.operator, &self.operands)?;
        self.check_distinct()?;
        check_sizes(&self.operands)?;
        match self.operator {
            Operator::AttributeExists | Operator::AttributeNotExists => self.check_first_is_path(),
            Operator::AttributeType => self.check_attribute_type(),
            Operator::BeginsWith => self.check_types(&[AttributeType::S, AttributeType::B]),
            Operator::Compare(comparator) if comparator.is_ordering() => self.check_ordered(),
            Operator::Between => {
                self.check_ordered()?;
                check_bounds(&self.operands[1], &self.operands[2])
            }
            _ => Ok(()),
        }
    }

    fn check_distinct(&self) -> Result<(), Fault> {
        let Some((LeafOperand::Path(first), rest)) = self.operands.split_first() else {
            return Ok(());
        };
        let is_first =
            |operand: &LeafOperand<'_>| matches!(operand, LeafOperand::Path(path) if path == first);
        if rest.iter().any(is_first) {
            return Err(Fault::FirstOperandNotDistinct {
                operator: self.operator,
                path: first.clone(),
            });
        }
        Ok(())
    }

    fn check_first_is_path(&self) -> Result<(), Fault> {
        match self.operands[0] {
            LeafOperand::Path(_) => Ok(()),
            _ => Err(Fault::PathRequired { operator: self.operator }),
        }
    }

    /// The tested operand may be a value, unlike that of `attribute_exists`.
    fn check_attribute_type(&self) -> Result<(), Fault> {
        if matches!(self.operands[0], LeafOperand::Size(_)) {
            return Err(Fault::PathRequired { operator: self.operator });
        }
        let operand = &self.operands[1];
        let LeafOperand::Value(AttributeValue::S(name)) = operand else {
            let operand_type = operand.known_type().map_or(OperandType::Any, OperandType::Known);
            return Err(Fault::OperandType { operator: self.operator, operand_type });
        };
        match AttributeType::from_name(name) {
            Some(_) => Ok(()),
            None => Err(Fault::InvalidAttributeTypeName { name: name.clone() }),
        }
    }

    fn check_ordered(&self) -> Result<(), Fault> {
        self.check_types(&[AttributeType::S, AttributeType::N, AttributeType::B])
    }

    fn check_types(&self, allowed: &[AttributeType]) -> Result<(), Fault> {
        check_types(self.operator, &self.operands, |known| allowed.contains(&known))
    }
}

impl LeafOperand<'_> {
    /// The operand's type, if the expression alone determines it.
    fn known_type(&self) -> Option<AttributeType> {
        match self {
            LeafOperand::Path(_) => None,
            LeafOperand::Value(value) => Some(value.attribute_type()),
            LeafOperand::Size(_) => Some(AttributeType::N),
        }
    }
}

/// Checks inner functions before the one that takes them.
fn check_counts(operator: Operator, operands: &[LeafOperand<'_>]) -> Result<(), Fault> {
    for operand in operands {
        if let LeafOperand::Size(arguments) = operand {
            check_counts(Operator::Size, arguments)?;
        }
    }
    let count = operands.len();
    match operator.function_operands() {
        Some(expected) if count != expected => Err(Fault::OperandCount { operator, count }),
        // The tested operand does not count as listed.
        None if count - 1 > limits::IN_LISTED_MAX => Err(Fault::TooManyListed { count: count - 1 }),
        _ => Ok(()),
    }
}

fn check_sizes(operands: &[LeafOperand<'_>]) -> Result<(), Fault> {
    for operand in operands {
        if let LeafOperand::Size(arguments) = operand {
            check_sizes(arguments)?;
            let has_size = |known| {
                !matches!(known, AttributeType::N | AttributeType::Bool | AttributeType::Null)
            };
            check_types(Operator::Size, arguments, has_size)?;
        }
    }
    Ok(())
}

fn check_types(
    operator: Operator,
    operands: &[LeafOperand<'_>],
    allowed: impl Fn(AttributeType) -> bool,
) -> Result<(), Fault> {
    let mut known_types = operands.iter().filter_map(LeafOperand::known_type);
    match known_types.find(|known| !allowed(*known)) {
        None => Ok(()),
        Some(wrong) => {
            Err(Fault::OperandType { operator, operand_type: OperandType::Known(wrong) })
        }
    }
}

fn check_bounds(low: &LeafOperand<'_>, high: &LeafOperand<'_>) -> Result<(), Fault> {
    let (LeafOperand::Value(low), LeafOperand::Value(high)) = (low, high) else { return Ok(()) };
    let bounds = || (Box::new(AttributeValue::clone(low)), Box::new(AttributeValue::clone(high)));
    match compare_scalars(low, high) {
        None => {
            let (low, high) = bounds();
            Err(Fault::BetweenTypesDiffer { low, high })
        }
        Some(Ordering::Greater) => {
            let (low, high) = bounds();
            Err(Fault::BetweenReversed { low, high })
        }
        Some(_) => Ok(()),
    }
}

/// `None` unless both are S, both N or both B.
fn compare_scalars(one: &AttributeValue, two: &AttributeValue) -> Option<Ordering> {
    match (one, two) {
        (AttributeValue::S(one), AttributeValue::S(two)) => Some(one.cmp(two)),
        (AttributeValue::N(one), AttributeValue::N(two)) => Some(one.cmp(two)),
        (AttributeValue::B(one), AttributeValue::B(two)) => Some(one.cmp(two)),
        _ => None,
    }
}
