//! Queries checked against a naive model: all items of a partition, filtered by comparing values,
//! and sorted.

use std::cmp::Ordering;

use proptest::collection::btree_set;
use proptest::prelude::*;
use zenobe_engine::command::{PageRequest, PutItem, Query};
use zenobe_expression::{KeyCondition, KeyOperator};
use zenobe_value::{AttributeValue, Attributes, Number};

use crate::support::commands::Script;
use crate::support::{block_on, notation::print_item};

#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Number,
    Binary,
}

#[derive(Debug, Clone)]
struct Case {
    kind: Kind,
    stored: Vec<AttributeValue>,
    operator: Option<KeyOperator>,
    forward: bool,
    limit: Option<u32>,
    target: Target,
}

#[derive(Debug, Clone, Copy)]
enum Target {
    Table,
    LocalIndex,
    GlobalIndex,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_query_returns_what_its_condition_says_in_order(case in case()) {
        let (actual, expected) = block_on(async { (queried(&case).await, expected(&case)) });
        prop_assert_eq!(actual, expected);
    }
}

/// All pages of the query, as values of the queried sort key.
async fn queried(case: &Case) -> Vec<String> {
    let mut script = Script::new().await;
    let sort_type = match case.kind {
        Kind::Text => "S",
        Kind::Number => "N",
        Kind::Binary => "B",
    };
    let create = match case.target {
        Target::Table => [format!("create t pk:S v:{sort_type}"), String::new(), String::new()],
        Target::LocalIndex | Target::GlobalIndex => [
            "create t pk:S sk:N".into(),
            format!("lsi local v:{sort_type} keys"),
            format!("gsi global g:S v:{sort_type} all"),
        ],
    };
    let create: Vec<&str> =
        create.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
    assert_eq!(script.run(&create).await, "ok\n");
    for (number, value) in case.stored.iter().enumerate() {
        put(&script, case, number, "p", "g", value).await;
        // Neighbours that no query may see.
        put(&script, case, number + 100, "other p", "other g", value).await;
    }
    let (index, partition) = match case.target {
        Target::Table => (None, "pk"),
        Target::LocalIndex => (Some("local".to_owned()), "pk"),
        Target::GlobalIndex => (Some("global".to_owned()), "g"),
    };
    let partition_value = if partition == "pk" { "p" } else { "g" };
    let mut key_conditions = vec![KeyCondition {
        attribute: partition.into(),
        operator: KeyOperator::Equal(AttributeValue::S(partition_value.into())),
    }];
    if let Some(operator) = &case.operator {
        key_conditions.push(KeyCondition { attribute: "v".into(), operator: operator.clone() });
    }
    let mut query = Query {
        table: script.table("t"),
        index,
        key_conditions,
        forward: case.forward,
        page: PageRequest { limit: case.limit, ..PageRequest::default() },
    };
    let mut values = Vec::new();
    loop {
        let page = script.engine().query(&query).await.expect("a valid query");
        assert!(case.limit.is_none_or(|limit| page.scanned_count <= u64::from(limit)));
        for item in page.items.iter() {
            values.push(print_value_of(&item.decode()));
        }
        query.page.start_key = page.last_evaluated_key;
        if query.page.start_key.is_none() {
            return values;
        }
    }
}

async fn put(
    script: &Script,
    case: &Case,
    number: usize,
    pk: &str,
    g: &str,
    value: &AttributeValue,
) {
    let mut item = Attributes::from([
        ("pk".into(), AttributeValue::S(pk.into())),
        ("g".into(), AttributeValue::S(g.into())),
        ("v".into(), value.clone()),
    ]);
    if !matches!(case.target, Target::Table) {
        // Out of order, so that only the index's own key can sort the entries.
        let scattered = i64::try_from(number * 37 % 101).expect("a small number");
        item.insert("sk".into(), AttributeValue::N(Number::from(scattered)));
    }
    let command = PutItem { table: script.table("t"), item, condition: None };
    script.engine().put_item(command).await.expect("a valid item");
}

fn expected(case: &Case) -> Vec<String> {
    let mut values: Vec<&AttributeValue> =
        case.stored.iter().filter(|value| matches(value, case.operator.as_ref())).collect();
    values.sort_by(|one, other| compare(one, other));
    if !case.forward {
        values.reverse();
    }
    let print =
        |value: &AttributeValue| print_value_of(&Attributes::from([("v".into(), value.clone())]));
    values.into_iter().map(print).collect()
}

fn print_value_of(item: &Attributes) -> String {
    print_item(&Attributes::from([("v".into(), item["v"].clone())]))
}

fn matches(value: &AttributeValue, operator: Option<&KeyOperator>) -> bool {
    match operator {
        None => true,
        Some(KeyOperator::Equal(other)) => compare(value, other).is_eq(),
        Some(KeyOperator::Less(other)) => compare(value, other).is_lt(),
        Some(KeyOperator::LessOrEqual(other)) => compare(value, other).is_le(),
        Some(KeyOperator::Greater(other)) => compare(value, other).is_gt(),
        Some(KeyOperator::GreaterOrEqual(other)) => compare(value, other).is_ge(),
        Some(KeyOperator::Between(low, high)) => {
            compare(value, low).is_ge() && compare(value, high).is_le()
        }
        Some(KeyOperator::Within { low, low_inclusive, high, high_inclusive }) => {
            let (low, high) = (compare(value, low), compare(value, high));
            (low.is_gt() || low.is_eq() && *low_inclusive)
                && (high.is_lt() || high.is_eq() && *high_inclusive)
        }
        Some(KeyOperator::NotIndexable) => false,
        Some(KeyOperator::BeginsWith(prefix)) => match (value, prefix) {
            (AttributeValue::S(text), AttributeValue::S(prefix)) => text.starts_with(prefix),
            (AttributeValue::B(bytes), AttributeValue::B(prefix)) => bytes.starts_with(prefix),
            _ => panic!("begins_with on a number"),
        },
    }
}

fn compare(one: &AttributeValue, other: &AttributeValue) -> Ordering {
    match (one, other) {
        (AttributeValue::S(one), AttributeValue::S(other)) => one.as_bytes().cmp(other.as_bytes()),
        (AttributeValue::N(one), AttributeValue::N(other)) => one.cmp(other),
        (AttributeValue::B(one), AttributeValue::B(other)) => one.cmp(other),
        _ => panic!("values of two types"),
    }
}

fn case() -> impl Strategy<Value = Case> {
    let kind = prop_oneof![Just(Kind::Text), Just(Kind::Number), Just(Kind::Binary)];
    let target =
        prop_oneof![Just(Target::Table), Just(Target::LocalIndex), Just(Target::GlobalIndex)];
    let page = (any::<bool>(), proptest::option::of(1..4u32));
    (kind, target, page).prop_flat_map(|(kind, target, (forward, limit))| {
        (btree_set(text_of(kind), 0..12), proptest::option::of(operator(kind))).prop_map(
            move |(stored, operator)| Case {
                kind,
                stored: distinct(stored.iter().map(|text| value(kind, text)).collect()),
                operator,
                forward,
                limit,
                target,
            },
        )
    })
}

/// A number can have several texts.
fn distinct(mut values: Vec<AttributeValue>) -> Vec<AttributeValue> {
    values.sort_by(compare);
    values.dedup();
    values
}

fn operator(kind: Kind) -> impl Strategy<Value = KeyOperator> {
    (0..11u8, text_of(kind), text_of(kind)).prop_map(move |(which, one, other)| {
        let (one, other) = (value(kind, &one), value(kind, &other));
        match (which, kind) {
            (0, _) => KeyOperator::Equal(one),
            (1, _) => KeyOperator::Less(one),
            (2, _) => KeyOperator::LessOrEqual(one),
            (3, _) => KeyOperator::Greater(one),
            (4, _) => KeyOperator::GreaterOrEqual(one),
            (5, Kind::Text | Kind::Binary) => KeyOperator::BeginsWith(one),
            (7.., _) => KeyOperator::Within {
                low: one,
                low_inclusive: which % 2 == 0,
                high: other,
                high_inclusive: which < 9,
            },
            _ => KeyOperator::Between(one, other),
        }
    })
}

/// Values as text: from few characters, so that prefixes and equal values are common, and with the
/// bytes that break key encodings.
fn text_of(kind: Kind) -> BoxedStrategy<String> {
    match kind {
        Kind::Text => "[ab\0\u{1}é]{1,3}".boxed(),
        Kind::Number => "-?[1-9][0-9]{0,1}(\\.[0-9]{0,1}[1-9])?(e-?(1|2|30))?".boxed(),
        Kind::Binary => "(00|01|fe|ff){1,3}".boxed(),
    }
}

fn value(kind: Kind, text: &str) -> AttributeValue {
    match kind {
        Kind::Text => AttributeValue::S(text.into()),
        Kind::Number => AttributeValue::N(Number::parse(text).expect("a number")),
        Kind::Binary => {
            let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("a byte");
            AttributeValue::B((0..text.len()).step_by(2).map(byte).collect())
        }
    }
}
