//! Sizes and depths as DynamoDB measures them.

use std::collections::BTreeSet;

use zenobe_value::{AttributeType, AttributeValue, Attributes, Number, item_size_bytes};

#[test]
fn sizes_of_values() {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    check(text(""), 0);
    check(text("é€"), 5);
    check(AttributeValue::B(vec![0; 7]), 7);
    check(AttributeValue::N(Number::from(42)), 2);
    check(AttributeValue::N(Number::ZERO), 1);
    check(AttributeValue::Bool(false), 1);
    check(AttributeValue::Null, 1);
    check(AttributeValue::Ss(["ab".to_owned(), "c".to_owned()].into()), 3);
    check(AttributeValue::Ns([Number::from(1), Number::from(-123)].into()), 6);
    check(AttributeValue::Bs(BTreeSet::from([vec![1], vec![1, 2]])), 3);
    check(AttributeValue::L(vec![]), 3);
    check(AttributeValue::L(vec![text("ab"), AttributeValue::Null]), 8);
    check(AttributeValue::M(Attributes::new()), 3);
    check(AttributeValue::M([("key".to_owned(), text("ab"))].into()), 9);
}

fn check(value: AttributeValue, size_bytes: usize) {
    assert_eq!(value.size_bytes(), size_bytes, "{value:?}");
    let item = Attributes::from([("name".to_owned(), value)]);
    assert_eq!(item_size_bytes(&item), 4 + size_bytes);
}

#[test]
fn depths_of_values() {
    let list = |members| AttributeValue::L(members);
    assert_eq!(AttributeValue::Null.depth(), 1);
    assert_eq!(list(vec![]).depth(), 1);
    assert_eq!(list(vec![AttributeValue::Null]).depth(), 2);
    let map = AttributeValue::M([("a".to_owned(), list(vec![AttributeValue::Null]))].into());
    assert_eq!(list(vec![AttributeValue::Null, map]).depth(), 4);
}

#[test]
fn names_of_types() {
    let names: Vec<_> = AttributeType::ALL.map(|attribute_type| attribute_type.to_string()).into();
    assert_eq!(names.join(" "), "S N B BOOL NULL SS NS BS L M");
    for attribute_type in AttributeType::ALL {
        assert_eq!(AttributeType::from_name(attribute_type.name()), Some(attribute_type));
    }
    assert_eq!(AttributeType::from_name("Bool"), None);
    assert_eq!(AttributeType::from_name(""), None);
}
