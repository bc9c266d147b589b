//! DynamoDB's canonical text of a number: plain decimal, no exponent, no superfluous zero.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

use super::{Number, POWERS_OF_TEN, Shape, check_exponent};
use crate::limits::{NUMBER_DIGITS_MAX, NUMBER_TEXT_BYTES_MAX};

impl Number {
    /// The canonical text, without allocating.
    pub fn to_text(&self) -> NumberText {
        let mut text = NumberText { bytes: [0; NUMBER_TEXT_BYTES_MAX], length: 0 };
        if self.is_zero() {
            text.push(b"0");
            return text;
        }
        if self.negative {
            text.push(b"-");
        }
        let mut buffer = [0; NUMBER_DIGITS_MAX];
        let digits = write_digits(self.coefficient, &mut buffer);
        let integer_digits = digits.len() as i32 + i32::from(self.exponent);
        if self.exponent >= 0 {
            text.push(digits);
            text.push_zeros(self.exponent as usize);
        } else if integer_digits > 0 {
            let (integer, fraction) = digits.split_at(integer_digits as usize);
            text.push(integer);
            text.push(b".");
            text.push(fraction);
        } else {
            text.push(b"0.");
            text.push_zeros(integer_digits.unsigned_abs() as usize);
            text.push(digits);
        }
        text
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.to_text())
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// A number's canonical text, held inline.
#[derive(Clone, Copy)]
pub struct NumberText {
    bytes: [u8; NUMBER_TEXT_BYTES_MAX],
    length: usize,
}

impl NumberText {
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    fn push_zeros(&mut self, count: usize) {
        self.bytes[self.length..self.length + count].fill(b'0');
        self.length += count;
    }
}

impl Deref for NumberText {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("digits are ASCII")
    }
}

impl fmt::Debug for NumberText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

/// Writes the digits at the end of the buffer. Each half of 19 digits fits in a word, which avoids
/// wide divisions.
fn write_digits(coefficient: u128, buffer: &mut [u8; NUMBER_DIGITS_MAX]) -> &[u8] {
    const HALF: usize = NUMBER_DIGITS_MAX / 2;
    if let Ok(word) = u64::try_from(coefficient) {
        let start = write_word(word, buffer);
        return &buffer[start..];
    }
    let high = (coefficient / POWERS_OF_TEN[HALF]) as u64;
    let low = (coefficient % POWERS_OF_TEN[HALF]) as u64;
    let (high_digits, low_digits) = buffer.split_at_mut(HALF);
    let low_start = write_word(low, low_digits);
    if high == 0 {
        return &buffer[HALF + low_start..];
    }
    low_digits[..low_start].fill(b'0');
    let high_start = write_word(high, high_digits);
    &buffer[high_start..]
}

fn write_word(mut word: u64, buffer: &mut [u8]) -> usize {
    let mut start = buffer.len();
    while word > 0 {
        start -= 1;
        buffer[start] = b'0' + (word % 10) as u8;
        word /= 10;
    }
    start
}

/// The shape of a number given as canonical text, or `None` if the text is not exactly what
/// [`Number::to_text`] writes. It validates stored items, so it does no arithmetic on the digits.
pub(crate) fn canonical_shape(text: &[u8]) -> Option<Shape> {
    if let Some(shape) = small_integer_shape(text) {
        return Some(shape);
    }
    if text == b"0" {
        return Some(Shape::ZERO);
    }
    let (negative, unsigned) = match text {
        [b'-', unsigned @ ..] => (true, unsigned),
        unsigned => (false, unsigned),
    };
    let (digits, exponent) = match unsigned.iter().position(|byte| *byte == b'.') {
        None => integer_shape(unsigned)?,
        Some(point) => fraction_shape(&unsigned[..point], &unsigned[point + 1..])?,
    };
    check_exponent(exponent).ok()?;
    (digits <= NUMBER_DIGITS_MAX).then_some(Shape { negative, digits, exponent: exponent as i32 })
}

/// Compares two canonical texts if both are integers without a sign: the longer one is greater,
/// because neither has a leading zero. `None` if either is another kind of number.
pub(crate) fn compare_canonical_integers(one: &[u8], two: &[u8]) -> Option<Ordering> {
    let is_integer = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    (is_integer(one) && is_integer(two)).then(|| one.len().cmp(&two.len()).then(one.cmp(two)))
}

/// The size of a number that is known to be canonical.
pub(crate) fn canonical_size_bytes(text: &[u8]) -> usize {
    canonical_shape(text).expect("the number was validated").size_bytes()
}

/// The fast path for most numbers: unsigned integers of few digits, for which one look at each byte
/// suffices. `None` for everything else.
fn small_integer_shape(text: &[u8]) -> Option<Shape> {
    let is_small = text.len() <= NUMBER_DIGITS_MAX && matches!(text.first(), Some(b'1'..=b'9'));
    let mut digits = 0;
    for (position, byte) in text.iter().enumerate().take_while(|_| is_small) {
        match byte {
            b'0' => {}
            b'1'..=b'9' => digits = position + 1,
            _ => return None,
        }
    }
    is_small.then_some(Shape { negative: false, digits, exponent: text.len() as i32 - 1 })
}

fn integer_shape(integer: &[u8]) -> Option<(usize, i64)> {
    let last_nonzero = integer.iter().rposition(|byte| *byte != b'0')?;
    is_integer(integer).then_some((last_nonzero + 1, integer.len() as i64 - 1))
}

fn fraction_shape(integer: &[u8], fraction: &[u8]) -> Option<(usize, i64)> {
    let first_nonzero = fraction.iter().position(|byte| *byte != b'0')?;
    if !fraction.iter().all(u8::is_ascii_digit) || fraction.last() == Some(&b'0') {
        return None;
    }
    if integer == b"0" {
        return Some((fraction.len() - first_nonzero, -(first_nonzero as i64) - 1));
    }
    is_integer(integer).then_some((integer.len() + fraction.len(), integer.len() as i64 - 1))
}

fn is_integer(text: &[u8]) -> bool {
    text.first().is_some_and(|first| *first != b'0') && text.iter().all(u8::is_ascii_digit)
}
