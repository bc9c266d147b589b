//! Comma-separated values, as RFC 4180 defines them.

use serde_json::Value;

use crate::value::{Row, plain_json};

/// A header and a line per row. Lists, maps and sets are JSON. A missing attribute is an empty
/// field, an empty string is an empty field in quotes, and NULL is the word.
pub fn render(rows: &[Row], columns: &[String]) -> String {
    let names: Vec<String> = columns.iter().map(|name| quoted_if_needed(name)).collect();
    let mut text = line(&names);
    for row in rows {
        let fields = columns.iter().map(|name| row.get(name).map(field).unwrap_or_default());
        text.push_str(&line(&fields.collect::<Vec<_>>()));
    }
    text
}

fn line(fields: &[String]) -> String {
    fields.join(",") + "\r\n"
}

fn field(value: &Value) -> String {
    match (value.get("S"), value.get("B"), value.get("NULL")) {
        (Some(Value::String(text)), _, _) if text == "NULL" => quoted(text),
        (Some(Value::String(text)), _, _) | (_, Some(Value::String(text)), _) => {
            quoted_if_needed(text)
        }
        (_, _, Some(_)) => "NULL".to_owned(),
        _ => quoted_if_needed(&plain_json(value)),
    }
}

fn quoted_if_needed(text: &str) -> String {
    let needed = text.is_empty() || text.contains(['"', ',', '\r', '\n']) || text.trim() != text;
    if needed { quoted(text) } else { text.to_owned() }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
