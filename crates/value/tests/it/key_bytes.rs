//! Key bytes: golden data, order, and the decoding of arbitrary bytes.

use std::cmp::Ordering;

use proptest::collection::vec;
use proptest::prelude::*;
use zenobe_value::key_bytes::{self, NotAKey};
use zenobe_value::{AttributeType, AttributeValue, EncodedValue, Number};

use crate::generate::{binary, key, number, text};
use crate::golden;

#[test]
fn keys_have_golden_bytes() {
    golden::check("keys.txt", |input| golden::hex(&encode(&golden_key(input))));
}

/// The file lists the keys of each type in ascending order.
#[test]
fn golden_keys_ascend() {
    let keys: Vec<_> = golden::inputs("keys.txt").iter().map(|input| golden_key(input)).collect();
    for pair in keys.windows(2) {
        if pair[0].attribute_type() == pair[1].attribute_type() {
            assert!(encode(&pair[0]) < encode(&pair[1]), "{pair:?}");
        }
    }
}

#[test]
fn malformed_keys_are_rejected() {
    golden::check("malformed-keys.txt", |input| {
        let (attribute_type, bytes) = input.split_once(' ').unwrap_or((input, ""));
        let attribute_type = AttributeType::from_name(attribute_type).expect("a type");
        match key_bytes::decode(&golden::unhex(bytes), attribute_type) {
            Ok((value, _)) => format!("ok {value:?}"),
            Err(error) => format!("{error:?}"),
        }
    });
}

#[test]
fn hashed_bytes_are_those_of_aws() {
    golden::check_recorded("hashed-keys.txt", |input| {
        let key = golden_key(input);
        golden::hex(&hashed(&encode(&key), key.attribute_type()))
    });
}

fn hashed(bytes: &[u8], attribute_type: AttributeType) -> Vec<u8> {
    let mut fed = Vec::new();
    let rest = key_bytes::feed_hash(bytes, attribute_type, &mut |part| fed.extend(part));
    assert_eq!(rest, Ok(&[][..]));
    fed
}

fn golden_key(input: &str) -> AttributeValue {
    let (attribute_type, content) = input.split_once(' ').expect("a type and a key");
    match attribute_type {
        "S" => AttributeValue::S(content.replace("\\0", "\0").replace("\\1", "\u{1}")),
        "N" => AttributeValue::N(Number::parse(content).expect("a number")),
        "B" => AttributeValue::B(golden::unhex(content)),
        _ => panic!("an unknown type: {input}"),
    }
}

#[test]
fn only_scalars_are_keys() {
    let list = AttributeValue::L(vec![]);
    let mut out = Vec::new();
    assert_eq!(key_bytes::encode(&list, &mut out), Err(NotAKey(AttributeType::L)));
    let encoded = EncodedValue::encode(&AttributeValue::Null);
    let refused = key_bytes::encode_ref(encoded.as_value(), &mut out);
    assert_eq!(refused, Err(NotAKey(AttributeType::Null)));
    assert!(out.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn numbers_keep_their_order(left in number(), right in number()) {
        check_order(&AttributeValue::N(left), &AttributeValue::N(right), left.cmp(&right))?;
    }

    #[test]
    fn strings_keep_their_order(left in text(), right in text()) {
        let order = left.as_bytes().cmp(right.as_bytes());
        check_order(&AttributeValue::S(left), &AttributeValue::S(right), order)?;
    }

    #[test]
    fn binaries_keep_their_order(left in binary(), right in binary()) {
        let order = left.cmp(&right);
        check_order(&AttributeValue::B(left), &AttributeValue::B(right), order)?;
    }

    #[test]
    fn keys_survive_the_round_trip(keys in vec(key(), 1..4)) {
        let mut bytes = Vec::new();
        for key in &keys {
            key_bytes::encode(key, &mut bytes).expect("a key");
        }
        let mut rest = &bytes[..];
        for key in &keys {
            let (decoded, after) = key_bytes::decode(rest, key.attribute_type()).expect("a key");
            prop_assert_eq!(&decoded, key);
            rest = after;
        }
        prop_assert!(rest.is_empty());
    }

    /// Strings and binaries are hashed unchanged. Of two keys in a row, each ends where it should.
    #[test]
    fn content_is_hashed_unchanged(content in binary(), number in number()) {
        let number = encode(&AttributeValue::N(number));
        let bytes = [encode(&AttributeValue::B(content.clone())), number.clone()].concat();
        let mut fed = Vec::new();
        let mut feed = |part: &[u8]| fed.extend_from_slice(part);
        let rest = key_bytes::feed_hash(&bytes, AttributeType::B, &mut feed);
        prop_assert_eq!(rest, Ok(&number[..]));
        prop_assert_eq!(fed, content);
        let end = key_bytes::feed_hash(&number, AttributeType::N, &mut |_| {});
        prop_assert_eq!(end, Ok(&[][..]));
    }

    #[test]
    fn stored_values_give_the_same_keys(key in key()) {
        let mut bytes = Vec::new();
        key_bytes::encode_ref(EncodedValue::encode(&key).as_value(), &mut bytes).expect("a key");
        prop_assert_eq!(bytes, encode(&key));
    }

    #[test]
    fn prefixes_select_what_begins_with_them(prefix in binary(), content in binary()) {
        let mut prefix_bytes = Vec::new();
        key_bytes::encode_binary_prefix(&prefix, &mut prefix_bytes);
        let begins = content.starts_with(&prefix);
        prop_assert_eq!(encode(&AttributeValue::B(content)).starts_with(&prefix_bytes), begins);
        let extended = [&prefix[..], b"more"].concat();
        prop_assert!(encode(&AttributeValue::B(extended)).starts_with(&prefix_bytes));
    }

    /// Bytes that decode are what the encoder writes, so no value has two keys.
    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in vec(any::<u8>(), 0..30), first in any::<bool>()) {
        if first && !bytes.is_empty() {
            bytes[0] = 0x80 ^ (bytes[0] & 0x3F);
        }
        for attribute_type in AttributeType::ALL {
            let hashed = key_bytes::feed_hash(&bytes, attribute_type, &mut |_| {});
            if let Ok((value, rest)) = key_bytes::decode(&bytes, attribute_type) {
                prop_assert_eq!([&encode(&value)[..], rest].concat(), bytes.clone());
                prop_assert_eq!(hashed, Ok(rest));
            }
        }
    }

    #[test]
    fn mutated_numbers_never_panic(number in number(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let mut bytes = encode(&AttributeValue::N(number));
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok((value, rest)) = key_bytes::decode(&bytes, AttributeType::N) {
            prop_assert_eq!([&encode(&value)[..], rest].concat(), bytes);
        }
    }
}

fn check_order(
    left: &AttributeValue,
    right: &AttributeValue,
    expected: Ordering,
) -> Result<(), TestCaseError> {
    let (left, right) = (encode(left), encode(right));
    prop_assert_eq!(left.cmp(&right), expected);
    prop_assert!(expected == Ordering::Equal || !right.starts_with(&left));
    Ok(())
}

fn encode(value: &AttributeValue) -> Vec<u8> {
    let mut out = Vec::new();
    key_bytes::encode(value, &mut out).expect("a key");
    out
}
