//! Attributes in the protocol's JSON encoding.

use serde_json::{Value, json};

#[derive(Debug, Default)]
pub struct OtlpAttributes(Vec<Value>);

impl OtlpAttributes {
    pub fn text(&mut self, key: &str, value: &str) {
        self.put(key, &json!({"stringValue": value}));
    }

    /// 64-bit numbers are texts in JSON.
    pub fn number(&mut self, key: &str, value: u64) {
        self.put(key, &json!({"intValue": value.to_string()}));
    }

    pub fn texts(&mut self, key: &str, values: impl Iterator<Item = String>) {
        let values: Vec<Value> = values.map(|value| json!({"stringValue": value})).collect();
        self.put(key, &json!({"arrayValue": {"values": values}}));
    }

    fn put(&mut self, key: &str, value: &Value) {
        self.0.push(json!({"key": key, "value": value}));
    }

    pub fn encode(self) -> Value {
        Value::Array(self.0)
    }
}
