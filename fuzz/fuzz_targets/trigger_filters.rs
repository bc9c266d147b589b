//! Filters of triggers: a pattern on the first line, a record in the rest. A pattern is rejected,
//! or means the same however its JSON is written, and every record passes or does not.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;

// Included as a file: the server's crate would bring RocksDB along.
#[path = "../../crates/server/src/triggers/filter.rs"]
#[allow(dead_code)]
mod filter;

use filter::{FilterPattern, PATTERN_SIZE_BYTES_MAX, passes};

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (pattern_text, event) = text.split_once('\n').unwrap_or((text, "{}"));
    let Ok(pattern) = FilterPattern::parse(pattern_text) else { return };
    let value: Value = serde_json::from_str(pattern_text).expect("a pattern is JSON");
    let rewritten = value.to_string();
    // Fractions and very large numbers are read as floating point, which is not exact.
    if rewritten.len() <= PATTERN_SIZE_BYTES_MAX && !has_float(&value) {
        assert_eq!(FilterPattern::parse(&rewritten), Ok(pattern.clone()));
    }
    let Ok(event) = serde_json::from_str::<Value>(event) else { return };
    let is_match = pattern.matches(&event);
    assert_eq!(passes(std::slice::from_ref(&pattern), &event), is_match);
    assert_eq!(passes(&[pattern.clone(), pattern], &event), is_match);
    assert!(passes(&[], &event), "no pattern lets everything pass");
});

fn has_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(elements) => elements.iter().any(has_float),
        Value::Object(members) => members.values().any(has_float),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}
