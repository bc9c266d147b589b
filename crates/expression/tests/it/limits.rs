//! Texts at the limits of the language, bound on a small stack.

use std::collections::BTreeMap;

use zenobe_expression::{Binder, ExpressionFault, ExpressionKind};
use zenobe_value::AttributeValue;

use crate::notation::parse_item;

#[test]
fn nesting_cannot_exhaust_the_stack() {
    let nested = |open: &str, core: &str, close: &str| {
        let depth = (4096 - core.len()) / (open.len() + close.len());
        format!("{}{core}{}", open.repeat(depth), close.repeat(depth))
    };
    check(
        "(".repeat(4096),
        &|fault| matches!(fault, ExpressionFault::Syntax { token, .. } if token == "<EOF>"),
    );
    check(nested("(", "a = :v", ")"), &|fault| *fault == ExpressionFault::RedundantParentheses);
    check(nested("(", "a", ")"), &|fault| matches!(fault, ExpressionFault::Syntax { .. }));
    check(nested("(NOT", "(a = :v)", ")"), &|fault| *fault == ExpressionFault::TooManyOperators);
    check(nested("NOT ", "a = :v", ""), &|fault| *fault == ExpressionFault::TooManyOperators);
    check(nested("(a<b OR ", "a < b", ")"), &|fault| *fault == ExpressionFault::TooManyOperators);
    check(nested("f(", "a", ")"), &|fault| *fault == ExpressionFault::TooManyOperators);
    check(nested("a=(", "b", ")"), &|fault| matches!(fault, ExpressionFault::Syntax { .. }));
    check(nested("a.", "b = :v", ""), &|fault| {
        matches!(fault, ExpressionFault::PathTooDeep { .. })
    });
    check(nested("a IN (", "a", ")"), &|fault| matches!(fault, ExpressionFault::Syntax { .. }));
}

#[test]
fn nested_updates_cannot_exhaust_the_stack() {
    let nested = |function: &str, depth: usize| {
        format!("SET a = {}b{}", format!("{function}(").repeat(depth), ")".repeat(depth))
    };
    let bind = |text: String| on_small_stack(move || Binder::new(None, None).update(&text));
    let fault = bind(nested("f", 1300)).expect_err("too deep").fault;
    assert_eq!(fault, ExpressionFault::TooManyOperators);
    let fault = bind(nested("f", 300)).expect_err("unknown function").fault;
    assert_eq!(fault, ExpressionFault::InvalidFunctionName { function: "f".to_owned() });
    let fault = bind(nested("", 2000)).expect_err("doubled").fault;
    assert_eq!(fault, ExpressionFault::RedundantParentheses);
}

#[test]
fn what_is_legal_fits_a_small_stack() {
    on_small_stack(|| {
        let text = format!("{}a < b{}", "(a < b OR ".repeat(149), ")".repeat(149));
        let condition = Binder::new(None, None).condition(ExpressionKind::Filter, &text);
        assert!(!condition.expect("a legal condition").evaluate(None));

        let open = "list_append(l, if_not_exists(x, ";
        let text = format!("SET a = {}l{}", open.repeat(110), "))".repeat(110));
        let update = Binder::new(None, None).update(&text).expect("a legal update");
        let item = parse_item("{l: [1]}");
        let new = update.apply(Some(&item), &item).expect("lists").expect("an item");
        assert!(matches!(&new["a"], AttributeValue::L(elements) if elements.len() == 111));
    });
}

#[test]
fn texts_have_a_maximum_length() {
    let padded = |length: usize| format!("{:length$}", "attribute_exists(a)");
    let bind = |text: String| Binder::new(None, None).condition(ExpressionKind::Condition, &text);
    assert!(bind(padded(4096)).is_ok());
    let fault = bind(padded(4097)).expect_err("too long").fault;
    assert_eq!(fault, ExpressionFault::TooLong { size_bytes: 4097 });
    assert_eq!(bind(String::new()).expect_err("empty").fault, ExpressionFault::Empty);
}

#[test]
fn operators_are_counted() {
    // Counts comparisons and the ANDs between them.
    let comparisons = |count: usize| vec!["a<b"; count].join(" AND ");
    let bind = |text: String| Binder::new(None, None).condition(ExpressionKind::Condition, &text);
    assert!(bind(comparisons(150)).is_ok());
    assert!(bind(format!("NOT {}", comparisons(150))).is_ok());
    let fault = bind(comparisons(151)).expect_err("too many").fault;
    assert_eq!(fault, ExpressionFault::TooManyOperators);

    // Counts sums, but not the actions that assign them.
    let sums = |count: usize| {
        let sums: Vec<String> = (0..count).map(|number| format!("a{number}=b+c")).collect();
        format!("SET {}", sums.join(","))
    };
    let bind = |text: String| Binder::new(None, None).update(&text);
    assert!(bind(sums(300)).is_ok());
    assert!(bind(format!("{},z=b", sums(300))).is_ok());
    let fault = bind(sums(301)).expect_err("too many").fault;
    assert_eq!(fault, ExpressionFault::TooManyOperators);
}

#[test]
fn in_lists_up_to_a_hundred_values() {
    let bind = |listed: usize| {
        let text = format!("a IN ({})", vec!["b"; listed].join(","));
        Binder::new(None, None).condition(ExpressionKind::Filter, &text)
    };
    assert!(bind(100).is_ok());
    let fault = bind(101).expect_err("too many").fault;
    assert_eq!(fault, ExpressionFault::TooManyListed { count: 101 });
}

fn check(text: String, expected: &dyn Fn(&ExpressionFault) -> bool) {
    assert!(text.len() <= 4096);
    let shown: String = text.chars().take(30).collect();
    let outcome = on_small_stack(move || {
        let values = BTreeMap::from([(":v".to_owned(), AttributeValue::Null)]);
        Binder::new(None, Some(&values)).condition(ExpressionKind::Condition, &text).map(drop)
    });
    let fault = outcome.expect_err("the limit is exceeded").fault;
    assert!(expected(&fault), "{shown}…: {fault:?}");
}

/// A quarter of a thread's usual stack.
fn on_small_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(512 * 1024).spawn(run);
    thread.expect("a thread").join().expect("no panic")
}
