//! Exact addition and subtraction.

use std::ops::Neg;

use super::{Number, NumberError, POWERS_OF_TEN};

impl Number {
    /// The exact sum. DynamoDB does not round: a sum that needs more than 38 digits is an overflow,
    /// just like one that is too large.
    pub fn checked_add(&self, other: &Number) -> Result<Number, NumberError> {
        if self.is_zero() {
            return Ok(*other);
        }
        if other.is_zero() {
            return Ok(*self);
        }
        let (fine, coarse) =
            if self.exponent <= other.exponent { (self, other) } else { (other, self) };
        let aligned = coarse.aligned_to(fine.exponent).ok_or(NumberError::Overflow)?;
        let (negative, magnitude) = if fine.negative == coarse.negative {
            // A sum beyond 128 bits has more than 38 digits, and the last is not zero.
            let sum = aligned.checked_add(fine.coefficient).ok_or(NumberError::Overflow)?;
            (fine.negative, sum)
        } else if aligned >= fine.coefficient {
            (coarse.negative, aligned - fine.coefficient)
        } else {
            (fine.negative, fine.coefficient - aligned)
        };
        match Number::normalised(negative, magnitude, i64::from(fine.exponent)) {
            Err(NumberError::TooManyDigits) => Err(NumberError::Overflow),
            result => result,
        }
    }

    /// The exact difference, by the rules of [`Number::checked_add`].
    pub fn checked_sub(&self, other: &Number) -> Result<Number, NumberError> {
        self.checked_add(&-*other)
    }

    /// The coefficient as a multiple of a smaller power of ten.
    ///
    /// `None` if that exceeds 128 bits. No sum with a finer number can then have 38 digits: the
    /// finer coefficient is below 10^38, too small to cancel the leading digit, and its last digit
    /// is not zero and stays.
    fn aligned_to(&self, exponent: i16) -> Option<u128> {
        let scale = POWERS_OF_TEN.get(usize::try_from(self.exponent - exponent).ok()?)?;
        self.coefficient.checked_mul(*scale)
    }
}

impl Neg for Number {
    type Output = Number;

    fn neg(self) -> Number {
        Number { negative: !self.negative && !self.is_zero(), ..self }
    }
}
