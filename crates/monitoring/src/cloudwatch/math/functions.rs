//! The functions of expressions that are implemented.

use super::evaluate::{Scope, evaluate, map};
use super::{Expression, Operand, Points};

pub fn call(name: &str, arguments: &[Expression], scope: &Scope<'_>) -> Result<Operand, String> {
    match (name, arguments) {
        ("ABS", [of]) => Ok(map(evaluate(of, scope)?, f64::abs)),
        ("CEIL", [of]) => Ok(map(evaluate(of, scope)?, f64::ceil)),
        ("FLOOR", [of]) => Ok(map(evaluate(of, scope)?, f64::floor)),
        ("SUM", [of]) => aggregate(evaluate(of, scope)?, |values| values.iter().sum()),
        ("AVG", [of]) => aggregate(evaluate(of, scope)?, |values| {
            values.iter().sum::<f64>() / values.len() as f64
        }),
        ("MIN", [of]) => aggregate(evaluate(of, scope)?, |values| {
            values.iter().copied().fold(f64::MAX, f64::min)
        }),
        ("MAX", [of]) => aggregate(evaluate(of, scope)?, |values| {
            values.iter().copied().fold(f64::MIN, f64::max)
        }),
        ("METRIC_COUNT", [of]) => match evaluate(of, scope)? {
            Operand::Array(series) => Ok(Operand::Scalar(series.len() as f64)),
            Operand::Series(_) => Ok(Operand::Scalar(1.0)),
            Operand::Scalar(_) => Err("METRIC_COUNT counts series".to_owned()),
        },
        ("METRICS", []) => metrics("", scope),
        ("METRICS", [Expression::Text(part)]) => metrics(part, scope),
        ("PERIOD", [_]) => Ok(Operand::Scalar(scope.period_ms as f64 / 1_000.0)),
        ("TIME_SERIES", [of]) => match evaluate(of, scope)? {
            Operand::Scalar(value) => scope.constant(value).map(Operand::Series),
            _ => Err("TIME_SERIES takes a number".to_owned()),
        },
        ("DIFF", [of]) => each(evaluate(of, scope)?, |points| steps(points, |by, _| by)),
        ("RATE", [of]) => {
            each(evaluate(of, scope)?, |points| steps(points, |by, after_s| by / after_s))
        }
        ("RUNNING_SUM", [of]) => each(evaluate(of, scope)?, running_sum),
        ("FILL", [of, with]) => {
            let with = filling(with, scope)?;
            let of = evaluate(of, scope)?;
            scope.take_full(if let Operand::Array(several) = &of { several.len() } else { 1 })?;
            each(of, |points| fill(&points, &with, scope))
        }
        ("IF", [condition, then]) => choose(condition, then, None, scope),
        ("IF", [condition, then, otherwise]) => choose(condition, then, Some(otherwise), scope),
        _ => Err(format!(
            "The function {name} with {} arguments is not supported by Zenobe",
            arguments.len()
        )),
    }
}

/// Aggregates one series to a number, and several series to one.
fn aggregate(operand: Operand, with: impl Fn(&[f64]) -> f64) -> Result<Operand, String> {
    match operand {
        Operand::Scalar(_) => Err("A number can't be aggregated".to_owned()),
        Operand::Series(points) => {
            let values: Vec<f64> = points.into_values().collect();
            Ok(Operand::Scalar(if values.is_empty() { 0.0 } else { with(&values) }))
        }
        Operand::Array(series) => {
            let mut all: std::collections::BTreeMap<u64, Vec<f64>> = Default::default();
            for (at, value) in series.into_iter().flatten() {
                all.entry(at).or_default().push(value);
            }
            Ok(Operand::Series(all.into_iter().map(|(at, values)| (at, with(&values))).collect()))
        }
    }
}

fn metrics(part: &str, scope: &Scope<'_>) -> Result<Operand, String> {
    let ids = scope.metrics.iter().filter(|id| id.contains(part));
    scope.budget.copy_all(ids.filter_map(|id| scope.series.get(id)).flatten())
}

fn each(operand: Operand, with: impl Fn(Points) -> Points) -> Result<Operand, String> {
    match operand {
        Operand::Scalar(_) => Err("The function takes series".to_owned()),
        Operand::Series(points) => Ok(Operand::Series(with(points))),
        Operand::Array(series) => Ok(Operand::Array(series.into_iter().map(with).collect())),
    }
}

fn steps(points: Points, with: impl Fn(f64, f64) -> f64) -> Points {
    let points: Vec<(u64, f64)> = points.into_iter().collect();
    let step = |pair: &[(u64, f64)]| {
        let after_s = (pair[1].0 - pair[0].0) as f64 / 1_000.0;
        (pair[1].0, with(pair[1].1 - pair[0].1, after_s))
    };
    points.windows(2).map(step).collect()
}

fn running_sum(points: Points) -> Points {
    let mut sum = 0.0;
    let add = |(at, value): (u64, f64)| {
        sum += value;
        (at, sum)
    };
    points.into_iter().map(add).collect()
}

enum Filling {
    With(Points),
    Repeat,
    Linear,
}

fn filling(with: &Expression, scope: &Scope<'_>) -> Result<Filling, String> {
    match with {
        Expression::Name(word) if word == "REPEAT" => Ok(Filling::Repeat),
        Expression::Name(word) if word == "LINEAR" => Ok(Filling::Linear),
        other => match evaluate(other, scope)? {
            Operand::Scalar(value) => scope.constant(value).map(Filling::With),
            Operand::Series(points) => Ok(Filling::With(points)),
            Operand::Array(_) => Err("FILL takes one series".to_owned()),
        },
    }
}

fn fill(points: &Points, with: &Filling, scope: &Scope<'_>) -> Points {
    let filled = |at: u64| match with {
        _ if points.contains_key(&at) => points.get(&at).copied(),
        Filling::With(values) => values.get(&at).copied(),
        Filling::Repeat => points.range(..at).next_back().map(|(_, value)| *value),
        Filling::Linear => {
            let (before, from) = points.range(..at).next_back()?;
            let (after, to) = points.range(at..).next()?;
            Some(from + (to - from) * (at - before) as f64 / (after - before) as f64)
        }
    };
    scope.periods().filter_map(|at| Some((at, filled(at)?))).collect()
}

fn choose(
    condition: &Expression,
    then: &Expression,
    otherwise: Option<&Expression>,
    scope: &Scope<'_>,
) -> Result<Operand, String> {
    let as_points = |expression: &Expression| match evaluate(expression, scope)? {
        Operand::Scalar(value) => scope.constant(value),
        Operand::Series(points) => Ok(points),
        Operand::Array(_) => Err("IF takes series and numbers".to_owned()),
    };
    let (condition, then) = (as_points(condition)?, as_points(then)?);
    let otherwise = otherwise.map(as_points).transpose()?.unwrap_or_default();
    let choose = |(at, is_true): (u64, f64)| {
        let from = if is_true != 0.0 { &then } else { &otherwise };
        Some((at, *from.get(&at)?))
    };
    Ok(Operand::Series(condition.into_iter().filter_map(choose).collect()))
}
