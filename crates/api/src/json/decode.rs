//! Request shapes: structs of options, filled directly from the JSON text, with the type checks and
//! texts of DynamoDB's deserialiser.
//!
//! A shape's Rust name is its name in DynamoDB's API model, because type errors print it. `null`
//! means "absent" everywhere, unknown members are skipped, and of duplicate members the last one
//! wins.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zenobe_engine::error::Error;

use super::reader::{JsonReader, Kind, SyntaxError};
use crate::error::ApiError;
use crate::messages::engine::{Subject, engine_error};

/// The type of a request member, list element or map value.
pub(crate) trait Decode: Sized {
    /// How many elements of a list to keep. Further elements are checked and dropped, so a body of
    /// many small elements cannot take many times its own size.
    const ELEMENTS_KEPT_MAX: usize = usize::MAX;

    /// How DynamoDB prints the expected type when it finds an array instead.
    fn collection_type() -> String;

    /// Reads the value, which is not `null`.
    fn decode(reader: &mut JsonReader<'_>, position: JsonPosition) -> Result<Self, JsonError>;

    /// What `null` means as a list element or map value, where it can't mean "absent".
    fn from_null() -> Option<Self> {
        None
    }
}

/// The position of a value. DynamoDB words type errors differently for members and for elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonPosition {
    Member,
    Element,
}

/// Far more than any list of structures may hold, so a truncated list is still rejected as too long.
pub(crate) const STRUCTURES_KEPT_MAX: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonError {
    Syntax,
    Type(TypeFault),
    /// A map has more entries than any item has attributes.
    TooManyEntries,
}

/// A JSON value of the wrong type; the texts are in [`crate::messages::serialization`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TypeFault {
    NotConvertible {
        given: Kind,
        target: &'static str,
    },
    NotBoolean,
    StructureNotExpected,
    CollectionNotExpected {
        expected: String,
    },
    UnexpectedMember,
    UnexpectedElement,
    /// A scalar in place of a list or map inside another list or map.
    NestedGeneric,
    BlobNotString,
    Base64Length(usize),
    Base64Character,
}

impl From<SyntaxError> for JsonError {
    fn from(SyntaxError: SyntaxError) -> JsonError {
        JsonError::Syntax
    }
}

impl From<TypeFault> for JsonError {
    fn from(fault: TypeFault) -> JsonError {
        JsonError::Type(fault)
    }
}

/// Reads a whole request. A type error is reported only if the body is valid JSON.
pub(crate) fn request<T: Decode>(body: &[u8]) -> Result<T, ApiError> {
    document(body).map_err(|error| match error {
        JsonError::Type(fault) if super::is_valid_json(body) => {
            ApiError::serialization(Some(crate::messages::serialization::type_fault(&fault)))
        }
        JsonError::Type(_) | JsonError::Syntax => ApiError::serialization(None),
        JsonError::TooManyEntries => engine_error(Error::ItemTooLarge, Subject::Items),
    })
}

/// Reads a text that is one object and nothing else.
pub(crate) fn document<T: Decode>(text: &[u8]) -> Result<T, JsonError> {
    let mut reader = JsonReader::new(text)?;
    if reader.peek()? != Kind::Object {
        return Err(JsonError::Syntax);
    }
    let decoded = T::decode(&mut reader, JsonPosition::Member)?;
    reader.end()?;
    match reader.has_lost_entries() {
        true => Err(JsonError::TooManyEntries),
        false => Ok(decoded),
    }
}

/// A member of a request as it was written, for responses that repeat it. The request has been read
/// before, so it is valid.
pub(crate) fn raw_member<'b>(body: &'b [u8], wanted: &str) -> Option<&'b str> {
    let find = || -> Result<Option<(usize, usize)>, SyntaxError> {
        let mut reader = JsonReader::new(body)?;
        let (mut found, mut first) = (None, true);
        reader.begin_object()?;
        while let Some(name) = reader.next_member(first)? {
            first = false;
            let kind = reader.peek()?;
            let start = reader.position();
            reader.skip()?;
            if name == wanted {
                found = (kind != Kind::Null).then(|| (start, reader.position()));
            }
        }
        Ok(found)
    };
    let (start, end) = find().ok()??;
    std::str::from_utf8(body.get(start..end)?).ok()
}

/// Declares request shapes. Each member becomes an `Option` of the given type.
macro_rules! shape {
    ($(
        $(#[$attribute:meta])*
        struct $name:ident { $($wire:literal => $field:ident: $type:ty),* $(,)? }
    )*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, Default)]
        pub(crate) struct $name {
            $(pub(crate) $field: Option<$type>,)*
        }

        impl $crate::json::decode::Decode for $name {
            const ELEMENTS_KEPT_MAX: usize = $crate::json::decode::STRUCTURES_KEPT_MAX;

            fn collection_type() -> String {
                $crate::json::decode::model_class(stringify!($name))
            }

            fn decode(
                reader: &mut $crate::json::JsonReader<'_>,
                position: $crate::json::decode::JsonPosition,
            ) -> Result<Self, $crate::json::decode::JsonError> {
                #[allow(unused_mut)]
                let mut shape = Self::default();
                $crate::json::decode::structure::<Self>(reader, position, &mut |_name, _reader| {
                    match _name {
                        $($wire => shape.$field = $crate::json::decode::member(_reader)?,)*
                        _ => _reader.skip()?,
                    }
                    Ok(())
                })?;
                Ok(shape)
            }

            fn from_null() -> Option<Self> {
                Some(Self::default())
            }
        }
    )*};
}
pub(crate) use shape;

type ReadMember<'f> = dyn FnMut(&str, &mut JsonReader<'_>) -> Result<(), JsonError> + 'f;

/// Reads an object whose members `read_member` handles.
pub(crate) fn structure<T: Decode>(
    reader: &mut JsonReader<'_>,
    position: JsonPosition,
    read_member: &mut ReadMember<'_>,
) -> Result<(), JsonError> {
    match (reader.peek()?, position) {
        (Kind::Object, _) => {}
        (Kind::Array, _) => {
            return Err(TypeFault::CollectionNotExpected { expected: T::collection_type() }.into());
        }
        (_, JsonPosition::Member) => return Err(TypeFault::UnexpectedMember.into()),
        (_, JsonPosition::Element) => return Err(TypeFault::UnexpectedElement.into()),
    }
    reader.begin_object()?;
    let mut first = true;
    while let Some(name) = reader.next_member(first)? {
        first = false;
        read_member(&name, reader)?;
    }
    Ok(())
}

pub(crate) fn member<T: Decode>(reader: &mut JsonReader<'_>) -> Result<Option<T>, JsonError> {
    if reader.peek()? == Kind::Null {
        reader.literal("null")?;
        return Ok(None);
    }
    T::decode(reader, JsonPosition::Member).map(Some)
}

pub(crate) fn element<T: Decode>(reader: &mut JsonReader<'_>) -> Result<T, JsonError> {
    if reader.peek()? == Kind::Null {
        reader.literal("null")?;
        return T::from_null().ok_or(TypeFault::UnexpectedElement.into());
    }
    T::decode(reader, JsonPosition::Element)
}

pub(crate) fn model_class(shape: &str) -> String {
    format!("class com.amazonaws.dynamodb.v20120810.{shape}")
}

/// Enters a list, if there is one.
pub(crate) fn begin_list(
    reader: &mut JsonReader<'_>,
    position: JsonPosition,
) -> Result<(), JsonError> {
    match (reader.peek()?, position) {
        (Kind::Array, _) => Ok(reader.begin_array()?),
        (Kind::Object, _) => Err(TypeFault::StructureNotExpected.into()),
        (_, JsonPosition::Member) => Err(TypeFault::UnexpectedMember.into()),
        (_, JsonPosition::Element) => Err(TypeFault::NestedGeneric.into()),
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn collection_type() -> String {
        format!("java.util.List<{}>", without_class(&T::collection_type()))
    }

    fn decode(reader: &mut JsonReader<'_>, position: JsonPosition) -> Result<Self, JsonError> {
        begin_list(reader, position)?;
        let mut elements = Vec::new();
        while reader.next_element(elements.is_empty())? {
            let element = element(reader)?;
            if elements.len() < T::ELEMENTS_KEPT_MAX {
                elements.push(element);
            }
        }
        Ok(elements)
    }
}

/// A list element that may be `null`.
impl<T: Decode> Decode for Option<T> {
    fn collection_type() -> String {
        T::collection_type()
    }

    fn decode(reader: &mut JsonReader<'_>, position: JsonPosition) -> Result<Self, JsonError> {
        T::decode(reader, position).map(Some)
    }

    fn from_null() -> Option<Self> {
        Some(None)
    }
}

/// The most entries of one map. The names alone of that many attributes exceed any item.
pub(crate) const ENTRIES_MAX: usize = 204_800;

/// A JSON object with free keys, in request order and without duplicates. One with more than
/// [`ENTRIES_MAX`] fails its request.
#[derive(Debug, Clone)]
pub(crate) struct OrderedMap<T>(pub(crate) Vec<(String, T)>);

impl<T> Default for OrderedMap<T> {
    fn default() -> Self {
        OrderedMap(Vec::new())
    }
}

impl<T: Decode> Decode for OrderedMap<T> {
    fn collection_type() -> String {
        let value = T::collection_type();
        format!("java.util.Map<java.lang.String, {}>", without_class(&value))
    }

    fn decode(reader: &mut JsonReader<'_>, position: JsonPosition) -> Result<Self, JsonError> {
        entries(reader, position, usize::MAX).map(OrderedMap)
    }
}

/// An [`OrderedMap`] with a low limit. Only the start of a larger one is kept: enough to exceed the
/// limit.
#[derive(Debug, Clone)]
pub(crate) struct BoundedMap<T>(pub(crate) Vec<(String, T)>);

impl<T> Default for BoundedMap<T> {
    fn default() -> Self {
        BoundedMap(Vec::new())
    }
}

impl<T: Decode> Decode for BoundedMap<T> {
    fn collection_type() -> String {
        OrderedMap::<T>::collection_type()
    }

    fn decode(reader: &mut JsonReader<'_>, position: JsonPosition) -> Result<Self, JsonError> {
        entries(reader, position, STRUCTURES_KEPT_MAX).map(BoundedMap)
    }
}

fn entries<T: Decode>(
    reader: &mut JsonReader<'_>,
    position: JsonPosition,
    kept_max: usize,
) -> Result<Vec<(String, T)>, JsonError> {
    match (reader.peek()?, position) {
        (Kind::Object, _) => {}
        (Kind::Array, _) => {
            let expected = OrderedMap::<T>::collection_type();
            return Err(TypeFault::CollectionNotExpected { expected }.into());
        }
        (_, JsonPosition::Member) => return Err(TypeFault::UnexpectedMember.into()),
        (_, JsonPosition::Element) => return Err(TypeFault::NestedGeneric.into()),
    }
    reader.begin_object()?;
    let mut entries = Vec::new();
    let (mut first, mut is_full) = (true, false);
    while let Some(name) = reader.next_member(first)? {
        first = false;
        let value = element(reader)?;
        if is_full || !reader.keeps_entry(entries.len(), ENTRIES_MAX) {
            continue;
        }
        entries.push((name.into_owned(), value));
        // Duplicates don't count. Looking for them only now and then keeps the work linear.
        if entries.len() >= kept_max.saturating_mul(2) {
            entries = last_of_duplicates(entries);
            is_full = entries.len() >= kept_max;
        }
    }
    Ok(last_of_duplicates(entries))
}

/// Up to this many members are compared pairwise to find duplicates.
const COMPARED_MAX: usize = 16;

/// Sorts instead of comparing pairwise, because a request may have very many members.
fn last_of_duplicates<T>(mut entries: Vec<(String, T)>) -> Vec<(String, T)> {
    let is_new = |at: usize| entries[..at].iter().all(|(name, _)| *name != entries[at].0);
    if entries.len() <= COMPARED_MAX && (1..entries.len()).all(is_new) {
        return entries;
    }
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|&a, &b| entries[a].0.cmp(&entries[b].0).then(a.cmp(&b)));
    let mut superseded: Vec<usize> = order
        .windows(2)
        .filter(|pair| entries[pair[0]].0 == entries[pair[1]].0)
        .map(|pair| pair[0])
        .collect();
    if !superseded.is_empty() {
        superseded.sort_unstable();
        let mut index = 0;
        entries.retain(|_| {
            index += 1;
            superseded.binary_search(&(index - 1)).is_err()
        });
    }
    entries
}

fn without_class(collection_type: &str) -> &str {
    collection_type.strip_prefix("class ").unwrap_or(collection_type)
}

impl Decode for String {
    fn collection_type() -> String {
        "class java.lang.String".to_owned()
    }

    fn decode(reader: &mut JsonReader<'_>, _: JsonPosition) -> Result<Self, JsonError> {
        match scalar_kind::<Self>(reader)? {
            Kind::String => Ok(reader.string()?.into_owned()),
            given => Err(TypeFault::NotConvertible { given, target: "String" }.into()),
        }
    }
}

impl Decode for bool {
    fn collection_type() -> String {
        "class java.lang.Boolean".to_owned()
    }

    fn decode(reader: &mut JsonReader<'_>, _: JsonPosition) -> Result<Self, JsonError> {
        match scalar_kind::<Self>(reader)? {
            Kind::True => reader.literal("true").map(|()| true).map_err(JsonError::from),
            Kind::False => reader.literal("false").map(|()| false).map_err(JsonError::from),
            Kind::String => match reader.string()?.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" => Ok(true),
                "false" | "0" | "no" => Ok(false),
                _ => Err(TypeFault::NotBoolean.into()),
            },
            given => Err(TypeFault::NotConvertible { given, target: "Boolean" }.into()),
        }
    }
}

impl Decode for i32 {
    fn collection_type() -> String {
        "class java.lang.Integer".to_owned()
    }

    fn decode(reader: &mut JsonReader<'_>, _: JsonPosition) -> Result<Self, JsonError> {
        let value = integer(scalar_kind::<Self>(reader)?, reader, "Integer")?;
        Ok(value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32)
    }
}

impl Decode for i64 {
    fn collection_type() -> String {
        "class java.lang.Long".to_owned()
    }

    fn decode(reader: &mut JsonReader<'_>, _: JsonPosition) -> Result<Self, JsonError> {
        integer(scalar_kind::<Self>(reader)?, reader, "Long")
    }
}

impl Decode for f64 {
    fn collection_type() -> String {
        "class java.lang.Double".to_owned()
    }

    fn decode(reader: &mut JsonReader<'_>, _: JsonPosition) -> Result<Self, JsonError> {
        match scalar_kind::<Self>(reader)? {
            Kind::Integer | Kind::Decimal => Ok(reader.number()?.parse().unwrap_or_default()),
            given => Err(TypeFault::NotConvertible { given, target: "Double" }.into()),
        }
    }
}

/// A blob: base64 text in JSON.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Blob(pub(crate) Vec<u8>);

impl Decode for Blob {
    fn collection_type() -> String {
        "class java.nio.ByteBuffer".to_owned()
    }

    fn decode(reader: &mut JsonReader<'_>, _: JsonPosition) -> Result<Self, JsonError> {
        if scalar_kind::<Self>(reader)? != Kind::String {
            return Err(TypeFault::BlobNotString.into());
        }
        let text = reader.string()?;
        if text.len() % 4 != 0 {
            return Err(TypeFault::Base64Length(text.len()).into());
        }
        let bytes = STANDARD.decode(text.as_bytes()).map_err(|_| TypeFault::Base64Character)?;
        Ok(Blob(bytes))
    }
}

/// The kind of a value that must be a scalar.
fn scalar_kind<T: Decode>(reader: &mut JsonReader<'_>) -> Result<Kind, JsonError> {
    match reader.peek()? {
        Kind::Object => Err(TypeFault::StructureNotExpected.into()),
        Kind::Array => {
            Err(TypeFault::CollectionNotExpected { expected: T::collection_type() }.into())
        }
        kind => Ok(kind),
    }
}

/// Truncates fractions, as DynamoDB does; a number out of range becomes the nearest one in range.
fn integer(
    given: Kind,
    reader: &mut JsonReader<'_>,
    target: &'static str,
) -> Result<i64, JsonError> {
    match given {
        Kind::Integer => {
            let text = reader.number()?;
            let saturated = if text.starts_with('-') { i64::MIN } else { i64::MAX };
            Ok(text.parse().unwrap_or(saturated))
        }
        Kind::Decimal => Ok(reader.number()?.parse::<f64>().unwrap_or_default() as i64),
        _ => Err(TypeFault::NotConvertible { given, target }.into()),
    }
}

#[cfg(test)]
mod tests {
    use zenobe_value::AttributeValue;

    use super::*;
    use crate::json::attribute_value::{WireAttributes, WireValue};

    shape! {
        struct Everything {
            "Map" => map: WireAttributes,
            "Value" => value: WireValue,
            "Lists" => lists: OrderedMap<Vec<WireAttributes>>,
            "Names" => names: OrderedMap<String>,
            "Many" => many: Vec<Everything>,
            "ManyNamed" => many_named: BoundedMap<Everything>,
        }
    }

    #[track_caller]
    fn check(body: &str, expected: &str) {
        let error = request::<Everything>(body.as_bytes()).unwrap_err();
        assert_eq!(error.message(), Some(expected), "{body}");
    }

    const NOT_A_STRING: &str = "NUMBER_VALUE cannot be converted to String";
    const NO_STRUCTURE: &str = "Start of structure or map found where not expected";
    const NESTED: &str = "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl \
        cannot be cast to class java.lang.Class (sun.reflect.generics.reflectiveObjects.\
        ParameterizedTypeImpl and java.lang.Class are in module java.base of loader 'bootstrap')";
    const NOT_A_MAP: &str = "Unrecognized collection type java.util.Map<java.lang.String, \
        com.amazonaws.dynamodb.v20120810.AttributeValue>";
    const NOT_A_VALUE: &str =
        "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue";

    #[test]
    fn maps_and_lists_in_the_wrong_place() {
        check(r#"{"Map":"x"}"#, "Unexpected field type");
        check(r#"{"Map":[]}"#, NOT_A_MAP);
        check(
            r#"{"Names":[]}"#,
            "Unrecognized collection type java.util.Map<java.lang.String, java.lang.String>",
        );
        check(r#"{"Names":{"a":1}}"#, NOT_A_STRING);
        check(r#"{"Lists":{"a":"x"}}"#, NESTED);
        check(r#"{"Lists":{"a":{}}}"#, NO_STRUCTURE);
        check(r#"{"Lists":{"a":[1]}}"#, NESTED);
        check(r#"{"Lists":{"a":[[]]}}"#, NOT_A_MAP);
    }

    #[test]
    fn attribute_values_of_wrong_types() {
        check(r#"{"Map":{"a":"x"}}"#, "Unexpected value type in payload");
        check(r#"{"Map":{"a":[]}}"#, NOT_A_VALUE);
        check(r#"{"Value":1}"#, "Unexpected field type");
        check(r#"{"Value":[]}"#, NOT_A_VALUE);
        check(r#"{"Value":{"N":3}}"#, NOT_A_STRING);
        check(r#"{"Value":{"S":3.5}}"#, "DECIMAL_VALUE cannot be converted to String");
        check(r#"{"Value":{"S":{}}}"#, NO_STRUCTURE);
        check(r#"{"Value":{"BOOL":3}}"#, "NUMBER_VALUE cannot be converted to Boolean");
        check(r#"{"Value":{"NULL":"x"}}"#, "Unexpected token received from parser");
        check(r#"{"Value":{"SS":"x"}}"#, "Unexpected field type");
        check(r#"{"Value":{"SS":{}}}"#, NO_STRUCTURE);
        check(r#"{"Value":{"NS":[1]}}"#, NOT_A_STRING);
        check(r#"{"Value":{"L":1}}"#, "Unexpected field type");
        check(r#"{"Value":{"L":{}}}"#, NO_STRUCTURE);
        check(r#"{"Value":{"L":[1]}}"#, "Unexpected value type in payload");
        check(r#"{"Value":{"M":1}}"#, "Unexpected field type");
        check(r#"{"Value":{"M":[]}}"#, NOT_A_MAP);
        check(
            r#"{"Value":{"M":{"a":{"L":[{"M":{"b":{"B":1}}}]}}}}"#,
            "only base-64-encoded strings are convertible to bytes",
        );
    }

    #[test]
    fn blobs_are_strict_base64() {
        check(r#"{"Value":{"B":true}}"#, "only base-64-encoded strings are convertible to bytes");
        check(r#"{"Value":{"B":[]}}"#, "Unrecognized collection type class java.nio.ByteBuffer");
        check(r#"{"Value":{"B":{}}}"#, NO_STRUCTURE);
        check(
            r#"{"Value":{"B":"abc"}}"#,
            "Base64 encoded length is expected a multiple of 4 bytes but found: 3",
        );
        check(r#"{"Value":{"BS":["YR=="]}}"#, "Invalid last non-pad Base64 character dectected");
        check(r#"{"Value":{"B":"a!b="}}"#, "Invalid last non-pad Base64 character dectected");
    }

    #[test]
    fn of_long_lists_and_maps_of_structures_the_beginning_is_kept() {
        let decode = |body: String| request::<Everything>(body.as_bytes()).unwrap();
        let list = |count: usize| vec!["{}"; count].join(",");
        let kept = |count| decode(format!("{{\"Many\":[{}]}}", list(count))).many.unwrap().len();
        assert_eq!((kept(0), kept(1_000), kept(10_000)), (0, 1_000, 1_000));

        let map = |names: &mut dyn Iterator<Item = usize>| -> usize {
            let members: Vec<String> = names.map(|name| format!("\"{name}\":{{}}")).collect();
            let body = format!("{{\"ManyNamed\":{{{}}}}}", members.join(","));
            decode(body).many_named.unwrap().0.len()
        };
        assert_eq!((map(&mut (0..3)), map(&mut (0..999))), (3, 999));
        assert_eq!(map(&mut (0..100_000)), 2_000);
        // Duplicates are not counted, wherever they are.
        assert_eq!(map(&mut (0..100_000).map(|name| name % 7)), 7);
    }

    #[test]
    fn of_duplicates_the_last_one_is_kept_however_many_there_are() {
        for count in [1, 2, 3, 16, 17, 40] {
            let names = (0..count).chain((0..count).step_by(2));
            let members: Vec<String> =
                names.enumerate().map(|(at, name)| format!("\"n{name}\":\"{at}\"")).collect();
            let body = format!("{{\"Names\":{{{}}}}}", members.join(","));
            let kept = request::<Everything>(body.as_bytes()).unwrap().names.unwrap().0;
            // Even numbers come again, so they move to the end.
            let odd = (0..count).skip(1).step_by(2).map(|name| (name, name));
            let even = (0..count).step_by(2).enumerate().map(|(at, name)| (name, count + at));
            let expected: Vec<_> =
                odd.chain(even).map(|(name, at)| (format!("n{name}"), at.to_string())).collect();
            assert_eq!(kept, expected, "{count}");
        }
    }

    #[test]
    fn maps_larger_than_any_item_fail_their_request() {
        let named = |count: usize| -> String {
            let members: Vec<String> = (0..count).map(|name| format!("\"{name}\":{{}}")).collect();
            members.join(",")
        };
        let too_large = "Item size has exceeded the maximum allowed size";
        let kept = request::<Everything>(format!("{{\"Map\":{{{}}}}}", named(1_000)).as_bytes());
        assert_eq!(kept.unwrap().map.unwrap().0.len(), 1_000);
        check(&format!("{{\"Map\":{{{}}}}}", named(ENTRIES_MAX + 1)), too_large);
        // Smaller maps add up.
        let lists = vec![format!("{{{}}}", named(100_000)); 13].join(",");
        check(&format!("{{\"Lists\":{{\"a\":[{lists}]}}}}"), too_large);
        // What follows is still read.
        let behind = format!("{{\"Map\":{{{}}},\"Names\":{{\"a\":1}}}}", named(ENTRIES_MAX + 1));
        check(&behind, NOT_A_STRING);
    }

    #[test]
    fn elements_that_are_dropped_are_checked() {
        let list = format!("{{\"Many\":[{}1]}}", "{},".repeat(5_000));
        check(&list, "Unexpected value type in payload");
        let members: String = (0..5_000).map(|name| format!("\"{name}\":{{}},")).collect();
        let map = format!("{{\"ManyNamed\":{{{members}\"x\":{{\"Names\":{{\"a\":1}}}}}}}}");
        check(&map, NOT_A_STRING);
    }

    #[test]
    fn values_are_kept_however_many_there_are() {
        let values = vec!["{\"BOOL\":true}"; 10_000].join(",");
        let body = format!("{{\"Value\":{{\"L\":[{values}]}}}}");
        let value = request::<Everything>(body.as_bytes()).unwrap().value.unwrap().unwrap();
        let AttributeValue::L(elements) = value else { panic!("{value:?} is not a list") };
        assert_eq!(elements.len(), 10_000);
    }

    #[test]
    fn texts_are_only_given_for_json() {
        for body in ["", "[]", "{\"Map\":\"x\"", "{\"Value\":{\"N\":3}}}"] {
            let error = request::<Everything>(body.as_bytes()).unwrap_err();
            assert_eq!(error.message(), None, "{body}");
        }
    }
}
