//! Metric math: expressions over the series of a GetMetricData request or of an alarm.

mod budget;
mod evaluate;
mod functions;
mod parse;

use std::collections::BTreeMap;

pub use budget::Budget;
pub use evaluate::{Scope, evaluate};
pub use parse::parse;

/// Values by the beginning of their period.
pub type Points = BTreeMap<u64, f64>;

#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Number(f64),
    /// The id of another query, or a word such as `REPEAT`.
    Name(String),
    Text(String),
    Array(Vec<Expression>),
    Negate(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    Call(String, Vec<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
}

/// The value of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    Scalar(f64),
    Series(Points),
    Array(Vec<Points>),
}

impl Expression {
    /// The ids that it mentions. Ids begin with a lower-case letter; the names of functions and constants don't.
    pub fn ids<'e>(&'e self, ids: &mut Vec<&'e str>) {
        match self {
            Expression::Number(_) | Expression::Text(_) => {}
            Expression::Name(name) => {
                if name.starts_with(|first: char| first.is_ascii_lowercase()) {
                    ids.push(name);
                }
            }
            Expression::Negate(inner) => inner.ids(ids),
            Expression::Array(elements) | Expression::Call(_, elements) => {
                elements.iter().for_each(|element| element.ids(ids));
            }
            Expression::Binary(_, left, right) => {
                left.ids(ids);
                right.ids(ids);
            }
        }
    }
}

#[cfg(test)]
mod tests;
