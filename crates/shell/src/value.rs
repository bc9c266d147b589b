//! Attribute values from DynamoDB's JSON, in three notations.

use serde_json::{Map, Value};

/// A row of a result: attribute values by name.
pub type Row = Map<String, Value>;

/// The type and the value of `{"S": "x"}`.
fn typed(value: &Value) -> Option<(&str, &Value)> {
    let (kind, value) = value.as_object()?.iter().next()?;
    Some((kind, value))
}

pub fn is_number(value: &Value) -> bool {
    matches!(typed(value), Some(("N", _)))
}

/// A value in a column. Texts are bare unless they could be mistaken for something else.
pub fn cell(value: &Value) -> String {
    match typed(value) {
        Some(("S", Value::String(text))) if is_plain(text) => escaped(text),
        _ => literal(value),
    }
}

/// Whether a text can't be mistaken for any other cell.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.eq_ignore_ascii_case("null") && text.trim().len() == text.len()
}

/// A value as a PartiQL literal. PartiQL has none for binaries; they print as `base64'…'`.
pub fn literal(value: &Value) -> String {
    let Some((kind, value)) = typed(value) else { return escaped(&value.to_string()) };
    let bare = |value: &Value| escaped(value.as_str().unwrap_or_default());
    let quoted = |value: &Value| format!("'{}'", bare(value).replace('\'', "''"));
    let binary = |value: &Value| format!("base64'{}'", bare(value));
    let list = |write: &dyn Fn(&Value) -> String| {
        value.as_array().into_iter().flatten().map(write).collect::<Vec<_>>().join(", ")
    };
    match kind {
        "S" => quoted(value),
        "N" => bare(value),
        "B" => binary(value),
        "BOOL" => value.to_string(),
        "NULL" => "NULL".to_owned(),
        "L" => format!("[{}]", list(&literal)),
        "M" => {
            let members = value.as_object().into_iter().flatten().map(|(name, value)| {
                format!("'{}': {}", escaped(name).replace('\'', "''"), literal(value))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        "SS" => format!("<<{}>>", list(&quoted)),
        "NS" => format!("<<{}>>", list(&bare)),
        "BS" => format!("<<{}>>", list(&binary)),
        _ => escaped(&value.to_string()),
    }
}

/// A text without control characters, which could move the cursor, or worse.
pub fn escaped(text: &str) -> String {
    if !text.contains(is_control) {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match is_control(letter) {
            true => escaped.extend(letter.escape_default()),
            false => escaped.push(letter),
        }
    }
    escaped
}

/// Control characters, and marks that change the text direction.
fn is_control(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A value as JSON without types: sets are arrays, binaries are base64 strings, and numbers keep
/// all their digits.
pub fn plain_json(value: &Value) -> String {
    let Some((kind, value)) = typed(value) else { return value.to_string() };
    let list = |write: &dyn Fn(&Value) -> String| {
        let elements = value.as_array().into_iter().flatten().map(write);
        format!("[{}]", elements.collect::<Vec<_>>().join(","))
    };
    match kind {
        "N" => number(value),
        "NULL" => "null".to_owned(),
        "L" => list(&plain_json),
        "M" => value.as_object().map_or_else(|| "{}".to_owned(), plain_object),
        "NS" => list(&number),
        _ => value.to_string(),
    }
}

pub fn plain_object(members: &Row) -> String {
    let members = members
        .iter()
        .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), plain_json(value)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// The digits unchanged: a float would lose some.
fn number(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    match serde_json::from_str::<serde_json::Number>(text) {
        Ok(_) => text.to_owned(),
        Err(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_three_notations() {
        for (value, in_cell, as_literal, as_json) in [
            (json!({"S": "x y"}), "x y", "'x y'", "\"x y\""),
            (json!({"S": ""}), "''", "''", "\"\""),
            (json!({"S": "null"}), "'null'", "'null'", "\"null\""),
            (json!({"S": " x"}), "' x'", "' x'", "\" x\""),
            (json!({"S": "it's"}), "it's", "'it''s'", "\"it's\""),
            (
                json!({"S": "a\nb\u{1b}[2J"}),
                "a\\nb\\u{1b}[2J",
                "'a\\nb\\u{1b}[2J'",
                "\"a\\nb\\u001b[2J\"",
            ),
            (json!({"S": "a\u{202e}b"}), "a\\u{202e}b", "'a\\u{202e}b'", "\"a\u{202e}b\""),
            (
                json!({"N": "12345678901234567890.123456789"}),
                "12345678901234567890.123456789",
                "12345678901234567890.123456789",
                "12345678901234567890.123456789",
            ),
            (json!({"BOOL": true}), "true", "true", "true"),
            (json!({"NULL": true}), "NULL", "NULL", "null"),
            (json!({"B": "AQI="}), "base64'AQI='", "base64'AQI='", "\"AQI=\""),
            (json!({"L": [{"N": "1"}, {"S": "a"}]}), "[1, 'a']", "[1, 'a']", "[1,\"a\"]"),
            (
                json!({"M": {"k": {"S": "v"}, "it's": {"NULL": true}}}),
                "{'it''s': NULL, 'k': 'v'}",
                "{'it''s': NULL, 'k': 'v'}",
                "{\"it's\":null,\"k\":\"v\"}",
            ),
            (json!({"SS": ["a", "b"]}), "<<'a', 'b'>>", "<<'a', 'b'>>", "[\"a\",\"b\"]"),
            (json!({"NS": ["1", "2.5"]}), "<<1, 2.5>>", "<<1, 2.5>>", "[1,2.5]"),
            (json!({"BS": ["AQI="]}), "<<base64'AQI='>>", "<<base64'AQI='>>", "[\"AQI=\"]"),
        ] {
            assert_eq!(cell(&value), in_cell, "{value}");
            assert_eq!(literal(&value), as_literal, "{value}");
            assert_eq!(plain_json(&value), as_json, "{value}");
        }
    }
}
