//! A WHERE clause bound to its parameters: a condition that still shows its structure, so that
//! planners can find keys in it.

use zenobe_value::{AttributeType, AttributeValue, Number, Path};

use crate::condition::{Comparator, Condition, Operand};

/// Borrows paths and values from the statement and its parameters.
#[derive(Debug, Clone, PartialEq)]
pub enum Predicate<'s> {
    And(Vec<Predicate<'s>>),
    Or(Vec<Predicate<'s>>),
    Not(Box<Predicate<'s>>),
    Compare {
        left: PredicateOperand<'s>,
        comparator: Comparator,
        right: PredicateOperand<'s>,
    },
    Between {
        operand: PredicateOperand<'s>,
        low: PredicateOperand<'s>,
        high: PredicateOperand<'s>,
    },
    In {
        operand: PredicateOperand<'s>,
        list: Vec<PredicateOperand<'s>>,
    },
    Exists(&'s Path),
    NotExists(&'s Path),
    /// The value at the path has one of these types.
    Type {
        path: &'s Path,
        types: &'s [AttributeType],
    },
    BeginsWith {
        operand: PredicateOperand<'s>,
        prefix: PredicateOperand<'s>,
    },
    Contains {
        container: PredicateOperand<'s>,
        element: PredicateOperand<'s>,
    },
    Constant(bool),
}

#[derive(Debug, Clone, PartialEq)]
pub enum PredicateOperand<'s> {
    Path(&'s Path),
    Value(&'s AttributeValue),
    /// A member of a set parameter, or the size of a literal.
    Computed(Box<AttributeValue>),
    Size(&'s Path),
    Test(Box<Predicate<'s>>),
}

impl<'s> Predicate<'s> {
    /// The same condition for the evaluator.
    pub fn lower(&self) -> Condition {
        let all = |predicates: &[Predicate<'s>]| predicates.iter().map(Predicate::lower).collect();
        match self {
            Predicate::And(predicates) => Condition::And(all(predicates)),
            Predicate::Or(predicates) => Condition::Or(all(predicates)),
            Predicate::Not(predicate) => Condition::Not(Box::new(predicate.lower())),
            Predicate::Compare { left, comparator, right } => {
                let (left, right) = (left.lower(), right.lower());
                Condition::Compare { left, comparator: *comparator, right }
            }
            Predicate::Between { operand, low, high } => {
                let (operand, low, high) = (operand.lower(), low.lower(), high.lower());
                Condition::Between { operand, low, high }
            }
            Predicate::In { operand, list } => {
                let list = list.iter().map(PredicateOperand::lower).collect();
                Condition::In { operand: operand.lower(), list }
            }
            Predicate::Exists(path) => Condition::AttributeExists((*path).clone()),
            Predicate::NotExists(path) => Condition::AttributeNotExists((*path).clone()),
            Predicate::Type { path, types } => lowered_types(path, types),
            Predicate::BeginsWith { operand, prefix } => {
                Condition::BeginsWith { operand: operand.lower(), prefix: prefix.lower() }
            }
            Predicate::Contains { container, element } => {
                Condition::Contains { container: container.lower(), element: element.lower() }
            }
            Predicate::Constant(true) => Condition::And(Vec::new()),
            Predicate::Constant(false) => Condition::Or(Vec::new()),
        }
    }

    /// Whether the predicate mentions a top-level attribute, alone or as the root of a path.
    pub fn mentions(&self, attribute: &str) -> bool {
        let is_root = |path: &Path| path.root() == attribute;
        let any = |operands: &[&PredicateOperand<'s>]| {
            operands.iter().any(|operand| operand.mentions(attribute))
        };
        match self {
            Predicate::And(predicates) | Predicate::Or(predicates) => {
                predicates.iter().any(|predicate| predicate.mentions(attribute))
            }
            Predicate::Not(predicate) => predicate.mentions(attribute),
            Predicate::Compare { left, right, .. } => any(&[left, right]),
            Predicate::Between { operand, low, high } => any(&[operand, low, high]),
            Predicate::In { operand, list } => {
                any(&[operand]) || list.iter().any(|listed| listed.mentions(attribute))
            }
            Predicate::Exists(path) | Predicate::NotExists(path) => is_root(path),
            Predicate::Type { path, .. } => is_root(path),
            Predicate::BeginsWith { operand, prefix } => any(&[operand, prefix]),
            Predicate::Contains { container, element } => any(&[container, element]),
            Predicate::Constant(_) => false,
        }
    }

    /// Whether every alternative requires the attribute to equal one or more given values. An AND
    /// does if one of its parts does, an OR if all of its parts do. A SELECT that does not pin the
    /// partition key reads everything.
    pub fn pins(&self, attribute: &str) -> bool {
        match self {
            Predicate::And(parts) => parts.iter().any(|part| part.pins(attribute)),
            Predicate::Or(parts) => parts.iter().all(|part| part.pins(attribute)),
            other => !other.equalities(attribute).is_empty(),
        }
    }

    /// The values of `=` or IN, one of which the attribute must equal. Empty if there is no such
    /// condition on the attribute.
    pub fn equalities(&self, attribute: &str) -> Vec<&AttributeValue> {
        if let Some(value) = self.equality(attribute) {
            return vec![value];
        }
        match self {
            Predicate::In { operand, list } if operand.is_attribute(attribute) => {
                let values: Option<Vec<&AttributeValue>> =
                    list.iter().map(PredicateOperand::value).collect();
                values.unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// The value that an attribute must equal, on either side of the comparison.
    pub fn equality(&self, attribute: &str) -> Option<&AttributeValue> {
        let Predicate::Compare { left, comparator: Comparator::Equal, right } = self else {
            return None;
        };
        match (left.is_attribute(attribute), right.is_attribute(attribute)) {
            (true, false) => right.value(),
            (false, true) => left.value(),
            _ => None,
        }
    }
}

impl<'s> PredicateOperand<'s> {
    fn lower(&self) -> Operand {
        match self {
            PredicateOperand::Path(path) => Operand::Path((*path).clone()),
            PredicateOperand::Value(value) => Operand::literal(value),
            PredicateOperand::Computed(value) => Operand::literal(value),
            PredicateOperand::Size(path) => Operand::Size((*path).clone()),
            PredicateOperand::Test(predicate) => Operand::Test(Box::new(predicate.lower())),
        }
    }

    fn mentions(&self, attribute: &str) -> bool {
        match self {
            PredicateOperand::Path(path) | PredicateOperand::Size(path) => path.root() == attribute,
            PredicateOperand::Value(_) | PredicateOperand::Computed(_) => false,
            PredicateOperand::Test(predicate) => predicate.mentions(attribute),
        }
    }

    /// Whether this is that top-level attribute itself.
    pub fn is_attribute(&self, attribute: &str) -> bool {
        matches!(self, PredicateOperand::Path(path) if path.is_top_level() && path.root() == attribute)
    }

    pub fn value(&self) -> Option<&AttributeValue> {
        match self {
            PredicateOperand::Value(value) => Some(value),
            PredicateOperand::Computed(value) => Some(value),
            _ => None,
        }
    }

    /// The operand's type, as far as it is known without an item.
    pub(super) fn known_type(&self) -> Option<AttributeType> {
        match self {
            PredicateOperand::Path(_) => None,
            PredicateOperand::Value(value) => Some(value.attribute_type()),
            PredicateOperand::Computed(value) => Some(value.attribute_type()),
            PredicateOperand::Size(_) => Some(AttributeType::N),
            PredicateOperand::Test(_) => Some(AttributeType::Bool),
        }
    }

    pub(super) fn number(number: u64) -> PredicateOperand<'s> {
        PredicateOperand::Computed(Box::new(AttributeValue::N(Number::from(number))))
    }
}

fn lowered_types(path: &Path, types: &[AttributeType]) -> Condition {
    let test = |attribute_type: &AttributeType| Condition::AttributeType {
        operand: Operand::Path(path.clone()),
        attribute_type: *attribute_type,
    };
    match types {
        [attribute_type] => test(attribute_type),
        types => Condition::Or(types.iter().map(test).collect()),
    }
}
