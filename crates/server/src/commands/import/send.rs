//! Reads files and writes their items.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{self, Receiver};
use zenobe_api::{LineError, read_line, read_plain_line, write_line};
use zenobe_load::{Client, Target};
use zenobe_transfer::anonymise::AnonymiseRules;
use zenobe_transfer::csv::{CsvOptions, CsvReader};
use zenobe_transfer::ion::IonReader;
use zenobe_transfer::lines::Lines;
use zenobe_transfer::objects::ObjectReader;
use zenobe_transfer::{ReadError, Record};
use zenobe_value::limits::ITEM_SIZE_BYTES_MAX;
use zenobe_value::{AttributeType, EncodedItem};

use super::ImportError;
use super::dynamodb_local::{LocalItems, LocalTable};
use super::model::ModelTable;
use super::progress::ImportDisplay;
use super::report::Report;
use super::sources::{ImportFormat, ImportSource, SourceFile};
use super::state::ImportState;
use super::table::{self, TableKeys};

const CONNECTIONS: usize = 8;
/// DynamoDB's limit for one BatchWriteItem, and one of ours well below its limit of bytes.
const BATCH_REQUESTS_MAX: usize = 25;
const BATCH_SIZE_BYTES_MAX: usize = 4 << 20;
/// Records that are read, written and then remembered together.
const WAVE_RECORDS: usize = CONNECTIONS * BATCH_REQUESTS_MAX;
const ATTEMPTS_MAX: u32 = 12;
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How to read CSV files.
#[derive(Debug, Clone)]
pub struct Reading {
    pub delimiter: u8,
    pub header: Option<Vec<String>>,
    pub types: BTreeMap<String, AttributeType>,
}

pub struct Context<'a> {
    pub sender: &'a Sender,
    pub rules: &'a AnonymiseRules,
    pub report: &'a mut Report,
}

pub struct Sender {
    table: String,
    keys: TableKeys,
    clients: Vec<Mutex<Client>>,
    is_dry_run: bool,
}

impl Sender {
    pub async fn new(
        target: &Target,
        table: &str,
        keys: Option<&[(String, AttributeType)]>,
        is_dry_run: bool,
    ) -> Result<Sender, ImportError> {
        let keys = table::prepare(target, table, keys, is_dry_run).await?;
        Sender::with_keys(target, table, keys, is_dry_run)
    }

    /// For a table that is created with this request, unless it exists.
    pub async fn creating(
        target: &Target,
        table: &str,
        creation: &Value,
        is_dry_run: bool,
    ) -> Result<Sender, ImportError> {
        let keys = match is_dry_run {
            true => table::keys_of(creation),
            false => table::create(target, table, creation).await?,
        };
        Sender::with_keys(target, table, keys, is_dry_run)
    }

    fn with_keys(
        target: &Target,
        table: &str,
        keys: TableKeys,
        is_dry_run: bool,
    ) -> Result<Sender, ImportError> {
        let clients = (0..CONNECTIONS).map(|_| Ok(Mutex::new(Client::new(target.clone())?)));
        let clients = clients.collect::<Result<_, ImportError>>()?;
        Ok(Sender { table: table.to_owned(), keys, clients, is_dry_run })
    }

    pub fn table_identity(&self) -> &str {
        &self.keys.identity
    }

    pub fn attribute_types(&self) -> BTreeMap<String, AttributeType> {
        self.keys.types.clone()
    }

    /// Writes some changes. Returns the reasons of those that the server rejects, by their number.
    async fn write(&self, changes: Vec<Change>) -> Result<Vec<(u64, String)>, ImportError> {
        if self.is_dry_run {
            return Ok(Vec::new());
        }
        let mut batches: Vec<Vec<Change>> = vec![Vec::new()];
        let mut size_bytes = 0;
        for change in changes {
            let is_full = batches.last().is_some_and(|batch| batch.len() == BATCH_REQUESTS_MAX);
            if is_full || size_bytes + change.body.len() > BATCH_SIZE_BYTES_MAX {
                batches.push(Vec::new());
                size_bytes = 0;
            }
            size_bytes += change.body.len();
            batches.last_mut().expect("there is always one").push(change);
        }
        let writes = batches.iter().enumerate().filter(|(_, batch)| !batch.is_empty());
        let writes = writes.map(|(number, batch)| async move {
            let mut client = self.clients[number % CONNECTIONS].lock().await;
            self.write_batch(&mut client, batch).await
        });
        let mut rejected = Vec::new();
        for outcome in join_all(writes).await {
            rejected.extend(outcome?);
        }
        Ok(rejected)
    }

    async fn write_batch(
        &self,
        client: &mut Client,
        batch: &[Change],
    ) -> Result<Vec<(u64, String)>, ImportError> {
        let requests: Vec<&str> = batch.iter().map(|change| change.body.as_str()).collect();
        if self.write_all(client, &requests.join(",")).await?.is_none() {
            return Ok(Vec::new());
        }
        // A batch is rejected as a whole, so the bad ones are found one by one.
        let mut rejected = Vec::new();
        for change in batch {
            let reason = self.write_all(client, &change.body).await?;
            rejected.extend(reason.map(|reason| (change.number, reason)));
        }
        Ok(rejected)
    }

    /// Sends requests until none is left over. Returns the reason if the server rejects them.
    async fn write_all(
        &self,
        client: &mut Client,
        requests: &str,
    ) -> Result<Option<String>, ImportError> {
        let mut body = self.batch_body(requests);
        let mut pause = PAUSE_FIRST;
        for _ in 0..ATTEMPTS_MAX {
            let answer = client.call("BatchWriteItem", body.as_bytes()).await?;
            if answer.is_success() {
                let answer: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                let unprocessed = &answer["UnprocessedItems"][&self.table];
                match unprocessed.as_array().filter(|list| !list.is_empty()) {
                    None => return Ok(None),
                    Some(list) => {
                        let list: Vec<String> = list.iter().map(Value::to_string).collect();
                        body = self.batch_body(&list.join(","));
                    }
                }
            } else if answer.error_name() == "ValidationException" {
                return Ok(Some(answer.error_message()));
            } else if !answer.is_transient() {
                let message = answer.refusal();
                return Err(ImportError::Refused { operation: "BatchWriteItem", message });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        let message = "the table was throttled for too long; continue later".to_owned();
        Err(ImportError::Refused { operation: "BatchWriteItem", message })
    }

    fn batch_body(&self, requests: &str) -> String {
        format!("{{\"RequestItems\":{{\"{}\":[{requests}]}}}}", self.table)
    }
}

/// One request of a BatchWriteItem.
struct Change {
    number: u64,
    body: String,
}

/// Records of a file with their numbers, from 0.
struct Wave {
    records: Vec<(u64, Result<Record, String>)>,
    /// How much of the file is read: bytes before decompression, or rows.
    position: u64,
}

pub async fn send_file(
    context: &mut Context<'_>,
    source: &ImportSource,
    file: &SourceFile,
    reading: Reading,
    state: &mut ImportState,
    progress: &mut ImportDisplay,
) -> Result<(), ImportError> {
    verify(source, file).await?;
    let object = source.bucket.read(&file.object, None);
    let position = object.position();
    let opened = file.clone();
    // A decoder reads the beginning of its file.
    let open = move || Records::new(object, &opened, reading);
    let version = file.version();
    send_all(context, (&file.key, &version), (open, position), state, progress).await?;
    progress.file_done(file.object.size_bytes);
    state.complete(&file.key, &version, context.report)
}

/// Writes the items of a table of DynamoDB Local.
pub async fn send_local_table(
    context: &mut Context<'_>,
    (table, version): (&LocalTable, &str),
    items: LocalItems,
    state: &mut ImportState,
    progress: &mut ImportDisplay,
) -> Result<(), ImportError> {
    let position = items.position();
    let open = move || Records::DynamoDbLocal(Box::new(items));
    send_all(context, (&table.name, version), (open, position), state, progress).await?;
    progress.file_done(table.row_count);
    Ok(())
}

/// Writes the records that an earlier run has not written.
async fn send_all(
    context: &mut Context<'_>,
    (file, version): (&str, &str),
    (open, position): (impl FnOnce() -> Records + Send + 'static, Arc<AtomicU64>),
    state: &mut ImportState,
    progress: &mut ImportDisplay,
) -> Result<(), ImportError> {
    let mut done = state.records(file);
    let mut waves = read(open, position, done);
    while let Some(wave) = waves.recv().await {
        let Wave { records, position } =
            wave.map_err(|error| ImportError::Read { file: file.to_owned(), error })?;
        let count = records.len() as u64;
        send_records(context, file, records).await?;
        done += count;
        state.advance(file, version, done, context.report)?;
        progress.advance(count, position);
    }
    Ok(())
}

/// Reads a file whose checksum is known once before its items are used.
async fn verify(source: &ImportSource, file: &SourceFile) -> Result<(), ImportError> {
    if file.md5.is_none() {
        return Ok(());
    }
    let mut object = source.bucket.read(&file.object, file.md5.clone());
    let read = tokio::task::spawn_blocking(move || io::copy(&mut object, &mut io::sink()));
    let failed = |error: String| ImportError::Read { file: file.key.clone(), error };
    match read.await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Writes the data of a model's table.
pub async fn send_model(
    sender: &Sender,
    table: &ModelTable,
    rules: &AnonymiseRules,
    report: &mut Report,
) -> Result<(), ImportError> {
    let line = |item: &Value| match read_line(format!("{{\"Item\":{item}}}").as_bytes()) {
        Ok(record) => Ok(record),
        Err(LineError::NotJson) => Err("it is not JSON".to_owned()),
        Err(LineError::Record(reason)) => Err(reason),
    };
    let records = table.items.iter().enumerate().map(|(number, item)| (number as u64, line(item)));
    let records: Vec<_> = records.collect();
    let mut context = Context { sender, rules, report };
    send_records(&mut context, &table.name, records).await
}

async fn send_records(
    context: &mut Context<'_>,
    file: &str,
    records: Vec<(u64, Result<Record, String>)>,
) -> Result<(), ImportError> {
    let (mut imported, mut deleted) = (0, 0);
    // A batch may not name an item twice; the last one counts.
    let mut by_key: HashMap<Vec<u8>, Change> = HashMap::with_capacity(records.len());
    for (number, record) in records {
        let change = record.and_then(|record| change(record, context.rules, &context.sender.keys));
        match change {
            Ok((key, body, is_put)) => {
                imported += u64::from(is_put);
                deleted += u64::from(!is_put);
                by_key.insert(key, Change { number, body });
            }
            Err(reason) => context.report.reject(file, number, reason),
        }
    }
    let rejected = context.sender.write(by_key.into_values().collect()).await?;
    context.report.imported += imported - (rejected.len() as u64).min(imported);
    context.report.deleted += deleted;
    for (number, reason) in rejected {
        context.report.reject(file, number, reason);
    }
    Ok(())
}

/// The key, the request and whether it puts something.
fn change(
    record: Record,
    rules: &AnonymiseRules,
    keys: &TableKeys,
) -> Result<(Vec<u8>, String, bool), String> {
    let (mut item, is_put) = match record {
        Record::Item(item)
        | Record::ItemWith { item, .. }
        | Record::Change { new: Some(item), .. } => (item, true),
        Record::Change { keys, new: None } => (keys, false),
    };
    rules.apply(&mut item);
    let key = EncodedItem::encode(&keys.of(&item)?);
    let encoded = EncodedItem::encode(&item);
    if encoded.as_item().size_bytes() > ITEM_SIZE_BYTES_MAX {
        return Err("Item size has exceeded the maximum allowed size".to_owned());
    }
    let shown = if is_put { &encoded } else { &key };
    let line = String::from_utf8_lossy(&write_line(shown.as_item())).trim_end().to_owned();
    let body = match is_put {
        true => format!("{{\"PutRequest\":{line}}}"),
        false => format!("{{\"DeleteRequest\":{}}}", line.replacen("\"Item\"", "\"Key\"", 1)),
    };
    Ok((key.as_bytes().to_vec(), body, is_put))
}

/// Reads a file on a thread of its own, after the first `skip` records.
fn read(
    open: impl FnOnce() -> Records + Send + 'static,
    position: Arc<AtomicU64>,
    skip: u64,
) -> Receiver<Result<Wave, String>> {
    let (sender, receiver) = mpsc::channel(2);
    tokio::task::spawn_blocking(move || {
        let mut records = open();
        let mut wave = Vec::with_capacity(WAVE_RECORDS);
        let mut number = 0;
        loop {
            let (record, ends) = match records.next() {
                Ok(None) => (None, true),
                Ok(Some(record)) => (Some(Ok(record)), false),
                Err(RecordError::Record(reason)) => (Some(Err(reason)), false),
                Err(RecordError::Rest(reason)) => (Some(Err(reason)), true),
                Err(RecordError::Io(reason)) => {
                    let _ = sender.blocking_send(Err(reason));
                    return;
                }
            };
            if number >= skip {
                wave.extend(record.map(|record| (number, record)));
            }
            number += 1;
            if (ends && !wave.is_empty()) || wave.len() == WAVE_RECORDS {
                let records = std::mem::take(&mut wave);
                let position = position.load(Ordering::Relaxed);
                if sender.blocking_send(Ok(Wave { records, position })).is_err() {
                    return;
                }
            }
            if ends {
                return;
            }
        }
    });
    receiver
}

pub enum RecordError {
    /// One record can't be used.
    Record(String),
    /// Nothing from here on can be used.
    Rest(String),
    /// The import can't go on.
    Io(String),
}

enum Records {
    Json(Lines<Box<dyn io::Read + Send>>),
    Ion(IonReader<Box<dyn io::Read + Send>>),
    Csv(CsvReader<Box<dyn io::Read + Send>>),
    DynamoDbLocal(Box<LocalItems>),
}

impl Records {
    fn new(object: ObjectReader, file: &SourceFile, reading: Reading) -> Records {
        let bytes = file.compression.decoder(object);
        match file.format {
            ImportFormat::Json => Records::Json(Lines::new(bytes)),
            ImportFormat::Ion => Records::Ion(IonReader::new(bytes)),
            ImportFormat::Csv => {
                let Reading { delimiter, header, types } = reading;
                Records::Csv(CsvReader::new(bytes, CsvOptions { delimiter, header, types }))
            }
        }
    }

    fn next(&mut self) -> Result<Option<Record>, RecordError> {
        let record = match self {
            Records::Json(lines) => match lines.next_line() {
                Ok(None) => Ok(None),
                Ok(Some(line)) => return json_record(line).map(Some),
                Err(error) => Err(error),
            },
            Records::Ion(reader) => reader.next_record(),
            Records::Csv(reader) => reader.next_record(),
            Records::DynamoDbLocal(items) => return items.next_record(),
        };
        record.map_err(|error| match error {
            ReadError::Record(error) => RecordError::Record(error.to_string()),
            ReadError::File(error) => RecordError::Rest(format!("{error}; the rest was not read")),
            ReadError::Io(error) => RecordError::Io(error.to_string()),
        })
    }
}

/// A line of DynamoDB's JSON, or else of plain JSON.
fn json_record(line: &[u8]) -> Result<Record, RecordError> {
    let error = |error| match error {
        LineError::NotJson => RecordError::Rest("it is not JSON; the rest was not read".to_owned()),
        LineError::Record(reason) => RecordError::Record(reason),
    };
    match is_typed(line) {
        true => read_line(line).map_err(error),
        false => read_plain_line(line).map(Record::Item).map_err(error),
    }
}

/// Whether a line is DynamoDB's: its first member is one of those that exports have.
fn is_typed(line: &[u8]) -> bool {
    let start = line.trim_ascii_start();
    let start = start.strip_prefix(b"{").unwrap_or_default().trim_ascii_start();
    ["\"Item\"", "\"Metadata\"", "\"Keys\""].iter().any(|it| start.starts_with(it.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use zenobe_testing::{ScriptedReply, start_scripted_server};
    use zenobe_value::{AttributeValue, Attributes};

    use super::*;

    #[test]
    fn typed_lines_are_told_from_plain_ones() {
        assert!(is_typed(b" { \"Item\":{}}"));
        assert!(is_typed(b"{\"Metadata\":{}}"));
        assert!(!is_typed(b"{\"id\":1,\"Item\":2}"));
        assert!(!is_typed(b"[]"));
    }

    #[test]
    fn deletions_name_only_the_key() {
        let keys = TableKeys {
            keys: vec![("pk".to_owned(), AttributeType::S)],
            types: BTreeMap::new(),
            identity: String::new(),
        };
        let key = Attributes::from([("pk".to_owned(), AttributeValue::S("Item".to_owned()))]);
        let record = Record::Change { keys: key, new: None };
        let (_, body, is_put) = change(record, &AnonymiseRules::default(), &keys).unwrap();
        assert_eq!(body, r#"{"DeleteRequest":{"Key":{"pk":{"S":"Item"}}}}"#);
        assert!(!is_put);
        let missing = change(Record::Item(Attributes::new()), &AnonymiseRules::default(), &keys);
        assert_eq!(missing.unwrap_err(), "the key pk is missing");
    }

    /// What is left over of a single request is not written yet.
    #[tokio::test]
    async fn a_change_that_is_written_alone_is_repeated_until_it_is_processed() {
        let asked = Arc::new(parking_lot::Mutex::new(Vec::<String>::new()));
        let remembered = Arc::clone(&asked);
        let address = start_scripted_server(move |request| {
            let body = String::from_utf8_lossy(&request.body).into_owned();
            remembered.lock().push(body.clone());
            let unprocessed = body.replace("RequestItems", "UnprocessedItems");
            match (request.number, body.contains("bad")) {
                (_, true) => ScriptedReply::response(
                    400,
                    r#"{"__type":"com.amazon.coral.validate#ValidationException","message":"no"}"#,
                ),
                (1 | 2, false) => ScriptedReply::response(200, &unprocessed),
                _ => ScriptedReply::response(200, r#"{"UnprocessedItems":{}}"#),
            }
        });
        let target = Target::new(&format!("http://{address}"), "us-east-1", None).unwrap();
        let keys = TableKeys { keys: Vec::new(), types: BTreeMap::new(), identity: String::new() };
        let sender = Sender::with_keys(&target, "table", keys, false).unwrap();
        let body = |text: &str| format!(r#"{{"PutRequest":{{"Item":{{"pk":{{"S":"{text}"}}}}}}}}"#);
        let change = |number, text: &str| Change { number, body: body(text) };
        let rejected = sender.write(vec![change(7, "good"), change(8, "bad")]).await.unwrap();
        assert_eq!(rejected, [(8, "no".to_owned())]);
        let single = |text: &str| format!(r#"{{"RequestItems":{{"table":[{}]}}}}"#, body(text));
        let good = single("good");
        assert_eq!(asked.lock()[1..], [good.clone(), good.clone(), good, single("bad")]);
    }

    /// An account's limit is as transient as a table's.
    #[tokio::test]
    async fn an_import_goes_on_after_it_was_throttled() {
        const THROTTLED: [&str; 3] = [
            "ProvisionedThroughputExceededException",
            "RequestLimitExceeded",
            "ThrottlingException",
        ];
        let address = start_scripted_server(|request| match THROTTLED.get(request.number) {
            Some(name) => ScriptedReply::response(400, &format!(r#"{{"__type":"{name}"}}"#)),
            None => ScriptedReply::response(200, r#"{"UnprocessedItems":{}}"#),
        });
        let target = Target::new(&format!("http://{address}"), "us-east-1", None).unwrap();
        let keys = TableKeys { keys: Vec::new(), types: BTreeMap::new(), identity: String::new() };
        let sender = Sender::with_keys(&target, "table", keys, false).unwrap();
        let rejected = sender.write(vec![Change { number: 0, body: "{}".to_owned() }]).await;
        assert_eq!(rejected.unwrap(), []);
    }
}
