//! Properties of the language as a whole.

use std::collections::BTreeMap;

use proptest::prelude::*;
use zenobe_expression::{Binder, ExpressionError, ExpressionFault, ExpressionKind};
use zenobe_value::{AttributeValue, Attributes, EncodedItem, Path};

use crate::condition_model::model;
use crate::generate::item;
use crate::update_model;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn no_text_panics(text in ".{0,60}") {
        check_all_kinds(&text);
    }

    #[test]
    fn no_sequence_of_tokens_panics(
        tokens in proptest::collection::vec(proptest::sample::select(VOCABULARY), 0..24),
    ) {
        check_all_kinds(&tokens.join(" "));
        check_all_kinds(&tokens.concat());
    }

    #[test]
    fn conditions_agree_with_the_model(model in model(), item in item()) {
        let mut values = BTreeMap::new();
        let text = model.print(&mut values);
        let mut binder = Binder::new(None, Some(&values));
        let condition = match binder.condition(ExpressionKind::Condition, &text) {
            Ok(condition) => condition,
            Err(error) => return Err(TestCaseError::fail(format!("{text}: {error}"))),
        };
        if !values.is_empty() {
            prop_assert_eq!(binder.finish(), Ok(()));
        }
        let again = Binder::new(None, Some(&values)).condition(ExpressionKind::Condition, &text);
        prop_assert_eq!(again.as_ref(), Ok(&condition), "{}", &text);
        let encoded = EncodedItem::encode(&item);
        prop_assert_eq!(condition.evaluate(Some(encoded.as_item())), model.evaluate(&item), "{}", &text);
        prop_assert_eq!(condition.evaluate(None), model.evaluate(&Attributes::new()), "{}", text);
    }

    #[test]
    fn updates_agree_with_the_model(actions in update_model::actions(), item in item()) {
        let mut values = BTreeMap::new();
        let text = update_model::print(&actions, &mut values);
        let update = Binder::new(None, Some(&values)).update(&text);
        let update = update.map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        let again = Binder::new(None, Some(&values)).update(&text);
        prop_assert_eq!(again.as_ref(), Ok(&update), "{}", &text);
        let expected = update_model::apply(&actions, &item).map(Some);
        prop_assert_eq!(update.apply(Some(&item), &Attributes::new()), expected, "{}", text);
    }

    /// An update needs only the attributes that its paths enter: splicing the result into the rest
    /// equals updating the whole item.
    #[test]
    fn updates_need_only_what_they_touch(actions in update_model::actions(), item in item()) {
        let mut values = BTreeMap::new();
        let text = update_model::print(&actions, &mut values);
        let update = Binder::new(None, Some(&values)).update(&text).expect("a legal update");
        let whole = update.apply_to(item.clone()).map(|item| EncodedItem::encode(&item));

        let names: Vec<&str> = update.paths().into_iter().map(Path::root).collect();
        let encoded = EncodedItem::encode(&item);
        let touched = update.apply_to(encoded.as_item().decode_some(&names));
        let spliced = touched.map(|touched| encoded.as_item().splice(&names, &touched));
        prop_assert_eq!(spliced, whole, "{}", text);
    }

    #[test]
    fn a_text_is_bound_to_the_placeholders_of_its_request(one in any::<u32>(), two in any::<u32>()) {
        let text = "SET #a = #a + :v";
        for (name, number) in [("x", one), ("y", two)] {
            let names = BTreeMap::from([("#a".to_owned(), name.to_owned())]);
            let values = BTreeMap::from([(":v".to_owned(), AttributeValue::N(u64::from(number).into()))]);
            let update = Binder::new(Some(&names), Some(&values)).update(text).expect("an update");
            let zero = Attributes::from([(name.to_owned(), AttributeValue::N(0.into()))]);
            let expected = Attributes::from([(name.to_owned(), values[":v"].clone())]);
            prop_assert_eq!(update.apply_to(zero), Ok(expected));
        }
    }

    #[test]
    fn projections_keep_what_they_name(item in item()) {
        let text = "a, m.x, m.y.z, l[1], l[0].x";
        let projection = Binder::new(None, None).projection(text).expect("a projection");
        let encoded = EncodedItem::encode(&item);
        let projected = projection.apply(encoded.as_item()).as_item().decode();
        prop_assert_eq!(projected.get("a"), item.get("a"));
        prop_assert!(!projected.contains_key("b"));
        for path in &projection.paths()[1..3] {
            prop_assert_eq!(path.lookup(&projected), path.lookup(&item));
        }
        let elements = projection.paths()[3..].iter().filter(|path| path.lookup(&item).is_some());
        let packed = match projected.get("l") {
            Some(AttributeValue::L(elements)) => elements.len(),
            _ => 0,
        };
        prop_assert_eq!(packed, elements.count());
    }
}

const VOCABULARY: &[&str] = &[
    "a",
    "b",
    "#a",
    "#x",
    ":v",
    ":x",
    "(",
    ")",
    "((",
    "))",
    "[",
    "]",
    "[0]",
    ".",
    ",",
    "=",
    "<>",
    "<",
    "<=",
    "+",
    "-",
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "IN",
    "SET",
    "REMOVE",
    "ADD",
    "DELETE",
    "size",
    "size(",
    "contains(",
    "attribute_exists(",
    "begins_with(",
    "attribute_type(",
    "if_not_exists(",
    "list_append(",
    "foo(",
    "name",
    "1",
    "_",
    "é",
];

fn check_all_kinds(text: &str) {
    let names = BTreeMap::from([("#a".to_owned(), "x.y".to_owned())]);
    let values = BTreeMap::from([(":v".to_owned(), AttributeValue::S("S".to_owned()))]);
    let binder = || Binder::new(Some(&names), Some(&values));
    check_fault(
        text,
        binder().update(text).map(|update| {
            let item = Attributes::new();
            // Only the absence of a panic matters, not the outcome.
            let _ = update.apply(Some(&item), &item);
        }),
    );
    check_fault(
        text,
        binder().condition(ExpressionKind::Filter, text).map(|condition| {
            condition.evaluate(None);
        }),
    );
    check_fault(text, binder().key_condition(text).map(drop));
    check_fault(text, binder().projection(text).map(drop));
}

/// A syntax error shows part of the text.
fn check_fault(text: &str, outcome: Result<(), ExpressionError>) {
    if let Err(ExpressionError { fault: ExpressionFault::Syntax { token, near }, .. }) = outcome {
        assert!(text.contains(&near), "{near:?} in {text:?}");
        assert!(token == "<EOF>" || near.contains(&token), "{token:?} in {near:?}");
    }
}
