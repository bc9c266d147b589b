//! A stream record in the shape that a Lambda function receives.

use serde_json::{Map, Value, json};

#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub sequence: String,
    pub created_at_ms: u64,
    /// What the record takes in a request.
    pub size_bytes: usize,
    /// With the source's ARN, and the identity spelled as Lambda spells it.
    pub event: Value,
}

impl Record {
    /// From a record of GetRecords. `None` if it is none.
    pub fn new(mut event: Value, stream_arn: &str) -> Option<Record> {
        let members = event.as_object_mut()?;
        if let Some(identity) = members.get_mut("userIdentity").and_then(Value::as_object_mut) {
            *identity = lower_case_names(identity);
        }
        members.insert("eventSourceARN".into(), stream_arn.into());
        let change = &event["dynamodb"];
        let sequence = change["SequenceNumber"].as_str()?.to_owned();
        let created_at_ms = (change["ApproximateCreationDateTime"].as_f64()? * 1000.0) as u64;
        let size_bytes = event.to_string().len();
        Some(Record { sequence, created_at_ms, size_bytes, event })
    }

    /// The sequence number as a number: records of a shard are numbered without gaps.
    pub fn position(&self) -> Option<u128> {
        self.sequence.parse().ok()
    }
}

/// The body of a delivery.
pub fn event_of(records: &[Record]) -> Value {
    json!({ "Records": records.iter().map(|record| &record.event).collect::<Vec<_>>() })
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
pub fn sample(sequence: u64, created_at_ms: u64) -> Record {
    let event = json!({
        "eventName": "INSERT",
        "dynamodb": {
            "SequenceNumber": sequence.to_string(),
            "ApproximateCreationDateTime": created_at_ms as f64 / 1000.0,
        },
    });
    Record::new(event, "arn:stream").expect("the sample has what a record has")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_becomes_what_a_function_receives() {
        let event = json!({
            "eventName": "REMOVE",
            "dynamodb": {"SequenceNumber": "100", "ApproximateCreationDateTime": 1_700_000_000},
            "userIdentity": {"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"},
        });
        let record = Record::new(event, "arn").unwrap();
        assert_eq!((record.sequence.as_str(), record.created_at_ms), ("100", 1_700_000_000_000));
        assert_eq!(record.event["eventSourceARN"], "arn");
        assert_eq!(
            record.event["userIdentity"],
            json!({"principalId": "dynamodb.amazonaws.com", "type": "Service"})
        );
        assert_eq!(Record::new(json!({"eventName": "INSERT"}), "arn"), None);
    }
}
