//! The last step of binding a condition: literals are encoded, so that evaluation compares bytes.

use zenobe_value::{AttributeType, AttributeValue, EncodedValue, Number, Path};

use super::leaf::{Leaf, LeafOperand};
use crate::condition::{Condition, Operand};
use crate::evaluate::size_of;
use crate::operator::Operator;
use crate::syntax::Tree;

pub(super) fn lower(tree: Tree<Leaf<'_>>) -> Condition {
    match tree {
        Tree::And(branches) => Condition::And(branches.into_iter().map(lower).collect()),
        Tree::Or(branches) => Condition::Or(branches.into_iter().map(lower).collect()),
        Tree::Not(branch) => Condition::Not(Box::new(lower(*branch))),
        Tree::Leaf(leaf) => lower_leaf(leaf),
    }
}

fn lower_leaf(leaf: Leaf<'_>) -> Condition {
    let Leaf { operator, operands } = leaf;
    match operator {
        Operator::Compare(comparator) => {
            let [left, right] = exactly(operands);
            Condition::Compare { left, comparator, right }
        }
        Operator::Between => {
            let [operand, low, high] = exactly(operands);
            Condition::Between { operand, low, high }
        }
        Operator::In => {
            let mut operands = operands.into_iter().map(lower_operand);
            let operand = operands.next().expect("IN has a tested operand");
            Condition::In { operand, list: operands.collect() }
        }
        Operator::AttributeExists => Condition::AttributeExists(path(operands)),
        Operator::AttributeNotExists => Condition::AttributeNotExists(path(operands)),
        Operator::AttributeType => {
            let attribute_type = attribute_type(&operands);
            Condition::AttributeType { path: path(operands), attribute_type }
        }
        Operator::BeginsWith => {
            let [operand, prefix] = exactly(operands);
            Condition::BeginsWith { operand, prefix }
        }
        Operator::Contains => {
            let [container, element] = exactly(operands);
            Condition::Contains { container, element }
        }
        Operator::And
        | Operator::Or
        | Operator::Not
        | Operator::Size
        | Operator::IfNotExists
        | Operator::ListAppend
        | Operator::Plus
        | Operator::Minus => unreachable!("{operator} is no leaf of a condition"),
    }
}

fn exactly<const COUNT: usize>(operands: Vec<LeafOperand<'_>>) -> [Operand; COUNT] {
    let operands: Vec<Operand> = operands.into_iter().map(lower_operand).collect();
    operands.try_into().expect("the number of operands was checked")
}

fn path(operands: Vec<LeafOperand<'_>>) -> Path {
    match operands.into_iter().next() {
        Some(LeafOperand::Path(path)) => path,
        other => unreachable!("the first operand was checked to be a path: {other:?}"),
    }
}

fn attribute_type(operands: &[LeafOperand<'_>]) -> AttributeType {
    match operands {
        [_, LeafOperand::Value(AttributeValue::S(name))] => {
            AttributeType::from_name(name).expect("the type's name was checked")
        }
        other => unreachable!("the operands of attribute_type were checked: {other:?}"),
    }
}

fn lower_operand(operand: LeafOperand<'_>) -> Operand {
    match operand {
        LeafOperand::Path(path) => Operand::Path(path),
        LeafOperand::Value(value) => Operand::Literal(EncodedValue::encode(value)),
        LeafOperand::Size(arguments) => lower_size(arguments),
    }
}

/// The size of a literal is known now. Of what has no size the static checks leave nothing.
fn lower_size(arguments: Vec<LeafOperand<'_>>) -> Operand {
    match arguments.into_iter().next() {
        Some(LeafOperand::Path(path)) => Operand::Size(path),
        Some(LeafOperand::Value(value)) => {
            let size = size_of(EncodedValue::encode(value).as_value());
            let size = Number::from(size.expect("the literal's type was checked to have a size"));
            Operand::Literal(EncodedValue::encode(&AttributeValue::N(size)))
        }
        other => unreachable!("size has one operand that has a size: {other:?}"),
    }
}
