//! Lambda's event filtering: a pattern describes the records to deliver.
//!
//! A pattern has the shape of the event. In place of a value it has a list of matchers, one of
//! which must match. In place of an object it has an object whose every member must match. A value
//! that is a list matches if one of its elements does.
//!
//! One thing goes beyond Lambda, where `numeric` never matches an attribute because DynamoDB writes
//! numbers as strings: here it compares the number in an `N`.

use serde_json::{Map, Value};
use zenobe_value::Number;

pub const PATTERN_SIZE_BYTES_MAX: usize = 4096;

/// The member of an attribute value that holds a number as text.
const NUMBER_ATTRIBUTE: &str = "N";

#[derive(Debug, Clone, PartialEq)]
pub struct FilterPattern {
    root: Node,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern is not valid JSON: {0}")]
    Json(String),
    #[error("the pattern has more than {PATTERN_SIZE_BYTES_MAX} bytes")]
    TooLarge,
    #[error("{path}: expected an object of patterns or a list of matchers")]
    Node { path: String },
    #[error("{path}: the list of matchers is empty")]
    Empty { path: String },
    #[error(
        "{path}: a matcher is a text, a number, true, false, null or an object with one operator"
    )]
    Matcher { path: String },
    #[error(
        "{path}: there is no operator `{operator}`; there are prefix, suffix, anything-but, numeric, exists, \
         equals-ignore-case and $or"
    )]
    UnknownOperator { path: String, operator: String },
    #[error("{path}: `{operator}` takes {expected}")]
    Operand { path: String, operator: &'static str, expected: &'static str },
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// Every member must match, and one of each `$or`.
    All { members: Vec<(String, Node)>, alternatives: Vec<Vec<Node>> },
    /// The value must match one of these.
    Leaf(Vec<Matcher>),
}

#[derive(Debug, Clone, PartialEq)]
enum Matcher {
    Equals(Value),
    EqualsNumber(Number),
    EqualsIgnoreCase(String),
    Prefix { text: String, ignores_case: bool },
    Suffix { text: String, ignores_case: bool },
    Numeric(Vec<(Comparison, Number)>),
    AnythingBut(Vec<Matcher>),
    Exists(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl FilterPattern {
    pub fn parse(text: &str) -> Result<FilterPattern, PatternError> {
        if text.len() > PATTERN_SIZE_BYTES_MAX {
            return Err(PatternError::TooLarge);
        }
        let value: Value =
            serde_json::from_str(text).map_err(|error| PatternError::Json(error.to_string()))?;
        match &value {
            Value::Object(members) => Ok(FilterPattern { root: parse_object(members, "$")? }),
            _ => Err(PatternError::Node { path: "$".into() }),
        }
    }

    pub fn matches(&self, event: &Value) -> bool {
        self.root.matches("", Some(event))
    }
}

/// Whether a record passes: one matching pattern suffices, and without patterns everything passes.
pub fn passes(patterns: &[FilterPattern], event: &Value) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(event))
}

// ---- matching -----------------------------------------------------------------------------------

impl Node {
    /// `name` is the member that holds `value`; `None` is an absent member.
    fn matches(&self, name: &str, value: Option<&Value>) -> bool {
        match self {
            Node::All { members, alternatives } => match value {
                // One matching object in a list suffices.
                Some(Value::Array(elements)) => {
                    elements.iter().any(|element| self.matches(name, Some(element)))
                }
                value => {
                    let member = |key: &str| value.and_then(|value| value.get(key));
                    members.iter().all(|(key, node)| node.matches(key, member(key)))
                        && alternatives
                            .iter()
                            .all(|nodes| nodes.iter().any(|node| node.matches(name, value)))
                }
            },
            Node::Leaf(matchers) => matchers.iter().any(|matcher| matcher.accepts(name, value)),
        }
    }
}

impl Matcher {
    fn accepts(&self, name: &str, value: Option<&Value>) -> bool {
        // Only leaves count as existing: an object in the event leads to leaves and is not a value.
        let leaf = value.filter(|value| !value.is_object());
        match (self, leaf) {
            (Matcher::Exists(expected), leaf) => leaf.is_some() == *expected,
            (_, None) => false,
            (_, Some(Value::Array(elements))) => {
                elements.iter().any(|element| self.accepts_one(name, element))
            }
            (_, Some(value)) => self.accepts_one(name, value),
        }
    }

    fn accepts_one(&self, name: &str, value: &Value) -> bool {
        let text = value.as_str();
        match self {
            Matcher::Equals(expected) => value == expected,
            Matcher::EqualsNumber(expected) => {
                value.is_number() && number(value) == Some(*expected)
            }
            Matcher::EqualsIgnoreCase(expected) => {
                text.is_some_and(|text| text.to_lowercase() == *expected)
            }
            Matcher::Prefix { text: prefix, ignores_case: false } => {
                text.is_some_and(|text| text.starts_with(prefix))
            }
            Matcher::Prefix { text: prefix, ignores_case: true } => {
                text.is_some_and(|text| text.to_lowercase().starts_with(prefix))
            }
            Matcher::Suffix { text: suffix, ignores_case: false } => {
                text.is_some_and(|text| text.ends_with(suffix))
            }
            Matcher::Suffix { text: suffix, ignores_case: true } => {
                text.is_some_and(|text| text.to_lowercase().ends_with(suffix))
            }
            Matcher::Numeric(bounds) => match value {
                Value::String(text) if name == NUMBER_ATTRIBUTE => {
                    Number::parse(text).is_ok_and(|number| is_within(bounds, number))
                }
                value => number(value).is_some_and(|number| is_within(bounds, number)),
            },
            Matcher::AnythingBut(refused) => {
                !refused.iter().any(|matcher| matcher.accepts_one(name, value))
            }
            Matcher::Exists(expected) => *expected,
        }
    }
}

fn is_within(bounds: &[(Comparison, Number)], number: Number) -> bool {
    bounds.iter().all(|(comparison, bound)| match comparison {
        Comparison::Equal => number == *bound,
        Comparison::Less => number < *bound,
        Comparison::LessOrEqual => number <= *bound,
        Comparison::Greater => number > *bound,
        Comparison::GreaterOrEqual => number >= *bound,
    })
}

fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Number::parse(&number.to_string()).ok(),
        _ => None,
    }
}

// ---- parsing ------------------------------------------------------------------------------------

fn parse_object(object: &Map<String, Value>, path: &str) -> Result<Node, PatternError> {
    let (mut members, mut alternatives) = (Vec::new(), Vec::new());
    for (key, value) in object {
        let path = format!("{path}.{key}");
        match value {
            Value::Array(branches) if key == "$or" && is_alternatives(branches) => {
                alternatives.push(parse_alternatives(branches, &path)?);
            }
            value => members.push((key.clone(), parse_node(value, &path)?)),
        }
    }
    Ok(Node::All { members, alternatives })
}

/// `$or` is an operator if it holds at least two objects that are not matchers themselves.
/// Otherwise it is a member's name.
fn is_alternatives(branches: &[Value]) -> bool {
    branches.len() > 1 && branches.iter().all(Value::is_object)
}

fn parse_alternatives(branches: &[Value], path: &str) -> Result<Vec<Node>, PatternError> {
    let parse = |(index, branch): (usize, &Value)| parse_node(branch, &format!("{path}[{index}]"));
    branches.iter().enumerate().map(parse).collect()
}

fn parse_node(value: &Value, path: &str) -> Result<Node, PatternError> {
    match value {
        Value::Object(members) => parse_object(members, path),
        Value::Array(matchers) if matchers.is_empty() => {
            Err(PatternError::Empty { path: path.into() })
        }
        Value::Array(matchers) => {
            let parse = |matcher: &Value| parse_matcher(matcher, path);
            Ok(Node::Leaf(matchers.iter().map(parse).collect::<Result<_, _>>()?))
        }
        _ => Err(PatternError::Node { path: path.into() }),
    }
}

fn parse_matcher(value: &Value, path: &str) -> Result<Matcher, PatternError> {
    let fault = || PatternError::Matcher { path: path.into() };
    match value {
        Value::Array(_) => Err(fault()),
        Value::Number(_) => number(value).map(Matcher::EqualsNumber).ok_or_else(fault),
        Value::Object(members) => {
            let mut members = members.iter();
            match (members.next(), members.next()) {
                (Some((operator, operand)), None) => parse_operator(operator, operand, path),
                _ => Err(fault()),
            }
        }
        _ => Ok(Matcher::Equals(value.clone())),
    }
}

fn parse_operator(operator: &str, operand: &Value, path: &str) -> Result<Matcher, PatternError> {
    let fault =
        |operator, expected| PatternError::Operand { path: path.into(), operator, expected };
    match operator {
        "prefix" => {
            let (text, ignores_case) = affix(operand).ok_or_else(|| fault("prefix", AFFIX))?;
            Ok(Matcher::Prefix { text, ignores_case })
        }
        "suffix" => {
            let (text, ignores_case) = affix(operand).ok_or_else(|| fault("suffix", AFFIX))?;
            Ok(Matcher::Suffix { text, ignores_case })
        }
        "equals-ignore-case" => match operand.as_str() {
            Some(text) => Ok(Matcher::EqualsIgnoreCase(text.to_lowercase())),
            None => Err(fault("equals-ignore-case", "a text")),
        },
        "exists" => match operand.as_bool() {
            Some(expected) => Ok(Matcher::Exists(expected)),
            None => Err(fault("exists", "true or false")),
        },
        "numeric" => match bounds(operand) {
            Some(bounds) => Ok(Matcher::Numeric(bounds)),
            None => Err(fault("numeric", "a list such as [\"=\", 1] or [\">\", 0, \"<=\", 5]")),
        },
        "anything-but" => parse_anything_but(operand, path),
        _ => {
            let operator = operator.to_owned();
            Err(PatternError::UnknownOperator { path: path.into(), operator })
        }
    }
}

const AFFIX: &str = "a text, or {\"equals-ignore-case\": a text}";

fn affix(operand: &Value) -> Option<(String, bool)> {
    match operand {
        Value::String(text) => Some((text.clone(), false)),
        Value::Object(members) if members.len() == 1 => {
            let text = members.get("equals-ignore-case")?.as_str()?;
            Some((text.to_lowercase(), true))
        }
        _ => None,
    }
}

fn parse_anything_but(operand: &Value, path: &str) -> Result<Matcher, PatternError> {
    let refused: Vec<&Value> = match operand {
        Value::Array(values) => values.iter().collect(),
        // It may be one operator, itself with one text or several.
        Value::Object(members) if members.len() == 1 => {
            let (operator, operand) = members.iter().next().expect("there is one");
            let operands = operand.as_array().map_or(std::slice::from_ref(operand), Vec::as_slice);
            let parse = |operand: &Value| match operator.as_str() {
                "prefix" | "suffix" | "equals-ignore-case" => {
                    parse_operator(operator, operand, path)
                }
                _ => {
                    let operator = operator.clone();
                    Err(PatternError::UnknownOperator { path: path.into(), operator })
                }
            };
            let matchers = operands.iter().map(parse).collect::<Result<_, _>>()?;
            return Ok(Matcher::AnythingBut(matchers));
        }
        value => vec![value],
    };
    let is_plain = |value: &&Value| value.is_string() || value.is_number();
    if refused.is_empty() || !refused.iter().all(is_plain) {
        let expected = "texts or numbers, or an object with prefix, suffix or equals-ignore-case";
        return Err(PatternError::Operand {
            path: path.into(),
            operator: "anything-but",
            expected,
        });
    }
    let matchers = refused.into_iter().map(|value| parse_matcher(value, path));
    Ok(Matcher::AnythingBut(matchers.collect::<Result<_, _>>()?))
}

/// One comparison with its number, or two.
fn bounds(operand: &Value) -> Option<Vec<(Comparison, Number)>> {
    let parts = operand.as_array().filter(|parts| matches!(parts.len(), 2 | 4))?;
    let bound = |pair: &[Value]| Some((comparison(pair[0].as_str()?)?, number(&pair[1])?));
    parts.chunks(2).map(bound).collect()
}

fn comparison(text: &str) -> Option<Comparison> {
    match text {
        "=" => Some(Comparison::Equal),
        "<" => Some(Comparison::Less),
        "<=" => Some(Comparison::LessOrEqual),
        ">" => Some(Comparison::Greater),
        ">=" => Some(Comparison::GreaterOrEqual),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each case: a pattern, with events that pass and events that don't, or its fault.
    const CASES: &str = include_str!("../../../../tests/cases/server/filter-patterns.json");

    #[test]
    fn patterns_let_pass_what_the_cases_say() {
        let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
        assert!(cases.len() > 30);
        for case in &cases {
            let pattern = &case["pattern"];
            match (FilterPattern::parse(&pattern.to_string()), case["fault"].as_str()) {
                (Ok(parsed), None) => check_events(&parsed, case),
                (Err(error), Some(fault)) => assert_eq!(error.to_string(), fault, "{pattern}"),
                (outcome, _) => panic!("{pattern}: {outcome:?}"),
            }
        }
    }

    fn check_events(pattern: &FilterPattern, case: &Value) {
        for (list, expected) in [("passes", true), ("stops", false)] {
            for event in case[list].as_array().into_iter().flatten() {
                assert_eq!(pattern.matches(event), expected, "{} on {event}", case["pattern"]);
            }
        }
    }

    #[test]
    fn any_of_several_patterns_is_enough() {
        let patterns = [r#"{"eventName":["INSERT"]}"#, r#"{"eventName":["REMOVE"]}"#]
            .map(FilterPattern::parse);
        let patterns: Vec<FilterPattern> = patterns.into_iter().map(Result::unwrap).collect();
        let event = |name: &str| serde_json::json!({ "eventName": name });
        assert!(passes(&patterns, &event("INSERT")));
        assert!(passes(&patterns, &event("REMOVE")));
        assert!(!passes(&patterns, &event("MODIFY")));
        assert!(passes(&[], &event("MODIFY")));
    }

    #[test]
    fn malformed_patterns_are_rejected() {
        assert!(matches!(FilterPattern::parse("{"), Err(PatternError::Json(_))));
        assert_eq!(FilterPattern::parse("[]"), Err(PatternError::Node { path: "$".into() }));
        let large = format!("{{\"a\":[\"{}\"]}}", "x".repeat(PATTERN_SIZE_BYTES_MAX));
        assert_eq!(FilterPattern::parse(&large), Err(PatternError::TooLarge));
    }
}
