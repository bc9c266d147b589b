//! How DynamoDB's PartiQL distinguishes numbers that are too large from numbers that are too small.

use zenobe_value::NumberError;

/// DynamoDB computes a number's range (its digits less its scale) in 32 bits, so the largest
/// exponents wrap around.
pub fn range_error(text: &str, error: NumberError) -> NumberError {
    if !matches!(error, NumberError::Overflow | NumberError::Underflow) {
        return error;
    }
    match magnitude_in_32_bits(text) {
        Some(magnitude) if magnitude > 0 => NumberError::Overflow,
        Some(_) => NumberError::Underflow,
        None => NumberError::NotNumeric,
    }
}

/// `None` if the exponent doesn't fit in 32 bits.
fn magnitude_in_32_bits(text: &str) -> Option<i32> {
    let unsigned = text.trim_start_matches(['+', '-']);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let digits = mantissa.bytes().filter(u8::is_ascii_digit);
    let precision = digits.skip_while(|digit| *digit == b'0').count().max(1);
    let scale = i32::try_from(fraction as i64 - i64::from(exponent)).ok()?;
    Some((precision as i32).wrapping_sub(scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_looked_at_in_32_bits() {
        use NumberError::{NotNumeric, Overflow, Underflow};
        for (text, error, expected) in [
            ("1e126", Overflow, Overflow),
            ("1e-131", Underflow, Underflow),
            ("1e2147483647", Overflow, Underflow),
            ("-1e2147483646", Overflow, Overflow),
            ("1e2147483648", Overflow, NotNumeric),
            ("0.5e-2147483648", Underflow, NotNumeric),
            ("x", NotNumeric, NotNumeric),
        ] {
            assert_eq!(range_error(text, error), expected, "{text}");
        }
    }
}
