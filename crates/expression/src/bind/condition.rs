//! The last step of binding a condition: encoding literals, so that evaluation compares bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use zenobe_value::{AttributeType, AttributeValue, EncodedValue, Number, Path};

use super::leaf::{Leaf, LeafOperand};
use crate::condition::{Condition, Operand};
use crate::evaluate::size_of;
use crate::operator::Operator;
use crate::syntax::Tree;

pub(super) fn lower(tree: Tree<Leaf<'_>>) -> Condition {
    lower_tree(tree, &mut Literals::default())
}

fn lower_tree<'v>(tree: Tree<Leaf<'v>>, literals: &mut Literals) -> Condition {
    let lower_all = |branches: Vec<Tree<Leaf<'v>>>, literals: &mut Literals| {
        branches.into_iter().map(|branch| lower_tree(branch, literals)).collect()
    };
    match tree {
        Tree::And(branches) => Condition::And(lower_all(branches, literals)),
        Tree::Or(branches) => Condition::Or(lower_all(branches, literals)),
        Tree::Not(branch) => Condition::Not(Box::new(lower_tree(*branch, literals))),
        Tree::Leaf(leaf) => lower_leaf(leaf, literals),
    }
}

fn lower_leaf(leaf: Leaf<'_>, literals: &mut Literals) -> Condition {
    let Leaf { operator, operands } = leaf;
    match operator {
        Operator::Compare(comparator) => {
            let [left, right] = exactly(operands, literals);
            Condition::Compare { left, comparator, right }
        }
        Operator::Between => {
            let [operand, low, high] = exactly(operands, literals);
            Condition::Between { operand, low, high }
        }
        Operator::In => {
            let mut operands = operands.into_iter().map(|operand| literals.lower(operand));
            let operand = operands.next().expect("IN has a tested operand");
            Condition::In { operand, list: operands.collect() }
        }
        Operator::AttributeExists => Condition::AttributeExists(path(operands)),
        Operator::AttributeNotExists => Condition::AttributeNotExists(path(operands)),
        Operator::AttributeType => {
            let attribute_type = attribute_type(&operands);
            let [operand, _] = exactly(operands, literals);
            Condition::AttributeType { operand, attribute_type }
        }
        Operator::BeginsWith => {
            let [operand, prefix] = exactly(operands, literals);
            Condition::BeginsWith { operand, prefix }
        }
        Operator::Contains => {
            let [container, element] = exactly(operands, literals);
            Condition::Contains { container, element }
        }
        Operator::And
        | Operator::Or
        | Operator::Not
        | Operator::Size
        | Operator::IfNotExists
        | Operator::ListAppend
        | Operator::Plus
        | Operator::Minus => unreachable!("{operator} is not a leaf of a condition"),
    }
}

fn exactly<const COUNT: usize>(
    operands: Vec<LeafOperand<'_>>,
    literals: &mut Literals,
) -> [Operand; COUNT] {
    let operands: Vec<Operand> =
        operands.into_iter().map(|operand| literals.lower(operand)).collect();
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

/// Encodes and measures each literal once, however often the expression uses it. A value's address
/// identifies its placeholder: the values stay borrowed while the expression is lowered.
#[derive(Default)]
struct Literals {
    encoded: BTreeMap<*const AttributeValue, Arc<EncodedValue>>,
    sizes: BTreeMap<*const AttributeValue, Arc<EncodedValue>>,
}

impl Literals {
    fn lower(&mut self, operand: LeafOperand<'_>) -> Operand {
        match operand {
            LeafOperand::Path(path) => Operand::Path(path),
            LeafOperand::Value(value) => Operand::Literal(self.encoded(value)),
            LeafOperand::Size(arguments) => self.lower_size(arguments),
        }
    }

    /// The size of a literal is known now. The static checks rejected every operand without a size.
    fn lower_size(&mut self, arguments: Vec<LeafOperand<'_>>) -> Operand {
        match arguments.into_iter().next() {
            Some(LeafOperand::Path(path)) => Operand::Size(path),
            Some(LeafOperand::Value(value)) => Operand::Literal(self.size(value)),
            other => unreachable!("size has one operand that has a size: {other:?}"),
        }
    }

    fn encoded(&mut self, value: &AttributeValue) -> Arc<EncodedValue> {
        let encode = || Arc::new(EncodedValue::encode(value));
        Arc::clone(self.encoded.entry(value).or_insert_with(encode))
    }

    fn size(&mut self, value: &AttributeValue) -> Arc<EncodedValue> {
        let measure = || {
            let size = size_of(EncodedValue::encode(value).as_value());
            let size = Number::from(size.expect("the literal's type was checked to have a size"));
            Arc::new(EncodedValue::encode(&AttributeValue::N(size)))
        };
        Arc::clone(self.sizes.entry(value).or_insert_with(measure))
    }
}
