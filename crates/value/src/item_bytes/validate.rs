//! Validation of stored bytes. It is total: no input panics, and only bytes that the encoder would
//! write pass.

use super::containers::MapRef;
use super::type_of;
use crate::limits::STORED_NESTING_LEVELS_MAX;
use crate::number::canonical_shape;
use crate::reader::ByteReader;
use crate::size::{CONTAINER_BYTES, MEMBER_BYTES};
use crate::{AttributeType, DecodeError, Number};

/// Validates the attributes of an item and returns the item's size as DynamoDB measures it.
pub(super) fn item(attributes: MapRef<'_>) -> Result<usize, DecodeError> {
    members(attributes.len(), attributes.payload(), STORED_NESTING_LEVELS_MAX)
}

/// Checks for exactly `count` named values, strictly ascending by name. Returns the size of names
/// and values.
fn members(count: usize, payload: &[u8], levels: usize) -> Result<usize, DecodeError> {
    let mut reader = ByteReader::new(payload);
    let mut previous: Option<&[u8]> = None;
    let mut size_bytes = 0;
    for _ in 0..count {
        let name = reader.prefixed()?;
        check_utf8(name)?;
        check_ascending(previous.is_none_or(|previous| is_before(previous, name)))?;
        previous = Some(name);
        size_bytes += name.len() + value(&mut reader, levels)?;
    }
    reader.finish()?;
    Ok(size_bytes)
}

/// Checks one value of at most `levels` levels. Returns its size.
fn value(reader: &mut ByteReader<'_>, levels: usize) -> Result<usize, DecodeError> {
    let Some(levels_below) = levels.checked_sub(1) else {
        return Err(DecodeError::TooDeep);
    };
    let attribute_type = type_of(reader.byte()?)?;
    let payload = reader.prefixed()?;
    match attribute_type {
        AttributeType::S => check_utf8(payload).map(|()| payload.len()),
        AttributeType::N => number_size_bytes(payload),
        AttributeType::B => Ok(payload.len()),
        AttributeType::Bool if matches!(payload, [0] | [1]) => Ok(1),
        AttributeType::Null if payload.is_empty() => Ok(1),
        AttributeType::Bool | AttributeType::Null => Err(DecodeError::MalformedConstant),
        AttributeType::Ss => set(payload, |member| {
            check_utf8(member)?;
            Ok((member, member.len()))
        }),
        AttributeType::Ns => {
            set(payload, |member| Ok((number(member)?, number_size_bytes(member)?)))
        }
        AttributeType::Bs => set(payload, |member| Ok((member, member.len()))),
        AttributeType::L => list(payload, levels_below),
        AttributeType::M => {
            let mut reader = ByteReader::new(payload);
            let count = reader.length()?;
            let members_bytes = members(count, reader.rest(), levels_below)?;
            Ok(CONTAINER_BYTES + MEMBER_BYTES * count + members_bytes)
        }
    }
}

fn list(payload: &[u8], levels: usize) -> Result<usize, DecodeError> {
    let mut reader = ByteReader::new(payload);
    let count = reader.length()?;
    let mut size_bytes = CONTAINER_BYTES;
    for _ in 0..count {
        size_bytes += MEMBER_BYTES + value(&mut reader, levels)?;
    }
    reader.finish()?;
    Ok(size_bytes)
}

/// Checks a set. For each member the closure returns its sort key and its size.
fn set<'a, Order: Ord>(
    payload: &'a [u8],
    check_member: impl Fn(&'a [u8]) -> Result<(Order, usize), DecodeError>,
) -> Result<usize, DecodeError> {
    let mut reader = ByteReader::new(payload);
    let count = reader.length()?;
    if count == 0 {
        return Err(DecodeError::EmptySet);
    }
    let mut previous = None;
    let mut size_bytes = 0;
    for _ in 0..count {
        let (order, member_bytes) = check_member(reader.prefixed()?)?;
        let order = Some(order);
        check_ascending(previous < order)?;
        previous = order;
        size_bytes += member_bytes;
    }
    reader.finish()?;
    Ok(size_bytes)
}

fn number(text: &[u8]) -> Result<Number, DecodeError> {
    Number::parse_bytes(text).map_err(|_| DecodeError::NumberNotCanonical)
}

fn number_size_bytes(text: &[u8]) -> Result<usize, DecodeError> {
    let shape = canonical_shape(text).ok_or(DecodeError::NumberNotCanonical)?;
    Ok(shape.size_bytes())
}

fn check_utf8(bytes: &[u8]) -> Result<(), DecodeError> {
    // Most texts are ASCII, and checking for ASCII is much cheaper than checking UTF-8.
    if is_ascii(bytes) || std::str::from_utf8(bytes).is_ok() {
        Ok(())
    } else {
        Err(DecodeError::NotUtf8)
    }
}

/// Does what the standard library's function does, in a third of the instructions for long texts,
/// because it never stops early.
fn is_ascii(bytes: &[u8]) -> bool {
    let (blocks, rest) = bytes.as_chunks::<32>();
    let all_bits = blocks.iter().fold([0; 4], |all_bits, block| {
        let (words, _) = block.as_chunks();
        std::array::from_fn(|at| all_bits[at] | u64::from_ne_bytes(words[at]))
    });
    const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; 8]);
    all_bits.iter().all(|bits| bits & HIGH_BITS == 0) && rest.is_ascii()
}

/// Compares first bytes first: most names differ there.
fn is_before(one: &[u8], other: &[u8]) -> bool {
    one.first() < other.first() || one < other
}

fn check_ascending(ascending: bool) -> Result<(), DecodeError> {
    if ascending { Ok(()) } else { Err(DecodeError::NotAscending) }
}
