//! Damaged bytes are rejected. Bytes that pass are exactly what the encoder writes.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use zenobe_value::{AttributeValue, Attributes, DecodeError, EncodedItem, ItemRef};

use crate::generate::attributes;
use crate::golden;

#[test]
fn malformed_items_are_rejected() {
    golden::check("malformed-items.txt", |input| match ItemRef::parse(&golden::unhex(input)) {
        Ok(item) => format!("ok {item:?}"),
        Err(error) => format!("{error:?}"),
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_bytes_never_panic(mut bytes in vec(any::<u8>(), 0..200), small in any::<bool>()) {
        if small {
            // Small numbers make plausible tags, counts and lengths.
            bytes.iter_mut().for_each(|byte| *byte %= 12);
        }
        check_total(&bytes)?;
        bytes.insert(0, 1);
        check_total(&bytes)?;
    }

    #[test]
    fn mutated_items_never_panic(
        attributes in attributes(),
        mutations in vec((any::<prop::sample::Index>(), 0..4u8, any::<u8>()), 1..4),
    ) {
        let mut bytes = EncodedItem::encode(&attributes).as_bytes().to_vec();
        for (position, kind, byte) in mutations {
            if bytes.is_empty() {
                break;
            }
            let at = position.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes[at] ^= 1 << (byte % 8),
                2 => bytes.insert(at, byte % 12),
                _ => { bytes.remove(at); }
            }
            check_total(&bytes)?;
        }
    }

    #[test]
    fn truncated_items_are_rejected(attributes in attributes()) {
        let bytes = EncodedItem::encode(&attributes).into_bytes();
        for length in 0..bytes.len() {
            prop_assert!(ItemRef::parse(&bytes[..length]).is_err());
        }
        let longer = [&bytes[..], &[0]].concat();
        prop_assert_eq!(ItemRef::parse(&longer), Err(DecodeError::TrailingBytes));
    }
}

fn check_total(bytes: &[u8]) -> Result<(), TestCaseError> {
    let Ok(item) = EncodedItem::from_bytes(Bytes::copy_from_slice(bytes)) else {
        return Ok(());
    };
    let written = EncodedItem::encode(&item.as_item().decode());
    prop_assert_eq!(&written.as_bytes()[..], bytes);
    Ok(())
}

#[test]
fn nesting_is_bounded() {
    assert!(parse_nested(64).is_ok());
    assert_eq!(parse_nested(65), Err(DecodeError::TooDeep));
    assert_eq!(parse_nested(2_000), Err(DecodeError::TooDeep));
}

fn parse_nested(levels: usize) -> Result<(), DecodeError> {
    let wrap = |inner, _| AttributeValue::L(vec![inner]);
    let value = (1..levels).fold(AttributeValue::Null, wrap);
    assert_eq!(value.depth(), levels);
    let encoded = EncodedItem::encode(&Attributes::from([("a".to_owned(), value)]));
    ItemRef::parse(encoded.as_bytes()).map(|_| ())
}
