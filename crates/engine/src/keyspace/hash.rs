//! AWS's own hash of key values. It orders the results of a Scan, divides them into segments, and
//! orders index entries with equal keys, so all of these match AWS.
//!
//! MD5 gives no protection here, and none is needed: the key bytes follow the hash in every key, so
//! keys with equal hashes stay distinct.

use md5::{Digest, Md5};
use zenobe_value::key_bytes;

use crate::schema::KeyAttribute;

/// MD5 of `Outliers` and the key values in AWS's spelling, concatenated. Part of the stored format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyHash([u8; KeyHash::LENGTH]);

impl KeyHash {
    pub const LENGTH: usize = 16;

    /// `bytes` must be the key bytes of these attributes.
    ///
    /// # Panics
    /// If they are not: callers hash key bytes that they have just encoded.
    pub fn of<'k>(attributes: impl IntoIterator<Item = &'k KeyAttribute>, bytes: &[u8]) -> KeyHash {
        let mut hash = Md5::new_with_prefix(b"Outliers");
        let mut rest = bytes;
        for attribute in attributes {
            let attribute_type = attribute.scalar_type.attribute_type();
            rest = key_bytes::feed_hash(rest, attribute_type, &mut |part| hash.update(part))
                .expect("key bytes of the schema's types");
        }
        debug_assert!(rest.is_empty(), "key bytes of more attributes than these");
        KeyHash(hash.finalize().into())
    }

    pub fn from_bytes(bytes: [u8; KeyHash::LENGTH]) -> KeyHash {
        KeyHash(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; KeyHash::LENGTH] {
        &self.0
    }

    /// The first 64 bits.
    pub fn upper_half(&self) -> u64 {
        (u128::from_be_bytes(self.0) >> 64) as u64
    }
}

/// Where a part of the hash space begins, if it is divided evenly: `number × 2^128 / total`, rounded
/// up. `None` after the last part.
pub fn part_start(number: u32, total: u32) -> Option<u128> {
    if number >= total {
        return None;
    }
    // Computes 64 bits of the quotient at a time: both dividends have fewer than 64 + 32 bits.
    let total = u128::from(total);
    let upper = u128::from(number) << 64;
    let lower = (upper % total) << 64;
    let quotient = ((upper / total) << 64) | (lower / total);
    Some(if lower.is_multiple_of(total) { quotient } else { quotient + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::ScalarType;
    use zenobe_value::{AttributeValue, Number};

    fn hash(values: &[AttributeValue]) -> String {
        let mut bytes = Vec::new();
        let attributes = values.iter().map(|value| {
            key_bytes::encode(value, &mut bytes).expect("a key");
            let scalar_type = match value {
                AttributeValue::S(_) => ScalarType::S,
                AttributeValue::N(_) => ScalarType::N,
                _ => ScalarType::B,
            };
            KeyAttribute { name: "k".into(), scalar_type }
        });
        let attributes: Vec<KeyAttribute> = attributes.collect();
        format!("{:032x}", u128::from_be_bytes(*KeyHash::of(&attributes, &bytes).as_bytes()))
    }

    fn text(text: &str) -> AttributeValue {
        AttributeValue::S(text.into())
    }

    /// Recorded on AWS.
    #[test]
    fn hashes_are_those_of_aws() {
        let number = AttributeValue::N(Number::parse("-120.5").unwrap());
        assert_eq!(hash(&[text("user#1")]), "8b542929238862fe7069b842ce6b6946");
        assert_eq!(hash(&[number]), "f913dd54df501b2be14e0f09ea2713e0");
        assert_eq!(hash(&[AttributeValue::B(vec![0, 0xFF])]), "7c24c3cc726244b299750e0bc10b13b2");
        assert_eq!(hash(&[text("u1"), text("2026")]), "7365aebb41d8aa1f37dab0344572ea5d");
        assert_eq!(hash(&[text("u2"), text("2025")]), "5f98a9a8d9eeaf628e2fb9bd0aa65b44");
    }

    #[test]
    fn parts_begin_exactly() {
        assert_eq!(part_start(0, 3), Some(0));
        // The first h with floor(3h / 2^128) = 1.
        assert_eq!(part_start(1, 3), Some(u128::MAX / 3 + 1));
        assert_eq!(part_start(1, 2), Some(1 << 127));
        let last = 340_282_026_638_571_542_524_911_144_057_160_779_688;
        assert_eq!(part_start(999_999, 1_000_000), Some(last));
        assert_eq!(part_start(3, 3), None);
    }
}
