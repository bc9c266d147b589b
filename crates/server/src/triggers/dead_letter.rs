//! Where records go that could not be delivered: a file of JSON lines, or another endpoint.
//!
//! The metadata is what Lambda sends to a failure destination; the records themselves are added under
//! `payload`, as Lambda does for S3.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::definition::DeadLetterDestination;
use super::delivery::GivenUp;
use super::endpoint::post_json;
use super::record::Record;
use crate::time::iso8601;

/// What is known about records that were given up.
pub struct Failure<'a> {
    pub records: &'a [Record],
    pub why: GivenUp,
    pub attempts: u32,
    pub request_id: String,
    pub url: &'a str,
    /// The last answer's status.
    pub status: Option<u16>,
    pub stream_arn: &'a str,
    pub shard_id: &'a str,
    pub now_ms: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    #[error("cannot write {}: {error}", path.display())]
    File { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Outbound(#[from] crate::outbound::OutboundError),
    #[error("the endpoint answered {status}")]
    Refused { status: u16 },
}

impl Failure<'_> {
    pub fn to_json(&self) -> Value {
        let (first, last) = (self.records.first(), self.records.last());
        let sequence = |record: Option<&Record>| record.map(|record| record.sequence.clone());
        let arrival = |record: Option<&Record>| record.map(|record| iso8601(record.created_at_ms));
        let records: Vec<Value> = self.records.iter().map(Record::event).collect();
        json!({
            "requestContext": {
                "requestId": self.request_id,
                "functionArn": self.url,
                "condition": self.why.condition(),
                "approximateInvokeCount": self.attempts,
            },
            "responseContext": {
                "statusCode": self.status,
                "executedVersion": "$LATEST",
                "functionError": "Unhandled",
            },
            "version": "1.0",
            "timestamp": iso8601(self.now_ms),
            "DDBStreamBatchInfo": {
                "shardId": self.shard_id,
                "startSequenceNumber": sequence(first),
                "endSequenceNumber": sequence(last),
                "approximateArrivalOfFirstRecord": arrival(first),
                "approximateArrivalOfLastRecord": arrival(last),
                "batchSize": self.records.len(),
                "streamArn": self.stream_arn,
            },
            "payload": { "Records": records },
        })
    }
}

impl GivenUp {
    /// Lambda's word for it.
    pub fn condition(self) -> &'static str {
        match self {
            GivenUp::RetryAttemptsExhausted => "RetryAttemptsExhausted",
            GivenUp::MaximumRecordAgeExceeded => "MaximumRecordAgeExceeded",
        }
    }
}

/// Puts a failure away. It is safe there when this returns.
pub async fn put_away(
    destination: &DeadLetterDestination,
    failure: &Value,
    timeout: Duration,
) -> Result<(), DeadLetterError> {
    match destination {
        DeadLetterDestination::File(path) => {
            let (path, line) = (path.clone(), format!("{failure}\n"));
            let fault_path = path.clone();
            let written = tokio::task::spawn_blocking(move || append(&path, line.as_bytes())).await;
            let written = written.unwrap_or_else(|panic| Err(std::io::Error::other(panic)));
            written.map_err(|error| DeadLetterError::File { path: fault_path, error })
        }
        DeadLetterDestination::Url(url) => {
            let answered = post_json(url, failure.to_string(), timeout).await?;
            match answered.is_success() {
                true => Ok(()),
                false => Err(DeadLetterError::Refused { status: answered.status }),
            }
        }
    }
}

/// One write call for the line, so that the lines of several shards never mix.
fn append(path: &Path, line: &[u8]) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(line)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::super::record::sample;
    use super::*;

    #[test]
    fn a_failure_has_lambdas_metadata_and_the_records() {
        let records = [sample(1, 1_700_000_000_000), sample(2, 1_700_000_001_000)];
        let failure = Failure {
            records: &records,
            why: GivenUp::RetryAttemptsExhausted,
            attempts: 3,
            request_id: "id".into(),
            url: "http://h/",
            status: Some(500),
            stream_arn: "arn:stream",
            shard_id: "shardId-1",
            now_ms: 1_700_000_002_345,
        };
        let json = failure.to_json();
        assert_eq!(json["requestContext"]["condition"], "RetryAttemptsExhausted");
        assert_eq!(json["requestContext"]["approximateInvokeCount"], 3);
        assert_eq!(json["responseContext"]["statusCode"], 500);
        assert_eq!(json["timestamp"], "2023-11-14T22:13:22.345Z");
        let info = &json["DDBStreamBatchInfo"];
        assert_eq!(info["startSequenceNumber"], "1");
        assert_eq!(info["endSequenceNumber"], "2");
        assert_eq!(info["approximateArrivalOfFirstRecord"], "2023-11-14T22:13:20.000Z");
        assert_eq!((&info["batchSize"], &info["shardId"]), (&json!(2), &json!("shardId-1")));
        assert_eq!(json["payload"]["Records"][1]["dynamodb"]["SequenceNumber"], "2");
    }
}
