//! Attribute values as JSON, and back.

use serde_json::{Map, Value, json};
use zenobe_value::{AttributeValue, Attributes, Number};

pub fn to_json(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({ "S": text }),
        AttributeValue::N(number) => json!({ "N": number.to_string() }),
        AttributeValue::B(bytes) => json!({ "B": base64(bytes) }),
        AttributeValue::Bool(flag) => json!({ "BOOL": flag }),
        AttributeValue::Null => json!({ "NULL": true }),
        AttributeValue::Ss(set) => json!({ "SS": set }),
        AttributeValue::Ns(set) => {
            json!({ "NS": set.iter().map(ToString::to_string).collect::<Vec<_>>() })
        }
        AttributeValue::Bs(set) => {
            json!({ "BS": set.iter().map(|bytes| base64(bytes)).collect::<Vec<_>>() })
        }
        AttributeValue::L(elements) => {
            json!({ "L": elements.iter().map(to_json).collect::<Vec<_>>() })
        }
        AttributeValue::M(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), to_json(value)));
            json!({ "M": Value::Object(members.collect::<Map<_, _>>()) })
        }
    }
}

pub fn item_from_json(item: &Value) -> Attributes {
    let members = item.as_object().expect("an item is an object");
    members.iter().map(|(name, value)| (name.clone(), from_json(value))).collect()
}

fn from_json(value: &Value) -> AttributeValue {
    let (name, value) = value.as_object().and_then(|object| object.iter().next()).expect("a value");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let number = |value: &Value| Number::parse(&text(value)).expect("a number");
    let list = || value.as_array().expect("a list").iter();
    match name.as_str() {
        "S" => AttributeValue::S(text(value)),
        "N" => AttributeValue::N(number(value)),
        "B" => AttributeValue::B(from_base64(&text(value))),
        "BOOL" => AttributeValue::Bool(value == true),
        "NULL" => AttributeValue::Null,
        "SS" => AttributeValue::Ss(list().map(text).collect()),
        "NS" => AttributeValue::Ns(list().map(number).collect()),
        "BS" => AttributeValue::Bs(list().map(|value| from_base64(&text(value))).collect()),
        "L" => AttributeValue::L(list().map(from_json).collect()),
        "M" => AttributeValue::M(item_from_json(value)),
        other => panic!("no value has the type {other}"),
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut bits = [0_u8; 4];
        bits[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(bits);
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

fn from_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in text.as_bytes().chunks(4) {
        let digit = |byte: &u8| DIGITS.iter().position(|digit| digit == byte).unwrap_or(0) as u32;
        let bits = chunk.iter().fold(0, |bits, byte| bits << 6 | digit(byte));
        let padding = chunk.iter().filter(|byte| **byte == b'=').count();
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    bytes
}
