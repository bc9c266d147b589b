//! Bytes of key values. They sort as the values do, and no key is a prefix of another of its type,
//! so keys can be concatenated.
//!
//! Strings and binaries: the bytes, with `00` escaped as `00 FF`, then `00 01`.
//!
//! Numbers: one byte for sign and exponent, then one byte for each pair of digits. Pairs are
//! aligned at the decimal point, and the lowest bit says whether another pair follows.

mod hashed;
mod number;

use crate::{AttributeType, AttributeValue, DecodeError, ValueRef};

pub use hashed::feed_hash;
pub use number::encode_number;

/// Only strings, numbers and binaries can be keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a value of type {0} cannot be a key")]
pub struct NotAKey(pub AttributeType);

pub fn encode(value: &AttributeValue, out: &mut Vec<u8>) -> Result<(), NotAKey> {
    match value {
        AttributeValue::S(text) => encode_terminated(text.as_bytes(), out),
        AttributeValue::B(bytes) => encode_terminated(bytes, out),
        AttributeValue::N(number) => encode_number(number, out),
        other => return Err(NotAKey(other.attribute_type())),
    }
    Ok(())
}

pub fn encode_ref(value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<(), NotAKey> {
    let not_a_key = NotAKey(value.attribute_type());
    match value.attribute_type() {
        AttributeType::S | AttributeType::B => encode_terminated(value.payload(), out),
        AttributeType::N => encode_number(&value.number().ok_or(not_a_key)?, out),
        _ => return Err(not_a_key),
    }
    Ok(())
}

/// The bytes that all keys of strings with this prefix begin with, and no others.
pub fn encode_string_prefix(prefix: &[u8], out: &mut Vec<u8>) {
    encode_escaped(prefix, out);
}

/// The bytes that all keys of binaries with this prefix begin with, and no others.
pub fn encode_binary_prefix(prefix: &[u8], out: &mut Vec<u8>) {
    encode_escaped(prefix, out);
}

/// Reads one key of the given type and returns what follows it.
pub fn decode(
    bytes: &[u8],
    attribute_type: AttributeType,
) -> Result<(AttributeValue, &[u8]), DecodeError> {
    match attribute_type {
        AttributeType::S => {
            let (content, rest) = decode_terminated(bytes)?;
            let text = String::from_utf8(content).map_err(|_| DecodeError::NotUtf8)?;
            Ok((AttributeValue::S(text), rest))
        }
        AttributeType::B => {
            let (content, rest) = decode_terminated(bytes)?;
            Ok((AttributeValue::B(content), rest))
        }
        AttributeType::N => {
            let (number, rest) = number::decode(bytes)?;
            Ok((AttributeValue::N(number), rest))
        }
        _ => Err(DecodeError::NotAKeyType),
    }
}

const ESCAPE: u8 = 0x00;
const ESCAPED_ZERO: u8 = 0xFF;
/// Less than any byte that can follow the escape, so a string sorts before its extensions.
const TERMINATOR: u8 = 0x01;

fn encode_terminated(content: &[u8], out: &mut Vec<u8>) {
    out.reserve(content.len() + 2);
    encode_escaped(content, out);
    out.extend_from_slice(&[ESCAPE, TERMINATOR]);
}

fn encode_escaped(content: &[u8], out: &mut Vec<u8>) {
    let mut runs = content.split(|byte| *byte == ESCAPE);
    out.extend_from_slice(runs.next().unwrap_or_default());
    for run in runs {
        out.extend_from_slice(&[ESCAPE, ESCAPED_ZERO]);
        out.extend_from_slice(run);
    }
}

fn decode_terminated(bytes: &[u8]) -> Result<(Vec<u8>, &[u8]), DecodeError> {
    let mut content = Vec::new();
    let mut rest = bytes;
    loop {
        let escape_at =
            rest.iter().position(|byte| *byte == ESCAPE).ok_or(DecodeError::Truncated)?;
        let (run, escape) = rest.split_at(escape_at);
        content.extend_from_slice(run);
        match escape {
            [_, TERMINATOR, after @ ..] => return Ok((content, after)),
            [_, ESCAPED_ZERO, after @ ..] => rest = after,
            [_] => return Err(DecodeError::Truncated),
            _ => return Err(DecodeError::MalformedEscape),
        }
        content.push(0);
    }
}
