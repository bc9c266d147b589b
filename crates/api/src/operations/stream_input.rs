//! How the Streams operations name streams and positions in them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use xxhash_rust::xxh3::xxh3_64;
use zenobe_engine::command::{StreamName, StreamPosition, TableName};
use zenobe_engine::error::Error;
use zenobe_engine::schema::Namespace;

use crate::Context;
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::messages::engine::{Subject, engine_error};
use crate::messages::stream::{invalid_arn, invalid_iterator, not_found, stream_error};

const ARN_LENGTH_MIN: usize = 37;
const ARN_LENGTH_MAX: usize = 1024;
const SHARD_ID_LENGTH_MIN: usize = 28;
const SHARD_ID_LENGTH_MAX: usize = 65;

/// The first byte of an iterator. Iterators live for minutes, so one of another version is simply
/// invalid.
const ITERATOR_VERSION: u8 = 1;

pub(crate) fn constrain_arn(arn: Option<&str>, path: &str, violations: &mut Violations) {
    if let Some(arn) = arn {
        violations.length(arn, path, ARN_LENGTH_MIN, ARN_LENGTH_MAX);
    }
}

pub(crate) fn required_arn(arn: Option<String>, path: &str, violations: &mut Violations) -> String {
    constrain_arn(arn.as_deref(), path, violations);
    violations.required(arn, path)
}

pub(crate) fn constrain_shard_id(shard: Option<&str>, path: &str, violations: &mut Violations) {
    if let Some(shard) = shard {
        violations.length(shard, path, SHARD_ID_LENGTH_MIN, SHARD_ID_LENGTH_MAX);
    }
}

/// The stream that an ARN names. Streams of other accounts and regions count as missing.
pub(crate) fn stream_name(context: &Context<'_>, arn: &str) -> Result<StreamName, ApiError> {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let ["arn", "aws", "dynamodb", region, account, resource] = parts[..] else {
        return Err(invalid_arn(arn));
    };
    let elements: Vec<&str> = resource.split('/').collect();
    let ["table", table, "stream", label] = elements[..] else {
        return Err(invalid_arn(arn));
    };
    let namespace = context.namespace;
    if region != namespace.region || account != namespace.account {
        return Err(not_found(arn));
    }
    let table = TableName { namespace: Arc::clone(namespace), name: table.to_owned() };
    Ok(StreamName { table, label: label.to_owned() })
}

/// Words an engine error of a Streams operation.
pub(crate) fn worded(error: Error, arn: &str, shard: &str) -> ApiError {
    match error {
        Error::Stream(error) => stream_error(error, arn, shard),
        other => engine_error(other, Subject::Items),
    }
}

/// A position in the form that clients carry around: opaque, and with a checksum against typing
/// errors.
pub(crate) fn encode_iterator(position: &StreamPosition) -> String {
    let StreamPosition { stream, shard, next_entry, created_at_ms } = position;
    let mut payload = Vec::new();
    payload.extend_from_slice(&created_at_ms.to_be_bytes());
    payload.extend_from_slice(&shard.to_be_bytes());
    payload.extend_from_slice(&next_entry.to_be_bytes());
    let Namespace { account, region } = &*stream.table.namespace;
    for text in [account, region, &stream.table.name, &stream.label] {
        // No name in the engine is longer than this can express.
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        payload.extend_from_slice(&length.to_be_bytes());
        payload.extend_from_slice(text.as_bytes());
    }
    let mut bytes = vec![ITERATOR_VERSION];
    bytes.extend_from_slice(&xxh3_64(&payload).to_be_bytes());
    bytes.extend_from_slice(&payload);
    STANDARD.encode(bytes)
}

/// The position in an iterator of the caller's namespace.
pub(crate) fn decode_iterator(
    context: &Context<'_>,
    iterator: &str,
) -> Result<StreamPosition, ApiError> {
    let position = position_in(iterator).ok_or_else(invalid_iterator)?;
    if position.stream.table.namespace != *context.namespace {
        return Err(not_found(&position.stream.arn()));
    }
    Ok(position)
}

/// The table that an iterator belongs to, whoever asks. `None` if it is not an iterator of this server.
pub fn table_of_iterator(iterator: &str) -> Option<TableName> {
    position_in(iterator).map(|position| position.stream.table)
}

fn position_in(iterator: &str) -> Option<StreamPosition> {
    let bytes = STANDARD.decode(iterator).ok()?;
    let (&version, rest) = bytes.split_first()?;
    let (checksum, payload) = rest.split_first_chunk()?;
    if version != ITERATOR_VERSION || u64::from_be_bytes(*checksum) != xxh3_64(payload) {
        return None;
    }
    let (created_at_ms, rest) = payload.split_first_chunk()?;
    let (shard, rest) = rest.split_first_chunk()?;
    let (next_entry, mut rest) = rest.split_first_chunk()?;
    let mut text = || {
        let (length, after) = rest.split_first_chunk()?;
        let (text, after) = after.split_at_checked(u16::from_be_bytes(*length).into())?;
        rest = after;
        String::from_utf8(text.to_vec()).ok()
    };
    let namespace = Namespace { account: text()?, region: text()? };
    let table = TableName { namespace: Arc::new(namespace), name: text()? };
    Some(StreamPosition {
        stream: StreamName { table, label: text()? },
        shard: u32::from_be_bytes(*shard),
        next_entry: u64::from_be_bytes(*next_entry),
        created_at_ms: u64::from_be_bytes(*created_at_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position() -> StreamPosition {
        let namespace = Namespace { account: "000000000000".into(), region: "eu-west-1".into() };
        let table = TableName { namespace: Arc::new(namespace), name: "t".repeat(255) };
        let label = "2026-10-09T05:53:25.330".to_owned();
        let stream = StreamName { table, label };
        StreamPosition { stream, shard: 7, next_entry: u64::MAX, created_at_ms: 1_791_525_205_330 }
    }

    #[test]
    fn iterators_carry_positions() {
        let iterator = encode_iterator(&position());
        assert!(iterator.len() <= 2048);
        assert_eq!(position_in(&iterator), Some(position()));
    }

    #[test]
    fn damaged_iterators_are_invalid() {
        let iterator = encode_iterator(&position());
        for end in 0..iterator.len() {
            assert_eq!(position_in(&iterator[..end]), None, "{end}");
        }
        for at in 0..iterator.len() {
            let mut damaged = iterator.clone().into_bytes();
            damaged[at] = if damaged[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(position_in(std::str::from_utf8(&damaged).unwrap()), None, "{at}");
        }
    }
}
