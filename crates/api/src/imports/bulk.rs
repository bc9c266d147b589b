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
use zenobe_transfer::objects::{Bucket, ObjectError, ObjectStoreOptions};
use zenobe_transfer::{Compression, Format};
use zenobe_value::{AttributeValue, Attributes};

use super::loader::{Faults, Loader, OBJECTS_MAX, Report};
use super::read::Reading;
use super::{INPUT_COMPRESSION, ImportProgress, status, value_of};
use crate::constraints::Enumeration;
use crate::exports::{SSE_ALGORITHM, SseAlgorithm};
use crate::json::Writer;
use crate::object_jobs::{DAMAGED, Stop, object_store, write_failure};

/// The kind of these jobs, which is also part of their ARNs.
pub(crate) const BULK_KIND: &str = "bulk-operation";

/// AWS's limit for each object: 5 GB.
const OBJECT_BYTES_MAX: u64 = 5 << 30;

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
    pub(crate) report: BulkReport,
    pub(crate) units_per_second: Option<u64>,
    pub(crate) tier: String,
    pub(crate) token: String,
    /// `InputS3Configuration` and `OutputS3Configuration`, as JSON.
    pub(crate) input: String,
    pub(crate) output: String,
}

/// What a bulk put tells about the items that it did not put, and where.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BulkReport {
    pub(crate) bucket: String,
    pub(crate) prefix: String,
    pub(crate) has_errors: bool,
    pub(crate) has_conditions: bool,
    pub(crate) sse: SseAlgorithm,
    pub(crate) kms_key: Option<String>,
}

impl BulkParameters {
    pub(crate) fn encode(&self) -> Attributes {
        let report = &self.report;
        let units = self.units_per_second.map(|units| units.to_string());
        let texts = [
            ("table_id", Some(&self.table_id)),
            ("bucket", Some(&self.bucket)),
            ("prefix", self.prefix.as_ref()),
            ("report_bucket", Some(&report.bucket)),
            ("report_prefix", Some(&report.prefix)),
            ("report_kms_key", report.kms_key.as_ref()),
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
            ("report_sse", SSE_ALGORITHM.name_of(&report.sse)),
        ];
        row.extend(names.map(|(name, text)| (name.to_owned(), AttributeValue::S(text.to_owned()))));
        let kinds = [
            ("report_has_errors", report.has_errors),
            ("report_has_conditions", report.has_conditions),
        ];
        row.extend(
            kinds.map(|(name, is_wanted)| (name.to_owned(), AttributeValue::Bool(is_wanted))),
        );
        row
    }

    /// `None` if the row is damaged.
    pub(crate) fn decode(row: &Attributes) -> Option<BulkParameters> {
        let optional = |name: &str| match row.get(name) {
            Some(AttributeValue::S(text)) => Some(text.clone()),
            _ => None,
        };
        let is_wanted = |name: &str| row.get(name) == Some(&AttributeValue::Bool(true));
        Some(BulkParameters {
            table_id: optional("table_id")?,
            bucket: optional("bucket")?,
            prefix: optional("prefix"),
            format: value_of(&BULK_FORMAT, &optional("format")?)?,
            compression: value_of(&INPUT_COMPRESSION, &optional("compression")?)?,
            report: BulkReport {
                bucket: optional("report_bucket")?,
                prefix: optional("report_prefix")?,
                has_errors: is_wanted("report_has_errors"),
                has_conditions: is_wanted("report_has_conditions"),
                sse: value_of(&SSE_ALGORITHM, &optional("report_sse")?)?,
                kms_key: optional("report_kms_key"),
            },
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
            let mut loader =
                Loader { engine, job, progress, faults, units_per_second, measures: true };
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
    loader.faults.report = Some(report(loader, &parameters.report, object_store)?);
    let table = table(loader, &parameters.table_id).await?;
    let bucket = Bucket::open(object_store, &parameters.bucket)?;
    let prefix = parameters.prefix.as_deref().unwrap_or_default();
    let objects = bucket.list(prefix, OBJECTS_MAX).await?;
    // Before anything is put.
    if let Some(large) = objects.iter().find(|it| it.size_bytes > OBJECT_BYTES_MAX) {
        let (key, limit) = (large.key.clone(), OBJECT_BYTES_MAX);
        return Err(ObjectError::TooLarge { key, limit }.into());
    }
    loader.progress.total_size_bytes = Some(objects.iter().map(|it| it.size_bytes).sum());
    loader.save().await?;
    let (format, compression) = (parameters.format, parameters.compression);
    let csv = CsvOptions::default();
    let reading = Reading { format, compression, csv, takes_conditions: true, skip: 0 };
    loader.load_all(table, &bucket, &objects, &reading).await?;
    write_manifest(loader).await
}

fn report(
    loader: &Loader<'_>,
    given: &BulkReport,
    object_store: &ObjectStoreOptions,
) -> Result<Report, ObjectError> {
    let encryption = given.sse.encryption(given.kms_key.as_deref());
    Ok(Report {
        bucket: Bucket::open_encrypted(object_store, &given.bucket, &encryption)?,
        prefix: format!("{}/{}", given.prefix, loader.job.row().id),
        has_errors: given.has_errors,
        has_conditions: given.has_conditions,
        // An earlier attempt has got beyond the list of objects.
        may_repeat: loader.progress.total_size_bytes.is_some(),
    })
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
        writer.name("conditionCheckFailureCount").integer(progress.failed_conditions);
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
            writer.object(|writer| write_usage(writer, table, &progress));
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

fn write_usage(writer: &mut Writer, table: &str, progress: &ImportProgress) {
    let indexes = [
        ("LocalSecondaryIndexes", &progress.local_indexes_put_size_bytes),
        ("GlobalSecondaryIndexes", &progress.global_indexes_put_size_bytes),
    ];
    let of_indexes: u64 = indexes.iter().flat_map(|(_, sizes)| sizes.values()).sum();
    writer.name("TableName").string(table);
    writer.name("BulkPutBytes").integer(progress.put_size_bytes + of_indexes);
    writer.name("Table").object(|writer| {
        writer.name("BulkPutBytes").integer(progress.put_size_bytes);
    });
    for (member, sizes) in indexes.into_iter().filter(|(_, sizes)| !sizes.is_empty()) {
        writer.name(member).object(|writer| {
            for (index, size_bytes) in sizes {
                writer.name(index).object(|writer| {
                    writer.name("BulkPutBytes").integer(*size_bytes);
                });
            }
        });
    }
}

/// What a description and a summary have in common.
pub(crate) fn write_bulk_head(writer: &mut Writer, row: &JobRow) {
    let has_errors = ImportProgress::decode(&row.progress).errors > 0;
    let status = match &row.status {
        JobStatus::Completed if has_errors => "COMPLETED_WITH_ERRORS",
        other => status(other),
    };
    writer.name("BulkOperationArn").string(&bulk_arn(row));
    writer.name("BulkOperationStatus").string(status);
    writer.name("StartTime").timestamp(row.started_at_ms);
    if let Some(ended_at_ms) = row.ended_at_ms {
        writer.name("EndTime").timestamp(ended_at_ms);
    }
}
