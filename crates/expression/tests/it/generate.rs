//! Random values and items. Names and scalars come from small pools, so paths hit and values
//! coincide.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use zenobe_value::{AttributeValue, Attributes, Number};

pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(""), Just("a"), Just("ab"), Just("b"), Just("ä"), Just("😀a")]
        .prop_map(str::to_owned)
}

pub fn number() -> impl Strategy<Value = Number> {
    prop_oneof![Just("0"), Just("1"), Just("2"), Just("-1"), Just("1.5"), Just("1e20"), Just("3")]
        .prop_map(|text| Number::parse(text).expect("a number"))
}

pub fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(0..3_u8, 0..3)
}

/// A value of a type that has an order.
pub fn ordered_scalar() -> impl Strategy<Value = AttributeValue> {
    prop_oneof![
        text().prop_map(AttributeValue::S),
        number().prop_map(AttributeValue::N),
        bytes().prop_map(AttributeValue::B),
    ]
}

pub fn set() -> impl Strategy<Value = AttributeValue> {
    prop_oneof![
        btree_set(text(), 1..3).prop_map(AttributeValue::Ss),
        btree_set(number(), 1..3).prop_map(AttributeValue::Ns),
        btree_set(bytes(), 1..3).prop_map(AttributeValue::Bs),
    ]
}

pub fn value() -> impl Strategy<Value = AttributeValue> {
    let leaf = prop_oneof![
        4 => ordered_scalar(),
        1 => any::<bool>().prop_map(AttributeValue::Bool),
        1 => Just(AttributeValue::Null),
        2 => set(),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(AttributeValue::L),
            btree_map(member_name(), inner, 0..3).prop_map(AttributeValue::M),
        ]
    })
}

/// Attributes `a`, `b`, a map `m` and a list `l`. Each may be missing or have another type.
pub fn item() -> impl Strategy<Value = Attributes> {
    let map = btree_map(member_name(), value(), 0..3).prop_map(AttributeValue::M);
    let list = vec(value(), 0..4).prop_map(AttributeValue::L);
    let attributes = (
        proptest::option::of(value()),
        proptest::option::of(value()),
        proptest::option::weighted(0.9, prop_oneof![4 => map, 1 => value()]),
        proptest::option::weighted(0.9, prop_oneof![4 => list, 1 => value()]),
    );
    attributes.prop_map(|(a, b, m, l)| {
        let attributes = [("a", a), ("b", b), ("m", m), ("l", l)].into_iter();
        attributes.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    })
}

fn member_name() -> impl Strategy<Value = String> {
    prop_oneof![Just("x"), Just("y"), Just("z")].prop_map(str::to_owned)
}
