//! Expressions: every parser binds or rejects any text, and bound expressions can be evaluated.

#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use zenobe_expression::{Binder, ExpressionKind};
use zenobe_value::{AttributeValue, Attributes, EncodedItem, item_size_bytes};

fuzz_target!(|text: &str| {
    let World { names, values, item, encoded, key } = &*WORLD;
    let binder = || Binder::new(Some(names), Some(values));
    for kind in [ExpressionKind::Condition, ExpressionKind::Filter] {
        let mut binder = binder();
        if let Ok(condition) = binder.condition(kind, text) {
            // Other tests check the result; here evaluation only has to end.
            let _ = condition.evaluate(Some(encoded.as_item()));
            let _ = condition.evaluate(None);
            let _ = condition.paths();
        }
        let _ = binder.finish();
    }
    let _ = binder().key_condition(text);
    if let Ok(projection) = binder().projection(text) {
        let projected = projection.apply(encoded.as_item());
        assert!(projected.as_item().size_bytes() <= item_size_bytes(item), "{text}");
    }
    if let Ok(update) = binder().update(text) {
        for old in [Some(item), None] {
            if let Ok(Some(new)) = update.apply(old, key) {
                let fragments = update.fragments(&new);
                assert!(fragments.keys().all(|name| new.contains_key(name)), "{text}");
                assert_eq!(EncodedItem::encode(&new).as_item().decode(), new, "{text}");
            }
        }
    }
});

/// What expressions refer to.
struct World {
    names: BTreeMap<String, String>,
    values: BTreeMap<String, AttributeValue>,
    item: Attributes,
    encoded: EncodedItem,
    key: Attributes,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let number = |number: i64| AttributeValue::N(number.into());
    let key = Attributes::from([("pk".to_owned(), text("key"))]);
    let map = Attributes::from([("k".to_owned(), number(2)), ("l".to_owned(), text("deep"))]);
    let list = AttributeValue::L(vec![number(1), text("b"), AttributeValue::M(map.clone())]);
    let set = AttributeValue::Ss(["a".to_owned(), "b".to_owned()].into());
    let mut item = key.clone();
    item.extend([
        ("a".to_owned(), text("abc")),
        ("b".to_owned(), number(7)),
        ("c".to_owned(), AttributeValue::B(vec![1, 2, 3])),
        ("d".to_owned(), list.clone()),
        ("e".to_owned(), AttributeValue::M(map)),
        ("x.y".to_owned(), set.clone()),
    ]);
    World {
        names: [("#a", "a"), ("#d", "d"), ("#dotted", "x.y")]
            .map(|(placeholder, name)| (placeholder.to_owned(), name.to_owned()))
            .into(),
        values: [
            (":s", text("ab")),
            (":n", number(1)),
            (":b", AttributeValue::B(vec![1])),
            (":l", list),
            (":ss", set),
            (":type", text("S")),
            (":true", AttributeValue::Bool(true)),
            (":null", AttributeValue::Null),
        ]
        .map(|(placeholder, value)| (placeholder.to_owned(), value))
        .into(),
        encoded: EncodedItem::encode(&item),
        item,
        key,
    }
});
