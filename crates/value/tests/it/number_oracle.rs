//! Numbers against exact integers: every number is compared as a multiple of 10^-400.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use proptest::prelude::*;
use zenobe_value::{Number, NumberError};

use crate::generate::{NumberParts, number, number_parts};

const SCALE: i32 = 400;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn parsing_is_exact(parts in number_parts()) {
        let parsed = Number::parse(&parts.text());
        let exact = exact_parts(&parts);
        if exact.sign() == Sign::NoSign {
            let last_exponent = parts.exponent - parts.fraction.len() as i32;
            let expected = match last_exponent {
                126.. => Err(NumberError::Overflow),
                ..=-131 => Err(NumberError::Underflow),
                _ => Ok(Number::ZERO),
            };
            prop_assert_eq!(parsed, expected);
        } else {
            prop_assert_eq!(parsed.map(|number| exact_number(&number)), storable(&exact));
        }
    }

    #[test]
    fn text_is_canonical(number in number()) {
        let text = number.to_string();
        prop_assert_eq!(Number::parse(&text), Ok(number));
        let digits = text.trim_start_matches('-');
        prop_assert!(!digits.contains(['e', 'E', '+', '-']));
        prop_assert!(!digits.ends_with('.') && !digits.starts_with('.'));
        prop_assert!(digits == "0" || digits.starts_with("0.") || !digits.starts_with('0'));
        prop_assert!(!digits.contains('.') || !digits.ends_with('0'));
    }

    #[test]
    fn order_is_numeric(left in number(), right in number()) {
        let expected = exact_number(&left).cmp(&exact_number(&right));
        prop_assert_eq!(left.cmp(&right), expected);
        prop_assert_eq!(left == right, expected == Ordering::Equal);
    }

    #[test]
    fn sums_are_exact(left in number(), right in number()) {
        check_arithmetic(&left, &right)?;
    }

    /// Numbers that end near each other's 38th digit, where sums start to overflow.
    #[test]
    fn sums_at_the_edge_are_exact(
        left in "[1-9][0-9]{0,37}|9{37,38}|10{30,36}",
        right in "[1-9]{1,3}|9{30,38}",
        shift in 0..42i32,
        negative in any::<bool>(),
    ) {
        let sign = if negative { "-" } else { "" };
        let left = Number::parse(&format!("{left}e{shift}")).expect("in range");
        let right = Number::parse(&format!("{sign}{right}")).expect("in range");
        check_arithmetic(&left, &right)?;
    }

    /// Checks the closed form by counting the pairs.
    #[test]
    fn size_counts_aligned_pairs(number in number()) {
        prop_assert_eq!(number.size_bytes(), size_by_pairs(&number));
    }

    #[test]
    fn integers_convert_both_ways(integer in any::<i64>(), natural in any::<u64>()) {
        prop_assert_eq!(Number::from(integer).to_string(), integer.to_string());
        prop_assert_eq!(Number::from(integer).to_i64(), Some(integer));
        prop_assert_eq!(Number::from(natural).to_string(), natural.to_string());
        prop_assert_eq!(Number::from(natural).to_i64(), i64::try_from(natural).ok());
    }

    #[test]
    fn conversion_to_integers_is_exact(number in number()) {
        prop_assert_eq!(number.to_i64(), number.to_string().parse().ok());
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>(), near in "[-+0-9.eE ]{0,12}") {
        let _ = Number::parse(&text);
        if let Ok(number) = Number::parse(&near) {
            prop_assert_eq!(Number::parse(&number.to_string()), Ok(number));
        }
    }
}

fn check_arithmetic(left: &Number, right: &Number) -> Result<(), TestCaseError> {
    let (exact_left, exact_right) = (exact_number(left), exact_number(right));
    let sum = left.checked_add(right).map(|sum| exact_number(&sum));
    prop_assert_eq!(sum, result(&(&exact_left + &exact_right)));
    let difference = left.checked_sub(right).map(|difference| exact_number(&difference));
    prop_assert_eq!(difference, result(&(exact_left - exact_right)));
    prop_assert_eq!(left.checked_add(right), right.checked_add(left));
    Ok(())
}

/// The answer that arithmetic should give: too many digits count as an overflow.
fn result(exact: &BigInt) -> Result<BigInt, NumberError> {
    match storable(exact) {
        Err(NumberError::TooManyDigits) => Err(NumberError::Overflow),
        other => other,
    }
}

fn storable(exact: &BigInt) -> Result<BigInt, NumberError> {
    let digits = exact.magnitude().to_string();
    let exponent = digits.len() as i32 - 1 - SCALE;
    if exact.sign() == Sign::NoSign {
        Ok(BigInt::ZERO)
    } else if exponent > 125 {
        Err(NumberError::Overflow)
    } else if exponent < -130 {
        Err(NumberError::Underflow)
    } else if digits.trim_end_matches('0').len() > 38 {
        Err(NumberError::TooManyDigits)
    } else {
        Ok(exact.clone())
    }
}

fn exact_parts(parts: &NumberParts) -> BigInt {
    let digits: BigInt = format!("{}{}", parts.integer, parts.fraction).parse().expect("digits");
    let exponent = parts.exponent - parts.fraction.len() as i32 + SCALE;
    let magnitude = digits * BigInt::from(10).pow(exponent as u32);
    if parts.negative { -magnitude } else { magnitude }
}

/// Reads the canonical text, which has no exponent.
fn exact_number(number: &Number) -> BigInt {
    let text = number.to_string();
    let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits: BigInt = format!("{integer}{fraction}").parse().expect("digits");
    digits * BigInt::from(10).pow((SCALE - fraction.len() as i32) as u32)
}

fn size_by_pairs(number: &Number) -> usize {
    let text = number.to_string();
    let unsigned = text.trim_start_matches('-');
    let (integer, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let integer = if integer.len() % 2 == 1 { format!("0{integer}") } else { integer.to_owned() };
    let fraction =
        if fraction.len() % 2 == 1 { format!("{fraction}0") } else { fraction.to_owned() };
    let aligned = format!("{integer}{fraction}");
    let pairs: Vec<&[u8]> = aligned.as_bytes().chunks(2).collect();
    let is_used = |pair: &&[u8]| *pair != b"00";
    match (pairs.iter().position(is_used), pairs.iter().rposition(is_used)) {
        (Some(first), Some(last)) => 1 + (last - first + 1) + usize::from(text.starts_with('-')),
        _ => 1,
    }
}
