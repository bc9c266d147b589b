//! Numbers: each number that parses has one canonical text, and arithmetic and order agree. The
//! input is two numbers on two lines.

#![no_main]

use std::cmp::Ordering;

use libfuzzer_sys::fuzz_target;
use zenobe_value::Number;

/// 38 digits touch at most 20 pairs; one more byte for the exponent and one for a sign.
const SIZE_BYTES_MAX: usize = 22;

fuzz_target!(|input: &str| {
    let mut lines = input.lines();
    let numbers: Vec<Number> =
        lines.by_ref().take(2).filter_map(|line| Number::parse(line).ok()).collect();
    for number in &numbers {
        let text = number.to_string();
        assert_eq!(Number::parse(&text), Ok(*number), "{text}");
        assert_eq!(Number::parse(&text).map(|number| number.to_string()), Ok(text.clone()));
        assert!((1..=SIZE_BYTES_MAX).contains(&number.size_bytes()), "{text}");
        assert_eq!(number.checked_sub(number), Ok(Number::ZERO), "{text}");
        if let Some(integer) = number.to_i64() {
            assert_eq!(Number::from(integer), *number, "{text}");
        }
    }
    if let [one, other] = numbers[..] {
        check_pair(one, other);
    }
});

fn check_pair(one: Number, other: Number) {
    assert_eq!(one.cmp(&other), other.cmp(&one).reverse(), "{one} {other}");
    assert_eq!(one == other, one.to_string() == other.to_string(), "{one} {other}");
    assert_eq!(one.checked_add(&other), other.checked_add(&one), "{one} {other}");
    if let Ok(difference) = one.checked_sub(&other) {
        assert_eq!(difference.cmp(&Number::ZERO), one.cmp(&other), "{one} {other}");
    }
    // An exact sum can be undone.
    if let Ok(sum) = one.checked_add(&other) {
        assert_eq!(sum.checked_sub(&other), Ok(one), "{one} {other}");
        let grows = other.cmp(&Number::ZERO);
        assert!(sum.cmp(&one) == grows || grows == Ordering::Equal, "{one} {other}");
    }
}
