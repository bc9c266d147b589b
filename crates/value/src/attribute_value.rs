//! Attribute values as a tree.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::{AttributeType, Number};

/// The attributes of an item or of a map, by name.
pub type Attributes = BTreeMap<String, AttributeValue>;

/// One value. The types of sets rule out duplicates. DynamoDB has no empty sets, so code that
/// builds a set must give it at least one member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttributeValue {
    S(String),
    N(Number),
    B(Vec<u8>),
    Bool(bool),
    Null,
    Ss(BTreeSet<String>),
    Ns(BTreeSet<Number>),
    Bs(BTreeSet<Vec<u8>>),
    L(Vec<AttributeValue>),
    M(Attributes),
}

impl AttributeValue {
    /// `None` unless both are S, both N or both B.
    pub fn compare_scalars(&self, other: &AttributeValue) -> Option<Ordering> {
        match (self, other) {
            (AttributeValue::S(one), AttributeValue::S(two)) => Some(one.cmp(two)),
            (AttributeValue::N(one), AttributeValue::N(two)) => Some(one.cmp(two)),
            (AttributeValue::B(one), AttributeValue::B(two)) => Some(one.cmp(two)),
            _ => None,
        }
    }

    pub const fn attribute_type(&self) -> AttributeType {
        match self {
            AttributeValue::S(_) => AttributeType::S,
            AttributeValue::N(_) => AttributeType::N,
            AttributeValue::B(_) => AttributeType::B,
            AttributeValue::Bool(_) => AttributeType::Bool,
            AttributeValue::Null => AttributeType::Null,
            AttributeValue::Ss(_) => AttributeType::Ss,
            AttributeValue::Ns(_) => AttributeType::Ns,
            AttributeValue::Bs(_) => AttributeType::Bs,
            AttributeValue::L(_) => AttributeType::L,
            AttributeValue::M(_) => AttributeType::M,
        }
    }

    /// How many levels this value nests. Scalars, sets and empty lists have one.
    pub fn depth(&self) -> usize {
        let below = match self {
            AttributeValue::L(members) => members.iter().map(AttributeValue::depth).max(),
            AttributeValue::M(members) => members.values().map(AttributeValue::depth).max(),
            _ => None,
        };
        1 + below.unwrap_or(0)
    }
}
