//! Attribute values in requests. JSON types are checked while reading. Faults of the values
//! themselves (an empty set, a bad number) are kept as data, because operations report them at
//! different points.

use std::borrow::Cow;
use std::collections::BTreeSet;

use zenobe_value::limits::{ATTRIBUTE_NAME_SIZE_BYTES_MAX, NESTING_LEVELS_MAX};
use zenobe_value::{AttributeType, AttributeValue, Attributes, Number, NumberError};

use super::decode::{
    Blob, Decode, JsonError, JsonPosition, OrderedMap, element, member, model_class, structure,
};
use super::reader::{JsonReader, Kind};

/// An attribute value, or its first fault.
pub(crate) type WireValue = Result<AttributeValue, ValueFault>;

/// An item, a key or a map of expression values, in request order.
pub(crate) type WireAttributes = OrderedMap<WireValue>;

/// A fault of an attribute value; the texts are in [`crate::messages::value`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueFault {
    Empty,
    Number {
        error: NumberError,
        text: String,
    },
    NullNotTrue,
    EmptySet(AttributeType),
    NullInSet(AttributeType),
    DuplicateStrings(Vec<String>),
    DuplicateNumbers,
    DuplicateBinaries(Vec<Vec<u8>>),
    MultipleTypes,
    NestedTooDeeply,
    /// The name of a map's member.
    Name(NameFault),
}

/// A fault of an attribute's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameFault {
    Empty,
    TooLong,
}

impl NameFault {
    pub(crate) fn of(name: &str) -> Option<NameFault> {
        match name.len() {
            0 => Some(NameFault::Empty),
            1..=ATTRIBUTE_NAME_SIZE_BYTES_MAX => None,
            _ => Some(NameFault::TooLong),
        }
    }
}

impl WireAttributes {
    /// The attributes, or the fault of the first bad one in request order.
    pub(crate) fn into_attributes(self) -> Result<Attributes, ValueFault> {
        self.0.into_iter().map(|(name, value)| Ok((name, value?))).collect()
    }
}

impl Decode for WireValue {
    fn collection_type() -> String {
        model_class("AttributeValue")
    }

    fn decode(reader: &mut JsonReader<'_>, position: JsonPosition) -> Result<Self, JsonError> {
        value(reader, position, 1)
    }

    fn from_null() -> Option<Self> {
        Some(Err(ValueFault::Empty))
    }
}

/// Reads one value at the given nesting level; a top-level attribute's value has level 1.
fn value(
    reader: &mut JsonReader<'_>,
    position: JsonPosition,
    level: usize,
) -> Result<WireValue, JsonError> {
    if level > NESTING_LEVELS_MAX {
        reader.skip()?;
        return Ok(Err(ValueFault::NestedTooDeeply));
    }
    let mut collected = Collected::default();
    structure::<WireValue>(reader, position, &mut |name, reader| {
        let Some(attribute_type) = AttributeType::from_name(name) else {
            return Ok(reader.skip()?);
        };
        collected.set(attribute_type, typed_value(attribute_type, reader, level)?);
        Ok(())
    })?;
    Ok(collected.finish())
}

/// The members of one attribute value, which should have exactly one.
#[derive(Default)]
struct Collected {
    /// Nearly always the only member.
    first: Option<(AttributeType, WireValue)>,
    others: Vec<(AttributeType, WireValue)>,
}

impl Collected {
    /// Adds a member; `None` is `null`. Of duplicates the last one counts.
    fn set(&mut self, attribute_type: AttributeType, value: Option<WireValue>) {
        self.first.take_if(|(known, _)| *known == attribute_type);
        self.others.retain(|(known, _)| *known != attribute_type);
        let member = value.map(|value| (attribute_type, value));
        match self.first {
            None => self.first = member,
            Some(_) => self.others.extend(member),
        }
    }

    fn finish(self) -> WireValue {
        let mut members = self.first.into_iter().chain(self.others).map(|(_, value)| value);
        let mut value = members.next().unwrap_or(Err(ValueFault::Empty));
        let mut several = false;
        for other in members {
            several = true;
            if precedence(&other) < precedence(&value) {
                value = other;
            }
        }
        match value {
            Ok(_) | Err(ValueFault::NestedTooDeeply | ValueFault::Name(_)) if several => {
                Err(ValueFault::MultipleTypes)
            }
            value => value,
        }
    }
}

/// The order in which DynamoDB looks for the faults of one value.
fn precedence(value: &WireValue) -> usize {
    match value {
        Err(ValueFault::Empty) => 0,
        Err(ValueFault::Number { .. }) => 1,
        Err(ValueFault::NullNotTrue) => 2,
        Err(ValueFault::EmptySet(_) | ValueFault::NullInSet(_)) => 3,
        Err(
            ValueFault::DuplicateStrings(_)
            | ValueFault::DuplicateNumbers
            | ValueFault::DuplicateBinaries(_),
        ) => 4,
        Err(ValueFault::MultipleTypes) => 5,
        Err(ValueFault::NestedTooDeeply) => 6,
        Err(ValueFault::Name(_)) => 7,
        Ok(_) => 8,
    }
}

/// The first fault counts, but nesting is checked after everything except names.
pub(crate) fn keep_first(kept: &mut Option<ValueFault>, fault: ValueFault) {
    let replaces = match (&kept, &fault) {
        (None, _) => true,
        (Some(ValueFault::Name(_)), fault) => !matches!(fault, ValueFault::Name(_)),
        (Some(ValueFault::NestedTooDeeply), fault) => !matches!(fault, ValueFault::Name(_)),
        _ => false,
    };
    if replaces {
        *kept = Some(fault);
    }
}

/// The value under a type's name, or `None` if it is `null`.
fn typed_value(
    attribute_type: AttributeType,
    reader: &mut JsonReader<'_>,
    level: usize,
) -> Result<Option<WireValue>, JsonError> {
    Ok(match attribute_type {
        AttributeType::S => member(reader)?.map(|text| Ok(AttributeValue::S(text))),
        AttributeType::N => text(reader)?.map(|text| number(&text).map(AttributeValue::N)),
        AttributeType::B => member(reader)?.map(|Blob(bytes)| Ok(AttributeValue::B(bytes))),
        AttributeType::Bool => member(reader)?.map(|flag| Ok(AttributeValue::Bool(flag))),
        AttributeType::Null => member(reader)?.map(null),
        AttributeType::Ss => member(reader)?.map(string_set),
        AttributeType::Ns => member(reader)?.map(number_set),
        AttributeType::Bs => member(reader)?.map(binary_set),
        AttributeType::L if reader.peek()? == Kind::Array => Some(list(reader, level)?),
        AttributeType::L => member::<Vec<WireValue>>(reader)?.map(|_| Err(ValueFault::Empty)),
        AttributeType::M if reader.peek()? == Kind::Object => Some(map(reader, level)?),
        AttributeType::M => member::<WireAttributes>(reader)?.map(|_| Err(ValueFault::Empty)),
    })
}

fn list(reader: &mut JsonReader<'_>, level: usize) -> Result<WireValue, JsonError> {
    let mut elements = Vec::new();
    let mut fault = None;
    let mut first = true;
    reader.begin_array()?;
    while reader.next_element(first)? {
        first = false;
        match nested_value(reader, level)? {
            Ok(value) => elements.push(value),
            Err(found) => keep_first(&mut fault, found),
        }
    }
    Ok(fault.map_or(Ok(AttributeValue::L(elements)), Err))
}

fn map(reader: &mut JsonReader<'_>, level: usize) -> Result<WireValue, JsonError> {
    let mut entries = Attributes::new();
    let mut fault = None;
    let mut first = true;
    reader.begin_object()?;
    while let Some(name) = reader.next_member(first)? {
        first = false;
        if let Some(found) = NameFault::of(&name) {
            keep_first(&mut fault, ValueFault::Name(found));
        }
        match nested_value(reader, level)? {
            Ok(value) => drop(entries.insert(name.into_owned(), value)),
            Err(found) => keep_first(&mut fault, found),
        }
    }
    Ok(fault.map_or(Ok(AttributeValue::M(entries)), Err))
}

fn nested_value(reader: &mut JsonReader<'_>, level: usize) -> Result<WireValue, JsonError> {
    match reader.peek()? {
        Kind::Null => element(reader),
        _ => value(reader, JsonPosition::Element, level + 1),
    }
}

/// A string that is only inspected, so it need not be copied out of the request.
fn text<'a>(reader: &mut JsonReader<'a>) -> Result<Option<Cow<'a, str>>, JsonError> {
    if reader.peek()? == Kind::String {
        return Ok(Some(reader.string()?));
    }
    Ok(member::<String>(reader)?.map(Cow::Owned))
}

fn number(text: &str) -> Result<Number, ValueFault> {
    Number::parse(text).map_err(|error| ValueFault::Number { error, text: text.to_owned() })
}

fn null(flag: bool) -> WireValue {
    if flag { Ok(AttributeValue::Null) } else { Err(ValueFault::NullNotTrue) }
}

fn string_set(members: Vec<Option<String>>) -> WireValue {
    let members = set_members(members, AttributeType::Ss)?;
    let set: BTreeSet<String> = members.iter().cloned().collect();
    if set.len() < members.len() {
        return Err(ValueFault::DuplicateStrings(members));
    }
    Ok(AttributeValue::Ss(set))
}

fn number_set(members: Vec<Option<String>>) -> WireValue {
    let members = set_members(members, AttributeType::Ns)?;
    let numbers = members.iter().map(|text| number(text));
    let set = numbers.collect::<Result<BTreeSet<Number>, _>>()?;
    if set.len() < members.len() {
        return Err(ValueFault::DuplicateNumbers);
    }
    Ok(AttributeValue::Ns(set))
}

fn binary_set(members: Vec<Option<Blob>>) -> WireValue {
    let members = set_members(members, AttributeType::Bs)?;
    let members: Vec<Vec<u8>> = members.into_iter().map(|Blob(bytes)| bytes).collect();
    let set: BTreeSet<Vec<u8>> = members.iter().cloned().collect();
    if set.len() < members.len() {
        return Err(ValueFault::DuplicateBinaries(members));
    }
    Ok(AttributeValue::Bs(set))
}

/// The members of a set, which must have some, none of them `null`.
fn set_members<T>(
    members: Vec<Option<T>>,
    attribute_type: AttributeType,
) -> Result<Vec<T>, ValueFault> {
    if members.is_empty() {
        return Err(ValueFault::EmptySet(attribute_type));
    }
    let members: Option<Vec<T>> = members.into_iter().collect();
    members.ok_or(ValueFault::NullInSet(attribute_type))
}
