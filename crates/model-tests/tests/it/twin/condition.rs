//! Conditions: a tree, and whether it holds for an item.

use std::cmp::Ordering;

use zenobe_value::{AttributeType, AttributeValue, Attributes, Number};

use super::route::Route;
use super::value::order;

#[derive(Debug, Clone)]
pub enum Test {
    And(Vec<Test>),
    Or(Vec<Test>),
    Not(Box<Test>),
    Compare(Term, Comparison, Term),
    Between(Term, Term, Term),
    In(Term, Vec<Term>),
    Exists(Route),
    Missing(Route),
    HasType(Route, AttributeType),
    BeginsWith(Term, Term),
    Contains(Term, Term),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    Route(Route),
    Literal(AttributeValue),
    Size(Route),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Test {
    pub fn holds(&self, item: Option<&Attributes>) -> bool {
        match self {
            Test::And(tests) => tests.iter().all(|test| test.holds(item)),
            Test::Or(tests) => tests.iter().any(|test| test.holds(item)),
            Test::Not(test) => !test.holds(item),
            Test::Compare(left, comparison, right) => {
                comparison.holds(left.value(item).as_ref(), right.value(item).as_ref())
            }
            Test::Between(term, low, high) => {
                let (term, low, high) = (term.value(item), low.value(item), high.value(item));
                Comparison::GreaterOrEqual.holds(term.as_ref(), low.as_ref())
                    && Comparison::LessOrEqual.holds(term.as_ref(), high.as_ref())
            }
            Test::In(term, list) => {
                let value = term.value(item);
                value.is_some() && list.iter().any(|member| member.value(item) == value)
            }
            Test::Exists(route) => route.find(item).is_some(),
            Test::Missing(route) => route.find(item).is_none(),
            Test::HasType(route, expected) => {
                route.find(item).is_some_and(|value| value.attribute_type() == *expected)
            }
            Test::BeginsWith(term, prefix) => match (term.value(item), prefix.value(item)) {
                (Some(AttributeValue::S(text)), Some(AttributeValue::S(prefix))) => {
                    text.as_bytes().starts_with(prefix.as_bytes())
                }
                (Some(AttributeValue::B(bytes)), Some(AttributeValue::B(prefix))) => {
                    bytes.starts_with(&prefix)
                }
                _ => false,
            },
            Test::Contains(container, element) => {
                match (container.value(item), element.value(item)) {
                    (Some(container), Some(element)) => contains(&container, &element),
                    _ => false,
                }
            }
        }
    }

    pub fn routes(&self) -> Vec<&Route> {
        match self {
            Test::And(tests) | Test::Or(tests) => tests.iter().flat_map(Test::routes).collect(),
            Test::Not(test) => test.routes(),
            Test::Compare(one, _, other)
            | Test::BeginsWith(one, other)
            | Test::Contains(one, other) => {
                [one, other].into_iter().filter_map(Term::route).collect()
            }
            Test::Between(one, low, high) => {
                [one, low, high].into_iter().filter_map(Term::route).collect()
            }
            Test::In(one, list) => {
                std::iter::once(one).chain(list).filter_map(Term::route).collect()
            }
            Test::Exists(route) | Test::Missing(route) | Test::HasType(route, _) => vec![route],
        }
    }
}

impl Term {
    fn value(&self, item: Option<&Attributes>) -> Option<AttributeValue> {
        match self {
            Term::Route(route) => route.find(item),
            Term::Literal(value) => Some(value.clone()),
            Term::Size(route) => {
                let size = match route.find(item)? {
                    AttributeValue::S(text) => text.encode_utf16().count(),
                    AttributeValue::B(bytes) => bytes.len(),
                    AttributeValue::Ss(members) => members.len(),
                    AttributeValue::Ns(members) => members.len(),
                    AttributeValue::Bs(members) => members.len(),
                    AttributeValue::L(elements) => elements.len(),
                    AttributeValue::M(members) => members.len(),
                    AttributeValue::N(_) | AttributeValue::Bool(_) | AttributeValue::Null => {
                        return None;
                    }
                };
                Some(AttributeValue::N(Number::from(size as u64)))
            }
        }
    }

    fn route(&self) -> Option<&Route> {
        match self {
            Term::Route(route) | Term::Size(route) => Some(route),
            Term::Literal(_) => None,
        }
    }
}

impl Comparison {
    pub fn holds(self, left: Option<&AttributeValue>, right: Option<&AttributeValue>) -> bool {
        let equal = left.is_some() && left == right;
        let ordering = match (left, right) {
            (Some(left), Some(right)) => order(left, right),
            _ => None,
        };
        match self {
            Comparison::Equal => equal,
            Comparison::NotEqual => !equal,
            Comparison::Less => ordering == Some(Ordering::Less),
            Comparison::LessOrEqual => ordering.is_some_and(Ordering::is_le),
            Comparison::Greater => ordering == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => ordering.is_some_and(Ordering::is_ge),
        }
    }
}

fn contains(container: &AttributeValue, element: &AttributeValue) -> bool {
    match (container, element) {
        (AttributeValue::S(text), AttributeValue::S(part)) => text.contains(part.as_str()),
        (AttributeValue::B(bytes), AttributeValue::B(part)) => {
            part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
        }
        (AttributeValue::Ss(members), AttributeValue::S(member)) => members.contains(member),
        (AttributeValue::Ns(members), AttributeValue::N(member)) => members.contains(member),
        (AttributeValue::Bs(members), AttributeValue::B(member)) => members.contains(member),
        (AttributeValue::L(elements), element) => elements.contains(element),
        _ => false,
    }
}
