//! The stored form of items: canonical bytes, read in place.
//!
//! Canonical means that two values are equal if and only if their bytes are, so comparing values
//! means comparing slices. Bytes are validated once, on entry; after that nothing can fail.

mod assemble;
mod buffer;
mod containers;
mod encode;
mod validate;
mod value_ref;

use std::fmt;

use bytes::Bytes;

use crate::attribute_value::Attributes;
use crate::reader::ByteReader;
use crate::{AttributeType, AttributeValue, DecodeError, Path};

use value_ref::trusted;

pub use buffer::ItemBuffer;
use containers::NameSet;
pub use containers::{ListRef, MapRef, SetRef};
pub use value_ref::{ValueRef, ValueView};

/// The first byte of every stored item.
const VERSION: u8 = 1;

/// The longest header: the version, the item size and the count of attributes.
const HEADER_BYTES_MAX: usize = 11;

/// An item as it is stored. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EncodedItem(Bytes);

impl EncodedItem {
    pub fn encode(attributes: &Attributes) -> EncodedItem {
        EncodedItem(encode::item(attributes).into())
    }

    /// Validates the whole structure once.
    pub fn from_bytes(bytes: Bytes) -> Result<EncodedItem, DecodeError> {
        ItemRef::parse(&bytes)?;
        Ok(EncodedItem(bytes))
    }

    pub fn as_item(&self) -> ItemRef<'_> {
        trusted(ItemRef::read_header(&self.0))
    }

    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// The same item in a buffer of its own, to be kept for longer: the bytes from a store or a request
    /// may be a small part of a large buffer.
    #[must_use]
    pub fn compact(&self) -> EncodedItem {
        EncodedItem(Bytes::copy_from_slice(&self.0))
    }
}

impl From<&Attributes> for EncodedItem {
    fn from(attributes: &Attributes) -> EncodedItem {
        EncodedItem::encode(attributes)
    }
}

impl fmt::Debug for EncodedItem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_item().fmt(formatter)
    }
}

/// A validated item, borrowed from its bytes.
#[derive(Clone, Copy)]
pub struct ItemRef<'a> {
    bytes: &'a [u8],
    size_bytes: usize,
    attributes: MapRef<'a>,
}

impl<'a> ItemRef<'a> {
    /// Validates the bytes in one pass, without allocating.
    pub fn parse(bytes: &'a [u8]) -> Result<ItemRef<'a>, DecodeError> {
        let item = ItemRef::read_header(bytes)?;
        let actual = validate::item(item.attributes)?;
        if actual != item.size_bytes {
            return Err(DecodeError::SizeMismatch { stored: item.size_bytes, actual });
        }
        Ok(item)
    }

    /// Reads only the header. The caller validates the attributes next, or knows that they are
    /// valid.
    fn read_header(bytes: &'a [u8]) -> Result<ItemRef<'a>, DecodeError> {
        let mut reader = ByteReader::new(bytes);
        let version = reader.byte()?;
        if version != VERSION {
            return Err(DecodeError::UnknownVersion(version));
        }
        let size_bytes = reader.length()?;
        let count = reader.length()?;
        Ok(ItemRef { bytes, size_bytes, attributes: MapRef::new(count, reader.rest()) })
    }

    /// The size of the item as DynamoDB measures it, read from the header.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// How many top-level attributes the item has.
    pub fn len(&self) -> usize {
        self.attributes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty()
    }

    pub fn attributes(&self) -> MapRef<'a> {
        self.attributes
    }

    pub fn get(&self, name: &str) -> Option<ValueRef<'a>> {
        self.attributes.get(name)
    }

    /// The value at the path, by the rules of [`Path::lookup`].
    pub fn lookup(&self, path: &Path) -> Option<ValueRef<'a>> {
        let root = self.get(path.root())?;
        path.below_root().iter().try_fold(root, ValueRef::step)
    }

    /// The top-level attributes, ascending by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> + use<'a> {
        self.attributes.iter()
    }

    pub fn decode(&self) -> Attributes {
        self.attributes.decode()
    }

    /// Decodes only the top-level attributes with these names.
    pub fn decode_some(&self, names: &[&str]) -> Attributes {
        let mut attributes = Attributes::new();
        let names = NameSet::new(names);
        for entry in self.attributes.entries().filter(|entry| entry.is_one_of(&names)) {
            attributes.insert(entry.name().to_owned(), entry.value.decode());
        }
        attributes
    }

    /// A copy of the item that keeps only the top-level attributes whose names pass. It copies
    /// slices and builds no tree.
    pub fn retain(&self, keep: impl Fn(&str) -> bool) -> EncodedItem {
        assemble::retained(self, keep)
    }

    /// A copy of the item in which the attributes `with` take the place of the top-level attributes
    /// named in `replaced`. No attribute in `with` may share its name with one that stays.
    /// Attributes that stay are copied as bytes.
    pub fn splice(&self, replaced: &[&str], with: &Attributes) -> EncodedItem {
        assemble::spliced(self, replaced, with)
    }

    pub fn to_encoded(&self) -> EncodedItem {
        EncodedItem(Bytes::copy_from_slice(self.bytes))
    }
}

/// Equal items have equal bytes.
impl PartialEq for ItemRef<'_> {
    fn eq(&self, other: &ItemRef<'_>) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for ItemRef<'_> {}

impl fmt::Debug for ItemRef<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.attributes.fmt(formatter)
    }
}

/// One value in its stored form.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EncodedValue(Vec<u8>);

impl EncodedValue {
    pub fn encode(value: &AttributeValue) -> EncodedValue {
        EncodedValue(encode::single_value(value))
    }

    pub fn as_value(&self) -> ValueRef<'_> {
        trusted(ValueRef::read(&mut ByteReader::new(&self.0)))
    }
}

impl From<&AttributeValue> for EncodedValue {
    fn from(value: &AttributeValue) -> EncodedValue {
        EncodedValue::encode(value)
    }
}

impl From<ValueRef<'_>> for EncodedValue {
    fn from(value: ValueRef<'_>) -> EncodedValue {
        EncodedValue(value.encoded().into())
    }
}

impl fmt::Debug for EncodedValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_value().fmt(formatter)
    }
}

/// The byte in front of a value. It is part of the format: never renumber.
const fn tag_of(attribute_type: AttributeType) -> u8 {
    match attribute_type {
        AttributeType::S => 1,
        AttributeType::N => 2,
        AttributeType::B => 3,
        AttributeType::Bool => 4,
        AttributeType::Null => 5,
        AttributeType::Ss => 6,
        AttributeType::Ns => 7,
        AttributeType::Bs => 8,
        AttributeType::L => 9,
        AttributeType::M => 10,
    }
}

fn type_of(tag: u8) -> Result<AttributeType, DecodeError> {
    let index = usize::from(tag).wrapping_sub(1);
    AttributeType::ALL.get(index).copied().ok_or(DecodeError::UnknownType(tag))
}
