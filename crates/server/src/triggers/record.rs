//! A stream record in the format that a Lambda function receives.

use serde_json::{Map, Value};
use zenobe_api::stream_records::{RecordForm, write_record};
use zenobe_engine::command::{StreamName, StreamRecord};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredRecord {
    pub sequence: String,
    pub created_at_ms: u64,
    /// Includes the source's ARN, and spells the identity's names as Lambda does.
    json: String,
}

impl DeliveredRecord {
    pub fn new(stream: &StreamName, record: &StreamRecord) -> DeliveredRecord {
        let mut json = Vec::new();
        write_record(&mut json, stream, record, RecordForm::LambdaEvent);
        DeliveredRecord {
            sequence: record.sequence_number.to_string(),
            created_at_ms: record.created_at_ms,
            json: String::from_utf8(json).expect("JSON is text"),
        }
    }

    /// Converts a record from the response of GetRecords. `None` if it is malformed.
    pub fn from_answer(mut event: Value, stream_arn: &str) -> Option<DeliveredRecord> {
        let members = event.as_object_mut()?;
        if let Some(identity) = members.get_mut("userIdentity").and_then(Value::as_object_mut) {
            *identity = lower_case_names(identity);
        }
        members.insert("eventSourceARN".into(), stream_arn.into());
        let change = &event["dynamodb"];
        let sequence = change["SequenceNumber"].as_str()?.to_owned();
        let created_at_ms = (change["ApproximateCreationDateTime"].as_f64()? * 1000.0) as u64;
        Some(DeliveredRecord { sequence, created_at_ms, json: event.to_string() })
    }

    pub fn json(&self) -> &str {
        &self.json
    }

    /// The record's size in a request.
    pub fn size_bytes(&self) -> usize {
        self.json.len()
    }

    /// The parsed record.
    pub fn event(&self) -> Value {
        serde_json::from_str(&self.json).expect("a record is written as JSON")
    }

    /// The sequence number as a number: records of a shard are numbered without gaps.
    pub fn position(&self) -> Option<u128> {
        self.sequence.parse().ok()
    }
}

/// The body of a delivery.
pub fn event_of(records: &[DeliveredRecord]) -> String {
    let size_bytes: usize = records.iter().map(|record| record.json.len() + 1).sum();
    let mut body = String::with_capacity(size_bytes + r#"{"Records":[]}"#.len());
    body.push_str(r#"{"Records":["#);
    for (number, record) in records.iter().enumerate() {
        if number > 0 {
            body.push(',');
        }
        body.push_str(&record.json);
    }
    body.push_str("]}");
    body
}

/// The Streams API says `PrincipalId` and `Type`; Lambda's event `principalId` and `type`.
fn lower_case_names(identity: &Map<String, Value>) -> Map<String, Value> {
    let lower = |name: &str| {
        let mut characters = name.chars();
        let first = characters.next().map(|first| first.to_ascii_lowercase());
        first.into_iter().chain(characters).collect::<String>()
    };
    identity.iter().map(|(name, value)| (lower(name), value.clone())).collect()
}

#[cfg(test)]
pub fn sample(sequence: u64, created_at_ms: u64) -> DeliveredRecord {
    let json = format!(r#"{{"eventName":"INSERT","dynamodb":{{"SequenceNumber":"{sequence}"}}}}"#);
    DeliveredRecord { sequence: sequence.to_string(), created_at_ms, json }
}

/// A sample of this size in a request.
#[cfg(test)]
pub fn sample_of_size(size_bytes: usize) -> DeliveredRecord {
    DeliveredRecord { json: " ".repeat(size_bytes), ..sample(1, 0) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zenobe_engine::streams::sample_record;

    use super::*;

    #[test]
    fn a_record_becomes_what_a_function_receives() {
        let event = json!({
            "eventName": "REMOVE",
            "dynamodb": {"SequenceNumber": "100", "ApproximateCreationDateTime": 1_700_000_000},
            "userIdentity": {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"},
        });
        let record = DeliveredRecord::from_answer(event, "arn").unwrap();
        assert_eq!((record.sequence.as_str(), record.created_at_ms), ("100", 1_700_000_000_000));
        assert_eq!(record.event()["eventSourceARN"], "arn");
        assert_eq!(
            record.event()["userIdentity"],
            json!({"principalId": "dynamodb.amazonaws.com", "type": "Service"})
        );
        assert_eq!(DeliveredRecord::from_answer(json!({"eventName": "INSERT"}), "arn"), None);
    }

    /// Reading in this process yields the same as reading over the wire, except for the
    /// milliseconds.
    #[test]
    fn both_ways_of_reading_yield_the_same() {
        let (stream, record) = sample_record();
        let mut answer = Vec::new();
        write_record(&mut answer, &stream, &record, RecordForm::Api);
        let answer = serde_json::from_slice(&answer).unwrap();
        let read = DeliveredRecord::new(&stream, &record);
        let wired = DeliveredRecord::from_answer(answer, &stream.arn()).unwrap();
        assert_eq!(read.event(), wired.event());
        assert_eq!((read.sequence, read.created_at_ms), (wired.sequence, wired.created_at_ms));
    }

    #[test]
    fn the_body_of_a_delivery_is_json() {
        for count in 0..3 {
            let records: Vec<DeliveredRecord> =
                (0..count).map(|number| sample(number, 0)).collect();
            let body: Value = serde_json::from_str(&event_of(&records)).unwrap();
            let events: Vec<Value> = records.iter().map(DeliveredRecord::event).collect();
            assert_eq!(body, json!({ "Records": events }));
        }
    }
}
