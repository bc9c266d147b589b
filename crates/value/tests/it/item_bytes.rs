//! The item encoding: golden bytes, round trips and walking.

use std::collections::BTreeSet;

use bytes::Bytes;
use proptest::prelude::*;
use zenobe_value::{
    AttributeValue, Attributes, EncodedItem, EncodedValue, ItemBuffer, ItemRef, Number, ValueView,
    item_size_bytes,
};

use crate::generate::{attributes, number, tiny_value, value};
use crate::golden;

#[test]
fn items_have_golden_bytes() {
    golden::check("items.txt", |name| {
        let item = EncodedItem::encode(&golden_item(name));
        assert_eq!(EncodedItem::from_bytes(item.as_bytes().clone()), Ok(item.clone()));
        golden::hex(item.as_bytes())
    });
}

fn golden_item(name: &str) -> Attributes {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let number = |text: &str| AttributeValue::N(Number::parse(text).expect("a number"));
    let value = match name {
        "empty" => return Attributes::new(),
        "example" => {
            let tags = AttributeValue::Ss(["new".to_owned(), "hot".to_owned()].into());
            return [("id", number("42")), ("name", text("Ada")), ("tags", tags)]
                .map(|(name, value)| (name.to_owned(), value))
                .into();
        }
        "string" => text("é"),
        "string-empty" => text(""),
        "string-of-130" => text(&"x".repeat(130)),
        "number-zero" => number("-0"),
        "number-fraction" => number("-1.50"),
        "number-large" => number("1e20"),
        "binary" => AttributeValue::B(vec![0, 1, 0xFF]),
        "true" => AttributeValue::Bool(true),
        "false" => AttributeValue::Bool(false),
        "null" => AttributeValue::Null,
        "number-set" => {
            let members =
                ["10", "9", "-1", "0.5"].map(|text| Number::parse(text).expect("a number"));
            AttributeValue::Ns(members.into())
        }
        "binary-set" => AttributeValue::Bs(BTreeSet::from([vec![2], vec![1, 0], vec![]])),
        "list-empty" => AttributeValue::L(vec![]),
        "list" => AttributeValue::L(vec![number("1"), text("a"), AttributeValue::L(vec![])]),
        "map-empty" => AttributeValue::M(Attributes::new()),
        "map" => AttributeValue::M(
            [("b".to_owned(), AttributeValue::Null), ("a".to_owned(), number("7"))].into(),
        ),
        "list-long" => AttributeValue::L(vec![text(&"y".repeat(126)), text("z")]),
        _ => panic!("an unknown item: {name}"),
    };
    Attributes::from([("a".to_owned(), value)])
}

proptest! {
    #[test]
    fn items_survive_the_round_trip(attributes in attributes()) {
        let encoded = EncodedItem::encode(&attributes);
        let validated = EncodedItem::from_bytes(Bytes::copy_from_slice(encoded.as_bytes()));
        prop_assert_eq!(validated.as_ref(), Ok(&encoded));
        let item = encoded.as_item();
        prop_assert_eq!(item.decode(), attributes.clone());
        prop_assert_eq!(item.size_bytes(), item_size_bytes(&attributes));
        prop_assert_eq!(item.len(), attributes.len());
        let walked: Attributes =
            item.iter().map(|(name, value)| (name.to_owned(), value.decode())).collect();
        prop_assert_eq!(walked, attributes.clone());
        for (name, value) in &attributes {
            let found = item.get(name).expect("the attribute");
            prop_assert_eq!(found.size_bytes(), value.size_bytes());
            prop_assert_eq!(found.attribute_type(), value.attribute_type());
            let alone = EncodedValue::encode(value);
            prop_assert_eq!(found, alone.as_value());
        }
    }

    #[test]
    fn values_survive_the_round_trip(value in value()) {
        let encoded = EncodedValue::encode(&value);
        prop_assert_eq!(encoded.as_value().decode(), value.clone());
        prop_assert_eq!(encoded.as_value().size_bytes(), value.size_bytes());
        prop_assert_eq!(EncodedValue::from(encoded.as_value()), encoded);
    }

    #[test]
    fn equal_values_have_equal_bytes(left in tiny_value(), right in tiny_value()) {
        let equal = EncodedValue::encode(&left) == EncodedValue::encode(&right);
        prop_assert_eq!(equal, left == right);
    }

    #[test]
    fn retaining_attributes_copies_them(attributes in attributes(), kept in any::<u8>()) {
        let keep = |name: &str| name.bytes().fold(kept, |hash, byte| hash.rotate_left(1) ^ byte) % 2 == 0;
        let retained = EncodedItem::encode(&attributes).as_item().retain(keep);
        let expected: Attributes =
            attributes.into_iter().filter(|(name, _)| keep(name)).collect();
        prop_assert_eq!(retained, EncodedItem::encode(&expected));
    }

    #[test]
    fn items_in_a_buffer_are_those_that_came_in(
        items in prop::collection::vec(attributes(), 0..8),
        expected in 0..1_000_000usize,
    ) {
        let items: Vec<EncodedItem> = items.iter().map(EncodedItem::encode).collect();
        let mut buffer = ItemBuffer::default();
        items.iter().for_each(|item| buffer.push(item.as_item(), expected));
        let refs: Vec<ItemRef<'_>> = items.iter().map(EncodedItem::as_item).collect();
        prop_assert_eq!(buffer.iter().collect::<Vec<_>>(), refs);
        prop_assert_eq!(buffer.into_items(), items);
    }

    #[test]
    fn spliced_items_have_the_bytes_of_encoded_ones(
        old in attributes(),
        new in attributes(),
        replaced in any::<u8>(),
    ) {
        let is_replaced =
            |name: &str| name.bytes().fold(replaced, |hash, byte| hash.rotate_left(1) ^ byte) % 2 == 0;
        let encoded = EncodedItem::encode(&old);
        let names: Vec<String> = old.keys().chain(new.keys()).filter(|name| is_replaced(name)).cloned().collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let decoded = encoded.as_item().decode_some(&names);
        let (out, mut expected): (Attributes, Attributes) =
            old.into_iter().partition(|(name, _)| is_replaced(name));
        prop_assert_eq!(decoded, out);
        let with: Attributes =
            new.into_iter().filter(|(name, _)| !expected.contains_key(name)).collect();
        expected.extend(with.clone());
        prop_assert_eq!(encoded.as_item().splice(&names, &with), EncodedItem::encode(&expected));
    }

    #[test]
    fn numbers_compare_alike_as_bytes(left in number(), right in number()) {
        let [left_bytes, right_bytes] =
            [left, right].map(|number| EncodedValue::encode(&AttributeValue::N(number)));
        let compared = left_bytes.as_value().compare(&right_bytes.as_value());
        prop_assert_eq!(compared, Some(left.cmp(&right)));
    }

    #[test]
    fn values_compare_as_trees_do(left in value(), right in value()) {
        let (encoded_left, encoded_right) = (EncodedValue::encode(&left), EncodedValue::encode(&right));
        let expected = match (&left, &right) {
            (AttributeValue::S(left), AttributeValue::S(right)) => Some(left.cmp(right)),
            (AttributeValue::N(left), AttributeValue::N(right)) => Some(left.cmp(right)),
            (AttributeValue::B(left), AttributeValue::B(right)) => Some(left.cmp(right)),
            _ => None,
        };
        prop_assert_eq!(encoded_left.as_value().compare(&encoded_right.as_value()), expected);
    }
}

#[test]
fn a_large_item_keeps_its_size_in_the_header() {
    let attributes = Attributes::from([("a".to_owned(), AttributeValue::S("x".repeat(409_599)))]);
    let encoded = EncodedItem::encode(&attributes);
    let item = ItemRef::parse(encoded.as_bytes()).expect("a valid item");
    assert_eq!(item.size_bytes(), 409_600);
    assert_eq!(item.retain(|_| true), encoded);
    assert_eq!(item.retain(|_| false), EncodedItem::encode(&Attributes::new()));
}

#[test]
fn sets_and_lists_are_viewed_in_order() {
    let set = EncodedItem::encode(&golden_item("number-set"));
    let Some(ValueView::Ns(members)) = set.as_item().get("a").map(|value| value.view()) else {
        panic!("a set of numbers");
    };
    assert_eq!(members.texts().collect::<Vec<_>>(), ["-1", "0.5", "9", "10"]);
    assert_eq!(members.len(), 4);
    assert!(members.contains(b"0.5") && !members.contains(b"0.50"));

    let list = EncodedItem::encode(&golden_item("list"));
    let Some(ValueView::L(members)) = list.as_item().get("a").map(|value| value.view()) else {
        panic!("a list");
    };
    assert_eq!(members.len(), 3);
    assert!(matches!(members.get(1).map(|value| value.view()), Some(ValueView::S("a"))));
    assert!(members.get(3).is_none());
}

/// Finding as many names as an update may use, unsorted and repeated, works like finding a few.
#[test]
fn many_names_are_found_in_any_order() {
    let name = |number: usize| format!("name {:02}", number * 37 % 40);
    let item: Attributes = (0..40).map(|n| (name(n), AttributeValue::Bool(true))).collect();
    let wanted: Vec<String> =
        (0..20).chain(10..15).map(name).chain(["absent".to_owned()]).collect();
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    let encoded = EncodedItem::encode(&item);
    let (found, rest): (Attributes, Attributes) =
        item.into_iter().partition(|(name, _)| wanted.contains(&name.as_str()));
    assert_eq!(encoded.as_item().decode_some(&wanted), found);
    assert_eq!(encoded.as_item().splice(&wanted, &Attributes::new()), EncodedItem::encode(&rest));
}
