//! Reads an object into batches of items, on a thread of its own: decompression and parsing take
//! time that other background work needs.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc::{Receiver, Sender, channel};
use zenobe_expression::Condition;
use zenobe_transfer::csv::{CsvOptions, CsvReader};
use zenobe_transfer::ion::IonReader;
use zenobe_transfer::lines::Lines;
use zenobe_transfer::objects::{ObjectError, ObjectReader};
use zenobe_transfer::{Compression, Format, ReadError, Record};
use zenobe_value::{AttributeValue, Attributes, EncodedItem};

use crate::json::decode::OrderedMap;
use crate::json::lines::{LineError, read_line, read_put_line};
use crate::messages::transfer;
use crate::parameters::ConditionParameters;

const BATCH_RECORDS_MAX: usize = 200;
/// If a condition fails, the existing item is held in memory and reported too. It may be far larger than the item to put.
const BATCH_CONDITIONS_MAX: usize = 25;
const BATCH_SIZE_BYTES_MAX: usize = 1 << 20;
const BATCHES_AHEAD: usize = 2;

/// Some records of an object, in their order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) items: Vec<EncodedItem>,
    /// The conditions of the items; none at all if no item has one.
    pub(crate) conditions: Vec<Option<Condition>>,
    /// The number of each item in its object, from 0.
    pub(crate) item_numbers: Vec<u64>,
    /// What is wrong with the other records, by their number.
    pub(crate) faults: Vec<(u64, String)>,
    /// How many bytes of the object have been read so far, after decompression.
    pub(crate) size_bytes: u64,
    items_size_bytes: usize,
    conditions_count: usize,
}

impl Batch {
    pub(crate) fn records(&self) -> u64 {
        (self.items.len() + self.faults.len()) as u64
    }

    fn is_full(&self) -> bool {
        self.records() >= BATCH_RECORDS_MAX as u64
            || self.conditions_count >= BATCH_CONDITIONS_MAX
            || self.items_size_bytes >= BATCH_SIZE_BYTES_MAX
    }
}

/// How to understand an object.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) format: Format,
    pub(crate) compression: Compression,
    pub(crate) csv: CsvOptions,
    /// Whether a record may have a condition; anything else besides its item is a fault then. Otherwise all of it is ignored.
    pub(crate) takes_conditions: bool,
    /// How many records are done already.
    pub(crate) skip: u64,
}

/// The batches of an object, as they are read. The last message may be an error of the object
/// store.
pub(crate) fn batches(
    object: ObjectReader,
    reading: Reading,
) -> Receiver<Result<Batch, ObjectError>> {
    let (sender, receiver) = channel(BATCHES_AHEAD);
    // It ends by itself: with the object, or when nobody takes its batches any more.
    tokio::task::spawn_blocking(move || Producer::new(object, reading, sender).run());
    receiver
}

struct Producer {
    records: Records,
    size_bytes: Arc<AtomicU64>,
    skip: u64,
    sender: Sender<Result<Batch, ObjectError>>,
}

impl Producer {
    fn new(
        object: ObjectReader,
        reading: Reading,
        sender: Sender<Result<Batch, ObjectError>>,
    ) -> Producer {
        let size_bytes = Arc::new(AtomicU64::new(0));
        let skip = reading.skip;
        let decoded = reading.compression.decoder(object);
        let counted = Counted { reader: decoded, size_bytes: size_bytes.clone() };
        let records = Records::new(reading, Box::new(counted));
        Producer { records, size_bytes, skip, sender }
    }

    fn run(mut self) {
        let mut batch = Batch::default();
        let mut number = 0;
        loop {
            let outcome = self.records.next();
            let is_skipped = number < self.skip;
            let ends = match outcome {
                Ok(None) => true,
                Ok(Some(_)) | Err(Unread::Record(_)) if is_skipped => false,
                Ok(Some(ImportedItem { item, condition })) => {
                    let item = EncodedItem::encode(&item);
                    batch.items_size_bytes += item.as_bytes().len();
                    batch.items.push(item);
                    batch.conditions_count += usize::from(condition.is_some());
                    batch.conditions.push(condition);
                    batch.item_numbers.push(number);
                    false
                }
                Err(Unread::Record(fault)) => {
                    batch.faults.push((number, fault));
                    false
                }
                Err(Unread::Rest(fault)) => {
                    if !is_skipped {
                        batch.faults.push((number, fault));
                    }
                    true
                }
                Err(Unread::Object(error)) => {
                    let _ = self.send(batch) && self.sender.blocking_send(Err(error)).is_ok();
                    return;
                }
            };
            number += 1;
            if ends || batch.is_full() {
                let full = std::mem::take(&mut batch);
                if !self.send(full) || ends {
                    return;
                }
            }
        }
    }

    fn send(&self, mut batch: Batch) -> bool {
        batch.size_bytes = self.size_bytes.load(Ordering::Relaxed);
        if batch.conditions.iter().all(Option::is_none) {
            batch.conditions.clear();
        }
        self.sender.blocking_send(Ok(batch)).is_ok()
    }
}

/// An item to put.
struct ImportedItem {
    item: Attributes,
    condition: Option<Condition>,
}

/// Why there is no item.
enum Unread {
    Record(String),
    /// Neither this record nor any after it can be read.
    Rest(String),
    Object(ObjectError),
}

type Bytes = Box<dyn Read + Send>;

enum Records {
    Json { lines: Lines<Bytes>, takes_conditions: bool },
    Ion(IonReader<Bytes>),
    Csv(CsvReader<Bytes>),
}

impl Records {
    fn new(reading: Reading, bytes: Bytes) -> Records {
        let Reading { format, csv, takes_conditions, .. } = reading;
        match format {
            Format::DynamoDbJson => Records::Json { lines: Lines::new(bytes), takes_conditions },
            Format::Ion if takes_conditions => Records::Ion(IonReader::new(bytes).with_others()),
            Format::Ion => Records::Ion(IonReader::new(bytes)),
            Format::Csv => Records::Csv(CsvReader::new(bytes, csv)),
        }
    }

    fn next(&mut self) -> Result<Option<ImportedItem>, Unread> {
        let record = match self {
            Records::Json { lines, takes_conditions } => {
                let Some(line) = lines.next_line().map_err(unread)? else { return Ok(None) };
                if *takes_conditions {
                    let (item, condition) = read_put_line(line).map_err(unread_line)?;
                    return put(item, condition).map(Some);
                }
                Some(read_line(line).map_err(unread_line)?)
            }
            Records::Ion(reader) => reader.next_record().map_err(unread)?,
            Records::Csv(reader) => reader.next_record().map_err(unread)?,
        };
        match record {
            None => Ok(None),
            Some(Record::Item(item)) => Ok(Some(ImportedItem { item, condition: None })),
            Some(Record::ItemWith { item, others }) => {
                put(item, condition_in(others).map_err(Unread::Record)?).map(Some)
            }
            Some(Record::Change { .. }) => Err(Unread::Record(transfer::no_item())),
        }
    }
}

fn put(item: Attributes, condition: ConditionParameters) -> Result<ImportedItem, Unread> {
    let bound = condition.check_combination().and_then(|()| condition.bind());
    let condition =
        bound.map_err(|error| Unread::Record(error.message().unwrap_or_default().to_owned()))?;
    Ok(ImportedItem { item, condition })
}

/// The condition of a record of Ion, whose members have the names that they have in JSON.
fn condition_in(others: Attributes) -> Result<ConditionParameters, String> {
    let mut condition = ConditionParameters::default();
    for (name, value) in others {
        match (name.as_str(), value) {
            ("ConditionExpression", AttributeValue::S(text)) => condition.expression = Some(text),
            ("ExpressionAttributeNames", AttributeValue::M(names)) => {
                let text = |(placeholder, value)| match value {
                    AttributeValue::S(text) => Ok((placeholder, text)),
                    _ => Err(transfer::not_a_condition(&name)),
                };
                let names = names.into_iter().map(text).collect::<Result<_, String>>()?;
                condition.names = Some(OrderedMap(names));
            }
            ("ExpressionAttributeValues", AttributeValue::M(values)) => {
                let values = values.into_iter().map(|(name, value)| (name, Ok(value)));
                condition.values = Some(OrderedMap(values.collect()));
            }
            (
                "ConditionExpression" | "ExpressionAttributeNames" | "ExpressionAttributeValues",
                _,
            ) => return Err(transfer::not_a_condition(&name)),
            _ => return Err(transfer::unknown_member(&name)),
        }
    }
    Ok(condition)
}

fn unread_line(error: LineError) -> Unread {
    match error {
        LineError::NotJson => Unread::Rest(transfer::not_json()),
        LineError::Record(text) => Unread::Record(text),
    }
}

fn unread(error: ReadError) -> Unread {
    match error {
        ReadError::Record(fault) => Unread::Record(fault.to_string()),
        ReadError::File(fault) => Unread::Rest(transfer::unreadable(&fault)),
        ReadError::Io(error) => Unread::Object(match ObjectReader::object_error(&error) {
            Some(error) => error.clone(),
            None => ObjectError::Unavailable { detail: error.to_string() },
        }),
    }
}

/// Counts what is read.
struct Counted<R> {
    reader: R,
    size_bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.size_bytes.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}
