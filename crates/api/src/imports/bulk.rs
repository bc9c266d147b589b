//! Bulk puts: what a job of StartBulkPutItems is asked to do, and how it runs. It reads objects as
//! an import does, but puts their items into an existing table.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use zenobe_engine::Engine;
use zenobe_engine::catalog::Table;
use zenobe_engine::command::TableName;
use zenobe_engine::error::{Error, Result};
use zenobe_engine::jobs::{FailedTable, Job, JobHandler, JobRow, JobStatus};
use zenobe_engine::schema::table_arn;
use zenobe_transfer::csv::CsvOptions;
use zenobe_transfer::objects::{Bucket, ObjectStoreOptions};
use zenobe_transfer::{Compression, Format};
use zenobe_value::{AttributeValue, Attributes};

use super::loader::{Faults, Loader, OBJECTS_MAX, Report};
use super::read::Reading;
use super::{INPUT_COMPRESSION, ImportProgress, value_of};
use crate::constraints::Enumeration;
use crate::json::Writer;
use crate::object_jobs::{DAMAGED, Stop, object_store, write_failure};

/// The kind of these jobs, which is also part of their ARNs.
pub(crate) const BULK_KIND: &str = "bulk-operation";

pub(crate) static BULK_FORMAT: Enumeration<Format> =
    Enumeration(&[("DYNAMODB_JSON", Format::DynamoDbJson), ("ION", Format::Ion)]);

/// What a bulk put is asked to do. Parts of the request are kept as JSON, because descriptions
/// repeat them as they were given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BulkParameters {
    pub(crate) table_id: String,
    pub(crate) bucket: String,
    pub(crate) prefix: Option<String>,
    pub(crate) format: Format,
    pub(crate) compression: Compression,
    /// Where to report errors, if anybody wants to know them: a bucket and a prefix.
    pub(crate) report: Option<(String, String)>,
    pub(crate) units_per_second: Option<u64>,
    pub(crate) tier: String,
    pub(crate) token: String,
    /// `InputS3Configuration` and `OutputS3Configuration`, as JSON.
    pub(crate) input: String,
    pub(crate) output: String,
}

impl BulkParameters {
    pub(crate) fn encode(&self) -> Attributes {
        let report = self.report.as_ref();
        let units = self.units_per_second.map(|units| units.to_string());
        let texts = [
            ("table_id", Some(&self.table_id)),
            ("bucket", Some(&self.bucket)),
            ("prefix", self.prefix.as_ref()),
            ("report_bucket", report.map(|(bucket, _)| bucket)),
            ("report_prefix", report.map(|(_, prefix)| prefix)),
            ("units_per_second", units.as_ref()),
            ("tier", Some(&self.tier)),
            ("token", Some(&self.token)),
            ("input", Some(&self.input)),
            ("output", Some(&self.output)),
        ];
        let mut row: Attributes = texts
            .into_iter()
            .filter_map(|(name, text)| Some((name.to_owned(), AttributeValue::S(text?.clone()))))
            .collect();
        let names = [
            ("format", BULK_FORMAT.name_of(&self.format)),
            ("compression", INPUT_COMPRESSION.name_of(&self.compression)),
        ];
        row.extend(names.map(|(name, text)| (name.to_owned(), AttributeValue::S(text.to_owned()))));
        row
    }

    /// `None` if the row is damaged.
    pub(crate) fn decode(row: &Attributes) -> Option<BulkParameters> {
        let optional = |name: &str| match row.get(name) {
            Some(AttributeValue::S(text)) => Some(text.clone()),
            _ => None,
        };
        Some(BulkParameters {
            table_id: optional("table_id")?,
            bucket: optional("bucket")?,
            prefix: optional("prefix"),
            format: value_of(&BULK_FORMAT, &optional("format")?)?,
            compression: value_of(&INPUT_COMPRESSION, &optional("compression")?)?,
            report: optional("report_bucket").zip(optional("report_prefix")),
            units_per_second: optional("units_per_second").and_then(|units| units.parse().ok()),
            tier: optional("tier")?,
            token: optional("token")?,
            input: optional("input")?,
            output: optional("output")?,
        })
    }
}

pub(crate) fn bulk_arn(row: &JobRow) -> String {
    let table = table_arn(&row.namespace, row.table.as_deref().unwrap_or_default());
    format!("{table}/{BULK_KIND}/{}", row.id)
}

/// Does the jobs of StartBulkPutItems.
pub struct BulkPutter {
    object_store: Option<ObjectStoreOptions>,
}

impl BulkPutter {
    pub fn new(object_store: Option<ObjectStoreOptions>) -> BulkPutter {
        BulkPutter { object_store }
    }
}

impl JobHandler for BulkPutter {
    fn kind(&self) -> &'static str {
        BULK_KIND
    }

    fn run<'a>(&'a self, engine: &'a Engine, job: &'a mut Job) -> BoxFuture<'a, Result<()>> {
        async move {
            let object_store = object_store(self.object_store.as_ref(), "a bulk put")?;
            let progress = ImportProgress::decode(&job.row().progress);
            let Some(parameters) = BulkParameters::decode(&job.row().parameters) else {
                let (code, message) = DAMAGED;
                let (progress, table) = (progress.encode(), FailedTable::Keep);
                return job.fail(engine, code, message, progress, table).await;
            };
            let faults = Faults {
                bucket: parameters.bucket.clone(),
                arn: bulk_arn(job.row()),
                arn_member: "bulkOperationArn",
                report: None,
            };
            let units_per_second = parameters.units_per_second;
            let mut loader = Loader { engine, job, progress, faults, units_per_second };
            let outcome = run(&mut loader, &parameters, object_store).await;
            end(loader, outcome).await
        }
        .boxed()
    }
}

async fn run(
    loader: &mut Loader<'_>,
    parameters: &BulkParameters,
    object_store: &ObjectStoreOptions,
) -> Result<(), Stop> {
    if loader.job.is_cancelled() {
        return Err(Stop::Cancelled);
    }
    if let Some((bucket, prefix)) = &parameters.report {
        let bucket = Bucket::open(object_store, bucket)?;
        let prefix = format!("{prefix}/{}", loader.job.row().id);
        loader.faults.report = Some(Report { bucket, prefix, lines: Vec::new() });
    }
    let table = table(loader, &parameters.table_id).await?;
    let bucket = Bucket::open(object_store, &parameters.bucket)?;
    let prefix = parameters.prefix.as_deref().unwrap_or_default();
    let objects = bucket.list(prefix, OBJECTS_MAX).await?;
    loader.progress.total_size_bytes = Some(objects.iter().map(|it| it.size_bytes).sum());
    loader.save().await?;
    let (format, compression) = (parameters.format, parameters.compression);
    let csv = CsvOptions::default();
    // A condition that nobody evaluates would be worse than an item that is not put.
    let reading = Reading { format, compression, csv, takes_only_items: true, skip: 0 };
    loader.load_all(&table, &bucket, &objects, &reading).await?;
    write_manifest(loader).await
}

/// The table that the operation was started for, which another may have replaced.
async fn table(loader: &Loader<'_>, table_id: &str) -> Result<Arc<Table>, Stop> {
    let row = loader.job.row();
    let name = TableName {
        namespace: Arc::new(row.namespace.clone()),
        name: row.table.clone().unwrap_or_default(),
    };
    let found = match loader.engine.current_table(&name).await {
        Ok(table) => Some(table).filter(|table| table.definition().uuid == table_id),
        Err(Error::TableNotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    found.ok_or_else(|| table_gone(&name.name))
}

fn table_gone(table: &str) -> Stop {
    Stop::Failed { code: "TableNotFound", message: format!("Table not found: {table}") }
}

/// Says in the output bucket what the operation did.
async fn write_manifest(loader: &mut Loader<'_>) -> Result<(), Stop> {
    let arn = bulk_arn(loader.job.row());
    let progress = &loader.progress;
    let Some(report) = &loader.faults.report else { return Ok(()) };
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.name("bulkOperationArn").string(&arn);
        writer.name("processedItemCount").integer(progress.processed);
        writer.name("failedItemCount").integer(progress.errors);
    });
    let key = format!("{}/manifest.json", report.prefix);
    report.bucket.put(&key, writer.finish().into()).await?;
    Ok(())
}

async fn end(mut loader: Loader<'_>, outcome: Result<(), Stop>) -> Result<()> {
    let table = FailedTable::Keep;
    let (code, message) = match outcome {
        Ok(()) => {
            let progress = loader.progress.encode();
            return loader.job.finish(loader.engine, progress).await;
        }
        Err(Stop::Cancelled) => {
            let progress = loader.progress.encode();
            return loader.job.cancel(loader.engine, progress, table).await;
        }
        Err(Stop::Engine(Error::TableNotFound { name })) => {
            ("TableNotFound", format!("Table not found: {name}"))
        }
        Err(Stop::Engine(error)) => return Err(error),
        Err(Stop::Failed { code, message }) => (code, message),
        Err(Stop::Objects(error)) => loader.failure(&error).await?,
    };
    let progress = loader.progress.encode();
    loader.job.fail(loader.engine, code, &message, progress, table).await
}

/// `BulkOperationDescription`.
pub(crate) fn write_bulk_operation(writer: &mut Writer, row: &JobRow) {
    let Some(parameters) = BulkParameters::decode(&row.parameters) else {
        return writer.object(|_| {});
    };
    let progress = ImportProgress::decode(&row.progress);
    let table = row.table.as_deref().unwrap_or_default();
    writer.object(|writer| {
        write_bulk_head(writer, row);
        writer.name("TableDetails").array([()], |writer, ()| {
            writer.object(|writer| {
                writer.name("TableName").string(table);
                writer.name("TableId").string(&parameters.table_id);
            });
        });
        writer.name("ClientToken").string(&parameters.token);
        writer.name("InputS3Configuration").raw(&parameters.input);
        writer.name("OutputS3Configuration").raw(&parameters.output);
        writer.name("ProcessedItemCount").integer(progress.processed);
        writer.name("FailedItemCount").integer(progress.errors);
        writer.name("ProcessedInputBytes").integer(progress.size_bytes);
        if let Some(total) = progress.total_size_bytes {
            writer.name("TotalInputBytes").integer(total);
        }
        writer.name("BulkOperationUsage").array([()], |writer, ()| {
            writer.object(|writer| {
                writer.name("TableName").string(table);
                writer.name("BulkPutBytes").integer(progress.put_size_bytes);
                writer.name("Table").object(|writer| {
                    writer.name("BulkPutBytes").integer(progress.put_size_bytes);
                });
            });
        });
        if let Some(units) = parameters.units_per_second {
            writer.name("MaxWriteRequestUnits").integer(units);
        }
        writer.name("PerformanceTier").string(&parameters.tier);
        match &row.status {
            JobStatus::Failed { code, message } => write_failure(writer, code, message),
            JobStatus::Cancelled => {
                write_failure(writer, "Cancelled", "The operation was cancelled");
            }
            _ => {}
        }
    });
}

/// What a description and a summary have in common.
pub(crate) fn write_bulk_head(writer: &mut Writer, row: &JobRow) {
    let has_errors = ImportProgress::decode(&row.progress).errors > 0;
    let status = match &row.status {
        JobStatus::Running => "IN_PROGRESS",
        JobStatus::Cancelling => "CANCELLING",
        JobStatus::Completed if has_errors => "COMPLETED_WITH_ERRORS",
        JobStatus::Completed => "COMPLETED",
        JobStatus::Failed { .. } => "FAILED",
        JobStatus::Cancelled => "CANCELLED",
    };
    writer.name("BulkOperationArn").string(&bulk_arn(row));
    writer.name("BulkOperationStatus").string(status);
    writer.name("StartTime").timestamp(row.started_at_ms);
    if let Some(ended_at_ms) = row.ended_at_ms {
        writer.name("EndTime").timestamp(ended_at_ms);
    }
}
