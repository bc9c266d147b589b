//! Files of items, as DynamoDB's exports write them and its imports read them, and the object
//! stores that hold these files.
//!
//! This crate knows values and bytes. It knows no table, no key schema and no request. What a file
//! holds, it yields item by item as [`Record`]s; what is wrong with it, as typed [`ContentError`]s.
//!
//! * [`ion`]: Amazon Ion, text and binary in, text out.
//! * [`csv`]: CSV by the rules of ImportTable.
//! * [`lines`]: the lines of DYNAMODB_JSON files. Their JSON is `api`'s, which has the one codec
//!   for it.
//! * [`compression`]: gzip and zstd.
//! * [`manifest`] and [`export_layout`]: the files beside the data of an export, and where each file is.
//! * [`objects`]: S3, or a directory in its place.
//! * [`sqlite`]: the rows of SQLite's files, which DynamoDB Local keeps its tables in.
//! * [`parquet`]: files of columns, for analysis.
//! * [`anonymise`]: rules that replace values on the way.

pub mod anonymise;
mod byte_window;
pub mod compression;
pub mod csv;
mod csv_write;
pub mod export_layout;
pub mod ion;
pub mod lines;
pub mod manifest;
pub mod objects;
pub mod parquet;
mod plain_json;
mod read_error;
pub mod sqlite;

use zenobe_value::Attributes;

pub use compression::Compression;
pub use csv_write::CsvWriter;
pub use read_error::{ContentError, ReadError};

/// What one line, or one value, of a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// An item of a full export.
    Item(Attributes),
    /// An item with further members, which nobody has looked at. Only a reader that was asked for them returns it.
    ItemWith { item: Attributes, others: Attributes },
    /// A change of an incremental export.
    Change { keys: Attributes, new: Option<Attributes> },
}

/// The formats of files, by DynamoDB's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    DynamoDbJson,
    Ion,
    Csv,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::DynamoDbJson => "DYNAMODB_JSON",
            Format::Ion => "ION",
            Format::Csv => "CSV",
        }
    }
}
