//! The steps of a history. A step knows nothing about the state it will meet, so any part of a
//! history is a history.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use zenobe_engine::schema::StreamViewType;
use zenobe_value::Attributes;

use crate::text::{Text, show_item};
use crate::twin::page::{Query, Reading};
use crate::twin::route::Route;
use crate::twin::schema::NewIndex;
use crate::twin::transaction::Get;
use crate::twin::write::{Action, BatchRequest, Write};

#[derive(Debug, Clone)]
pub enum Step {
    Write {
        table: String,
        write: Write,
    },
    Get {
        get: Get,
        consistent: bool,
    },
    Query(Query),
    /// With segments, scans all of them.
    Scan {
        table: String,
        reading: Reading,
        segments: Option<u32>,
    },
    BatchGet(Vec<BatchGetTable>),
    BatchWrite(Vec<(String, Vec<BatchRequest>)>),
    TransactWrite {
        token: Option<String>,
        writes: Vec<(String, Write)>,
    },
    TransactGet(Vec<Get>),
    /// A write, a get, a query or a transaction, in PartiQL.
    Statement(Box<Step>),
    AddIndex {
        table: String,
        index: NewIndex,
    },
    DropIndex {
        table: String,
        index: String,
    },
    /// Creates the table as it was at the start.
    CreateTable {
        table: String,
    },
    DeleteTable {
        table: String,
    },
    SetTimeToLive {
        table: String,
        enabled: bool,
    },
    /// Enables a stream, or disables the existing one.
    SetStream {
        table: String,
        view_type: Option<StreamViewType>,
    },
    /// Runs the pending background work.
    Work,
    AdvanceClock {
        by_ms: u64,
    },
    /// Compares everything derived from the items with the items.
    Check,
    /// A new engine on the same store.
    Reopen,
    /// The process dies: a new engine on what the disk holds at that moment.
    Crash,
}

#[derive(Debug, Clone)]
pub struct BatchGetTable {
    pub table: String,
    pub keys: Vec<Attributes>,
    pub projection: Option<Vec<Route>>,
    pub consistent: bool,
}

/// The digest that a client library would send to identify a repetition.
pub fn digest(writes: &[(String, Write)]) -> [u8; 16] {
    let mut digest = [0; 16];
    for (half, salt) in digest.chunks_exact_mut(8).zip(0_u8..) {
        let mut hasher = DefaultHasher::new();
        (salt, format!("{writes:?}")).hash(&mut hasher);
        half.copy_from_slice(&hasher.finish().to_le_bytes());
    }
    digest
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Write { table, write } => write!(formatter, "{}", show_write(table, write)),
            Step::Get { get, consistent } => {
                write!(formatter, "get {}{}", show_get(get), flag(*consistent, " consistent"))
            }
            Step::Query(query) => {
                let Query { table, reading, conditions, forward, start } = query;
                write!(formatter, "query {table}{}", show_reading(reading))?;
                write!(formatter, " where {}", Text::describe_key_tests(conditions))?;
                write!(formatter, "{}", flag(!forward, " backward"))?;
                match start {
                    Some(start) => write!(formatter, " after {}", show_item(start)),
                    None => Ok(()),
                }
            }
            Step::Scan { table, reading, segments } => {
                write!(formatter, "scan {table}{}", show_reading(reading))?;
                match segments {
                    Some(total) => write!(formatter, " in {total} segments"),
                    None => Ok(()),
                }
            }
            Step::BatchGet(tables) => {
                write!(formatter, "batch-get")?;
                for BatchGetTable { table, keys, projection, consistent } in tables {
                    let keys: Vec<String> = keys.iter().map(show_item).collect();
                    let shown = show_projection(projection.as_deref());
                    let consistent = flag(*consistent, " consistent");
                    write!(formatter, "\n    {table} {}{shown}{consistent}", keys.join(", "))?;
                }
                Ok(())
            }
            Step::BatchWrite(tables) => {
                write!(formatter, "batch-write")?;
                for (table, requests) in tables {
                    for request in requests {
                        match request {
                            BatchRequest::Put(item) => {
                                write!(formatter, "\n    put {table} {}", show_item(item))?;
                            }
                            BatchRequest::Delete(key) => {
                                write!(formatter, "\n    delete {table} {}", show_item(key))?;
                            }
                        }
                    }
                }
                Ok(())
            }
            Step::TransactWrite { token, writes } => {
                let token = token.as_ref().map_or(String::new(), |token| format!(" token {token}"));
                write!(formatter, "transact-write{token}")?;
                for (table, write) in writes {
                    write!(formatter, "\n    {}", show_write(table, write))?;
                }
                Ok(())
            }
            Step::TransactGet(gets) => {
                write!(formatter, "transact-get")?;
                gets.iter().try_for_each(|get| write!(formatter, "\n    {}", show_get(get)))
            }
            Step::Statement(step) => write!(formatter, "as a statement: {step}"),
            Step::AddIndex { table, index } => {
                let NewIndex { name, partition, sort, projection } = index;
                write!(formatter, "add-index {table} {name} {partition:?} {sort:?} {projection:?}")
            }
            Step::DropIndex { table, index } => write!(formatter, "drop-index {table} {index}"),
            Step::CreateTable { table } => write!(formatter, "create {table}"),
            Step::DeleteTable { table } => write!(formatter, "delete {table}"),
            Step::SetTimeToLive { table, enabled } => {
                write!(formatter, "time-to-live {table} {enabled}")
            }
            Step::SetStream { table, view_type } => {
                write!(formatter, "stream {table} {view_type:?}")
            }
            Step::Crash => write!(formatter, "crash"),
            Step::Work => write!(formatter, "work"),
            Step::AdvanceClock { by_ms } => write!(formatter, "advance-clock {by_ms} ms"),
            Step::Check => write!(formatter, "check"),
            Step::Reopen => write!(formatter, "reopen"),
        }
    }
}

fn show_write(table: &str, write: &Write) -> String {
    let action = match &write.action {
        Action::Put(item) => format!("put {table} {}", show_item(item)),
        Action::Delete(key) => format!("delete {table} {}", show_item(key)),
        Action::Check(key) => format!("check {table} {}", show_item(key)),
        Action::Update(key, update) => {
            let update = update.as_ref().map_or(String::new(), Text::describe_update);
            format!("update {table} {} {update}", show_item(key))
        }
    };
    match &write.condition {
        Some(condition) => format!("{action} if {}", Text::describe_test(condition)),
        None => action,
    }
}

fn show_get(get: &Get) -> String {
    let Get { table, key, projection } = get;
    format!("{table} {}{}", show_item(key), show_projection(projection.as_deref()))
}

fn show_reading(reading: &Reading) -> String {
    let Reading { index, filter, projection, select, limit, consistent } = reading;
    let mut text = String::new();
    if let Some(index) = index {
        text += &format!(".{index}");
    }
    text += &show_projection(projection.as_deref());
    if let Some(select) = select {
        text += &format!(" select {select:?}");
    }
    if let Some(filter) = filter {
        text += &format!(" filter ({})", Text::describe_test(filter));
    }
    if let Some(limit) = limit {
        text += &format!(" limit {limit}");
    }
    text + flag(*consistent, " consistent")
}

fn show_projection(projection: Option<&[Route]>) -> String {
    let Some(routes) = projection else { return String::new() };
    let routes: Vec<String> = routes.iter().map(ToString::to_string).collect();
    format!(" ({})", routes.join(", "))
}

fn flag(set: bool, text: &'static str) -> &'static str {
    if set { text } else { "" }
}
