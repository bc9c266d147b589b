//! XML answers of the query protocol.

use std::fmt::Write as _;

use time::OffsetDateTime;

use super::{Failure, Structure, Value};

const NAMESPACE: &str = "http://monitoring.amazonaws.com/doc/2010-08-01/";

/// The result of an operation; `None` if it has none.
pub fn response(operation: &str, request_id: &str, result: Option<&Structure>) -> Vec<u8> {
    let mut out = format!("<{operation}Response xmlns=\"{NAMESPACE}\">");
    if let Some(result) = result {
        let _ = write!(out, "<{operation}Result>");
        write_members(&mut out, result);
        let _ = write!(out, "</{operation}Result>");
    }
    out.push_str("<ResponseMetadata>");
    element(&mut out, "RequestId", &Value::from(request_id));
    let _ = write!(out, "</ResponseMetadata></{operation}Response>");
    out.into_bytes()
}

pub(super) fn error(request_id: &str, failure: &Failure<'_>) -> Vec<u8> {
    let mut out = format!("<ErrorResponse xmlns=\"{NAMESPACE}\"><Error>");
    element(&mut out, "Type", &Value::from(failure.who));
    element(&mut out, "Code", &Value::from(failure.code));
    element(&mut out, "Message", &Value::from(failure.message));
    out.push_str("</Error>");
    element(&mut out, "RequestId", &Value::from(request_id));
    out.push_str("</ErrorResponse>");
    out.into_bytes()
}

fn write_members(out: &mut String, members: &Structure) {
    members.iter().for_each(|(name, value)| element(out, name, value));
}

fn element(out: &mut String, name: &str, value: &Value) {
    if *value == Value::Null {
        return;
    }
    let _ = write!(out, "<{name}>");
    match value {
        Value::Null => {}
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Integer(number) => _ = write!(out, "{number}"),
        Value::Float(number) => _ = write!(out, "{number}"),
        Value::Text(text) | Value::Form(text) => escape(out, text),
        Value::Timestamp(at_ms) => out.push_str(&iso8601(*at_ms)),
        Value::List(list) => list.iter().for_each(|value| element(out, "member", value)),
        Value::Structure(members) => write_members(out, members),
        Value::Dictionary(entries) => {
            for (key, value) in entries {
                out.push_str("<entry>");
                element(out, "key", &Value::from(key.as_str()));
                element(out, "value", value);
                out.push_str("</entry>");
            }
        }
    }
    let _ = write!(out, "</{name}>");
}

/// XML has no way to write most control characters, so they become spaces.
fn escape(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(character),
            '\r' => out.push_str("&#13;"),
            '\u{fffe}' | '\u{ffff}' => out.push(' '),
            _ if character.is_control() => out.push(' '),
            _ => out.push(character),
        }
    }
}

pub fn iso8601(at_ms: i64) -> String {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(at_ms) * 1_000_000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second, millisecond) = at.time().as_hms_milli();
    let seconds = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if millisecond == 0 { format!("{seconds}Z") } else { format!("{seconds}.{millisecond:03}Z") }
}
