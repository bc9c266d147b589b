//! Walking validated bytes.

use std::cmp::Ordering;
use std::fmt;

use super::type_of;
use crate::attribute_value::Attributes;
use crate::number::canonical_size_bytes;
use crate::path::PathElement;
use crate::reader::Reader;
use crate::size::{CONTAINER_BYTES, MEMBER_BYTES};
use crate::{AttributeType, AttributeValue, DecodeError, Number};

/// A validated value, borrowed from its bytes.
#[derive(Clone, Copy)]
pub struct ValueRef<'a> {
    attribute_type: AttributeType,
    payload_at: u8,
    encoded: &'a [u8],
}

/// What a value holds. Scalars are ready to use; the others are walked further.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
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

    pub fn view(&self) -> View<'a> {
        let payload = self.payload();
        match self.attribute_type {
            AttributeType::S => View::S(trusted_text(payload)),
            AttributeType::N => View::N(trusted_text(payload)),
            AttributeType::B => View::B(payload),
            AttributeType::Bool => View::Bool(payload == [1]),
            AttributeType::Null => View::Null,
            AttributeType::Ss => View::Ss(SetRef::read(payload)),
            AttributeType::Ns => View::Ns(SetRef::read(payload)),
            AttributeType::Bs => View::Bs(SetRef::read(payload)),
            AttributeType::L => View::L(ListRef::read(payload)),
            AttributeType::M => View::M(MapRef::read(payload)),
        }
    }

    pub fn decode(&self) -> AttributeValue {
        match self.view() {
            View::S(text) => AttributeValue::S(text.to_owned()),
            View::N(text) => AttributeValue::N(trusted_number(text)),
            View::B(bytes) => AttributeValue::B(bytes.to_owned()),
            View::Bool(flag) => AttributeValue::Bool(flag),
            View::Null => AttributeValue::Null,
            View::Ss(set) => AttributeValue::Ss(set.texts().map(str::to_owned).collect()),
            View::Ns(set) => AttributeValue::Ns(set.texts().map(trusted_number).collect()),
            View::Bs(set) => AttributeValue::Bs(set.iter().map(<[u8]>::to_owned).collect()),
            View::L(list) => AttributeValue::L(list.iter().map(|value| value.decode()).collect()),
            View::M(map) => AttributeValue::M(map.decode()),
        }
    }

    /// The bytes of the value: tag, length and payload.
    pub fn encoded(&self) -> &'a [u8] {
        self.encoded
    }

    /// The bytes after tag and length. Of S and B they are the content, of N the canonical text.
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
        is_number.then(|| trusted_number(trusted_text(self.payload())))
    }

    /// How two values of one type compare. Only S, N and B have an order.
    pub fn compare(&self, other: &ValueRef<'_>) -> Option<Ordering> {
        match (self.attribute_type, other.attribute_type) {
            (AttributeType::S, AttributeType::S) | (AttributeType::B, AttributeType::B) => {
                Some(self.payload().cmp(other.payload()))
            }
            (AttributeType::N, AttributeType::N) => Some(self.number()?.cmp(&other.number()?)),
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

    /// Takes one value off the reader without looking into its payload.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<ValueRef<'a>, DecodeError> {
        let start = reader.rest();
        let attribute_type = type_of(reader.byte()?)?;
        let length = reader.length()?;
        let payload_at = start.len() - reader.rest().len();
        reader.take(length)?;
        let encoded = &start[..payload_at + length];
        // A tag and a length have six bytes at most.
        Ok(ValueRef { attribute_type, payload_at: payload_at as u8, encoded })
    }
}

/// Deep equality as DynamoDB understands it, by the bytes.
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

/// The members of a list, in their order.
#[derive(Clone, Copy)]
pub struct ListRef<'a> {
    count: usize,
    payload: &'a [u8],
}

impl<'a> ListRef<'a> {
    fn read(payload: &'a [u8]) -> ListRef<'a> {
        let mut reader = Reader::new(payload);
        let count = trusted(reader.length());
        ListRef { count, payload: reader.rest() }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = ValueRef<'a>> + use<'a> {
        let mut reader = Reader::new(self.payload);
        (0..self.count).map(move |_| trusted(ValueRef::read(&mut reader)))
    }

    pub fn get(&self, index: usize) -> Option<ValueRef<'a>> {
        self.iter().nth(index)
    }
}

impl fmt::Debug for ListRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

/// The members of a map, ascending by name.
#[derive(Clone, Copy)]
pub struct MapRef<'a> {
    count: usize,
    payload: &'a [u8],
}

impl<'a> MapRef<'a> {
    /// The payload begins after the count.
    pub(super) fn new(count: usize, payload: &'a [u8]) -> MapRef<'a> {
        MapRef { count, payload }
    }

    fn read(payload: &'a [u8]) -> MapRef<'a> {
        let mut reader = Reader::new(payload);
        let count = trusted(reader.length());
        MapRef { count, payload: reader.rest() }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a str, ValueRef<'a>)> + use<'a> {
        self.entries().map(|entry| (entry.name(), entry.value))
    }

    pub fn get(&self, name: &str) -> Option<ValueRef<'a>> {
        let wanted = name.as_bytes();
        let reached = self.entries().find(|entry| entry.name >= wanted)?;
        (reached.name == wanted).then_some(reached.value)
    }

    pub fn decode(&self) -> Attributes {
        self.iter().map(|(name, value)| (name.to_owned(), value.decode())).collect()
    }

    pub(super) fn payload(&self) -> &'a [u8] {
        self.payload
    }

    pub(super) fn entries(&self) -> Entries<'a> {
        Entries { remaining: self.count, reader: Reader::new(self.payload) }
    }
}

impl fmt::Debug for MapRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}

/// One named value, with the slice that holds both.
pub(super) struct Entry<'a> {
    pub name: &'a [u8],
    pub value: ValueRef<'a>,
    pub encoded: &'a [u8],
}

impl<'a> Entry<'a> {
    pub fn name(&self) -> &'a str {
        trusted_text(self.name)
    }
}

pub(super) struct Entries<'a> {
    remaining: usize,
    reader: Reader<'a>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        self.remaining = self.remaining.checked_sub(1)?;
        let start = self.reader.rest();
        let name = trusted(self.reader.prefixed());
        let value = trusted(ValueRef::read(&mut self.reader));
        let encoded = &start[..start.len() - self.reader.rest().len()];
        Some(Entry { name, value, encoded })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for Entries<'_> {}

/// The members of a set: strings and binaries ascending by bytes, numbers by value.
#[derive(Clone, Copy)]
pub struct SetRef<'a> {
    count: usize,
    payload: &'a [u8],
}

impl<'a> SetRef<'a> {
    fn read(payload: &'a [u8]) -> SetRef<'a> {
        let mut reader = Reader::new(payload);
        let count = trusted(reader.length());
        SetRef { count, payload: reader.rest() }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    /// Never true: DynamoDB has no empty sets.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The members' bytes; of numbers, the canonical text.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader::new(self.payload);
        (0..self.count).map(move |_| trusted(reader.prefixed()))
    }

    /// The members of a set of strings or numbers.
    ///
    /// # Panics
    /// If this is a set of binaries that are not UTF-8.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &'a str> + use<'a> {
        self.iter().map(trusted_text)
    }

    /// Whether the set has the member with these bytes; of numbers, with this canonical text.
    pub fn contains(&self, member: &[u8]) -> bool {
        self.iter().any(|candidate| candidate == member)
    }
}

impl fmt::Debug for SetRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.iter().map(|member| member.escape_ascii().to_string());
        formatter.debug_set().entries(members).finish()
    }
}

/// References are only made of bytes that were validated or written here.
pub(super) fn trusted<T>(result: Result<T, DecodeError>) -> T {
    result.expect("the bytes were validated")
}

fn trusted_text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the bytes were validated")
}

fn trusted_number(text: &str) -> Number {
    Number::parse(text).expect("the bytes were validated")
}
