//! Reads a table through its endpoint.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use zenobe_api::{ItemPage, read_page};
use zenobe_load::{Answer, Client, Target};
use zenobe_value::EncodedItem;

use super::ExportError;

/// How many connections read at a time, each its share of the table.
const SEGMENTS: usize = 4;
const ATTEMPTS_MAX: u32 = 12;
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

pub struct Described {
    /// The names of the partition key and the sort key.
    pub keys: Vec<String>,
    /// About how many items there are.
    pub items: u64,
}

pub async fn describe(target: &Target, table: &str) -> Result<Described, ExportError> {
    let mut client = Client::new(target.clone())?;
    let request = json!({"TableName": table}).to_string();
    let answer = client.call("DescribeTable", request.as_bytes()).await?;
    if answer.error_name() == "ResourceNotFoundException" {
        return Err(ExportError::TableMissing(table.to_owned()));
    }
    if !answer.is_success() {
        return Err(refused("DescribeTable", &answer));
    }
    let described: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let schema = described["Table"]["KeySchema"].as_array().cloned().unwrap_or_default();
    let keys = schema.iter().filter_map(|key| key["AttributeName"].as_str().map(str::to_owned));
    let items = described["Table"]["ItemCount"].as_u64().unwrap_or_default();
    Ok(Described { keys: keys.collect(), items })
}

/// A target that reads as of a time. A server that ignores the time would export something else, so it must refuse nonsense.
pub async fn with_past(target: Target, table: &str, as_of: &str) -> Result<Target, ExportError> {
    let mut client = Client::new(target.clone().with_as_of("nonsense")?)?;
    let request = json!({"TableName": table, "Limit": 1, "Select": "COUNT"}).to_string();
    match client.call("Scan", request.as_bytes()).await?.is_success() {
        true => Err(ExportError::NoPast(target.to_string())),
        false => Ok(target.with_as_of(as_of)?),
    }
}

/// Reads all items, page by page. The last message may be an error.
pub fn start(target: &Target, table: &str) -> Receiver<Result<Vec<EncodedItem>, ExportError>> {
    let (sender, receiver) = channel(SEGMENTS);
    for segment in 0..SEGMENTS {
        let (target, table, sender) = (target.clone(), table.to_owned(), sender.clone());
        tokio::spawn(async move {
            if let Err(error) = scan(target, &table, segment, &sender).await {
                // Nobody listens any more if another segment has failed before.
                let _ = sender.send(Err(error)).await;
            }
        });
    }
    receiver
}

async fn scan(
    target: Target,
    table: &str,
    segment: usize,
    pages: &Sender<Result<Vec<EncodedItem>, ExportError>>,
) -> Result<(), ExportError> {
    let mut client = Client::new(target)?;
    let mut start: Option<String> = None;
    loop {
        let position =
            start.map_or_else(String::new, |key| format!(",\"ExclusiveStartKey\":{key}"));
        let request = format!(
            "{{\"TableName\":{},\"ConsistentRead\":true,\"Segment\":{segment},\"TotalSegments\":{SEGMENTS}{position}}}",
            Value::from(table)
        );
        let answer = call(&mut client, &request).await?;
        let ItemPage { items, last_key } = read_page(&answer.body).map_err(ExportError::Answer)?;
        if pages.send(Ok(items)).await.is_err() || last_key.is_none() {
            return Ok(());
        }
        start = last_key;
    }
}

async fn call(client: &mut Client, request: &str) -> Result<Answer, ExportError> {
    let mut pause = PAUSE_FIRST;
    for attempt in 1.. {
        let answer = client.call("Scan", request.as_bytes()).await?;
        if answer.is_success() {
            return Ok(answer);
        }
        if !answer.is_transient() || attempt == ATTEMPTS_MAX {
            return Err(refused("Scan", &answer));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
    unreachable!("the last attempt returns")
}

fn refused(operation: &'static str, answer: &Answer) -> ExportError {
    ExportError::Refused { operation, message: answer.refusal() }
}
