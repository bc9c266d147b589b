//! Sizes as DynamoDB measures them. They are neither the size of the JSON nor of our own bytes.

use crate::{AttributeValue, Attributes, Number};

/// What a list or a map costs before its members are counted.
pub(crate) const CONTAINER_BYTES: usize = 3;
/// What each member of a list or a map costs besides its own size.
pub(crate) const MEMBER_BYTES: usize = 1;

/// The size of an item: the names and values of its top-level attributes, without any overhead.
pub fn item_size_bytes(item: &Attributes) -> usize {
    item.iter().map(|(name, value)| name.len() + value.size_bytes()).sum()
}

impl AttributeValue {
    pub fn size_bytes(&self) -> usize {
        match self {
            AttributeValue::S(text) => text.len(),
            AttributeValue::N(number) => number.size_bytes(),
            AttributeValue::B(bytes) => bytes.len(),
            AttributeValue::Bool(_) | AttributeValue::Null => 1,
            AttributeValue::Ss(members) => members.iter().map(String::len).sum(),
            AttributeValue::Ns(members) => members.iter().map(Number::size_bytes).sum(),
            AttributeValue::Bs(members) => members.iter().map(Vec::len).sum(),
            AttributeValue::L(members) => {
                let members_bytes: usize =
                    members.iter().map(|value| MEMBER_BYTES + value.size_bytes()).sum();
                CONTAINER_BYTES + members_bytes
            }
            AttributeValue::M(members) => {
                CONTAINER_BYTES + MEMBER_BYTES * members.len() + item_size_bytes(members)
            }
        }
    }
}
