//! What the legacy parameters lower to and expressions can't express.

use zenobe_expression::{Action, Condition, ListedPath, Operand, Projection, Update, UpdateError};
use zenobe_value::{Attributes, EncodedItem, Path, PathElement};

use crate::notation::{parse_item, parse_value};

#[test]
fn not_contains_needs_the_attribute() {
    let item = EncodedItem::encode(&parse_item("{s: 'abc', l: [1], n: 1}"));
    let check = |attribute: &str, element: &str, expected: bool| {
        let element = Operand::literal(&parse_value(element));
        let condition = Condition::not_contains(Path::top_level(attribute), element);
        assert_eq!(condition.evaluate(Some(item.as_item())), expected, "{attribute}");
    };
    check("s", "'b'", false);
    check("s", "'x'", true);
    check("l", "1", false);
    check("l", "2", true);
    check("n", "'x'", true);
    check("absent", "'x'", false);
}

#[test]
fn empty_junctions_have_a_value() {
    assert!(Condition::And(Vec::new()).evaluate(None));
    assert!(!Condition::Or(Vec::new()).evaluate(None));
}

#[test]
fn legacy_add_appends_to_lists() {
    let add = |attribute: &str, value: &str| {
        let path = Path::top_level(attribute);
        apply(Action::LegacyAdd { path, value: parse_value(value).into() })
    };
    assert_eq!(add("l", "[2, 'x']"), Ok("{l: [1, 2, 'x'], n: 1, ss: <'a'>}"));
    assert_eq!(add("n", "2"), Ok("{l: [1], n: 3, ss: <'a'>}"));
    assert_eq!(add("ss", "<'b'>"), Ok("{l: [1], n: 1, ss: <'a', 'b'>}"));
    assert_eq!(add("x", "[2]"), Ok("{l: [1], n: 1, ss: <'a'>, x: [2]}"));
    assert_eq!(add("x", "2"), Ok("{l: [1], n: 1, ss: <'a'>, x: 2}"));
    assert_eq!(add("n", "[2]"), Err(UpdateError::TypeMismatch));
    assert_eq!(add("l", "2"), Err(UpdateError::TypeMismatch));
    assert_eq!(add("ss", "<1>"), Err(UpdateError::TypeMismatch));
}

#[test]
fn legacy_delete_removes_members() {
    let delete = |attribute: &str, value: &str| {
        let path = Path::top_level(attribute);
        apply(Action::LegacyDelete { path, value: parse_value(value).into() })
    };
    assert_eq!(delete("ss", "<'b'>"), Ok("{l: [1], n: 1, ss: <'a'>}"));
    assert_eq!(delete("ss", "<'a'>"), Ok("{l: [1], n: 1}"));
    assert_eq!(delete("absent", "<'a'>"), Ok("{l: [1], n: 1, ss: <'a'>}"));
    assert_eq!(delete("n", "<1>"), Err(UpdateError::TypeMismatch));
}

#[test]
fn an_empty_update_creates_the_item() {
    let key = parse_item("{pk: 'k'}");
    let nothing = Update { actions: Vec::new() };
    assert_eq!(nothing.apply(None, &key), Ok(Some(key.clone())));
    let removal = Update { actions: vec![Action::Remove { path: Path::top_level("a") }] };
    assert_eq!(removal.apply(None, &key), Ok(None));
}

#[test]
fn projections_of_names_alone_copy_attributes() {
    let item = EncodedItem::encode(&parse_item("{a: 1, b: [{x: 2}], c: 'z'}"));
    let projection = Projection::new(vec![Path::top_level("b"), Path::top_level("absent")]);
    let expected = EncodedItem::encode(&parse_item("{b: [{x: 2}]}"));
    assert_eq!(projection.apply(item.as_item()).as_bytes(), expected.as_bytes());
}

#[test]
fn paths_are_listed_as_messages_print_them() {
    let name = |name: &str| PathElement::Name(name.into());
    let path = Path::new("a", vec![PathElement::Index(1), name("x.y")]);
    assert_eq!(ListedPath(&path).to_string(), "[a, [1], x.y]");
}

fn apply(action: Action) -> Result<&'static str, UpdateError> {
    let old = parse_item("{n: 1, l: [1], ss: <'a'>}");
    let update = Update { actions: vec![action] };
    let new = update.apply(Some(&old), &Attributes::new())?.expect("the item exists");
    Ok(String::leak(crate::notation::print_item(&new)))
}
