//! The bytes of a key value that AWS hashes: strings and binaries unchanged, numbers in a form of
//! their own.
//!
//! A number is `0.p1p2p3… × 100^e`, with pairs of digits aligned at the decimal point. Its first
//! byte holds the sign and the exponent and is the same as in our key bytes. Each pair then becomes
//! `p + 1`. In a negative number each pair becomes `101 - p`, and `66` follows unless there are
//! twenty pairs. Zero is `80` alone.

use crate::{AttributeType, DecodeError};

use super::number::PAIRS_MAX;
use super::{ESCAPE, ESCAPED_ZERO, TERMINATOR};

/// Feeds the bytes that AWS hashes for the key at the start of `bytes` to `feed`, piece by piece.
/// Returns what follows that key.
pub fn feed_hash<'b>(
    bytes: &'b [u8],
    attribute_type: AttributeType,
    feed: &mut impl FnMut(&[u8]),
) -> Result<&'b [u8], DecodeError> {
    match attribute_type {
        AttributeType::S | AttributeType::B => feed_terminated(bytes, feed),
        AttributeType::N => feed_number(bytes, feed),
        _ => Err(DecodeError::NotAKeyType),
    }
}

fn feed_terminated<'b>(
    bytes: &'b [u8],
    feed: &mut impl FnMut(&[u8]),
) -> Result<&'b [u8], DecodeError> {
    let mut rest = bytes;
    loop {
        let escape_at =
            rest.iter().position(|byte| *byte == ESCAPE).ok_or(DecodeError::Truncated)?;
        let (run, escape) = rest.split_at(escape_at);
        feed(run);
        match escape {
            [_, TERMINATOR, after @ ..] => return Ok(after),
            [_, ESCAPED_ZERO, after @ ..] => rest = after,
            [_] => return Err(DecodeError::Truncated),
            _ => return Err(DecodeError::MalformedEscape),
        }
        feed(&[0]);
    }
}

const POSITIVE: u8 = 0x80;
const NEGATIVE_END: u8 = 102;

fn feed_number<'b>(bytes: &'b [u8], feed: &mut impl FnMut(&[u8])) -> Result<&'b [u8], DecodeError> {
    let (&first, pairs) = bytes.split_first().ok_or(DecodeError::Truncated)?;
    let is_negative = first < POSITIVE;
    let mask = if is_negative { 0xFF } else { 0 };
    let is_last = |byte: &u8| (byte ^ mask).is_multiple_of(2);
    let count = pairs.iter().position(is_last).ok_or(DecodeError::Truncated)? + 1;
    if count > PAIRS_MAX {
        return Err(DecodeError::NumberNotCanonical);
    }
    let (pairs, rest) = pairs.split_at(count);
    if first == POSITIVE && pairs == [0] {
        feed(&[POSITIVE]);
        return Ok(rest);
    }
    let mut spelled = [first; 1 + PAIRS_MAX];
    for (spelled, byte) in spelled[1..].iter_mut().zip(pairs) {
        let pair = (byte ^ mask) / 2;
        *spelled = if is_negative { 101 - pair.min(99) } else { pair + 1 };
    }
    feed(&spelled[..1 + count]);
    if is_negative && count < PAIRS_MAX {
        feed(&[NEGATIVE_END]);
    }
    Ok(rest)
}
