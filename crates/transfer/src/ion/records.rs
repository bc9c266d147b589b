//! What an Ion value means as a record, and how Ion's values become DynamoDB's.

use std::collections::BTreeSet;

use zenobe_value::limits::{ATTRIBUTE_NAME_SIZE_BYTES_MAX, NESTING_LEVELS_MAX};
use zenobe_value::{AttributeType, AttributeValue, Attributes, Number};

use crate::Record;
use crate::read_error::ContentError;

/// The record that a top-level value is: `{Item: {…}}`, or `{Record: {…}}` in incremental exports.
pub(super) fn record(value: AttributeValue, with_others: bool) -> Result<Record, ContentError> {
    let mut members = structure(Some(value))?;
    if let Some(change) = members.remove("Record") {
        let mut change = structure(Some(change))?;
        let keys = structure(change.remove("Keys"))?;
        let new = change.remove("NewImage").map(|image| structure(Some(image))).transpose()?;
        check_nesting(new.iter().chain([&keys]))?;
        return Ok(Record::Change { keys, new });
    }
    let item = structure(members.remove("Item"))?;
    check_nesting([&item])?;
    match with_others && !members.is_empty() {
        true => Ok(Record::ItemWith { item, others: members }),
        false => Ok(Record::Item(item)),
    }
}

fn structure(value: Option<AttributeValue>) -> Result<Attributes, ContentError> {
    match value {
        Some(AttributeValue::M(members)) => Ok(members),
        _ => Err(ContentError::NoItem),
    }
}

fn check_nesting<'a>(images: impl IntoIterator<Item = &'a Attributes>) -> Result<(), ContentError> {
    let mut values = images.into_iter().flat_map(Attributes::values);
    match values.any(|value| value.depth() > NESTING_LEVELS_MAX) {
        true => Err(ContentError::NestedTooDeeply(NESTING_LEVELS_MAX)),
        false => Ok(()),
    }
}

/// Values as a parser finds them. An error does not end the parsing: the rest of the value must be
/// stepped over anyway, and the first error is reported.
#[derive(Default)]
pub(super) struct Values {
    error: Option<ContentError>,
}

impl Values {
    pub(super) fn finish(self, value: AttributeValue) -> Result<AttributeValue, ContentError> {
        self.error.map_or(Ok(value), Err)
    }

    /// Remembers an error. The value returned takes the place of the wrong one, which nobody will
    /// see.
    pub(super) fn fail(&mut self, error: ContentError) -> AttributeValue {
        self.error.get_or_insert(error);
        AttributeValue::Null
    }

    pub(super) fn check_name(&mut self, name: &str) {
        if name.is_empty() || name.len() > ATTRIBUTE_NAME_SIZE_BYTES_MAX {
            self.fail(ContentError::Name);
        }
    }

    /// A number, in the grammar of [`Number::parse`].
    pub(super) fn number(&mut self, text: &str) -> AttributeValue {
        match Number::parse(text) {
            Ok(number) => AttributeValue::N(number),
            Err(error) => self.fail(ContentError::Number { text: shortened(text), error }),
        }
    }

    /// A list, which an annotation may make a set.
    pub(super) fn list(
        &mut self,
        members: Vec<AttributeValue>,
        set: Option<AttributeType>,
    ) -> AttributeValue {
        let Some(set) = set else { return AttributeValue::L(members) };
        if self.error.is_some() {
            return AttributeValue::Null;
        }
        set_of(members, set).unwrap_or_else(|error| self.fail(error))
    }
}

/// The type that an annotation gives to a list.
pub(super) fn set_type(annotation: &str) -> Option<AttributeType> {
    match annotation {
        "$dynamodb_SS" => Some(AttributeType::Ss),
        "$dynamodb_NS" => Some(AttributeType::Ns),
        "$dynamodb_BS" => Some(AttributeType::Bs),
        _ => None,
    }
}

fn set_of(
    members: Vec<AttributeValue>,
    set: AttributeType,
) -> Result<AttributeValue, ContentError> {
    if members.is_empty() {
        return Err(ContentError::EmptySet(set));
    }
    let count = members.len();
    let foreign = || ContentError::SetMember(set);
    let (value, distinct) = match set {
        AttributeType::Ss => {
            let text = |member| match member {
                AttributeValue::S(text) => Ok(text),
                _ => Err(foreign()),
            };
            let set = members.into_iter().map(text).collect::<Result<BTreeSet<_>, _>>()?;
            let distinct = set.len();
            (AttributeValue::Ss(set), distinct)
        }
        AttributeType::Ns => {
            let number = |member| match member {
                AttributeValue::N(number) => Ok(number),
                _ => Err(foreign()),
            };
            let set = members.into_iter().map(number).collect::<Result<BTreeSet<_>, _>>()?;
            let distinct = set.len();
            (AttributeValue::Ns(set), distinct)
        }
        _ => {
            let bytes = |member| match member {
                AttributeValue::B(bytes) => Ok(bytes),
                _ => Err(foreign()),
            };
            let set = members.into_iter().map(bytes).collect::<Result<BTreeSet<_>, _>>()?;
            let distinct = set.len();
            (AttributeValue::Bs(set), distinct)
        }
    };
    if distinct < count { Err(ContentError::DuplicateInSet(set)) } else { Ok(value) }
}

/// Enough of a text to recognise it by.
pub(crate) fn shortened(text: &str) -> String {
    const CHARACTERS_MAX: usize = 64;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
