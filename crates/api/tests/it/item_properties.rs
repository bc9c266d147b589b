//! Items survive a round trip, and single-item operations behave like a map.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use zenobe_value::Number;

use crate::cases::World;

const CREATE_TABLE: &str = r#"{"TableName":"hash","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"p","AttributeType":"S"}],
    "KeySchema":[{"AttributeName":"p","KeyType":"HASH"}]}"#;

const CONDITION_FAILED: &str = r#"< 400 {"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed"}"#;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn items_come_back_in_canonical_form(attributes in attributes()) {
        run(async {
            let world = world_with_table().await;
            let written: Vec<String> = attributes
                .iter()
                .map(|(name, value)| format!("{}:{}", escaped(name), value.written))
                .collect();
            let put = format!(
                r#"{{"TableName":"hash","Item":{{{}{}"p":{{"S":"k"}}}}}}"#,
                written.join(","),
                if written.is_empty() { "" } else { "," },
            );
            prop_assert_eq!(world.answer("PutItem", &put).await, "< 200 {}");

            let mut canonical: BTreeMap<&str, &str> =
                attributes.iter().map(|(name, value)| (&**name, &*value.canonical)).collect();
            canonical.insert("p", r#"{"S":"k"}"#);
            let canonical: Vec<String> = canonical
                .iter()
                .map(|(name, value)| format!("{}:{value}", canonical_text(name)))
                .collect();
            let get = r#"{"TableName":"hash","Key":{"p":{"S":"k"}}}"#;
            let expected = format!(r#"< 200 {{"Item":{{{}}}}}"#, canonical.join(","));
            prop_assert_eq!(world.answer("GetItem", get).await, expected);
            Ok(())
        })?;
    }

    #[test]
    fn single_item_operations_behave_like_a_map(steps in vec(step(), 1..40)) {
        run(async {
            let world = world_with_table().await;
            let mut model = BTreeMap::new();
            for step in &steps {
                let expected = step.model(&mut model);
                let (operation, body) = step.request();
                prop_assert_eq!(world.answer(operation, &body).await, expected, "{:?}", step);
            }
            Ok(())
        })?;
    }
}

fn run(test: impl Future<Output = Result<(), TestCaseError>>) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(test)
}

async fn world_with_table() -> World {
    let world = World::new().await;
    let answer = world.answer("CreateTable", CREATE_TABLE).await;
    assert!(answer.starts_with("< 200 "), "{answer}");
    world
}

/// An attribute value as a client may write it, and as it comes back.
#[derive(Debug, Clone)]
struct Value {
    written: String,
    canonical: String,
}

fn attributes() -> impl Strategy<Value = BTreeMap<String, Value>> {
    let name = text().prop_filter("not empty, not the key", |name| !name.is_empty() && name != "p");
    btree_map(name, value(), 0..6)
}

fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        text().prop_map(|text| typed("S", &escaped(&text), &canonical_text(&text))),
        number().prop_map(|(written, number)| {
            typed("N", &format!("\"{written}\""), &format!("\"{number}\""))
        }),
        any::<bool>().prop_map(|flag| typed("BOOL", &flag.to_string(), &flag.to_string())),
        Just(typed("NULL", "true", "true")),
        Just(typed("B", "\"AP8=\"", "\"AP8=\"")),
        btree_set(text(), 1..4).prop_map(|members| string_set(&members)),
        vec(number(), 1..4).prop_map(number_set),
    ];
    scalar.prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|elements| list(&elements)),
            btree_map(name(), inner, 0..4).prop_map(|members| map(&members))
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    text().prop_map(|text| if text.is_empty() { "empty".to_owned() } else { text })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{0,3}", any::<String>().prop_map(|text| text.chars().take(6).collect())]
}

/// A number in one of its spellings, and its value.
fn number() -> impl Strategy<Value = (String, Number)> {
    (any::<i64>(), -100..100_i32, any::<bool>()).prop_map(|(coefficient, exponent, zeros)| {
        let sign = if coefficient < 0 { "-" } else { "" };
        let padding = if zeros { "00" } else { "" };
        let written = format!("{sign}{padding}{}.0E{exponent}", coefficient.unsigned_abs());
        let number = Number::parse(&written).expect("a number within the limits");
        (written, number)
    })
}

fn typed(attribute_type: &str, written: &str, canonical: &str) -> Value {
    Value {
        written: format!(r#"{{"{attribute_type}" : {written}}}"#),
        canonical: format!(r#"{{"{attribute_type}":{canonical}}}"#),
    }
}

fn string_set(members: &BTreeSet<String>) -> Value {
    let written: Vec<String> = members.iter().rev().map(|member| escaped(member)).collect();
    let canonical: Vec<String> = members.iter().map(|member| canonical_text(member)).collect();
    typed("SS", &format!("[{}]", written.join(",")), &format!("[{}]", canonical.join(",")))
}

fn number_set(members: Vec<(String, Number)>) -> Value {
    let members: BTreeMap<Number, String> =
        members.into_iter().map(|(written, number)| (number, written)).collect();
    let written: Vec<String> = members.values().map(|member| format!("\"{member}\"")).collect();
    let canonical = members.keys().rev().map(|member| format!("\"{member}\""));
    let canonical: Vec<String> = canonical.collect();
    typed("NS", &format!("[{}]", written.join(",")), &format!("[{}]", canonical.join(",")))
}

fn list(elements: &[Value]) -> Value {
    let join = |part: fn(&Value) -> &str| elements.iter().map(part).collect::<Vec<_>>().join(",");
    let (written, canonical) = (join(|value| &value.written), join(|value| &value.canonical));
    typed("L", &format!("[{written}]"), &format!("[{canonical}]"))
}

fn map(members: &BTreeMap<String, Value>) -> Value {
    let written: Vec<String> = members
        .iter()
        .rev()
        .map(|(name, value)| format!("{}:{}", escaped(name), value.written))
        .collect();
    let canonical: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("{}:{}", canonical_text(name), value.canonical))
        .collect();
    typed("M", &format!("{{{}}}", written.join(",")), &format!("{{{}}}", canonical.join(",")))
}

/// A JSON string with everything escaped.
fn escaped(text: &str) -> String {
    let units = text.encode_utf16().map(|unit| format!("\\u{unit:04X}"));
    format!("\"{}\"", units.collect::<String>())
}

/// A JSON string with only the necessary escapes.
fn canonical_text(text: &str) -> String {
    let escape = |character: char| match character {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        control if control < ' ' => format!("\\u{:04x}", u32::from(control)),
        plain => plain.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

/// An operation on the item `key`, whose only other attribute is the number `n`.
#[derive(Debug, Clone)]
enum Step {
    Put { key: char, n: i64, condition: Option<Existence> },
    Delete { key: char, condition: Option<Existence> },
    Add { key: char, n: i64, condition: Option<Existence> },
    Get { key: char },
}

#[derive(Debug, Clone, Copy)]
enum Existence {
    Exists,
    NotExists,
}

fn step() -> impl Strategy<Value = Step> {
    let key = || prop_oneof![Just('a'), Just('b'), Just('c')];
    let condition =
        || proptest::option::of(prop_oneof![Just(Existence::Exists), Just(Existence::NotExists)]);
    let n = -1_000..1_000_i64;
    prop_oneof![
        (key(), n.clone(), condition()).prop_map(|(key, n, condition)| Step::Put {
            key,
            n,
            condition
        }),
        (key(), condition()).prop_map(|(key, condition)| Step::Delete { key, condition }),
        (key(), n, condition()).prop_map(|(key, n, condition)| Step::Add { key, n, condition }),
        key().prop_map(|key| Step::Get { key }),
    ]
}

impl Step {
    fn request(&self) -> (&'static str, String) {
        let condition = |condition: &Option<Existence>| match condition {
            None => "",
            Some(Existence::Exists) => r#","ConditionExpression":"attribute_exists(p)""#,
            Some(Existence::NotExists) => r#","ConditionExpression":"attribute_not_exists(n)""#,
        };
        match self {
            Step::Put { key, n, condition: given } => {
                let rest = condition(given);
                (
                    "PutItem",
                    format!(
                        r#"{{"TableName":"hash","Item":{{"p":{{"S":"{key}"}},"n":{{"N":"{n}"}}}},"ReturnValues":"ALL_OLD"{rest}}}"#
                    ),
                )
            }
            Step::Delete { key, condition: given } => {
                let rest = condition(given);
                (
                    "DeleteItem",
                    format!(
                        r#"{{"TableName":"hash","Key":{{"p":{{"S":"{key}"}}}},"ReturnValues":"ALL_OLD"{rest}}}"#
                    ),
                )
            }
            Step::Add { key, n, condition: given } => {
                let rest = condition(given);
                (
                    "UpdateItem",
                    format!(
                        r#"{{"TableName":"hash","Key":{{"p":{{"S":"{key}"}}}},"UpdateExpression":"ADD n :n","ExpressionAttributeValues":{{":n":{{"N":"{n}"}}}},"ReturnValues":"ALL_NEW"{rest}}}"#
                    ),
                )
            }
            Step::Get { key } => {
                ("GetItem", format!(r#"{{"TableName":"hash","Key":{{"p":{{"S":"{key}"}}}}}}"#))
            }
        }
    }

    /// Applies the step to the model and returns the expected response.
    fn model(&self, items: &mut BTreeMap<char, i64>) -> String {
        let answer = |member: &str, key: char, n: Option<i64>| match n {
            None => "< 200 {}".to_owned(),
            Some(n) => format!(r#"< 200 {{"{member}":{{"n":{{"N":"{n}"}},"p":{{"S":"{key}"}}}}}}"#),
        };
        let holds = |items: &BTreeMap<char, i64>, key, condition: Option<Existence>| match condition
        {
            None => true,
            Some(Existence::Exists) => items.contains_key(&key),
            Some(Existence::NotExists) => !items.contains_key(&key),
        };
        match *self {
            Step::Put { key, condition, .. }
            | Step::Delete { key, condition }
            | Step::Add { key, condition, .. }
                if !holds(items, key, condition) =>
            {
                CONDITION_FAILED.to_owned()
            }
            Step::Put { key, n, .. } => answer("Attributes", key, items.insert(key, n)),
            Step::Delete { key, .. } => answer("Attributes", key, items.remove(&key)),
            Step::Add { key, n, .. } => {
                let sum = items.entry(key).or_default();
                *sum += n;
                answer("Attributes", key, Some(*sum))
            }
            Step::Get { key } => answer("Item", key, items.get(&key).copied()),
        }
    }
}
