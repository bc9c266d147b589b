//! What a server said at one moment.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    pub version: String,
    pub now_ms: u64,
    pub connections: u64,
    pub store_size_bytes: u64,
    /// Whether throughput is metered. If not, tables and keys are unknown.
    pub is_metering: bool,
    pub bounds_us: Vec<u64>,
    pub operations: Vec<OperationSample>,
    pub tables: Vec<TableSample>,
    pub keys: Vec<HotKey>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct OperationSample {
    pub name: String,
    pub requests: u64,
    pub failed: u64,
    pub elapsed_us: u64,
    pub buckets: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableSample {
    /// With the index, if it is one.
    pub name: String,
    pub requests: u64,
    pub elapsed_us: u64,
    pub read_units: f64,
    pub write_units: f64,
    pub throttle_events: u64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct HotKey {
    /// With the index, if it is one.
    pub table: String,
    pub key: String,
    pub accesses: u64,
    pub read_units: f64,
    pub write_units: f64,
    pub throttle_events: u64,
}

impl Sample {
    /// What is missing counts as nothing: another version of the server may leave it out.
    pub fn of(answer: &Value) -> Sample {
        Sample {
            version: text(&answer["version"]),
            now_ms: number(&answer["now_ms"]),
            connections: number(&answer["connections"]),
            store_size_bytes: number(&answer["store_size_bytes"]),
            is_metering: answer["throughput"] == true,
            bounds_us: list(&answer["bounds_us"]).iter().map(number).collect(),
            operations: list(&answer["operations"]).iter().map(operation).collect(),
            tables: list(&answer["tables"]).iter().map(table).collect(),
            keys: list(&answer["keys"]).iter().map(hot_key).collect(),
        }
    }
}

fn operation(value: &Value) -> OperationSample {
    OperationSample {
        name: text(&value["operation"]),
        requests: number(&value["requests"]),
        failed: number(&value["failed"]),
        elapsed_us: number(&value["elapsed_us"]),
        buckets: list(&value["buckets"]).iter().map(number).collect(),
    }
}

fn table(value: &Value) -> TableSample {
    TableSample {
        name: place(value),
        requests: number(&value["requests"]),
        elapsed_us: number(&value["elapsed_us"]),
        read_units: amount(&value["read_units"]),
        write_units: amount(&value["write_units"]),
        throttle_events: number(&value["throttle_events"]),
    }
}

fn hot_key(value: &Value) -> HotKey {
    HotKey {
        table: place(value),
        key: key_text(value),
        accesses: number(&value["accesses"]),
        read_units: amount(&value["read_units"]),
        write_units: amount(&value["write_units"]),
        throttle_events: number(&value["throttle_events"]),
    }
}

fn place(value: &Value) -> String {
    match value["index"].as_str() {
        None => text(&value["table"]),
        Some(index) => printable(&format!("{}/{index}", text(&value["table"]))),
    }
}

/// A key such as `owner=alice`.
fn key_text(value: &Value) -> String {
    let Some(attributes) = value["key"].as_object() else {
        return format!("{}…", text(&value["key_start"]));
    };
    let attributes = attributes.iter().map(|(name, value)| {
        let values = value.as_object().into_iter().flatten();
        let values = values.filter_map(|(_, value)| value.as_str());
        printable(&format!("{name}={}", values.collect::<String>()))
    });
    attributes.collect::<Vec<_>>().join(" ")
}

/// Clients choose the keys. What would move the cursor or change the terminal's state is replaced.
fn printable(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { char::REPLACEMENT_CHARACTER } else { it }).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    printable(value.as_str().unwrap_or_default())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn amount(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_readable_and_harmless() {
        let key = |key: Value| key_text(&json!({"key": key}));
        assert_eq!(key(json!({"owner": {"S": "alice"}})), "owner=alice");
        assert_eq!(key(json!({"a": {"N": "12"}, "b": {"B": "AAE="}})), "a=12 b=AAE=");
        assert_eq!(key(json!({"owner": {"S": "\u{1b}[2J\u{9b}x"}})), "owner=\u{fffd}[2J\u{fffd}x");
        let cut = json!({"key": null, "key_start": "long\u{0}"});
        assert_eq!(key_text(&cut), "long\u{fffd}…");
    }
}
