//! Strategies for values. Domains are small where tests want collisions.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use zenobe_value::{AttributeValue, Attributes, Number};

/// A number as text, in parts, so an oracle can read it without parsing.
#[derive(Clone, Debug)]
pub struct NumberParts {
    pub negative: bool,
    pub integer: String,
    pub fraction: String,
    pub exponent: i32,
}

impl NumberParts {
    pub fn text(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        let point = if self.fraction.is_empty() { "" } else { "." };
        format!("{sign}{}{point}{}e{}", self.integer, self.fraction, self.exponent)
    }
}

/// Numbers in and around the valid range, many with too many digits or too large.
pub fn number_parts() -> impl Strategy<Value = NumberParts> {
    let exponent =
        prop_oneof![4 => -6..6i32, 2 => -180..180i32, 1 => 84..130i32, 1 => -175..-125i32];
    (any::<bool>(), "[0-9]{1,42}|[0-9]{1,4}|[09]{1,40}", "[0-9]{0,8}|[05]{0,40}", exponent)
        .prop_map(|(negative, integer, fraction, exponent)| NumberParts {
            negative,
            integer,
            fraction,
            exponent,
        })
}

/// Valid numbers over the full range, dense near powers of ten and near each other.
pub fn number() -> impl Strategy<Value = Number> {
    let digits = prop_oneof![
        3 => "[1-9]{1,3}",
        2 => "[0-9]{1,38}",
        1 => "9{1,38}",
        1 => "10{0,36}1",
    ];
    let exponent = prop_oneof![4 => -3..4i32, 1 => -167..126i32];
    (any::<bool>(), digits, exponent).prop_filter_map(
        "out of range",
        |(negative, digits, exponent)| {
            let sign = if negative { "-" } else { "" };
            Number::parse(&format!("{sign}{digits}e{exponent}")).ok()
        },
    )
}

pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-c\u{0}\u{1}é]{0,4}", 1 => any::<String>(), 1 => "[x]{120,300}"]
}

pub fn binary() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => vec(prop_oneof![Just(0u8), Just(1), Just(0xFE), Just(0xFF)], 0..5),
        1 => vec(any::<u8>(), 0..40),
    ]
}

pub fn key() -> impl Strategy<Value = AttributeValue> {
    prop_oneof![
        text().prop_map(AttributeValue::S),
        number().prop_map(AttributeValue::N),
        binary().prop_map(AttributeValue::B),
    ]
}

pub fn value() -> impl Strategy<Value = AttributeValue> {
    let leaf = prop_oneof![
        4 => key(),
        1 => any::<bool>().prop_map(AttributeValue::Bool),
        1 => Just(AttributeValue::Null),
        1 => btree_set(text(), 1..4).prop_map(AttributeValue::Ss),
        1 => btree_set(number(), 1..4).prop_map(AttributeValue::Ns),
        1 => btree_set(binary(), 1..4).prop_map(AttributeValue::Bs),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(AttributeValue::L),
            btree_map(text(), inner, 0..4).prop_map(AttributeValue::M),
        ]
    })
}

/// Values from a domain so small that two of them are often equal.
pub fn tiny_value() -> impl Strategy<Value = AttributeValue> {
    let number = prop_oneof![Just("1"), Just("1.0"), Just("10e-1"), Just("-1"), Just("0")]
        .prop_map(|text| Number::parse(text).expect("a number"));
    let leaf = prop_oneof![
        "[1]{0,1}".prop_map(AttributeValue::S),
        "[1]{0,1}".prop_map(|text| AttributeValue::B(text.into_bytes())),
        number.clone().prop_map(AttributeValue::N),
        btree_set(number, 1..3).prop_map(AttributeValue::Ns),
        btree_set("[1]{0,1}", 1..3).prop_map(AttributeValue::Ss),
        Just(AttributeValue::Null),
    ];
    leaf.prop_recursive(2, 3, 2, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..2).prop_map(AttributeValue::L),
            btree_map("[1]{0,1}", inner, 0..2).prop_map(AttributeValue::M),
        ]
    })
}

pub fn attributes() -> impl Strategy<Value = Attributes> {
    btree_map(text(), value(), 0..6)
}
