//! NextToken: where a SELECT continues, for the same statement with the same parameters.
//!
//! A token is base64 of a version, the digest of the statement and its parameters, the number of
//! the read, the key of the last row (in the item encoding), and a checksum of all that. It names
//! nothing that its client could not name in a Query: a forged one reads no more than the statement
//! itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;
use zenobe_value::{AttributeValue, Attributes, EncodedItem, EncodedValue};

use crate::error::ApiError;
use crate::field_digest::FieldDigest;
use crate::messages::partiql as messages;

const VERSION: u8 = 1;
const DIGEST_SIZE_BYTES: usize = 16;
const CHECKSUM_SIZE_BYTES: usize = 8;

/// A position in the result of a SELECT.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResumePoint {
    /// The number of the read, in the order of the plan.
    pub(crate) read: usize,
    /// The key of the last row that was evaluated; `None` at the start of the read.
    pub(crate) key: Option<Attributes>,
}

/// What a token is bound to.
pub(crate) fn digest(statement: &str, parameters: &[AttributeValue]) -> [u8; DIGEST_SIZE_BYTES] {
    let mut digest = FieldDigest::new();
    digest.bytes(statement.as_bytes());
    for parameter in parameters {
        digest.bytes(EncodedValue::encode(parameter).as_value().encoded());
    }
    digest.finish()
}

pub(crate) fn encode(place: &ResumePoint, digest: [u8; DIGEST_SIZE_BYTES]) -> String {
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(&digest);
    bytes.extend_from_slice(&(place.read as u16).to_le_bytes());
    let key = place.key.as_ref().map(EncodedItem::encode);
    bytes.extend_from_slice(key.as_ref().map_or(&[], |key| key.as_bytes()));
    let checksum = xxh3_64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    STANDARD.encode(bytes)
}

pub(crate) fn decode(
    token: &str,
    digest: [u8; DIGEST_SIZE_BYTES],
) -> Result<ResumePoint, ApiError> {
    let bytes = STANDARD.decode(token).map_err(|_| messages::invalid_next_token())?;
    let (bound_to, place) = parts(&bytes).ok_or_else(messages::invalid_next_token)?;
    if bound_to != digest {
        return Err(messages::next_token_mismatch());
    }
    Ok(place)
}

fn parts(bytes: &[u8]) -> Option<([u8; DIGEST_SIZE_BYTES], ResumePoint)> {
    let (bytes, checksum) = bytes.split_last_chunk::<CHECKSUM_SIZE_BYTES>()?;
    if xxh3_64(bytes).to_le_bytes() != *checksum {
        return None;
    }
    let (&version, rest) = bytes.split_first()?;
    let (digest, rest) = rest.split_first_chunk::<DIGEST_SIZE_BYTES>()?;
    let (read, key) = rest.split_first_chunk::<2>()?;
    if version != VERSION {
        return None;
    }
    let key = match key.is_empty() {
        true => None,
        false => {
            Some(EncodedItem::from_bytes(Bytes::copy_from_slice(key)).ok()?.as_item().decode())
        }
    };
    Some((*digest, ResumePoint { read: u16::from_le_bytes(*read).into(), key }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> ResumePoint {
        let key = Attributes::from([("pk".to_owned(), AttributeValue::S("a".to_owned()))]);
        ResumePoint { read: 3, key: Some(key) }
    }

    #[test]
    fn tokens_lead_back_to_their_position() {
        let digest = digest("SELECT", &[AttributeValue::Null]);
        for place in [place(), ResumePoint { read: 0, key: None }] {
            assert_eq!(decode(&encode(&place, digest), digest).unwrap(), place);
        }
    }

    /// Clients hold tokens while servers are updated.
    #[test]
    fn digests_stay_as_they_are() {
        let parameters = [AttributeValue::S("a".to_owned()), AttributeValue::Bool(true)];
        let digest = digest("SELECT * FROM t WHERE p = ? AND q = ?", &parameters);
        assert_eq!(
            u128::from_le_bytes(digest),
            258_488_959_675_169_863_206_181_262_770_319_048_071
        );
    }

    #[test]
    fn tokens_belong_to_their_statement() {
        let [one, two, three] = [
            digest("SELECT 1", &[]),
            digest("SELECT 2", &[]),
            digest("SELECT 1", &[AttributeValue::Null]),
        ];
        for other in [two, three] {
            let error = decode(&encode(&place(), one), other).unwrap_err();
            assert_eq!(error.message(), Some("NextToken does not match request"));
        }
    }

    #[test]
    fn damaged_tokens_are_rejected() {
        let digest = digest("SELECT", &[]);
        let token = encode(&place(), digest);
        let mut damaged: Vec<String> =
            (0..token.len()).map(|end| token[..end].to_owned()).collect();
        for at in 0..token.len() {
            let other = if &token[at..=at] == "A" { "B" } else { "A" };
            damaged.push(format!("{}{other}{}", &token[..at], &token[at + 1..]));
        }
        for token in damaged.iter().chain(&["é".to_owned(), "x".repeat(32_768)]) {
            let error = decode(token, digest).unwrap_err();
            assert_eq!(error.message(), Some("Invalid NextToken"), "{token}");
        }
    }
}
