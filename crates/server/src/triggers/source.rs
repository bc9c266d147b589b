//! Reads streams as any client does, through the Streams API: in this process, or from a server
//! over the wire.
//!
//! Triggers read in their own process what everybody can read. So there is one meaning of an
//! iterator, a shard's end and a trimmed record, and `zenobe stream tail` shares all of it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use zenobe_api::stream_records::RecordsRead;
use zenobe_api::{Api, Operation, Response};
use zenobe_engine::consumers::Checkpoint;
use zenobe_engine::schema::Namespace;

use super::record::DeliveredRecord;

/// The most that GetRecords returns.
const PAGE_RECORDS_MAX: usize = 1000;

/// Calls the Streams API.
pub trait StreamsApi: Send + Sync {
    fn call(&self, operation: Operation, body: Value) -> BoxFuture<'_, Result<Value, SourceError>>;

    /// Calls GetRecords on the stream with this ARN.
    fn read<'a>(
        &'a self,
        arn: &'a str,
        iterator: &'a str,
    ) -> BoxFuture<'a, Result<FetchedRecords, SourceError>> {
        Box::pin(async move {
            let operation = Operation::GetRecords;
            let body = json!({ "ShardIterator": iterator, "Limit": PAGE_RECORDS_MAX });
            let answer = self.call(operation, body).await?;
            let record = |record: &Value| DeliveredRecord::from_answer(record.clone(), arn);
            let records = list(&answer["Records"], operation)?.iter().map(record);
            let records = records.collect::<Option<_>>();
            let next = answer["NextShardIterator"].as_str().map(str::to_owned);
            Ok(FetchedRecords {
                records: records.ok_or_else(|| SourceError::shape(operation))?,
                next,
            })
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    #[error("the stream or shard is gone")]
    NotFound,
    #[error("the records are trimmed")]
    Trimmed,
    #[error("the iterator has expired")]
    Expired,
    #[error("{0}")]
    Failed(String),
}

impl SourceError {
    /// Converts the name of an exception and its message.
    pub fn new(exception: &str, message: &str) -> SourceError {
        match exception {
            "ResourceNotFoundException" => SourceError::NotFound,
            "TrimmedDataAccessException" => SourceError::Trimmed,
            "ExpiredIteratorException" => SourceError::Expired,
            _ => SourceError::Failed(format!("{exception}: {message}")),
        }
    }

    fn shape(operation: Operation) -> SourceError {
        let name = operation.name();
        SourceError::Failed(format!("the answer of {name} is not what it should be"))
    }
}

/// The API of this process, as a caller in a namespace sees it.
pub struct InProcessStreams {
    pub api: Arc<Api>,
    pub namespace: Arc<Namespace>,
}

impl StreamsApi for InProcessStreams {
    fn call(&self, operation: Operation, body: Value) -> BoxFuture<'_, Result<Value, SourceError>> {
        Box::pin(async move {
            let body = body.to_string();
            let response = self.api.handle(operation, &self.namespace, body.as_bytes()).await;
            answer(operation, &response)
        })
    }

    /// Skips the text of a response: every record is rendered once, in the form of a delivery.
    fn read<'a>(
        &'a self,
        _arn: &'a str,
        iterator: &'a str,
    ) -> BoxFuture<'a, Result<FetchedRecords, SourceError>> {
        Box::pin(async move {
            match self.api.read_records(&self.namespace, iterator, PAGE_RECORDS_MAX).await {
                Ok(RecordsRead { stream, records, next }) => {
                    let records =
                        records.iter().map(|record| DeliveredRecord::new(&stream, record));
                    Ok(FetchedRecords { records: records.collect(), next })
                }
                Err(response) => match answer(Operation::GetRecords, &response) {
                    Ok(_) => Err(SourceError::shape(Operation::GetRecords)),
                    Err(error) => Err(error),
                },
            }
        })
    }
}

/// The JSON of a response.
fn answer(operation: Operation, response: &Response) -> Result<Value, SourceError> {
    let answer: Value =
        serde_json::from_slice(&response.body).map_err(|_| SourceError::shape(operation))?;
    match response.error {
        None => Ok(answer),
        Some(name) => Err(SourceError::new(name, answer["message"].as_str().unwrap_or_default())),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct StreamSummary {
    arn: String,
    label: String,
}

/// A stream of a table.
#[derive(Debug, Clone)]
pub struct KnownStream {
    pub arn: String,
    pub detail: StreamDetail,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamDetail {
    pub is_enabled: bool,
    pub shards: Vec<ShardSummary>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardSummary {
    pub id: String,
    pub parent: Option<String>,
    pub is_closed: bool,
}

#[derive(Debug)]
pub struct FetchedRecords {
    pub records: Vec<DeliveredRecord>,
    /// `None` at the end of a closed shard.
    pub next: Option<String>,
}

/// The Streams API with types.
#[derive(Clone)]
pub struct Streams {
    api: Arc<dyn StreamsApi>,
}

impl Streams {
    pub fn new(api: Arc<dyn StreamsApi>) -> Streams {
        Streams { api }
    }

    /// The streams of a table with their shards, oldest first.
    pub async fn known(&self, table: &str) -> Result<Vec<KnownStream>, SourceError> {
        let mut streams = Vec::new();
        for summary in self.of_table(table).await? {
            match self.describe(&summary.arn).await {
                Ok(detail) => streams.push(KnownStream { arn: summary.arn, detail }),
                // The stream has just passed its retention.
                Err(SourceError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(streams)
    }

    async fn of_table(&self, table: &str) -> Result<Vec<StreamSummary>, SourceError> {
        let operation = Operation::ListStreams;
        let mut streams = Vec::new();
        let body = json!({ "TableName": table });
        self.pages(operation, body, "ExclusiveStartStreamArn", |answer| {
            for stream in list(&answer["Streams"], operation)? {
                streams.push(StreamSummary {
                    arn: text(&stream["StreamArn"], operation)?,
                    label: text(&stream["StreamLabel"], operation)?,
                });
            }
            Ok(answer["LastEvaluatedStreamArn"].clone())
        })
        .await?;
        // Labels are the times of enabling, and sort as text.
        streams.sort_by(|one, other| one.label.cmp(&other.label));
        Ok(streams)
    }

    async fn describe(&self, arn: &str) -> Result<StreamDetail, SourceError> {
        let operation = Operation::DescribeStream;
        let mut detail = StreamDetail { is_enabled: false, shards: Vec::new() };
        let body = json!({ "StreamArn": arn });
        self.pages(operation, body, "ExclusiveStartShardId", |answer| {
            let description = &answer["StreamDescription"];
            detail.is_enabled = description["StreamStatus"] == "ENABLED";
            for shard in list(&description["Shards"], operation)? {
                detail.shards.push(ShardSummary {
                    id: text(&shard["ShardId"], operation)?,
                    parent: shard["ParentShardId"].as_str().map(str::to_owned),
                    is_closed: shard["SequenceNumberRange"]["EndingSequenceNumber"].is_string(),
                });
            }
            Ok(description["LastEvaluatedShardId"].clone())
        })
        .await?;
        Ok(detail)
    }

    /// Calls an operation page by page. `take` uses a response and returns where the next one
    /// starts; `Null` ends.
    async fn pages(
        &self,
        operation: Operation,
        mut body: Value,
        start_member: &str,
        mut take: impl FnMut(&Value) -> Result<Value, SourceError>,
    ) -> Result<(), SourceError> {
        loop {
            let answer = self.api.call(operation, body.clone()).await?;
            match take(&answer)? {
                Value::Null => return Ok(()),
                start => body[start_member] = start,
            }
        }
    }

    /// An iterator at the first record after a checkpoint.
    pub async fn iterator(
        &self,
        arn: &str,
        shard: &str,
        checkpoint: &Checkpoint,
    ) -> Result<String, SourceError> {
        let mut body = json!({ "StreamArn": arn, "ShardId": shard });
        let iterator_type = match checkpoint {
            Checkpoint::Oldest => "TRIM_HORIZON",
            Checkpoint::From { timestamp_ms } => {
                body["Timestamp"] = json!(*timestamp_ms as f64 / 1_000.0);
                "AT_TIMESTAMP"
            }
            Checkpoint::After { sequence } => {
                body["SequenceNumber"] = json!(sequence);
                "AFTER_SEQUENCE_NUMBER"
            }
            // Only future records are left.
            Checkpoint::Finished => "LATEST",
        };
        body["ShardIteratorType"] = json!(iterator_type);
        let answer = self.api.call(Operation::GetShardIterator, body).await?;
        text(&answer["ShardIterator"], Operation::GetShardIterator)
    }

    /// The records from an iterator on, in the stream with this ARN.
    pub async fn read(&self, arn: &str, iterator: &str) -> Result<FetchedRecords, SourceError> {
        self.api.read(arn, iterator).await
    }
}

fn list(value: &Value, operation: Operation) -> Result<&Vec<Value>, SourceError> {
    value.as_array().ok_or_else(|| SourceError::shape(operation))
}

fn text(value: &Value, operation: Operation) -> Result<String, SourceError> {
    value.as_str().map(str::to_owned).ok_or_else(|| SourceError::shape(operation))
}
