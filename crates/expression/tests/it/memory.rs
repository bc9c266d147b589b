//! What bound expressions hold in memory: each name and value once, however often it is used.

use std::collections::BTreeMap;

use zenobe_expression::limits::{EXPRESSION_SIZE_BYTES_MAX, PATH_ELEMENTS_MAX};
use zenobe_expression::{Binder, ExpressionKind};
use zenobe_testing::allocations;
use zenobe_value::AttributeValue;
use zenobe_value::limits::ATTRIBUTE_NAME_SIZE_BYTES_MAX;

/// A few copies of the longest name, and the syntax.
const BOUND_SIZE_BYTES_MAX: usize = 8 * ATTRIBUTE_NAME_SIZE_BYTES_MAX;

fn names() -> BTreeMap<String, String> {
    BTreeMap::from([("#a".to_owned(), "a".repeat(ATTRIBUTE_NAME_SIZE_BYTES_MAX))])
}

fn values(size_bytes: usize) -> BTreeMap<String, AttributeValue> {
    BTreeMap::from([(":v".to_owned(), AttributeValue::S("v".repeat(size_bytes)))])
}

/// As many pieces as fit in an expression.
fn filled(first: &str, separator: &str, piece: impl Fn(usize) -> String) -> String {
    let mut text = first.to_owned();
    for number in 0.. {
        let separator = if number == 0 { "" } else { separator };
        let next = format!("{separator}{}", piece(number));
        if text.len() + next.len() > EXPRESSION_SIZE_BYTES_MAX {
            break;
        }
        text.push_str(&next);
    }
    text
}

/// Binds, and returns the peak of the memory used.
fn peak(bind: impl FnOnce(&mut Binder<'_>)) -> usize {
    let (names, values) = (names(), values(1 << 20));
    let mut binder = Binder::new(Some(&names), Some(&values));
    allocations::peak(|| bind(&mut binder)).1
}

#[track_caller]
fn check(bind: impl FnOnce(&mut Binder<'_>)) {
    let peak_bytes = peak(bind);
    assert!(peak_bytes < BOUND_SIZE_BYTES_MAX, "{peak_bytes}");
}

#[test]
fn a_long_name_is_held_once_however_often_it_is_used() {
    let deep = vec!["#a"; PATH_ELEMENTS_MAX - 1].join(".");
    let removals = filled("REMOVE ", ",", |number| format!("#a.#a.b{number}"));
    check(|binder| drop(binder.update(&removals).unwrap()));
    let deep_removals = filled("REMOVE ", ",", |number| format!("{deep}.b{number}"));
    check(|binder| drop(binder.update(&deep_removals).unwrap()));
    let sets = filled("SET ", ",", |number| format!("b{number}=#a.#a.#a"));
    check(|binder| drop(binder.update(&sets).unwrap()));
    let projection = filled("", ",", |number| format!("#a.#a.b{number}"));
    check(|binder| drop(binder.projection(&projection).unwrap()));
    let condition = filled("", " AND ", |_| "b = #a.#a.#a.#a.#a.#a.#a.#a.#a.#a".to_owned());
    check(|binder| drop(binder.condition(ExpressionKind::Filter, &condition).unwrap()));
}

#[test]
fn the_value_of_a_key_condition_is_held_no_more_often_than_a_key_has_attributes() {
    let conditions: Vec<String> = (0..140).map(|number| format!("b{number}=:v")).collect();
    let conditions = conditions.join(" AND ");
    let peak_bytes = peak(|binder| {
        let bound = binder.key_condition(&conditions).unwrap();
        assert_eq!(bound.len(), 140);
    });
    // Eight copies are kept, and the current one exists until it is dropped.
    assert!(peak_bytes < 10 << 20, "{peak_bytes}");
}
