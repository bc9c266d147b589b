//! Sequence numbers: unique within a stream, and rising within a shard and from parent to child. The store numbers the
//! records of a shard as it commits them ([`zenobe_store::LogEnd`]); here these numbers get the form that clients see.

use std::fmt;
use std::str::FromStr;

/// Shard numbers start at 1, so every sequence number has at least the 21 digits that clients
/// expect.
const SHARD_FACTOR: u128 = 100_000_000_000_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceNumber {
    pub shard: u32,
    /// The number of the entry in the shard's log. Entries start at 1; 0 means the start of the
    /// shard.
    pub entry: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a sequence number")]
pub struct NotASequenceNumber;

impl fmt::Display for SequenceNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = u128::from(self.shard) * SHARD_FACTOR + u128::from(self.entry);
        fmt::Display::fmt(&number, formatter)
    }
}

impl FromStr for SequenceNumber {
    type Err = NotASequenceNumber;

    fn from_str(text: &str) -> Result<SequenceNumber, NotASequenceNumber> {
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NotASequenceNumber);
        }
        let number: u128 = text.parse().map_err(|_| NotASequenceNumber)?;
        let shard = u32::try_from(number / SHARD_FACTOR).map_err(|_| NotASequenceNumber)?;
        let entry = u64::try_from(number % SHARD_FACTOR).map_err(|_| NotASequenceNumber)?;
        Ok(SequenceNumber { shard, entry })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_with_shard_and_entry() {
        let numbers =
            [(1, 0), (1, 1), (1, u64::MAX), (2, 1), (9, 7), (10, 1), (u32::MAX, u64::MAX)]
                .map(|(shard, entry)| SequenceNumber { shard, entry });
        assert!(numbers.is_sorted());
        let texts = numbers.map(|number| number.to_string());
        assert_eq!(texts[1], "100000000000000000001");
        for (text, number) in texts.iter().zip(numbers) {
            assert!((21..=40).contains(&text.len()), "{text}");
            assert_eq!(text.parse(), Ok(number));
        }
        let values = texts.map(|text| text.parse::<u128>().unwrap());
        assert!(values.is_sorted());
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in ["", "-1", "+1", " 1", "x", "99999999999999999999", "9".repeat(40).as_str()] {
            assert_eq!(text.parse::<SequenceNumber>(), Err(NotASequenceNumber), "{text}");
        }
    }
}
