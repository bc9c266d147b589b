//! Literals of every type. Their faults say where in the literal they are: `root`, `root.x`, `root[1]`.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use zenobe_value::limits::NESTING_LEVELS_MAX;
use zenobe_value::{AttributeValue, Attributes, Number};

use super::StatementParser;
use super::expression::{Expression, Node};
use crate::partiql::fault::{StatementFault, Unsupported};
use crate::partiql::number_range::range_error;
use crate::syntax::Span;

/// How deep collections may nest. The innermost value adds one more level.
const COLLECTION_LEVELS_MAX: usize = NESTING_LEVELS_MAX - 1;

impl StatementParser<'_> {
    /// A value in the text. A faulty one becomes an arbitrary value, which nobody uses.
    pub(super) fn literal(&mut self, expression: Expression) -> Arc<AttributeValue> {
        Arc::new(self.literal_at(expression, &LiteralPosition::Root, 0))
    }

    fn literal_at(
        &mut self,
        expression: Expression,
        place: &LiteralPosition<'_>,
        levels: usize,
    ) -> AttributeValue {
        let span = expression.span;
        let is_collection = matches!(expression.node, Node::List(_) | Node::Map(_));
        if is_collection && levels >= COLLECTION_LEVELS_MAX {
            self.keep(StatementFault::LiteralTooDeep { path: place.to_string() });
            return AttributeValue::Null;
        }
        match expression.node {
            Node::Text(text) => AttributeValue::S(text),
            Node::Number { digits, negative } => {
                AttributeValue::N(self.number(digits, negative, place))
            }
            Node::Bool(flag) => AttributeValue::Bool(flag),
            Node::Null => AttributeValue::Null,
            Node::List(elements) => {
                let elements = elements.into_iter().enumerate();
                let element = |(index, element)| {
                    self.literal_at(element, &LiteralPosition::Element(place, index), levels + 1)
                };
                AttributeValue::L(elements.map(element).collect())
            }
            Node::Map(fields) => {
                let mut members = Attributes::new();
                for (name, value) in fields {
                    self.check_name(&name);
                    let value =
                        self.literal_at(value, &LiteralPosition::Member(place, &name), levels + 1);
                    members.insert(name, value);
                }
                AttributeValue::M(members)
            }
            Node::Bag(members) => self.set(members, place),
            other => {
                let what = match other {
                    Node::Parameter(_) => Unsupported::Parameter,
                    Node::Path(_) => Unsupported::Path,
                    Node::Call { .. } => {
                        Unsupported::Function(self.text_of(span).to_ascii_lowercase())
                    }
                    _ => Unsupported::Operator,
                };
                self.unsupported_value(what, place, span);
                AttributeValue::Null
            }
        }
    }

    pub(super) fn check_name(&mut self, name: &str) {
        if name.is_empty() {
            self.keep(StatementFault::EmptyName);
        }
    }

    /// Reports a value that may not be the root of a literal.
    pub(super) fn unsupported_root(&mut self, what: Unsupported, span: Span) {
        self.unsupported_value(what, &LiteralPosition::Root, span);
    }

    fn unsupported_value(&mut self, what: Unsupported, place: &LiteralPosition<'_>, span: Span) {
        let (path, position) = (place.to_string(), self.place(span));
        self.keep(StatementFault::UnsupportedValue { what, path, position });
    }

    fn number(&mut self, digits: Span, negative: bool, place: &LiteralPosition<'_>) -> Number {
        let text = self.text_of(digits);
        let number = match negative {
            true => Number::parse(&format!("-{text}")),
            false => Number::parse(text),
        };
        number.unwrap_or_else(|error| {
            let error = range_error(text, error);
            self.keep(StatementFault::Number { error, path: place.to_string() });
            Number::ZERO
        })
    }

    fn set(&mut self, members: Vec<Expression>, place: &LiteralPosition<'_>) -> AttributeValue {
        let is_text = |member: &Expression| matches!(member.node, Node::Text(_));
        let is_number = |member: &Expression| matches!(member.node, Node::Number { .. });
        if members.is_empty() {
            self.keep(StatementFault::EmptyBag);
            AttributeValue::Null
        } else if members.iter().all(is_text) {
            self.string_set(members)
        } else if members.iter().all(is_number) {
            self.number_set(members, place)
        } else {
            self.keep(StatementFault::MixedBag);
            AttributeValue::Null
        }
    }

    fn string_set(&mut self, members: Vec<Expression>) -> AttributeValue {
        let texts = members.into_iter().filter_map(|member| match member.node {
            Node::Text(text) => Some(text),
            _ => None,
        });
        let texts: Vec<String> = texts.collect();
        let set: BTreeSet<String> = texts.iter().cloned().collect();
        if set.len() < texts.len() {
            self.keep(StatementFault::DuplicateStrings { members: texts });
        }
        AttributeValue::Ss(set)
    }

    fn number_set(
        &mut self,
        members: Vec<Expression>,
        place: &LiteralPosition<'_>,
    ) -> AttributeValue {
        let (mut set, mut written) = (BTreeSet::new(), Vec::with_capacity(members.len()));
        for (index, member) in members.into_iter().enumerate() {
            if let Node::Number { digits, negative } = member.node {
                let sign = if negative { "-" } else { "" };
                written.push(format!("{sign}{}", self.text_of(digits)));
                set.insert(self.number(digits, negative, &LiteralPosition::Element(place, index)));
            }
        }
        if set.len() < written.len() {
            let path = place.to_string();
            self.keep(StatementFault::DuplicateNumbers { members: written, path });
        }
        AttributeValue::Ns(set)
    }
}

/// The position of a value in a literal.
enum LiteralPosition<'p> {
    Root,
    Member(&'p LiteralPosition<'p>, &'p str),
    Element(&'p LiteralPosition<'p>, usize),
}

impl fmt::Display for LiteralPosition<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiteralPosition::Root => formatter.write_str("root"),
            LiteralPosition::Member(parent, name) => write!(formatter, "{parent}.{name}"),
            LiteralPosition::Element(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}
