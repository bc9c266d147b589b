//! Evaluates an expression over the series that it mentions.

use std::collections::HashMap;

use super::functions::call;
use super::{Budget, Expression, Operand, Operator, Points};

/// What expressions see.
pub struct Scope<'s> {
    /// The series of the other queries, by id.
    pub series: &'s HashMap<String, Vec<Points>>,
    /// The ids of queries for metrics, in the order of the request.
    pub metrics: &'s [String],
    /// The periods of the request.
    pub from_ms: u64,
    pub to_ms: u64,
    pub period_ms: u64,
    pub budget: &'s Budget,
}

impl Scope<'_> {
    /// The beginnings of all periods.
    pub fn periods(&self) -> impl Iterator<Item = u64> {
        (self.from_ms..self.to_ms)
            .step_by(usize::try_from(self.period_ms).unwrap_or(usize::MAX).max(1))
    }

    /// Pays for series that have a value in every period.
    pub fn take_full(&self, series: usize) -> Result<(), String> {
        let periods = self.to_ms.saturating_sub(self.from_ms).div_ceil(self.period_ms.max(1));
        self.budget.take(series, usize::try_from(periods).unwrap_or(usize::MAX))
    }

    /// A series with the same value in every period.
    pub fn constant(&self, value: f64) -> Result<Points, String> {
        self.take_full(1)?;
        Ok(self.periods().map(|at| (at, value)).collect())
    }
}

pub fn evaluate(expression: &Expression, scope: &Scope<'_>) -> Result<Operand, String> {
    match expression {
        Expression::Number(number) => Ok(Operand::Scalar(*number)),
        Expression::Text(_) => Err("A text stands where a value is expected".to_owned()),
        Expression::Name(name) => named(name, scope),
        Expression::Array(elements) => {
            let mut series = Vec::new();
            for element in elements {
                match evaluate(element, scope)? {
                    Operand::Series(points) => series.push(points),
                    Operand::Array(more) => series.extend(more),
                    Operand::Scalar(_) => return Err("An array has series only".to_owned()),
                }
            }
            Ok(Operand::Array(series))
        }
        Expression::Negate(inner) => Ok(map(evaluate(inner, scope)?, |value| -value)),
        Expression::Binary(operator, left, right) => {
            binary(*operator, evaluate(left, scope)?, evaluate(right, scope)?, scope.budget)
        }
        Expression::Call(name, arguments) => call(name, arguments, scope),
    }
}

fn named(name: &str, scope: &Scope<'_>) -> Result<Operand, String> {
    match scope.series.get(name).map(Vec::as_slice) {
        None => Err(format!("Undefined variable: {name}")),
        Some([only]) => scope.budget.copy(only).map(Operand::Series),
        Some(several) => scope.budget.copy_all(several),
    }
}

pub fn map(operand: Operand, with: impl Fn(f64) -> f64) -> Operand {
    let map_points = |points: Points| -> Points {
        let points = points.into_iter().map(|(at, value)| (at, with(value)));
        points.filter(|(_, value)| value.is_finite()).collect()
    };
    match operand {
        Operand::Scalar(number) => Operand::Scalar(with(number)),
        Operand::Series(points) => Operand::Series(map_points(points)),
        Operand::Array(series) => Operand::Array(series.into_iter().map(map_points).collect()),
    }
}

/// A period has a value in the result if it has one on both sides; a division by zero has none.
fn binary(
    operator: Operator,
    left: Operand,
    right: Operand,
    budget: &Budget,
) -> Result<Operand, String> {
    let both = |left: Points, right: &Points| -> Points {
        let pair = |(at, left): (u64, f64)| Some((at, apply(operator, left, *right.get(&at)?)));
        left.into_iter().filter_map(pair).filter(|(_, value)| value.is_finite()).collect()
    };
    Ok(match (left, right) {
        (left, Operand::Scalar(right)) => map(left, |left| apply(operator, left, right)),
        (Operand::Scalar(left), right) => map(right, |right| apply(operator, left, right)),
        (Operand::Series(left), Operand::Series(right)) => Operand::Series(both(left, &right)),
        (Operand::Array(left), Operand::Series(right)) => {
            Operand::Array(left.into_iter().map(|left| both(left, &right)).collect())
        }
        (Operand::Series(left), Operand::Array(right)) => {
            let each = |right: &Points| Ok(both(budget.copy(&left)?, right));
            Operand::Array(right.iter().map(each).collect::<Result<_, String>>()?)
        }
        (Operand::Array(_), Operand::Array(_)) => {
            return Err("Operators don't combine two arrays".to_owned());
        }
    })
}

fn apply(operator: Operator, left: f64, right: f64) -> f64 {
    let truth = |is_true: bool| f64::from(u8::from(is_true));
    match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        Operator::Power => left.powf(right),
        Operator::Equal => truth(left == right),
        Operator::NotEqual => truth(left != right),
        Operator::Less => truth(left < right),
        Operator::LessOrEqual => truth(left <= right),
        Operator::Greater => truth(left > right),
        Operator::GreaterOrEqual => truth(left >= right),
        Operator::And => truth(left != 0.0 && right != 0.0),
        Operator::Or => truth(left != 0.0 || right != 0.0),
    }
}
