//! Forms of the query protocol: `Dimensions.member.1.Name=TableName&…`.
//!
//! A name is a path into the tree. Numbers below `member` are positions in a list; their order counts,
//! and gaps don't matter.

use std::collections::BTreeMap;

use super::{DecodeBudget, Malformed, Value};

/// A tree by name, before it is known which of its nodes are lists.
#[derive(Default)]
struct Node {
    text: Option<String>,
    children: BTreeMap<String, Node>,
}

pub fn decode(body: &[u8]) -> Result<Value, Malformed> {
    let text = str::from_utf8(body).map_err(|_| Malformed("the form is not UTF-8"))?;
    let mut root = Node::default();
    let mut budget = DecodeBudget::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (unescape(name)?, unescape(value)?);
        let mut node = &mut root;
        for (depth, step) in name.split('.').enumerate() {
            budget.take(depth)?;
            node = node.children.entry(step.to_owned()).or_default();
        }
        node.text = Some(value);
    }
    Ok(Value::Structure(members(root.children)))
}

fn members(children: BTreeMap<String, Node>) -> super::Structure {
    children.into_iter().map(|(name, node)| (name.into(), convert(node))).collect()
}

fn convert(mut node: Node) -> Value {
    if node.children.is_empty() {
        return Value::Form(node.text.unwrap_or_default());
    }
    if node.children.len() == 1
        && let Some(list) = node.children.remove("member")
    {
        let mut elements: Vec<(u32, Node)> = Vec::with_capacity(list.children.len());
        for (position, element) in list.children {
            elements.push((position.parse().unwrap_or(u32::MAX), element));
        }
        elements.sort_by_key(|(position, _)| *position);
        return Value::List(elements.into_iter().map(|(_, node)| convert(node)).collect());
    }
    Value::Structure(members(node.children))
}

fn unescape(text: &str) -> Result<String, Malformed> {
    const BROKEN: Malformed = Malformed("the form has a broken % escape");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || {
                    let digit = rest.next().map(char::from).and_then(|digit| digit.to_digit(16));
                    digit.and_then(|digit| u8::try_from(digit).ok()).ok_or(BROKEN)
                };
                let (high, low) = (digit()?, digit()?);
                high << 4 | low
            }
            other => other,
        });
    }
    String::from_utf8(bytes).map_err(|_| Malformed("the form is not UTF-8"))
}
