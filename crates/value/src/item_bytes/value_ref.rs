//! One value in validated bytes.

use std::cmp::Ordering;
use std::fmt;

use super::containers::{ListRef, MapRef, SetRef};
use super::type_of;
use crate::number::{canonical_size_bytes, compare_canonical_integers};
use crate::path::PathElement;
use crate::reader::ByteReader;
use crate::size::{CONTAINER_BYTES, MEMBER_BYTES};
use crate::{AttributeType, AttributeValue, DecodeError, Number};

/// A validated value, borrowed from its bytes.
#[derive(Clone, Copy)]
pub struct ValueRef<'a> {
    attribute_type: AttributeType,
    payload_at: u8,
    encoded: &'a [u8],
}

/// What a value holds. Scalars are ready to use; collections are read member by member.
#[derive(Clone, Copy, Debug)]
pub enum ValueView<'a> {
    S(&'a str),
    /// The canonical text.
    N(&'a str),
    B(&'a [u8]),
    Bool(bool),
    Null,
    Ss(SetRef<'a>),
    Ns(SetRef<'a>),
    Bs(SetRef<'a>),
    L(ListRef<'a>),
    M(MapRef<'a>),
}

impl<'a> ValueRef<'a> {
    pub fn attribute_type(&self) -> AttributeType {
        self.attribute_type
    }

    pub fn view(&self) -> ValueView<'a> {
        let payload = self.payload();
        match self.attribute_type {
            AttributeType::S => ValueView::S(trusted_text(payload)),
            AttributeType::N => ValueView::N(trusted_text(payload)),
            AttributeType::B => ValueView::B(payload),
            AttributeType::Bool => ValueView::Bool(payload == [1]),
            AttributeType::Null => ValueView::Null,
            AttributeType::Ss => ValueView::Ss(SetRef::read(payload)),
            AttributeType::Ns => ValueView::Ns(SetRef::read(payload)),
            AttributeType::Bs => ValueView::Bs(SetRef::read(payload)),
            AttributeType::L => ValueView::L(ListRef::read(payload)),
            AttributeType::M => ValueView::M(MapRef::read(payload)),
        }
    }

    pub fn decode(&self) -> AttributeValue {
        match self.view() {
            ValueView::S(text) => AttributeValue::S(text.to_owned()),
            ValueView::N(text) => AttributeValue::N(trusted_number(text.as_bytes())),
            ValueView::B(bytes) => AttributeValue::B(bytes.to_owned()),
            ValueView::Bool(flag) => AttributeValue::Bool(flag),
            ValueView::Null => AttributeValue::Null,
            ValueView::Ss(set) => AttributeValue::Ss(set.texts().map(str::to_owned).collect()),
            ValueView::Ns(set) => AttributeValue::Ns(set.iter().map(trusted_number).collect()),
            ValueView::Bs(set) => AttributeValue::Bs(set.iter().map(<[u8]>::to_owned).collect()),
            ValueView::L(list) => {
                AttributeValue::L(list.iter().map(|value| value.decode()).collect())
            }
            ValueView::M(map) => AttributeValue::M(map.decode()),
        }
    }

    /// The bytes of the value: tag, length and payload.
    pub fn encoded(&self) -> &'a [u8] {
        self.encoded
    }

    /// The bytes after tag and length: the content of S and B, the canonical text of N.
    pub fn payload(&self) -> &'a [u8] {
        &self.encoded[usize::from(self.payload_at)..]
    }

    /// The size as DynamoDB measures it.
    pub fn size_bytes(&self) -> usize {
        let payload = self.payload();
        match self.attribute_type {
            AttributeType::S | AttributeType::B => payload.len(),
            AttributeType::N => canonical_size_bytes(payload),
            AttributeType::Bool | AttributeType::Null => 1,
            AttributeType::Ss | AttributeType::Bs => {
                SetRef::read(payload).iter().map(<[u8]>::len).sum()
            }
            AttributeType::Ns => SetRef::read(payload).iter().map(canonical_size_bytes).sum(),
            AttributeType::L => {
                let members = ListRef::read(payload).iter();
                let members = members.map(|value| MEMBER_BYTES + value.size_bytes());
                CONTAINER_BYTES + members.sum::<usize>()
            }
            AttributeType::M => {
                let members = MapRef::read(payload).entries();
                let members =
                    members.map(|entry| MEMBER_BYTES + entry.name.len() + entry.value.size_bytes());
                CONTAINER_BYTES + members.sum::<usize>()
            }
        }
    }

    /// The number, if this is one.
    pub fn number(&self) -> Option<Number> {
        let is_number = self.attribute_type == AttributeType::N;
        is_number.then(|| trusted_number(self.payload()))
    }

    /// The order of two values of one type. Only S, N and B have one.
    pub fn compare(&self, other: &ValueRef<'_>) -> Option<Ordering> {
        match (self.attribute_type, other.attribute_type) {
            (AttributeType::S, AttributeType::S) | (AttributeType::B, AttributeType::B) => {
                Some(self.payload().cmp(other.payload()))
            }
            (AttributeType::N, AttributeType::N) => {
                let integers = compare_canonical_integers(self.payload(), other.payload());
                integers.or_else(|| Some(self.number()?.cmp(&other.number()?)))
            }
            _ => None,
        }
    }

    pub(super) fn step(self, element: &PathElement) -> Option<ValueRef<'a>> {
        match (self.attribute_type, element) {
            (AttributeType::M, PathElement::Name(name)) => MapRef::read(self.payload()).get(name),
            (AttributeType::L, PathElement::Index(index)) => {
                ListRef::read(self.payload()).get(*index)
            }
            _ => None,
        }
    }

    /// Reads one value without looking into its payload. Always inlined, like the walk over an item's attributes that
    /// calls it.
    #[inline(always)]
    pub(super) fn read(reader: &mut ByteReader<'a>) -> Result<ValueRef<'a>, DecodeError> {
        let start = reader.rest();
        let attribute_type = type_of(reader.byte()?)?;
        let length = reader.length()?;
        let payload_at = start.len() - reader.rest().len();
        reader.take(length)?;
        let encoded = &start[..payload_at + length];
        // Tag and length take at most six bytes.
        Ok(ValueRef { attribute_type, payload_at: payload_at as u8, encoded })
    }
}

/// DynamoDB's deep equality is equality of bytes.
impl PartialEq for ValueRef<'_> {
    fn eq(&self, other: &ValueRef<'_>) -> bool {
        self.encoded == other.encoded
    }
}

impl Eq for ValueRef<'_> {}

impl fmt::Debug for ValueRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(formatter)
    }
}

/// References exist only to bytes that were validated or written here.
pub(super) fn trusted<T>(result: Result<T, DecodeError>) -> T {
    result.expect("the bytes were validated")
}

pub(super) fn trusted_text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the bytes were validated")
}

fn trusted_number(text: &[u8]) -> Number {
    Number::parse_bytes(text).expect("the bytes were validated")
}
