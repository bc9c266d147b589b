//! AWS's hash of key values, derived from the text of the specification and the decimal digits of
//! numbers.

use md5::{Digest, Md5};

use super::value::Scalar;

/// MD5 of `Outliers` and the bytes of the values.
pub fn hash(values: &[Scalar]) -> u128 {
    let mut bytes = b"Outliers".to_vec();
    for value in values {
        match value {
            Scalar::S(text) => bytes.extend(text.as_bytes()),
            Scalar::B(content) => bytes.extend(content),
            Scalar::N(number) => bytes.extend(number_bytes(&number.to_string())),
        }
    }
    u128::from_be_bytes(Md5::digest(bytes).into())
}

/// The segment that holds a partition: `hash × total / 2^128`, rounded down.
pub fn segment(hash: u128, total: u32) -> u32 {
    let (upper, lower) = (hash >> 64, hash & u128::from(u64::MAX));
    let total = u128::from(total);
    ((upper * total + ((lower * total) >> 64)) >> 64) as u32
}

/// `0.p1p2p3… × 100^e`: a byte for sign and exponent, then one for each pair of digits.
fn number_bytes(text: &str) -> Vec<u8> {
    let digits = text.trim_start_matches('-');
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = if whole.len() % 2 == 1 { format!("0{whole}") } else { whole.to_owned() };
    let fraction =
        if fraction.len() % 2 == 1 { format!("{fraction}0") } else { fraction.to_owned() };
    let mut exponent = whole.len() / 2 + 192;
    let aligned = whole + &fraction;
    let pairs = (0..aligned.len()).step_by(2);
    let mut pairs: Vec<u8> =
        pairs.map(|at| aligned[at..at + 2].parse().expect("two digits")).collect();
    while pairs.last() == Some(&0) {
        pairs.pop();
    }
    if pairs.is_empty() {
        return vec![0x80];
    }
    while pairs[0] == 0 {
        pairs.remove(0);
        exponent -= 1;
    }
    let first = (exponent % 256) as u8;
    if !text.starts_with('-') {
        return [first].into_iter().chain(pairs.into_iter().map(|pair| pair + 1)).collect();
    }
    let end = if pairs.len() < 20 { vec![0x66] } else { Vec::new() };
    [!first].into_iter().chain(pairs.into_iter().map(|pair| 101 - pair)).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use zenobe_value::Number;

    use super::*;

    /// The worked examples of the specification.
    #[test]
    fn hashes_and_segments_match_the_recorded_ones() {
        let text = |text: &str| Scalar::S(text.into());
        for (values, expected, of_four, of_ten) in [
            (vec![text("user#1")], 0x8b542929238862fe7069b842ce6b6946, 2, 5),
            (
                vec![Scalar::N(Number::parse("-120.5").unwrap())],
                0xf913dd54df501b2be14e0f09ea2713e0,
                3,
                9,
            ),
            (vec![Scalar::B(vec![0, 0xFF])], 0x7c24c3cc726244b299750e0bc10b13b2, 1, 4),
            (vec![text("u1"), text("2026")], 0x7365aebb41d8aa1f37dab0344572ea5d, 1, 4),
            (vec![text("u2"), text("2025")], 0x5f98a9a8d9eeaf628e2fb9bd0aa65b44, 1, 3),
        ] {
            assert_eq!(hash(&values), expected, "{values:?}");
            assert_eq!((segment(expected, 4), segment(expected, 10)), (of_four, of_ten));
        }
        for (text, expected) in [
            ("0", "80"),
            ("1", "c102"),
            ("-1", "3e6466"),
            ("100", "c202"),
            ("0.5", "c033"),
            ("-0.09", "3f5c66"),
        ] {
            let hex = hex::encode(number_bytes(text));
            assert_eq!(hex, expected, "{text}");
        }
    }
}
