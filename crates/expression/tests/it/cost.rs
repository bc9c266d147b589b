//! Expressions that ask for more than their length suggests. What is legal bounds their work.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use zenobe_expression::{
    Action, Binder, Condition, Cost, ExpressionKind, Operand, SetOperand, SetValue, Update,
    UpdateError,
};
use zenobe_value::limits::ITEM_SIZE_BYTES_MAX;
use zenobe_value::{AttributeValue, Attributes, EncodedItem};

use crate::notation::parse_item;

#[test]
fn a_literal_is_copied_once_however_often_it_is_used() {
    let values = nulls(3);
    let update =
        bind_update("SET a = :v, b = if_not_exists(x, :v), c = list_append(:v, :v)", &values);
    let literals: Vec<&Arc<AttributeValue>> = update.actions.iter().flat_map(literals).collect();
    assert_eq!(literals.len(), 4);
    assert!(literals.iter().all(|literal| Arc::ptr_eq(literal, literals[0])));
}

#[test]
fn a_literal_is_encoded_once_however_often_it_is_used() {
    let values = nulls(3);
    let Condition::And(leaves) =
        bind_condition("a = :v AND b = :v AND size(:v) = c AND size(:v) = d", &values)
    else {
        panic!("a conjunction");
    };
    let literals = leaves.iter().map(|leaf| match leaf {
        Condition::Compare { right: Operand::Literal(literal), .. }
        | Condition::Compare { left: Operand::Literal(literal), .. } => literal,
        other => panic!("{other:?}"),
    });
    let literals: Vec<_> = literals.collect();
    assert!(Arc::ptr_eq(literals[0], literals[1]));
    assert!(Arc::ptr_eq(literals[2], literals[3]));
    assert!(!Arc::ptr_eq(literals[0], literals[2]));
}

#[test]
fn values_larger_than_any_item_are_not_built() {
    let assignments = |count: usize, value: &str| {
        let actions: Vec<String> = (0..count).map(|number| format!("a{number}={value}")).collect();
        format!("SET {}", actions.join(","))
    };
    // A list_append may not contain another, but it may contain an if_not_exists that does.
    let nested = |count: usize| {
        let open = "list_append(:v, if_not_exists(x, ";
        format!("SET a = {}:v{}", open.repeat(count), "))".repeat(count))
    };
    // Each use is half of the largest item.
    let values = nulls(ITEM_SIZE_BYTES_MAX / 4);
    let apply = |text: &str| bind_update(text, &values).apply(None, &parse_item("{pk: 'k'}"));
    let built = |text: &str| apply(text).map(|item| item.expect("an item").len());
    assert_eq!(built(&assignments(3, ":v")), Ok(4));
    assert_eq!(built(&nested(2)), Ok(2));
    for text in [
        assignments(300, ":v"),
        assignments(150, "if_not_exists(x, :v)"),
        assignments(100, "list_append(:v, :v)"),
        nested(100),
        format!(
            "SET a = {}:v{}",
            "list_append(if_not_exists(x, ".repeat(100),
            "), :v)".repeat(100)
        ),
    ] {
        assert_eq!(apply(&text), Err(UpdateError::TooLarge), "{text}");
    }
}

#[test]
fn every_other_fault_outranks_the_size() {
    let values = nulls(ITEM_SIZE_BYTES_MAX);
    let old = parse_item("{n: 1}");
    for (text, expected) in [
        ("SET a = :v, b = absent", UpdateError::MissingAttribute),
        ("SET b = absent, a = :v", UpdateError::MissingAttribute),
        ("SET a = :v, b = list_append(:v, n)", UpdateError::OperandType),
        ("SET a = :v, n.x = :v", UpdateError::InvalidPath),
        ("SET a = :v REMOVE n.x", UpdateError::InvalidPath),
        ("SET a = :v REMOVE n", UpdateError::TooLarge),
    ] {
        assert_eq!(bind_update(text, &values).apply(Some(&old), &old), Err(expected), "{text}");
    }
}

#[test]
fn sets_larger_than_any_item_are_not_built() {
    let members = (0..200).map(|number| format!("{number:05}").repeat(1000)).collect();
    let values = BTreeMap::from([(":v".to_owned(), AttributeValue::Ss(members))]);
    let old = parse_item("{a: <'x'>}");
    for text in ["ADD a :v", "ADD b :v"] {
        let outcome = bind_update(text, &values).apply(Some(&old), &old);
        assert_eq!(outcome, Err(UpdateError::TooLarge), "{text}");
    }
    let kept = bind_update("DELETE a :v", &values).apply(Some(&old), &old);
    assert_eq!(kept, Ok(Some(old)));
}

#[test]
fn the_cost_counts_every_mention() {
    let values = nulls(1000);
    let cost = bind_condition("a = :v", &values).cost();
    assert_eq!(cost.path_count, 1);
    assert!(cost.literal_size_bytes >= 1000);
    let twice = bind_condition("a = :v OR NOT b.c IN (:v, size(d))", &values).cost();
    let literal_size_bytes = 2 * cost.literal_size_bytes;
    assert_eq!(twice, Cost { path_count: 3, literal_size_bytes });
    assert!(twice.of_item(100) > literal_size_bytes + 300);
}

/// A naive search would compare the part at every position, almost to its end.
#[test]
fn a_part_is_found_where_a_naive_search_would_take_forever() {
    let half = ITEM_SIZE_BYTES_MAX / 2;
    let mut part = vec![0; half - 10];
    part.push(1);
    let check = |container: Vec<u8>, expected: bool| {
        let item = Attributes::from([("b".to_owned(), AttributeValue::B(container))]);
        let element = AttributeValue::B(part.clone());
        assert_eq!(contains(&item, "b", &element), expected);
    };
    check(vec![0; 2 * half], false);
    check([vec![0; half], vec![1]].concat(), true);
    check(part[1..].to_vec(), false);
    check(part.clone(), true);
}

proptest! {
    #[test]
    fn parts_are_found_as_the_definition_says(
        bytes in prop::collection::vec(0..3u8, 0..100),
        part in prop::collection::vec(0..3u8, 0..5),
    ) {
        let expected = (0..=bytes.len()).any(|start| bytes[start..].starts_with(&part));
        let text = |bytes: &[u8]| bytes.iter().map(|byte| ['a', 'ä', '😀'][usize::from(*byte)]).collect();
        let item = Attributes::from([
            ("b".to_owned(), AttributeValue::B(bytes.clone())),
            ("s".to_owned(), AttributeValue::S(text(&bytes))),
        ]);
        prop_assert_eq!(contains(&item, "b", &AttributeValue::B(part.clone())), expected);
        prop_assert_eq!(contains(&item, "s", &AttributeValue::S(text(&part))), expected);
    }
}

fn contains(item: &Attributes, attribute: &str, element: &AttributeValue) -> bool {
    let values = BTreeMap::from([(":v".to_owned(), element.clone())]);
    let condition = bind_condition(&format!("contains({attribute}, :v)"), &values);
    condition.evaluate(Some(EncodedItem::encode(item).as_item()))
}

/// `:v`, a list whose elements are two bytes each.
fn nulls(count: usize) -> BTreeMap<String, AttributeValue> {
    BTreeMap::from([(":v".to_owned(), AttributeValue::L(vec![AttributeValue::Null; count]))])
}

fn bind_update(text: &str, values: &BTreeMap<String, AttributeValue>) -> Update {
    Binder::new(None, Some(values)).update(text).expect("a legal update")
}

fn bind_condition(text: &str, values: &BTreeMap<String, AttributeValue>) -> Condition {
    let condition = Binder::new(None, Some(values)).condition(ExpressionKind::Filter, text);
    condition.expect("a legal condition")
}

fn literals(action: &Action) -> Vec<&Arc<AttributeValue>> {
    fn of_operand(operand: &SetOperand) -> Vec<&Arc<AttributeValue>> {
        match operand {
            SetOperand::Path(_) => Vec::new(),
            SetOperand::Literal(value) => vec![value],
            SetOperand::IfNotExists { default, .. } => of_operand(default),
            SetOperand::ListAppend(front, back) => [of_operand(front), of_operand(back)].concat(),
        }
    }
    match action {
        Action::Set { value: SetValue::Operand(operand), .. } => of_operand(operand),
        other => panic!("{other:?}"),
    }
}
