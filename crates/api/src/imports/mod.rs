//! Imports: what a job of ImportTable is asked to do and has done, and how it runs.

mod bulk;
mod loader;
mod read;
mod run;

use std::collections::BTreeMap;

use zenobe_engine::command::{CreateTable, TableName};
use zenobe_engine::jobs::{JobRow, JobStatus};
use zenobe_engine::schema::{Namespace, table_arn};
use zenobe_transfer::csv::CsvOptions;
use zenobe_transfer::{Compression, Format};
use zenobe_value::{AttributeValue, Attributes, Number};

use crate::constraints::Enumeration;
use crate::error::ApiError;
use crate::json::Writer;
use crate::json::decode::{request, shape};
use crate::object_jobs::write_failure;
use crate::operations::create_table::{TableCreationParameters, creation_command};

pub use bulk::BulkPutter;
pub(crate) use bulk::{
    BULK_FORMAT, BULK_KIND, BulkParameters, BulkReport, bulk_arn, write_bulk_head,
    write_bulk_operation,
};
pub use run::Importer;

/// The kind of these jobs, which is also part of their ARNs.
pub(crate) const KIND: &str = "import";

pub(crate) static INPUT_FORMAT: Enumeration<Format> = Enumeration(&[
    ("DYNAMODB_JSON", Format::DynamoDbJson),
    ("ION", Format::Ion),
    ("CSV", Format::Csv),
]);

pub(crate) static INPUT_COMPRESSION: Enumeration<Compression> = Enumeration(&[
    ("GZIP", Compression::Gzip),
    ("ZSTD", Compression::Zstd),
    ("NONE", Compression::None),
]);

shape! {
    struct InputFormatOptions {
        "Csv" => csv: CsvInput,
    }

    struct CsvInput {
        "Delimiter" => delimiter: String,
        "HeaderList" => header_list: Vec<String>,
    }
}

/// What an import is asked to do. Parts of the request are kept as JSON, because descriptions
/// repeat them as they were given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ImportParameters {
    pub(crate) bucket: String,
    pub(crate) prefix: Option<String>,
    pub(crate) owner: String,
    pub(crate) format: Format,
    pub(crate) compression: Compression,
    /// `InputFormatOptions`, as JSON.
    pub(crate) options: Option<String>,
    /// `TableCreationParameters`, as JSON.
    pub(crate) table: String,
    pub(crate) token: String,
}

impl ImportParameters {
    pub(crate) fn encode(&self) -> Attributes {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let mut row = Attributes::from([
            ("bucket".to_owned(), text(&self.bucket)),
            ("owner".to_owned(), text(&self.owner)),
            ("format".to_owned(), text(INPUT_FORMAT.name_of(&self.format))),
            ("compression".to_owned(), text(INPUT_COMPRESSION.name_of(&self.compression))),
            ("table".to_owned(), text(&self.table)),
            ("token".to_owned(), text(&self.token)),
        ]);
        let optional = [("prefix", &self.prefix), ("options", &self.options)];
        for (name, value) in optional {
            row.extend(value.as_ref().map(|value| (name.to_owned(), text(value))));
        }
        row
    }

    /// `None` if the row is damaged.
    pub(crate) fn decode(row: &Attributes) -> Option<ImportParameters> {
        let optional = |name: &str| match row.get(name) {
            Some(AttributeValue::S(text)) => Some(text.clone()),
            _ => None,
        };
        Some(ImportParameters {
            bucket: optional("bucket")?,
            prefix: optional("prefix"),
            owner: optional("owner")?,
            format: value_of(&INPUT_FORMAT, &optional("format")?)?,
            compression: value_of(&INPUT_COMPRESSION, &optional("compression")?)?,
            options: optional("options"),
            table: optional("table")?,
            token: optional("token")?,
        })
    }

    /// The table to create.
    fn creation(&self, name: TableName) -> Result<CreateTable, ApiError> {
        let parameters: TableCreationParameters = request(self.table.as_bytes())?;
        creation_command(name, parameters)
    }

    fn csv(&self, table: &CreateTable) -> CsvOptions {
        let options = self.options.as_ref().and_then(|options| request(options.as_bytes()).ok());
        let options: InputFormatOptions = options.unwrap_or_default();
        let csv = options.csv.unwrap_or_default();
        let delimiter = csv.delimiter.and_then(|text| text.bytes().next());
        let types = table.attribute_types.iter();
        CsvOptions {
            delimiter: delimiter.unwrap_or(b','),
            header: csv.header_list,
            types: types.map(|(name, of)| (name.clone(), of.attribute_type())).collect(),
        }
    }
}

fn value_of<T: Copy>(enumeration: &Enumeration<T>, name: &str) -> Option<T> {
    enumeration.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// What an import has done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ImportProgress {
    pub(crate) table_id: Option<String>,
    /// The object being read. Those before it, in the order of keys, are done.
    pub(crate) object: Option<String>,
    /// How many objects were begun, which numbers them.
    pub(crate) objects_begun: u64,
    /// How many records of that object are done.
    pub(crate) records_done: u64,
    /// The sizes of the objects before it, and how far it has got itself.
    pub(crate) size_bytes_before: u64,
    pub(crate) size_bytes: u64,
    pub(crate) processed: u64,
    pub(crate) imported: u64,
    pub(crate) errors: u64,
    /// The items that were not put because their condition failed, which is not an error.
    pub(crate) failed_conditions: u64,
    /// The sizes of the items that were put.
    pub(crate) put_size_bytes: u64,
    /// The sizes of their entries, by index.
    pub(crate) local_indexes_put_size_bytes: BTreeMap<String, u64>,
    pub(crate) global_indexes_put_size_bytes: BTreeMap<String, u64>,
    /// The sizes of all objects, once they are known.
    pub(crate) total_size_bytes: Option<u64>,
    /// How often in a row the object store could not be reached.
    pub(crate) attempts: u64,
}

impl ImportProgress {
    pub(crate) fn encode(&self) -> Attributes {
        let mut row = Attributes::new();
        let texts = [("table_id", &self.table_id), ("object", &self.object)];
        for (name, text) in texts {
            row.extend(text.iter().map(|it| (name.to_owned(), AttributeValue::S(it.clone()))));
        }
        let total = self.total_size_bytes.map(|total| ("total_size_bytes", total));
        for (name, number) in self.numbers().into_iter().chain(total) {
            row.insert(name.to_owned(), AttributeValue::N(Number::from(number)));
        }
        let maps = [
            ("local_indexes_put_size_bytes", &self.local_indexes_put_size_bytes),
            ("global_indexes_put_size_bytes", &self.global_indexes_put_size_bytes),
        ];
        for (name, sizes) in maps.into_iter().filter(|(_, sizes)| !sizes.is_empty()) {
            let sizes = sizes.iter().map(|(index, size_bytes)| {
                (index.clone(), AttributeValue::N(Number::from(*size_bytes)))
            });
            row.insert(name.to_owned(), AttributeValue::M(sizes.collect()));
        }
        row
    }

    fn numbers(&self) -> [(&'static str, u64); 10] {
        [
            ("failed_conditions", self.failed_conditions),
            ("objects_begun", self.objects_begun),
            ("put_size_bytes", self.put_size_bytes),
            ("records_done", self.records_done),
            ("size_bytes_before", self.size_bytes_before),
            ("size_bytes", self.size_bytes),
            ("processed", self.processed),
            ("imported", self.imported),
            ("errors", self.errors),
            ("attempts", self.attempts),
        ]
    }

    pub(crate) fn decode(row: &Attributes) -> ImportProgress {
        let text = |name: &str| match row.get(name) {
            Some(AttributeValue::S(text)) => Some(text.clone()),
            _ => None,
        };
        let number_of = |value: Option<&AttributeValue>| match value {
            Some(AttributeValue::N(number)) => {
                number.to_i64().and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
            }
            _ => 0,
        };
        let number = |name: &str| number_of(row.get(name));
        let numbers = |name: &str| match row.get(name) {
            Some(AttributeValue::M(sizes)) => {
                sizes.iter().map(|(index, size)| (index.clone(), number_of(Some(size)))).collect()
            }
            _ => BTreeMap::new(),
        };
        ImportProgress {
            table_id: text("table_id"),
            object: text("object"),
            objects_begun: number("objects_begun"),
            failed_conditions: number("failed_conditions"),
            put_size_bytes: number("put_size_bytes"),
            local_indexes_put_size_bytes: numbers("local_indexes_put_size_bytes"),
            global_indexes_put_size_bytes: numbers("global_indexes_put_size_bytes"),
            total_size_bytes: row.get("total_size_bytes").map(|_| number("total_size_bytes")),
            records_done: number("records_done"),
            size_bytes_before: number("size_bytes_before"),
            size_bytes: number("size_bytes"),
            processed: number("processed"),
            imported: number("imported"),
            errors: number("errors"),
            attempts: number("attempts"),
        }
    }
}

pub(crate) fn import_arn(namespace: &Namespace, row: &JobRow) -> String {
    let table = table_arn(namespace, row.table.as_deref().unwrap_or_default());
    format!("{table}/{KIND}/{}", row.id)
}

/// `ImportTableDescription`.
pub(crate) fn write_import(writer: &mut Writer, row: &JobRow) {
    let Some(parameters) = ImportParameters::decode(&row.parameters) else {
        return writer.object(|_| {});
    };
    let progress = ImportProgress::decode(&row.progress);
    writer.object(|writer| {
        write_head(writer, row, &parameters);
        if let Some(id) = &progress.table_id {
            writer.name("TableId").string(id);
        }
        writer.name("ClientToken").string(&parameters.token);
        if let Some(options) = &parameters.options {
            writer.name("InputFormatOptions").raw(options);
        }
        let compression = INPUT_COMPRESSION.name_of(&parameters.compression);
        writer.name("InputCompressionType").string(compression);
        writer.name("TableCreationParameters").raw(&parameters.table);
        if row.status.is_final() || progress.processed > 0 {
            writer.name("ProcessedSizeBytes").integer(progress.size_bytes);
            writer.name("ProcessedItemCount").integer(progress.processed);
            writer.name("ImportedItemCount").integer(progress.imported);
            writer.name("ErrorCount").integer(progress.errors);
        }
        if let JobStatus::Failed { code, message } = &row.status {
            write_failure(writer, code, message);
        }
    });
}

/// `ImportSummary`.
pub(crate) fn write_import_summary(writer: &mut Writer, row: &JobRow) {
    let parameters = ImportParameters::decode(&row.parameters);
    writer.object(|writer| {
        if let Some(parameters) = &parameters {
            write_head(writer, row, parameters);
        }
    });
}

/// What a description and a summary have in common.
fn write_head(writer: &mut Writer, row: &JobRow, parameters: &ImportParameters) {
    let Namespace { account, region } = &row.namespace;
    let table = row.table.as_deref().unwrap_or_default();
    writer.name("ImportArn").string(&import_arn(&row.namespace, row));
    writer.name("ImportStatus").string(status(&row.status));
    writer.name("TableArn").string(&table_arn(&row.namespace, table));
    writer.name("S3BucketSource").object(|writer| {
        writer.name("S3BucketOwner").string(&parameters.owner);
        writer.name("S3Bucket").string(&parameters.bucket);
        if let Some(prefix) = &parameters.prefix {
            writer.name("S3KeyPrefix").string(prefix);
        }
    });
    let log = format!("arn:aws:logs:{region}:{account}:log-group:/aws-dynamodb/imports:*");
    writer.name("CloudWatchLogGroupArn").string(&log);
    writer.name("InputFormat").string(INPUT_FORMAT.name_of(&parameters.format));
    writer.name("StartTime").timestamp(row.started_at_ms);
    if let Some(ended_at_ms) = row.ended_at_ms {
        writer.name("EndTime").timestamp(ended_at_ms);
    }
}

fn status(status: &JobStatus) -> &'static str {
    match status {
        JobStatus::Running => "IN_PROGRESS",
        JobStatus::Cancelling => "CANCELLING",
        JobStatus::Completed => "COMPLETED",
        JobStatus::Failed { .. } => "FAILED",
        JobStatus::Cancelled => "CANCELLED",
    }
}
