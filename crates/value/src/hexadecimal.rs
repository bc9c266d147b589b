//! Bytes as hexadecimal digits.

use std::fmt::Write;

/// Two lower-case digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(digits, "{byte:02x}").expect("writing to a string cannot fail");
    }
    digits
}

/// The bytes of digits in either case, or `None` if these are not pairs of digits.
pub fn decode(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        for bytes in [&[][..], &[0], &[0x0f, 0xf0, 0xff]] {
            assert_eq!(decode(&encode(bytes)).as_deref(), Some(bytes));
        }
        assert_eq!(encode(&[0x0a, 0xbc]), "0abc");
        assert_eq!(decode("0ABC"), Some(vec![0x0a, 0xbc]));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["0", "abc", "0g", "+1", "\u{e9}"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
