//! A change as a line for people: when, what, which item, and the difference.

use serde_json::{Map, Value};

use crate::time::iso8601;
use crate::triggers::record::DeliveredRecord;

/// For instance `2026-10-09T05:53:25Z MODIFY pk="a" count: 1 -> 2`.
pub fn line(record: &DeliveredRecord) -> String {
    let event = record.event();
    let change = &event["dynamodb"];
    let name = event["eventName"].as_str().unwrap_or("?");
    // Records have whole seconds.
    let time = iso8601(record.created_at_ms).replace(".000Z", "Z");
    let mut parts = vec![time, name.to_owned()];
    let keys = change["Keys"].as_object();
    parts.extend(attributes(keys).map(|(name, value)| format!("{name}={}", plain(value))));
    let is_key = |name: &str| keys.is_some_and(|keys| keys.contains_key(name));
    let (old, new) = (change["OldImage"].as_object(), change["NewImage"].as_object());
    match (old, new) {
        (Some(old), Some(new)) => parts.extend(differences(old, new)),
        (None, image @ Some(_)) | (image, None) => {
            let others = attributes(image).filter(|(name, _)| !is_key(name));
            parts.extend(others.map(|(name, value)| format!("{name}: {}", plain(value))));
        }
    }
    if event["userIdentity"]["type"] == "Service" {
        parts.push("(expired)".to_owned());
    }
    parts.join(" ")
}

fn attributes(image: Option<&Map<String, Value>>) -> impl Iterator<Item = (&String, &Value)> {
    image.into_iter().flatten()
}

fn differences(old: &Map<String, Value>, new: &Map<String, Value>) -> Vec<String> {
    let gone = old.iter().filter(|(name, _)| !new.contains_key(*name));
    let gone = gone.map(|(name, value)| format!("{name}: {} -> nothing", plain(value)));
    let changed = new.iter().filter(|(name, value)| old.get(*name) != Some(value));
    let changed = changed.map(|(name, value)| match old.get(name) {
        Some(before) => format!("{name}: {} -> {}", plain(before), plain(value)),
        None => format!("{name}: nothing -> {}", plain(value)),
    });
    changed.chain(gone).collect()
}

/// An attribute value without its type, close to how a person would write it.
fn plain(value: &Value) -> String {
    let Some((kind, value)) = value.as_object().and_then(|value| value.iter().next()) else {
        return value.to_string();
    };
    let all = |value: &Value, write: fn(&Value) -> String| -> String {
        value.as_array().into_iter().flatten().map(write).collect::<Vec<_>>().join(", ")
    };
    let bare = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match kind.as_str() {
        "N" => bare(value),
        "NULL" => "null".to_owned(),
        "B" => format!("<{}>", bare(value)),
        "L" => format!("[{}]", all(value, plain)),
        "M" => {
            let members = value.as_object().into_iter().flatten();
            let members = members.map(|(name, value)| format!("{name}: {}", plain(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        "SS" => format!("{{{}}}", all(value, Value::to_string)),
        "NS" | "BS" => {
            format!("{{{}}}", all(value, |value| value.as_str().unwrap_or_default().to_owned()))
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(event: &str, change: Value, expected: &str) {
        let mut change = change;
        change["SequenceNumber"] = json!("1");
        change["ApproximateCreationDateTime"] = json!(1_700_000_000);
        change["Keys"] = json!({"pk": {"S": "a b"}, "sk": {"N": "7"}});
        let mut event = json!({ "eventName": event, "dynamodb": change });
        if expected.ends_with("(expired)") {
            event["userIdentity"] = json!({"Type": "Service"});
        }
        let record = DeliveredRecord::from_answer(event, "arn").unwrap();
        assert_eq!(line(&record), format!("2023-11-14T22:13:20Z {expected}"));
    }

    #[test]
    fn changes_are_written_for_people() {
        let item = |more: Value| {
            let mut item = json!({"pk": {"S": "a b"}, "sk": {"N": "7"}});
            item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            item
        };
        let rich = json!({
            "b": {"BOOL": true}, "l": {"L": [{"N": "1"}, {"NULL": true}]},
            "m": {"M": {"x": {"S": "y"}}}, "s": {"SS": ["p", "q"]}, "t": {"B": "AQI="},
        });
        check(
            "INSERT",
            json!({ "NewImage": item(rich) }),
            "INSERT pk=\"a b\" sk=7 b: true l: [1, null] m: {x: \"y\"} s: {\"p\", \"q\"} t: <AQI=>",
        );
        check(
            "MODIFY",
            json!({
                "OldImage": item(json!({"n": {"N": "1"}, "gone": {"S": "x"}, "same": {"N": "0"}})),
                "NewImage": item(json!({"n": {"N": "2"}, "more": {"S": "z"}, "same": {"N": "0"}})),
            }),
            "MODIFY pk=\"a b\" sk=7 more: nothing -> \"z\" n: 1 -> 2 gone: \"x\" -> nothing",
        );
        check("REMOVE", json!({}), "REMOVE pk=\"a b\" sk=7");
        let old = json!({ "OldImage": item(json!({"n": {"N": "1"}})) });
        check("REMOVE", old, "REMOVE pk=\"a b\" sk=7 n: 1 (expired)");
    }
}
