//! Exact decimal numbers with DynamoDB's 38 digits and range.

mod arithmetic;
mod parse;
mod text;

use std::cmp::Ordering;

use crate::limits::NUMBER_DIGITS_MAX;

pub use text::NumberText;
pub(crate) use text::{canonical_shape, canonical_size_bytes, compare_canonical_integers};

/// `± coefficient × 10^exponent`.
///
/// Always normalised: the coefficient has at most 38 digits and does not end in zero, and zero has
/// one form. Equal numbers therefore have equal fields, whatever text they came from.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Number {
    negative: bool,
    exponent: i16,
    coefficient: u128,
}

/// Why a text is not a number, or why a result cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NumberError {
    #[error("the text is empty")]
    Empty,
    #[error("the text is not a number")]
    NotNumeric,
    #[error("the magnitude is too large")]
    Overflow,
    #[error("the magnitude is too small")]
    Underflow,
    #[error("the number has more than 38 significant digits")]
    TooManyDigits,
}

impl Number {
    pub const ZERO: Number = Number { negative: false, exponent: 0, coefficient: 0 };

    pub const fn is_zero(&self) -> bool {
        self.coefficient == 0
    }

    pub const fn is_negative(&self) -> bool {
        self.negative
    }

    /// The size that DynamoDB charges: a byte for the exponent, a byte for each pair of digits
    /// (aligned at the decimal point), and a byte for a negative sign.
    pub fn size_bytes(&self) -> usize {
        self.shape().size_bytes()
    }

    /// The number, if it is an integer that fits.
    pub fn to_i64(&self) -> Option<i64> {
        let scale = POWERS_OF_TEN.get(usize::try_from(self.exponent).ok()?)?;
        let magnitude = i128::try_from(self.coefficient.checked_mul(*scale)?).ok()?;
        i64::try_from(if self.negative { -magnitude } else { magnitude }).ok()
    }

    /// Strips trailing zeros and checks digits and range. The exponent of the last digit may be any
    /// that parsing or arithmetic produces.
    pub(crate) fn normalised(
        negative: bool,
        coefficient: u128,
        exponent: i64,
    ) -> Result<Number, NumberError> {
        if coefficient == 0 {
            return Ok(Number::ZERO);
        }
        let (coefficient, zeros) = without_trailing_zeros(coefficient);
        let exponent = exponent.saturating_add(zeros);
        let digits = digit_count(coefficient);
        check_exponent(exponent.saturating_add(digits as i64 - 1))?;
        if digits > NUMBER_DIGITS_MAX {
            return Err(NumberError::TooManyDigits);
        }
        let exponent = i16::try_from(exponent).map_err(|_| NumberError::Overflow)?;
        Ok(Number { negative, exponent, coefficient })
    }

    pub(crate) const fn coefficient(&self) -> u128 {
        self.coefficient
    }

    /// The exponent of the coefficient's last digit.
    pub(crate) const fn last_digit_exponent(&self) -> i32 {
        self.exponent as i32
    }

    pub(crate) fn shape(&self) -> Shape {
        let digits = digit_count(self.coefficient);
        Shape {
            negative: self.negative,
            digits,
            exponent: i32::from(self.exponent) + digits as i32 - 1,
        }
    }
}

/// The parts of a number that decide its size and the first steps of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub negative: bool,
    /// Significant digits; none for zero.
    pub digits: usize,
    /// The exponent of the first digit.
    pub exponent: i32,
}

impl Shape {
    pub const ZERO: Shape = Shape { negative: false, digits: 0, exponent: -1 };

    /// A closed form of counting aligned pairs, checked against sizes captured from DynamoDB.
    pub const fn size_bytes(self) -> usize {
        if self.digits == 0 {
            return 1;
        }
        let straddles = self.digits.is_multiple_of(2) && self.exponent % 2 == 0;
        1 + self.digits.div_ceil(2) + straddles as usize + self.negative as usize
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        match (self.signum(), other.signum()) {
            (1, 1) => self.compare_magnitude(other),
            (-1, -1) => other.compare_magnitude(self),
            (left, right) => left.cmp(&right),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Number {
    const fn signum(&self) -> i8 {
        match (self.coefficient, self.negative) {
            (0, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        }
    }

    /// Neither number is zero.
    fn compare_magnitude(&self, other: &Number) -> Ordering {
        if self.exponent == other.exponent {
            return self.coefficient.cmp(&other.coefficient);
        }
        let (left, right) = (self.shape(), other.shape());
        left.exponent.cmp(&right.exponent).then_with(|| {
            let left = self.coefficient * POWERS_OF_TEN[NUMBER_DIGITS_MAX - left.digits];
            let right = other.coefficient * POWERS_OF_TEN[NUMBER_DIGITS_MAX - right.digits];
            left.cmp(&right)
        })
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        Number::from_magnitude(value < 0, value.unsigned_abs())
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Number {
        Number::from_magnitude(false, value)
    }
}

impl From<i32> for Number {
    fn from(value: i32) -> Number {
        Number::from(i64::from(value))
    }
}

impl Number {
    fn from_magnitude(negative: bool, magnitude: u64) -> Number {
        if magnitude == 0 {
            return Number::ZERO;
        }
        let (coefficient, zeros) = without_trailing_zeros(u128::from(magnitude));
        Number { negative, exponent: zeros as i16, coefficient }
    }
}

pub(crate) const POWERS_OF_TEN: [u128; 39] = {
    let mut powers = [1; 39];
    let mut index = 1;
    while index < powers.len() {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

fn check_exponent(exponent: i64) -> Result<(), NumberError> {
    use crate::limits::{NUMBER_EXPONENT_MAX, NUMBER_EXPONENT_MIN};
    if exponent > i64::from(NUMBER_EXPONENT_MAX) {
        Err(NumberError::Overflow)
    } else if exponent < i64::from(NUMBER_EXPONENT_MIN) {
        Err(NumberError::Underflow)
    } else {
        Ok(())
    }
}

fn digit_count(coefficient: u128) -> usize {
    match u64::try_from(coefficient) {
        Ok(0) => 0,
        Ok(small) => small.ilog10() as usize + 1,
        Err(_) => coefficient.ilog10() as usize + 1,
    }
}

/// The coefficient without its trailing zeros, and how many there were. The coefficient is not
/// zero.
fn without_trailing_zeros(mut coefficient: u128) -> (u128, i64) {
    let mut zeros = 0;
    if let Ok(mut small) = u64::try_from(coefficient) {
        while small.is_multiple_of(10) {
            small /= 10;
            zeros += 1;
        }
        return (u128::from(small), zeros);
    }
    // Halving steps need few wide divisions, which are slow. The steps reach 63 zeros, more than
    // 128 bits can hold.
    for step in [32, 16, 8, 4, 2, 1] {
        let divisor = POWERS_OF_TEN[step];
        if coefficient.is_multiple_of(divisor) {
            coefficient /= divisor;
            zeros += step as i64;
        }
    }
    (coefficient, zeros)
}
