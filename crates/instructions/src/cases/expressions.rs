//! Parsing and binding expressions, and evaluating a condition.
//!
//! The syntax of repeated texts is cached, so a constant text is parsed once and then only bound
//! (`expression-bind`). `expression-parse` uses more texts than the cache holds, to show what
//! parsing costs.

use std::hint::black_box;

use zenobe_expression::{Binder, Condition, ExpressionKind};
use zenobe_value::{AttributeValue, Attributes, EncodedItem};

use crate::case::{Case, Measured};
use crate::samples::{attributes, expression_names, number, product, text};

const CONDITION: &str = "attribute_exists(pk) AND (#status = :active OR size(tags) > :few) \
                         AND NOT begins_with(#name, :prefix) AND price BETWEEN :low AND :high \
                         AND maker.address.city IN (:rome, :milan)";
const UPDATE: &str = "SET stock = stock - :few, maker.visits = if_not_exists(maker.visits, :zero) + :few, \
                      ratings = list_append(ratings, :more) REMOVE draft ADD weight :low DELETE tags :gone";
const PROJECTION: &str = "pk, #name, #status, maker.address.city, ratings[0], ratings[3], tags";

/// More than the cache holds of one kind, so that every lookup misses.
const TEXTS: usize = 256;

pub fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "expression-parse.condition",
            iterations: 1024,
            prepare: || conditions(varied(CONDITION, "price")),
        },
        Case {
            name: "expression-parse.update",
            iterations: 1024,
            prepare: || updates(varied(UPDATE, "draft")),
        },
        Case {
            name: "expression-parse.projection",
            iterations: 1024,
            prepare: || projections(varied(PROJECTION, "tags")),
        },
        Case {
            name: "expression-bind.condition",
            iterations: 1024,
            prepare: || conditions(vec![CONDITION.to_owned()]),
        },
        Case {
            name: "expression-bind.update",
            iterations: 1024,
            prepare: || updates(vec![UPDATE.to_owned()]),
        },
        Case {
            name: "expression-bind.projection",
            iterations: 1024,
            prepare: || projections(vec![PROJECTION.to_owned()]),
        },
        Case { name: "expression-evaluate", iterations: 4096, prepare: evaluate },
    ]
}

/// The text with different names for one attribute.
fn varied(text: &str, attribute: &str) -> Vec<String> {
    assert!(text.contains(attribute));
    let vary = |number| text.replacen(attribute, &format!("{attribute}{number:03}"), 1);
    (0..TEXTS).map(vary).collect()
}

fn conditions(texts: Vec<String>) -> Measured {
    let (names, values) = (expression_names(), condition_values());
    in_turn(texts, move |text| {
        let mut binder = Binder::new(Some(&names), Some(&values));
        let bound = binder.condition(ExpressionKind::Condition, text);
        assert!(black_box(bound).is_ok() && binder.finish().is_ok());
    })
}

fn updates(texts: Vec<String>) -> Measured {
    let values = attributes([
        (":few", number("2")),
        (":zero", number("0")),
        (":more", AttributeValue::L(vec![number("5")])),
        (":low", number("0.5")),
        (":gone", AttributeValue::Ss(["steel".to_owned()].into())),
    ]);
    in_turn(texts, move |text| {
        let mut binder = Binder::new(None, Some(&values));
        let bound = binder.update(text);
        assert!(black_box(bound).is_ok() && binder.finish().is_ok());
    })
}

fn projections(texts: Vec<String>) -> Measured {
    let names = expression_names();
    in_turn(texts, move |text| {
        let mut binder = Binder::new(Some(&names), None);
        let bound = binder.projection(text);
        assert!(black_box(bound).is_ok() && binder.finish().is_ok());
    })
}

fn in_turn(texts: Vec<String>, mut each: impl FnMut(&str) + 'static) -> Measured {
    let mut next = 0;
    Box::new(move |iterations| {
        for _ in 0..iterations {
            each(black_box(&texts[next]));
            next = (next + 1) % texts.len();
        }
    })
}

fn evaluate() -> Measured {
    let condition = bound_condition();
    let item = EncodedItem::encode(&product());
    Box::new(move |iterations| {
        for _ in 0..iterations {
            assert!(condition.evaluate(Some(black_box(item.as_item()))));
        }
    })
}

fn bound_condition() -> Condition {
    let (names, values) = (expression_names(), condition_values());
    let mut binder = Binder::new(Some(&names), Some(&values));
    binder.condition(ExpressionKind::Condition, CONDITION).expect("the condition is right")
}

/// The product meets the condition, and deciding that takes all of the condition.
fn condition_values() -> Attributes {
    attributes([
        (":active", text("sold out")),
        (":few", number("2")),
        (":prefix", text("Filter")),
        (":low", number("100")),
        (":high", number("2000")),
        (":rome", text("Roma")),
        (":milan", text("Milano")),
    ])
}
