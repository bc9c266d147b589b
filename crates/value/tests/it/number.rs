//! Numbers by golden data.

use zenobe_value::{Number, NumberError};

use crate::golden;

#[test]
fn texts_parse_to_canonical_texts_and_sizes() {
    golden::check("numbers.txt", |input| {
        let text = input.strip_prefix('"').and_then(|input| input.strip_suffix('"'));
        let outcome = Number::parse(text.expect("a quoted text"));
        describe(outcome.map(|number| format!("{number} size {}", number.size_bytes())))
    });
}

#[test]
fn sizes_agree_with_those_captured_from_dynamodb() {
    golden::check_recorded("number-sizes-captured.txt", |input| {
        Number::parse(input).expect("a number").size_bytes().to_string()
    });
}

#[test]
fn sums_and_differences() {
    golden::check("arithmetic.txt", |input| {
        let [left, operator, right] = input.split(' ').collect::<Vec<_>>()[..] else {
            panic!("two numbers and an operator: {input}");
        };
        let (left, right) = (number(left), number(right));
        let outcome = match operator {
            "+" => left.checked_add(&right),
            "-" => left.checked_sub(&right),
            _ => panic!("an unknown operator: {input}"),
        };
        describe(outcome.map(|number| number.to_string()))
    });
}

#[test]
fn spellings_of_one_number_are_equal() {
    for spelling in ["1000", "1e3", "1000.0", "+1E+3", "0001000", ".1e4"] {
        assert_eq!(number(spelling), Number::from(1000), "{spelling}");
    }
    assert_eq!(-Number::ZERO, Number::ZERO);
    assert_eq!(-number("1.5"), number("-1.5"));
}

fn number(text: &str) -> Number {
    Number::parse(text).expect("a number")
}

fn describe(outcome: Result<String, NumberError>) -> String {
    outcome.unwrap_or_else(|error| format!("error {error:?}"))
}
