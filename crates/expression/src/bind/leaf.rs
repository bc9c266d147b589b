//! A single comparison or function of a condition: first resolved, then checked.

use std::cmp::Ordering;

use zenobe_value::{AttributeType, AttributeValue, Path};

use super::Scope;
use crate::error::{ExpressionFault, OperandType};
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
    pub(super) fn leaf(&mut self, raw: &RawLeaf) -> Result<Leaf<'a>, ExpressionFault> {
        let operator = match raw {
            RawLeaf::Operation { operator, .. } => *operator,
            RawLeaf::Call(call) => Operator::condition_function(call.function.of(self.text))
                .expect("unknown functions were rejected by the static checks"),
        };
        let leaf = Leaf { operator, operands: self.leaf_operands(raw.operands())? };
        leaf.check()?;
        Ok(leaf)
    }

    fn leaf_operands(
        &mut self,
        raw: &[RawOperand],
    ) -> Result<Vec<LeafOperand<'a>>, ExpressionFault> {
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
    fn check(&self) -> Result<(), ExpressionFault> {
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

    fn check_distinct(&self) -> Result<(), ExpressionFault> {
        let Some((LeafOperand::Path(first), rest)) = self.operands.split_first() else {
            return Ok(());
        };
        let is_first =
            |operand: &LeafOperand<'_>| matches!(operand, LeafOperand::Path(path) if path == first);
        if rest.iter().any(is_first) {
            return Err(ExpressionFault::FirstOperandNotDistinct {
                operator: self.operator,
                path: first.clone(),
            });
        }
        Ok(())
    }

    fn check_first_is_path(&self) -> Result<(), ExpressionFault> {
        match self.operands[0] {
            LeafOperand::Path(_) => Ok(()),
            _ => Err(ExpressionFault::PathRequired { operator: self.operator }),
        }
    }

    /// The tested operand may be a value, unlike that of `attribute_exists`.
    fn check_attribute_type(&self) -> Result<(), ExpressionFault> {
        if matches!(self.operands[0], LeafOperand::Size(_)) {
            return Err(ExpressionFault::PathRequired { operator: self.operator });
        }
        let operand = &self.operands[1];
        let LeafOperand::Value(AttributeValue::S(name)) = operand else {
            let operand_type = operand.known_type().map_or(OperandType::Any, OperandType::Known);
            return Err(ExpressionFault::OperandType { operator: self.operator, operand_type });
        };
        match AttributeType::from_name(name) {
            Some(_) => Ok(()),
            None => Err(ExpressionFault::InvalidAttributeTypeName { name: name.clone() }),
        }
    }

    fn check_ordered(&self) -> Result<(), ExpressionFault> {
        self.check_types(&[AttributeType::S, AttributeType::N, AttributeType::B])
    }

    fn check_types(&self, allowed: &[AttributeType]) -> Result<(), ExpressionFault> {
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
fn check_counts(operator: Operator, operands: &[LeafOperand<'_>]) -> Result<(), ExpressionFault> {
    for operand in operands {
        if let LeafOperand::Size(arguments) = operand {
            check_counts(Operator::Size, arguments)?;
        }
    }
    let count = operands.len();
    match operator.function_operands() {
        Some(expected) if count != expected => {
            Err(ExpressionFault::OperandCount { operator, count })
        }
        // The tested operand does not count as listed.
        None if count - 1 > limits::IN_LISTED_MAX => {
            Err(ExpressionFault::TooManyListed { count: count - 1 })
        }
        _ => Ok(()),
    }
}

fn check_sizes(operands: &[LeafOperand<'_>]) -> Result<(), ExpressionFault> {
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
) -> Result<(), ExpressionFault> {
    let mut known_types = operands.iter().filter_map(LeafOperand::known_type);
    match known_types.find(|known| !allowed(*known)) {
        None => Ok(()),
        Some(wrong) => {
            Err(ExpressionFault::OperandType { operator, operand_type: OperandType::Known(wrong) })
        }
    }
}

fn check_bounds(low: &LeafOperand<'_>, high: &LeafOperand<'_>) -> Result<(), ExpressionFault> {
    let (LeafOperand::Value(low), LeafOperand::Value(high)) = (low, high) else { return Ok(()) };
    let bounds = || (Box::new(AttributeValue::clone(low)), Box::new(AttributeValue::clone(high)));
    match low.compare_scalars(high) {
        None => {
            let (low, high) = bounds();
            Err(ExpressionFault::BetweenTypesDiffer { low, high })
        }
        Some(Ordering::Greater) => {
            let (low, high) = bounds();
            Err(ExpressionFault::BetweenReversed { low, high })
        }
        Some(_) => Ok(()),
    }
}
