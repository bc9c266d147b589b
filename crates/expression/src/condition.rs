//! Conditions ready to evaluate: placeholders resolved, literals encoded.

use std::sync::Arc;

use zenobe_value::{AttributeType, AttributeValue, EncodedValue, Path};

/// A bound condition or filter.
///
/// # Lowering the legacy parameters
///
/// `Expected`, `QueryFilter` and `ScanFilter` lower to one leaf per attribute, joined by [`Condition::And`] or, with
/// `ConditionalOperator: OR`, by [`Condition::Or`]. With `a` the top-level path of the attribute:
///
/// | legacy | condition |
/// |---|---|
/// | `EQ` `NE` `LT` `LE` `GT` `GE` | `Compare` of `a` and the literal |
/// | `BETWEEN` | `Between` |
/// | `IN` | `In` |
/// | `NULL`, `Exists: false` | `AttributeNotExists` |
/// | `NOT_NULL` | `AttributeExists` |
/// | `Value` alone or with `Exists: true` | `Compare` with `Equal` |
/// | `CONTAINS` | `Contains` |
/// | `NOT_CONTAINS` | [`Condition::not_contains`]: unlike `NOT contains(…)` it is false on a missing attribute |
/// | `BEGINS_WITH` | `BeginsWith` |
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Condition {
    /// True when empty.
    And(Vec<Condition>),
    /// False when empty.
    Or(Vec<Condition>),
    Not(Box<Condition>),
    Compare {
        left: Operand,
        comparator: Comparator,
        right: Operand,
    },
    Between {
        operand: Operand,
        low: Operand,
        high: Operand,
    },
    In {
        operand: Operand,
        list: Vec<Operand>,
    },
    AttributeExists(Path),
    AttributeNotExists(Path),
    AttributeType {
        operand: Operand,
        attribute_type: AttributeType,
    },
    BeginsWith {
        operand: Operand,
        prefix: Operand,
    },
    Contains {
        container: Operand,
        element: Operand,
    },
}

#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Operand {
    Path(Path),
    /// Shared, because an expression can use one placeholder many times.
    Literal(Arc<EncodedValue>),
    /// The size of the value at a path. The size of a literal is itself a literal.
    Size(Path),
    /// Whether a condition holds, as a BOOL. Only PartiQL can express it.
    Test(Box<Condition>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Condition {
    /// The legacy `NOT_CONTAINS`.
    pub fn not_contains(path: Path, element: Operand) -> Condition {
        let container = Operand::Path(path.clone());
        let contains = Condition::Contains { container, element };
        Condition::And(vec![Condition::AttributeExists(path), Condition::Not(Box::new(contains))])
    }

    /// Every document path that the condition mentions, in text order.
    pub fn paths(&self) -> Vec<&Path> {
        let mut paths = Vec::new();
        self.collect_paths(&mut paths);
        paths
    }

    fn collect_paths<'c>(&'c self, paths: &mut Vec<&'c Path>) {
        let mut add = |operands: &[&'c Operand]| {
            operands.iter().for_each(|operand| operand.collect_paths(paths));
        };
        match self {
            Condition::And(conditions) | Condition::Or(conditions) => {
                conditions.iter().for_each(|condition| condition.collect_paths(paths));
            }
            Condition::Not(condition) => condition.collect_paths(paths),
            Condition::Compare { left, right, .. } => add(&[left, right]),
            Condition::Between { operand, low, high } => add(&[operand, low, high]),
            Condition::In { operand, list } => {
                add(&[operand]);
                list.iter().for_each(|listed| add(&[listed]));
            }
            Condition::AttributeExists(path) | Condition::AttributeNotExists(path) => {
                paths.push(path);
            }
            Condition::AttributeType { operand, .. } => add(&[operand]),
            Condition::BeginsWith { operand, prefix } => add(&[operand, prefix]),
            Condition::Contains { container, element } => add(&[container, element]),
        }
    }
}

impl Operand {
    pub fn literal(value: &AttributeValue) -> Operand {
        Operand::Literal(Arc::new(EncodedValue::encode(value)))
    }

    fn collect_paths<'c>(&'c self, paths: &mut Vec<&'c Path>) {
        match self {
            Operand::Path(path) | Operand::Size(path) => paths.push(path),
            Operand::Literal(_) => {}
            Operand::Test(condition) => condition.collect_paths(paths),
        }
    }
}

impl Comparator {
    pub fn symbol(self) -> &'static str {
        match self {
            Comparator::Equal => "=",
            Comparator::NotEqual => "<>",
            Comparator::Less => "<",
            Comparator::LessOrEqual => "<=",
            Comparator::Greater => ">",
            Comparator::GreaterOrEqual => ">=",
        }
    }

    /// The comparator that holds when the two sides are swapped.
    pub fn mirrored(self) -> Comparator {
        match self {
            Comparator::Equal | Comparator::NotEqual => self,
            Comparator::Less => Comparator::Greater,
            Comparator::LessOrEqual => Comparator::GreaterOrEqual,
            Comparator::Greater => Comparator::Less,
            Comparator::GreaterOrEqual => Comparator::LessOrEqual,
        }
    }

    pub(crate) fn is_ordering(self) -> bool {
        !matches!(self, Comparator::Equal | Comparator::NotEqual)
    }
}
