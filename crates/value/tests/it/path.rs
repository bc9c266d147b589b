//! Paths into trees and into bytes lead to the same values.

use proptest::prelude::*;
use zenobe_value::{AttributeValue, Attributes, EncodedItem, Number, Path, PathElement};

use crate::generate::attributes;

#[test]
fn paths_lead_to_values() {
    let list = AttributeValue::L(vec![AttributeValue::Null, AttributeValue::N(Number::from(7))]);
    let map = AttributeValue::M([("b".to_owned(), list.clone())].into());
    let item = Attributes::from([("a".to_owned(), map.clone())]);

    let seven = AttributeValue::N(Number::from(7));
    check(&item, &Path::new("a", vec![]), Some(&map));
    check(&item, &Path::new("a", vec![name("b")]), Some(&list));
    check(&item, &Path::new("a", vec![name("b"), index(1)]), Some(&seven));
    check(&item, &Path::new("a", vec![name("b"), index(2)]), None);
    check(&item, &Path::new("a", vec![name("b"), index(0), name("c")]), None);
    check(&item, &Path::new("a", vec![name("b"), name("1")]), None);
    check(&item, &Path::new("a", vec![index(0)]), None);
    for absent in ["A", "", "b"] {
        check(&item, &Path::top_level(absent), None);
    }
}

#[test]
fn paths_are_displayed_as_expressions_spell_them() {
    let path = Path::new("a", vec![name("b.c"), index(3), index(0), name("d")]);
    assert_eq!(path.to_string(), "a.b.c[3][0].d");
    assert_eq!(path.root(), "a");
    assert!(!path.is_top_level() && Path::top_level("a").is_top_level());
}

proptest! {
    #[test]
    fn every_value_is_found_by_its_path(item in attributes()) {
        for (name, value) in &item {
            check_below(&item, &Path::top_level(name.clone()), value);
        }
    }
}

fn check_below(item: &Attributes, path: &Path, value: &AttributeValue) {
    check(item, path, Some(value));
    let extended = |element| {
        let below = path.below_root().iter().cloned().chain([element]);
        Path::new(path.root(), below.collect())
    };
    match value {
        AttributeValue::L(members) => {
            for (position, member) in members.iter().enumerate() {
                check_below(item, &extended(index(position)), member);
            }
            check(item, &extended(index(members.len())), None);
        }
        AttributeValue::M(members) => {
            for (name, member) in members {
                check_below(item, &extended(PathElement::Name(name.as_str().into())), member);
            }
            check(item, &extended(name("no such name")), None);
        }
        _ => check(item, &extended(index(0)), None),
    }
}

fn check(item: &Attributes, path: &Path, expected: Option<&AttributeValue>) {
    assert_eq!(path.lookup(item), expected, "{path}");
    let encoded = EncodedItem::encode(item);
    let found = encoded.as_item().lookup(path).map(|value| value.decode());
    assert_eq!(found.as_ref(), expected, "{path} in bytes");
}

fn name(name: &str) -> PathElement {
    PathElement::Name(name.into())
}

fn index(index: usize) -> PathElement {
    PathElement::Index(index)
}
