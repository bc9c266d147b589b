//! Keys: their bytes sort as the values do, and decode back to them. The first byte of the input
//! chooses the type, the second how much of the rest is the first value.

#![no_main]

use std::cmp::Ordering;

use libfuzzer_sys::fuzz_target;
use zenobe_value::{AttributeType, AttributeValue, Number, key_bytes};

fuzz_target!(|input: &[u8]| {
    let [kind, split, content @ ..] = input else { return };
    let attribute_type = match kind % 3 {
        0 => AttributeType::S,
        1 => AttributeType::N,
        _ => AttributeType::B,
    };
    check_bytes(content, attribute_type);
    let (one, other) = content.split_at(usize::from(*split).min(content.len()));
    if let (Some(one), Some(other)) = (value(one, attribute_type), value(other, attribute_type)) {
        check_values(&one, &other);
    }
});

/// Bytes are rejected, or are the one encoding of a value.
fn check_bytes(bytes: &[u8], attribute_type: AttributeType) {
    let Ok((value, rest)) = key_bytes::decode(bytes, attribute_type) else { return };
    let consumed = &bytes[..bytes.len() - rest.len()];
    assert_eq!(encoded(&value), consumed, "{value:?}");
    // The hashed part of the key ends where the key does.
    let hashed = key_bytes::feed_hash(bytes, attribute_type, &mut |_| {});
    assert_eq!(hashed, Ok(rest), "{value:?}");
}

fn check_values(one: &AttributeValue, other: &AttributeValue) {
    let (one_bytes, other_bytes) = (encoded(one), encoded(other));
    assert_eq!(one_bytes.cmp(&other_bytes), order(one, other), "{one:?} {other:?}");
    let both = [&one_bytes[..], &other_bytes].concat();
    let (decoded, rest) = key_bytes::decode(&both, one.attribute_type()).expect("a key decodes");
    assert_eq!((&decoded, rest), (one, &other_bytes[..]));
    if one_bytes != other_bytes {
        assert!(!one_bytes.starts_with(&other_bytes), "{one:?} {other:?}");
    }
    check_prefix(one, other);
}

fn check_prefix(value: &AttributeValue, prefix: &AttributeValue) {
    let mut prefix_bytes = Vec::new();
    let begins = match (value, prefix) {
        (AttributeValue::S(value), AttributeValue::S(prefix)) => {
            key_bytes::encode_string_prefix(prefix.as_bytes(), &mut prefix_bytes);
            value.starts_with(prefix.as_str())
        }
        (AttributeValue::B(value), AttributeValue::B(prefix)) => {
            key_bytes::encode_binary_prefix(prefix, &mut prefix_bytes);
            value.starts_with(prefix)
        }
        _ => return,
    };
    assert_eq!(encoded(value).starts_with(&prefix_bytes), begins, "{value:?} {prefix:?}");
}

fn value(content: &[u8], attribute_type: AttributeType) -> Option<AttributeValue> {
    let text = || std::str::from_utf8(content).ok();
    match attribute_type {
        AttributeType::S => Some(AttributeValue::S(text()?.to_owned())),
        AttributeType::N => Some(AttributeValue::N(Number::parse(text()?).ok()?)),
        _ => Some(AttributeValue::B(content.to_vec())),
    }
}

fn encoded(value: &AttributeValue) -> Vec<u8> {
    let mut bytes = Vec::new();
    key_bytes::encode(value, &mut bytes).expect("a scalar is a key");
    bytes
}

fn order(one: &AttributeValue, other: &AttributeValue) -> Ordering {
    match (one, other) {
        (AttributeValue::S(one), AttributeValue::S(other)) => one.as_bytes().cmp(other.as_bytes()),
        (AttributeValue::N(one), AttributeValue::N(other)) => one.cmp(other),
        (AttributeValue::B(one), AttributeValue::B(other)) => one.cmp(other),
        _ => unreachable!("both values are of one type"),
    }
}
