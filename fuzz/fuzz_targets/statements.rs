//! PartiQL statements: any text is parsed or rejected, and parsed statements can be bound, lowered
//! and evaluated.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use zenobe_expression::partiql::{Parameters, StatementKind, parse};
use zenobe_value::{AttributeValue, Attributes, EncodedItem};

fuzz_target!(|text: &str| {
    let Ok(statement) = parse(text) else { return };
    let World { item, encoded } = &*WORLD;
    let values: Vec<AttributeValue> =
        item.values().cycle().take(statement.parameters).cloned().collect();
    let parameters = Parameters::check(&statement, &values).expect("there are enough");
    let test = match &statement.kind {
        StatementKind::Select(select) | StatementKind::Exists(select) => {
            if let Some(projection) = select.projection() {
                let columns = select.columns.as_ref().map_or(0, Vec::len);
                let projected = projection.apply(encoded.as_item()).as_item().decode();
                assert!(projected.len() <= columns, "{text}");
            }
            select.condition.as_ref()
        }
        StatementKind::Insert(insert) => {
            let _ = insert.item(parameters);
            None
        }
        StatementKind::Update(update) => {
            if let Ok(update) = update.bind(parameters)
                && let Ok(new) = update.apply_to(item.clone())
            {
                assert_eq!(EncodedItem::encode(&new).as_item().decode(), new, "{text}");
                let fragments = update.fragments(&new);
                assert!(fragments.keys().all(|name| new.contains_key(name)), "{text}");
            }
            update.condition.as_ref()
        }
        StatementKind::Delete(delete) => delete.condition.as_ref(),
    };
    if let Some(Ok(predicate)) = test.map(|test| test.bind(parameters)) {
        let condition = predicate.lower();
        // Other tests check the result; here evaluation only has to end.
        let _ = condition.evaluate(Some(encoded.as_item()));
        let _ = condition.evaluate(None);
        let _ = (condition.paths(), condition.cost(), predicate.mentions("a"));
    }
});

/// What statements refer to.
struct World {
    item: Attributes,
    encoded: EncodedItem,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let number = |number: i64| AttributeValue::N(number.into());
    let map = Attributes::from([("k".to_owned(), number(2)), ("l".to_owned(), text("deep"))]);
    let list = AttributeValue::L(vec![number(1), text("b"), AttributeValue::M(map.clone())]);
    let item = Attributes::from([
        ("pk".to_owned(), text("key")),
        ("a".to_owned(), text("abc")),
        ("b".to_owned(), number(7)),
        ("c".to_owned(), AttributeValue::B(vec![1, 2, 3])),
        ("d".to_owned(), list),
        ("e".to_owned(), AttributeValue::M(map)),
        ("f".to_owned(), AttributeValue::Bool(true)),
        ("s".to_owned(), AttributeValue::Ss(["a".to_owned(), "b".to_owned()].into())),
        ("x.y".to_owned(), AttributeValue::Null),
    ]);
    World { encoded: EncodedItem::encode(&item), item }
});
