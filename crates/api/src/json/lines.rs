//! Lines of DYNAMODB_JSON files: `{"Item":{…}}` in full exports and imports, `{"Keys":{…},…}` in
//! incremental exports.

use zenobe_transfer::Record;
use zenobe_value::limits::NESTING_LEVELS_MAX;
use zenobe_value::{AttributeValue, Attributes, ItemRef, Number};

use super::attribute_value::{NameFault, ValueFault, WireAttributes};
use super::decode::{Decode, JsonError, OrderedMap, document, shape};
use super::{JsonReader, Kind, Writer, is_valid_json, write_item};
use crate::messages::{serialization, transfer, value};
use crate::parameters::ConditionParameters;

/// Why a line holds no record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineError {
    /// It is not JSON, so the lines after it can't be trusted either.
    NotJson,
    /// Its item can't be used, for this reason.
    Record(String),
}

shape! {
    struct ItemLine {
        "Item" => item: WireAttributes,
        "Keys" => keys: WireAttributes,
        "NewImage" => new_image: WireAttributes,
    }
}

shape! {
    struct PutLine {
        "Item" => item: WireAttributes,
        "ConditionExpression" => condition_expression: String,
        "ExpressionAttributeNames" => expression_attribute_names: OrderedMap<String>,
        "ExpressionAttributeValues" => expression_attribute_values: WireAttributes,
    }
}

/// The members of a line that puts an item on a condition.
const PUT_MEMBERS: [&str; 4] =
    ["Item", "ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"];

/// Reads a line that puts an item, perhaps on a condition. Any other member is a fault: ignoring a misspelt condition would be
/// worse than not putting the item.
pub(crate) fn read_put_line(line: &[u8]) -> Result<(Attributes, ConditionParameters), LineError> {
    let decoded: PutLine = decoded(line)?;
    if let Some(name) = other_member(line, &PUT_MEMBERS) {
        return Err(LineError::Record(transfer::unknown_member(&name)));
    }
    let item = decoded.item.ok_or_else(|| LineError::Record(transfer::no_item()))?;
    let condition = ConditionParameters {
        expression: decoded.condition_expression,
        names: decoded.expression_attribute_names,
        values: decoded.expression_attribute_values,
        ..ConditionParameters::default()
    };
    Ok((attributes(item)?, condition))
}

pub fn read_line(line: &[u8]) -> Result<Record, LineError> {
    match decoded(line)? {
        ItemLine { item: Some(item), .. } => Ok(Record::Item(attributes(item)?)),
        ItemLine { keys: Some(keys), new_image, .. } => {
            let new = new_image.map(attributes).transpose()?;
            Ok(Record::Change { keys: attributes(keys)?, new })
        }
        ItemLine { .. } => Err(LineError::Record(transfer::no_item())),
    }
}

/// The first member of a line that is none of those that are known.
fn other_member(line: &[u8], known: &[&str]) -> Option<String> {
    let other = || -> Result<Option<String>, JsonError> {
        let mut reader = JsonReader::new(line)?;
        let mut first = true;
        reader.begin_object()?;
        while let Some(name) = reader.next_member(first)? {
            first = false;
            if !known.contains(&&*name) {
                return Ok(Some(name.into_owned()));
            }
            reader.skip()?;
        }
        Ok(None)
    };
    // Whatever else is wrong has been found before.
    other().unwrap_or(None)
}

fn decoded<T: Decode>(line: &[u8]) -> Result<T, LineError> {
    document(line).map_err(|error| match error {
        JsonError::Type(fault) if is_valid_json(line) => {
            LineError::Record(serialization::type_fault(&fault))
        }
        JsonError::Type(_) | JsonError::Syntax => LineError::NotJson,
        JsonError::TooManyEntries => LineError::Record(transfer::too_many_attributes()),
    })
}

/// A line of plain JSON: an object whose members have the types that JSON has. Numbers keep all
/// their digits.
pub fn read_plain_line(line: &[u8]) -> Result<Attributes, LineError> {
    let not_json = |_| LineError::NotJson;
    let mut reader = JsonReader::new(line).map_err(not_json)?;
    if reader.peek().map_err(not_json)? != Kind::Object {
        return Err(LineError::NotJson);
    }
    let item = plain_object(&mut reader, 0)?;
    reader.end().map_err(not_json)?;
    Ok(item)
}

fn plain_object(reader: &mut JsonReader<'_>, level: usize) -> Result<Attributes, LineError> {
    let mut members = Attributes::new();
    let mut first = true;
    reader.begin_object().map_err(|_| LineError::NotJson)?;
    while let Some(name) = reader.next_member(first).map_err(|_| LineError::NotJson)? {
        first = false;
        if let Some(fault) = NameFault::of(&name) {
            return Err(LineError::Record(value::value_fault_text(&ValueFault::Name(fault))));
        }
        let value = plain_value(reader, level + 1)?;
        members.insert(name.into_owned(), value);
    }
    Ok(members)
}

fn plain_value(reader: &mut JsonReader<'_>, level: usize) -> Result<AttributeValue, LineError> {
    let not_json = |_| LineError::NotJson;
    let fault = |fault: &ValueFault| LineError::Record(value::value_fault_text(fault));
    if level > NESTING_LEVELS_MAX {
        return Err(fault(&ValueFault::NestedTooDeeply));
    }
    Ok(match reader.peek().map_err(not_json)? {
        Kind::Null => reader.literal("null").map(|()| AttributeValue::Null).map_err(not_json)?,
        Kind::True => {
            reader.literal("true").map(|()| AttributeValue::Bool(true)).map_err(not_json)?
        }
        Kind::False => {
            reader.literal("false").map(|()| AttributeValue::Bool(false)).map_err(not_json)?
        }
        Kind::Integer | Kind::Decimal => {
            let text = reader.number().map_err(not_json)?;
            let number = Number::parse(text)
                .map_err(|error| fault(&ValueFault::Number { error, text: text.to_owned() }))?;
            AttributeValue::N(number)
        }
        Kind::String => AttributeValue::S(reader.string().map_err(not_json)?.into_owned()),
        Kind::Object => AttributeValue::M(plain_object(reader, level)?),
        Kind::Array => {
            let mut elements = Vec::new();
            reader.begin_array().map_err(not_json)?;
            while reader.next_element(elements.is_empty()).map_err(not_json)? {
                elements.push(plain_value(reader, level + 1)?);
            }
            AttributeValue::L(elements)
        }
    })
}

fn attributes(wire: WireAttributes) -> Result<Attributes, LineError> {
    if let Some(fault) = wire.0.iter().find_map(|(name, _)| NameFault::of(name)) {
        return Err(LineError::Record(value::value_fault_text(&ValueFault::Name(fault))));
    }
    wire.into_attributes().map_err(|fault| LineError::Record(value::value_fault_text(&fault)))
}

/// The line of a full export, with its end.
pub fn write_line(item: ItemRef<'_>) -> Vec<u8> {
    let mut line = Vec::with_capacity(item.as_bytes().len() * 2 + 16);
    append_line(&mut line, item);
    line
}

/// Appends the line of a full export.
pub fn append_line(out: &mut Vec<u8>, item: ItemRef<'_>) {
    append(out, |writer| write_item(writer.name("Item"), item));
}

/// Appends the line of an incremental export.
pub fn append_change_line(
    out: &mut Vec<u8>,
    written_at_micros: u64,
    keys: ItemRef<'_>,
    old: Option<ItemRef<'_>>,
    new: Option<ItemRef<'_>>,
) {
    append(out, |writer| {
        writer.name("Metadata").object(|writer| {
            writer.name("WriteTimestampMicros").object(|writer| {
                writer.name("N").string(&written_at_micros.to_string());
            });
        });
        write_item(writer.name("Keys"), keys);
        for (name, image) in [("OldImage", old), ("NewImage", new)] {
            if let Some(image) = image {
                write_item(writer.name(name), image);
            }
        }
    });
}

/// Appends a line with one object.
fn append(out: &mut Vec<u8>, members: impl FnOnce(&mut Writer)) {
    let mut writer = Writer::behind(std::mem::take(out));
    writer.object(members);
    *out = writer.finish();
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use zenobe_value::EncodedItem;

    use super::*;

    fn fault(line: &str) -> String {
        match read_line(line.as_bytes()) {
            Err(LineError::Record(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_are_read_as_they_are_written() {
        let line = r#"{"Item":{"a":{"NS":["2","1"]},"b":{"L":[{"NULL":true}]}}}"#;
        let Record::Item(item) = read_line(line.as_bytes()).unwrap() else { panic!() };
        let encoded = EncodedItem::encode(&item);
        assert_eq!(write_line(encoded.as_item()), format!("{line}\n").into_bytes());
        let mut change = Vec::new();
        append_change_line(&mut change, 7, encoded.as_item(), None, Some(encoded.as_item()));
        let text = String::from_utf8(change.clone()).unwrap();
        let metadata = r#"{"Metadata":{"WriteTimestampMicros":{"N":"7"}},"Keys":{"a""#;
        assert!(text.starts_with(metadata), "{text}");
        let expected = Record::Change { keys: item.clone(), new: Some(item) };
        assert_eq!(read_line(change.trim_ascii()), Ok(expected));
    }

    #[test]
    fn plain_lines_have_the_types_of_json() {
        let plain = r#"{"id":12345678901234567890.125,"on":true,"no":null,"l":[1,"a",{"b":[]}]}"#;
        let typed = r#"{"Item":{"id":{"N":"12345678901234567890.125"},"on":{"BOOL":true},
            "no":{"NULL":true},"l":{"L":[{"N":"1"},{"S":"a"},{"M":{"b":{"L":[]}}}]}}}"#;
        let Record::Item(expected) = read_line(typed.as_bytes()).unwrap() else { panic!() };
        assert_eq!(read_plain_line(plain.as_bytes()), Ok(expected));
        assert_eq!(read_plain_line(b"[1]"), Err(LineError::NotJson));
        assert!(matches!(read_plain_line(b"{\"a\":1e999}"), Err(LineError::Record(_))));
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(32), "]".repeat(32));
        assert!(matches!(read_plain_line(deep.as_bytes()), Err(LineError::Record(_))));
    }

    #[test]
    fn a_line_that_puts_an_item_may_have_a_condition() {
        let read = |line: &str| read_put_line(line.as_bytes());
        let (item, condition) = read(r#" {"Item":{"Condition":{"S":"x"}}}"#).unwrap();
        assert_eq!((item.len(), condition.expression), (1, None));
        let line = r##"{"Item":{},"ConditionExpression":"#a = :b","ExpressionAttributeNames":{"#a":"a"},
            "ExpressionAttributeValues":{":b":{"S":"b"}}}"##;
        let (_, condition) = read(line).unwrap();
        assert!(condition.bind().unwrap().is_some());
        let LineError::Record(text) = read(r#"{"Item":{},"Condition":"x"}"#).unwrap_err() else {
            panic!()
        };
        assert!(text.starts_with("Condition is unknown: "), "{text}");
        assert_eq!(read("{}").unwrap_err(), LineError::Record("The line has no Item".to_owned()));
        assert_eq!(read("{").unwrap_err(), LineError::NotJson);
    }

    #[test]
    fn a_line_that_is_not_json_differs_from_a_bad_item() {
        assert_eq!(read_line(b"{\"Item\":{"), Err(LineError::NotJson));
        assert_eq!(read_line(b"pk,sk"), Err(LineError::NotJson));
        assert_eq!(read_line(b"[]"), Err(LineError::NotJson));
        assert_eq!(fault("{}"), "The line has no Item");
        assert_eq!(
            fault(r#"{"Item":{"a":{"SS":[]}}}"#),
            "One or more parameter values were invalid: An string set  may not be empty"
        );
        assert_eq!(fault(r#"{"Item":{"":{"S":"x"}}}"#), "Empty attribute name");
        assert!(fault(r#"{"Item":{"a":{"S":1}}}"#).contains("cannot be converted to"));
    }
}
