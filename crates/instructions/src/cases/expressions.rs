//! Parsing and binding expressions, and evaluating a condition.

use std::hint::black_box;

use zenobe_expression::{Binder, Condition, ExpressionKind};
use zenobe_value::{AttributeValue, Attributes, EncodedItem};

use crate::case::{Case, Operation};
use crate::samples::{attributes, expression_names, number, product, text};

const CONDITION: &str = "attribute_exists(pk) AND (#status = :active OR size(tags) > :few) \
                         AND NOT begins_with(#name, :prefix) AND price BETWEEN :low AND :high \
                         AND maker.address.city IN (:rome, :milan)";
const UPDATE: &str = "SET stock = stock - :few, maker.visits = if_not_exists(maker.visits, :zero) + :few, \
                      ratings = list_append(ratings, :more) REMOVE draft ADD weight :low DELETE tags :gone";
const PROJECTION: &str = "pk, #name, #status, maker.address.city, ratings[0], ratings[3], tags";

pub fn cases() -> Vec<Case> {
    vec![
        Case { name: "expression-parse.condition", iterations: 1024, prepare: parse_condition },
        Case { name: "expression-parse.update", iterations: 1024, prepare: parse_update },
        Case { name: "expression-parse.projection", iterations: 1024, prepare: parse_projection },
        Case { name: "expression-evaluate", iterations: 4096, prepare: evaluate },
    ]
}

fn parse_condition() -> Operation {
    let (names, values) = (expression_names(), condition_values());
    Box::new(move |iterations| {
        for _ in 0..iterations {
            let mut binder = Binder::new(Some(&names), Some(&values));
            let bound = binder.condition(ExpressionKind::Condition, black_box(CONDITION));
            assert!(black_box(bound).is_ok() && binder.finish().is_ok());
        }
    })
}

fn parse_update() -> Operation {
    let values = attributes([
        (":few", number("2")),
        (":zero", number("0")),
        (":more", AttributeValue::L(vec![number("5")])),
        (":low", number("0.5")),
        (":gone", AttributeValue::Ss(["steel".to_owned()].into())),
    ]);
    Box::new(move |iterations| {
        for _ in 0..iterations {
            let mut binder = Binder::new(None, Some(&values));
            let bound = binder.update(black_box(UPDATE));
            assert!(black_box(bound).is_ok() && binder.finish().is_ok());
        }
    })
}

fn parse_projection() -> Operation {
    let names = expression_names();
    Box::new(move |iterations| {
        for _ in 0..iterations {
            let mut binder = Binder::new(Some(&names), None);
            let bound = binder.projection(black_box(PROJECTION));
            assert!(black_box(bound).is_ok() && binder.finish().is_ok());
        }
    })
}

fn evaluate() -> Operation {
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

/// The product meets the condition, and all of it has to be looked at to know.
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
