//! Numbers in key order.
//!
//! The first byte is `0x80` plus the biased exponent of the first pair. A pair of digits `p` becomes
//! the byte `2p`, or `2p + 1` if another pair follows. Zero is a single pair of zeros under the
//! lowest exponent. In a negative number every byte is complemented, which reverses the order.

use crate::number::POWERS_OF_TEN;
use crate::{DecodeError, Number};

/// The first pair's exponent, counted in pairs, lies in -65..=62.
const PAIR_EXPONENT_MIN: i32 = -65;
const POSITIVE: u8 = 0x80;
const ZERO: &[u8] = &[POSITIVE, 0];
/// 38 digits that straddle pair boundaries.
pub(super) const PAIRS_MAX: usize = 20;

pub fn encode_number(number: &Number, out: &mut Vec<u8>) {
    let start = out.len();
    if number.is_zero() {
        out.extend_from_slice(ZERO);
        return;
    }
    let mut buffer = [0; PAIRS_MAX];
    let (pairs, last_pair_exponent) = write_pairs(number, &mut buffer);
    let pair_exponent = last_pair_exponent + pairs.len() as i32 - 1;
    out.push(POSITIVE + (pair_exponent - PAIR_EXPONENT_MIN) as u8);
    out.extend(pairs.iter().map(|pair| 2 * pair + 1));
    if let Some(last) = out.last_mut() {
        *last -= 1;
    }
    if number.is_negative() {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// The pairs of digits from first to last, at the end of the buffer, and the exponent of the last
/// pair.
fn write_pairs<'b>(number: &Number, buffer: &'b mut [u8; PAIRS_MAX]) -> (&'b [u8], i32) {
    let mut start = PAIRS_MAX;
    let mut rest = number.coefficient();
    let exponent = number.last_digit_exponent();
    if exponent.rem_euclid(2) == 1 {
        // The last digit is the first of its pair.
        start -= 1;
        buffer[start] = (rest % 10) as u8 * 10;
        rest /= 10;
    }
    // Nine pairs at a time fit in a word, which avoids wide divisions.
    let chunk = POWERS_OF_TEN[18];
    while rest >= chunk {
        let mut word = (rest % chunk) as u64;
        rest /= chunk;
        for _ in 0..9 {
            start -= 1;
            buffer[start] = (word % 100) as u8;
            word /= 100;
        }
    }
    let mut word = rest as u64;
    while word > 0 {
        start -= 1;
        buffer[start] = (word % 100) as u8;
        word /= 100;
    }
    (&buffer[start..], exponent.div_euclid(2))
}

pub(super) fn decode(bytes: &[u8]) -> Result<(Number, &[u8]), DecodeError> {
    let first = *bytes.first().ok_or(DecodeError::Truncated)?;
    let mask = if first < POSITIVE { 0xFF } else { 0 };
    let pair_exponent = i64::from((first ^ mask) - POSITIVE) + i64::from(PAIR_EXPONENT_MIN);
    let (count, digits) = read_pairs(&bytes[1..], mask)?;
    let (key, rest) = bytes.split_at(1 + count);
    if digits.coefficient == 0 {
        // Only one spelling of zero is canonical, and it is not negative.
        return if key == ZERO { Ok((Number::ZERO, rest)) } else { Err(NOT_CANONICAL) };
    }
    let last_pair_exponent = pair_exponent - (count as i64 - 1);
    let exponent = 2 * last_pair_exponent + i64::from(digits.ends_early);
    let number =
        Number::normalised(mask != 0, digits.coefficient, exponent).map_err(|_| NOT_CANONICAL)?;
    Ok((number, rest))
}

struct PairDigits {
    coefficient: u128,
    /// The last pair ends in a zero that the coefficient leaves out: with it, 38 digits that
    /// straddle pair boundaries would not fit.
    ends_early: bool,
}

/// Reads pairs up to the last. Rejects superfluous pairs of zeros at either end, because they would
/// give one number two keys.
fn read_pairs(bytes: &[u8], mask: u8) -> Result<(usize, PairDigits), DecodeError> {
    let mut coefficient: u128 = 0;
    for (index, byte) in bytes.iter().take(PAIRS_MAX).enumerate() {
        let (pair, is_last) = ((byte ^ mask) / 2, (byte ^ mask).is_multiple_of(2));
        let is_spare = pair == 0 && (index == 0) != is_last;
        if pair > 99 || is_spare {
            return Err(NOT_CANONICAL);
        }
        let ends_early = is_last && pair % 10 == 0;
        let (scale, digits) = if ends_early { (10, pair / 10) } else { (100, pair) };
        coefficient = coefficient
            .checked_mul(scale)
            .and_then(|shifted| shifted.checked_add(u128::from(digits)))
            .ok_or(NOT_CANONICAL)?;
        if is_last {
            return Ok((index + 1, PairDigits { coefficient, ends_early }));
        }
    }
    Err(if bytes.len() < PAIRS_MAX { DecodeError::Truncated } else { NOT_CANONICAL })
}

const NOT_CANONICAL: DecodeError = DecodeError::NumberNotCanonical;
