//! Parses numbers by DynamoDB's grammar, with its errors in the order in which it reports them.

use super::{Number, NumberError, POWERS_OF_TEN, check_exponent};
use crate::limits::NUMBER_DIGITS_MAX;

impl Number {
    /// Reads `[+-]? ( digits [ '.' digits? ] | '.' digits ) ( [eE] [+-]? digits )?`.
    ///
    /// DynamoDB checks the range before the number of digits, and before it recognises zero: a zero
    /// has the exponent of its last digit. So `0e126` is an overflow and `0.0e126` is not, as
    /// observed on DynamoDB.
    pub fn parse(text: &str) -> Result<Number, NumberError> {
        Number::parse_bytes(text.as_bytes())
    }

    pub(crate) fn parse_bytes(text: &[u8]) -> Result<Number, NumberError> {
        if text.is_empty() {
            return Err(NumberError::Empty);
        }
        let (negative, unsigned) = split_sign(text);
        let (digits, rest) = scan_digits(unsigned)?;
        let last_exponent = scan_exponent(rest)?.saturating_sub(digits.fraction);

        if digits.significant == 0 {
            return check_exponent(last_exponent).map(|()| Number::ZERO);
        }
        let trailing_zeros = digits.significant - digits.last_nonzero;
        check_exponent(last_exponent.saturating_add(digits.significant as i64 - 1))?;
        if digits.last_nonzero > NUMBER_DIGITS_MAX {
            return Err(NumberError::TooManyDigits);
        }
        Ok(Number {
            negative,
            exponent: (last_exponent + trailing_zeros as i64) as i16,
            coefficient: digits.coefficient(),
        })
    }
}

fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', unsigned @ ..] => (true, unsigned),
        [b'+', unsigned @ ..] => (false, unsigned),
        unsigned => (false, unsigned),
    }
}

/// The digits before the exponent. Leading zeros are not significant. Trailing zeros are counted,
/// and `last_nonzero` tells them apart.
#[derive(Default)]
struct Digits {
    /// The number of digits from the first that is not zero.
    significant: usize,
    /// The number of significant digits up to the last that is not zero.
    last_nonzero: usize,
    /// The number of digits after the decimal point.
    fraction: i64,
    /// The first 19 significant digits and the next 19, each of which fits in a word.
    high: u64,
    low: u64,
}

const HALF_DIGITS: usize = NUMBER_DIGITS_MAX / 2;

impl Digits {
    fn push(&mut self, digit: u8) {
        if digit == 0 && self.significant == 0 {
            return;
        }
        self.significant += 1;
        if digit != 0 {
            self.last_nonzero = self.significant;
        }
        if self.significant <= HALF_DIGITS {
            self.high = self.high * 10 + u64::from(digit);
        } else if self.significant <= NUMBER_DIGITS_MAX {
            self.low = self.low * 10 + u64::from(digit);
        }
    }

    /// The significant digits without trailing zeros; there are at most 38 of them.
    fn coefficient(&self) -> u128 {
        let kept = self.significant.min(NUMBER_DIGITS_MAX);
        let low_digits = kept.saturating_sub(HALF_DIGITS);
        let all = u128::from(self.high) * POWERS_OF_TEN[low_digits] + u128::from(self.low);
        if kept == self.last_nonzero { all } else { all / POWERS_OF_TEN[kept - self.last_nonzero] }
    }
}

fn scan_digits(text: &[u8]) -> Result<(Digits, &[u8]), NumberError> {
    let mut digits = Digits::default();
    let integer_length = scan_run(text, &mut digits);
    let mut end = integer_length;
    if text.get(end) == Some(&b'.') {
        let fraction_length = scan_run(&text[end + 1..], &mut digits);
        digits.fraction = fraction_length as i64;
        end += 1 + fraction_length;
    }
    if integer_length == 0 && digits.fraction == 0 {
        return Err(NumberError::NotNumeric);
    }
    Ok((digits, &text[end..]))
}

fn scan_run(text: &[u8], digits: &mut Digits) -> usize {
    let run = text.iter().take_while(|byte| byte.is_ascii_digit());
    run.inspect(|byte| digits.push(**byte - b'0')).count()
}

/// The exponent after the digits, or zero if the text ends there. An exponent too long for a word
/// becomes the largest one: the range check that follows rejects both alike.
fn scan_exponent(text: &[u8]) -> Result<i64, NumberError> {
    let [b'e' | b'E', signed @ ..] = text else {
        return if text.is_empty() { Ok(0) } else { Err(NumberError::NotNumeric) };
    };
    let (negative, digits) = split_sign(signed);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(NumberError::NotNumeric);
    }
    let magnitude = digits.iter().fold(0i64, |magnitude, digit| {
        magnitude.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    });
    Ok(if negative { -magnitude } else { magnitude })
}
