//! Values: order, size, depth, and which can be keys.

use std::cmp::Ordering;

use zenobe_engine::schema::{KeyAttribute, ScalarType};
use zenobe_value::{AttributeValue, Attributes, Number};

/// A value that can be a key. The derived order compares strings and binaries by bytes and numbers
/// numerically; values of one key attribute always have one type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scalar {
    S(String),
    N(Number),
    B(Vec<u8>),
}

impl Scalar {
    pub fn new(value: &AttributeValue) -> Option<Scalar> {
        match value {
            AttributeValue::S(text) => Some(Scalar::S(text.clone())),
            AttributeValue::N(number) => Some(Scalar::N(*number)),
            AttributeValue::B(bytes) => Some(Scalar::B(bytes.clone())),
            _ => None,
        }
    }

    pub fn value(&self) -> AttributeValue {
        match self {
            Scalar::S(text) => AttributeValue::S(text.clone()),
            Scalar::N(number) => AttributeValue::N(*number),
            Scalar::B(bytes) => AttributeValue::B(bytes.clone()),
        }
    }
}

/// The values of key attributes, in schema order.
pub type Key = Vec<Scalar>;

/// The key values of an item, if it has all of them and all can be keys.
pub fn key_of(attributes: &[KeyAttribute], item: &Attributes) -> Option<Key> {
    let scalar = |attribute: &KeyAttribute| {
        let value = item.get(&attribute.name)?;
        let fits = has_type(value, attribute.scalar_type) && !is_empty(value);
        if fits { Scalar::new(value) } else { None }
    };
    attributes.iter().map(scalar).collect()
}

pub fn has_type(value: &AttributeValue, expected: ScalarType) -> bool {
    value.attribute_type() == expected.attribute_type()
}

pub fn is_empty(value: &AttributeValue) -> bool {
    match value {
        AttributeValue::S(text) => text.is_empty(),
        AttributeValue::B(bytes) => bytes.is_empty(),
        _ => false,
    }
}

/// How two values compare, if they have the same type and it has an order.
pub fn order(one: &AttributeValue, other: &AttributeValue) -> Option<Ordering> {
    match (one, other) {
        (AttributeValue::S(one), AttributeValue::S(other)) => {
            Some(one.as_bytes().cmp(other.as_bytes()))
        }
        (AttributeValue::N(one), AttributeValue::N(other)) => Some(one.cmp(other)),
        (AttributeValue::B(one), AttributeValue::B(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

pub fn item_size_bytes(item: &Attributes) -> u64 {
    item.iter().map(|(name, value)| name.len() as u64 + size_bytes(value)).sum()
}

pub fn size_bytes(value: &AttributeValue) -> u64 {
    match value {
        AttributeValue::S(text) => text.len() as u64,
        AttributeValue::B(bytes) => bytes.len() as u64,
        AttributeValue::N(number) => number_size_bytes(&number.to_string()),
        AttributeValue::Bool(_) | AttributeValue::Null => 1,
        AttributeValue::Ss(members) => members.iter().map(|member| member.len() as u64).sum(),
        AttributeValue::Bs(members) => members.iter().map(|member| member.len() as u64).sum(),
        AttributeValue::Ns(members) => {
            members.iter().map(|member| number_size_bytes(&member.to_string())).sum()
        }
        AttributeValue::L(elements) => {
            3 + elements.iter().map(|element| 1 + size_bytes(element)).sum::<u64>()
        }
        AttributeValue::M(members) => {
            let member = |(name, value): (&String, &AttributeValue)| {
                1 + name.len() as u64 + size_bytes(value)
            };
            3 + members.iter().map(member).sum::<u64>()
        }
    }
}

/// One byte, one for a sign, and one for each pair of digits aligned at the decimal point, without
/// pairs of zeros at either end.
fn number_size_bytes(text: &str) -> u64 {
    let digits = text.trim_start_matches('-');
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut aligned = String::new();
    if whole.len() % 2 == 1 {
        aligned.push('0');
    }
    aligned.push_str(whole);
    aligned.push_str(fraction);
    if fraction.len() % 2 == 1 {
        aligned.push('0');
    }
    let mut pairs: Vec<&str> =
        (0..aligned.len()).step_by(2).map(|start| &aligned[start..start + 2]).collect();
    while pairs.last() == Some(&"00") {
        pairs.pop();
    }
    let leading = pairs.iter().take_while(|pair| **pair == "00").count();
    1 + (pairs.len() - leading) as u64 + u64::from(text.starts_with('-'))
}

pub fn depth(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::L(elements) => 1 + elements.iter().map(depth).max().unwrap_or(0),
        AttributeValue::M(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes captured in the specification.
    #[test]
    fn numbers_have_the_observed_size() {
        for (text, expected) in [
            ("0", 1),
            ("1", 2),
            ("12", 2),
            ("100", 2),
            ("0.0000001", 2),
            ("15", 2),
            ("0.15", 2),
            ("123", 3),
            ("1010", 3),
            ("1.5", 3),
            ("-42", 3),
            ("12345", 4),
            ("1.234", 4),
            ("100.5", 4),
            ("3.14159", 5),
        ] {
            assert_eq!(number_size_bytes(text), expected, "{text}");
        }
    }
}
