//! Stores records that could not be delivered: in a file of JSON lines, or at another endpoint.
//!
//! The metadata is what Lambda sends to a failure destination. The records themselves are added
//! under `payload`, as Lambda does for S3.

use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::definition::DeadLetterDestination;
use super::delivery::GivenUp;
use super::endpoint::post_json;
use super::record::DeliveredRecord;
use crate::time::iso8601;

/// Records that were given up, and why.
pub struct Failure<'a> {
    pub records: &'a [DeliveredRecord],
    pub why: GivenUp,
    pub attempts: u32,
    pub request_id: String,
    pub url: &'a str,
    /// The status of the last response.
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
        let sequence =
            |record: Option<&DeliveredRecord>| record.map(|record| record.sequence.clone());
        let arrival =
            |record: Option<&DeliveredRecord>| record.map(|record| iso8601(record.created_at_ms));
        let records: Vec<Value> = self.records.iter().map(DeliveredRecord::event).collect();
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
    /// Lambda's name for it.
    pub fn condition(self) -> &'static str {
        match self {
            GivenUp::RetryAttemptsExhausted => "RetryAttemptsExhausted",
            GivenUp::MaximumRecordAgeExceeded => "MaximumRecordAgeExceeded",
        }
    }
}

/// Stores a failure. It is durable when this returns.
pub async fn put_away(
    destination: &DeadLetterDestination,
    failure: &Value,
    timeout: Duration,
) -> Result<(), DeadLetterError> {
    match destination {
        DeadLetterDestination::File { path, root } => {
            let (path, root, line) = (path.clone(), root.clone(), format!("{failure}\n"));
            let fault_path = path.clone();
            let append = move || append(&path, root.as_deref(), line.as_bytes());
            let written = tokio::task::spawn_blocking(append).await;
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

/// Writes the line in one call, so that lines of several shards never mix. Only the owner may read
/// the records.
fn append(path: &Path, root: Option<&Path>, line: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true).mode(0o600);
    if let Some(root) = root {
        prepare_parent(path, root)?;
        // A link could lead out of the directory, and a pipe would block the thread.
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    }
    let mut file = options.open(path)?;
    if root.is_some() && !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    file.write_all(line)?;
    file.sync_data()
}

/// Creates the directory of a file below `root`. No link on the way may lead outside.
fn prepare_parent(path: &Path, root: &Path) -> std::io::Result<()> {
    let parent = path.parent().unwrap_or(root);
    DirBuilder::new().recursive(true).mode(0o700).create(root)?;
    let root = root.canonicalize()?;
    let mut existing = parent;
    while !existing.exists() {
        existing = existing.parent().unwrap_or(&root);
    }
    if !existing.canonicalize()?.starts_with(&root) {
        return Err(std::io::Error::other("a link leads out of the dead-letter directory"));
    }
    DirBuilder::new().recursive(true).mode(0o700).create(parent)
}

#[cfg(test)]
mod tests {
    use super::super::record::sample;
    use super::*;

    #[test]
    fn files_are_their_owners_and_links_do_not_lead_out() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = zenobe_testing::TemporaryDirectory::new("letters");
        let (root, outside) = (directory.path().join("root"), directory.path().join("outside"));
        let file = root.join("a/b/letters.jsonl");
        append(&file, Some(&root), b"1\n").unwrap();
        append(&file, Some(&root), b"2\n").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"1\n2\n");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(&root.join("a")), mode(&root)), (0o600, 0o700, 0o700));

        std::fs::create_dir(&outside).unwrap();
        symlink(&outside, root.join("link")).unwrap();
        assert!(append(&root.join("link/x"), Some(&root), b"1\n").is_err());
        assert!(append(&root.join("link/new/x"), Some(&root), b"1\n").is_err());
        symlink(outside.join("x"), root.join("x")).unwrap();
        assert!(append(&root.join("x"), Some(&root), b"1\n").is_err());
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }

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
