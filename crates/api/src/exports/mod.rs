//! Exports: what a job of ExportTableToPointInTime is asked to do and has done, and how it runs.

mod files;
mod filter;
mod progress;
mod request;
mod run;

use zenobe_engine::export::{ExportSource, SOURCE};
use zenobe_engine::jobs::{JobRow, JobStatus};
use zenobe_engine::schema::{Namespace, table_arn};
use zenobe_transfer::export_layout::Layout;
use zenobe_value::{AttributeValue, Attributes};

use crate::json::Writer;
use crate::object_jobs::write_failure;

pub(crate) use filter::{BoundFilter, Filter, FilterSpecification};
pub(crate) use progress::ExportProgress;
pub(crate) use request::{
    EXPORT_FORMAT, EXPORT_TYPE, EXPORT_VIEW, ExportType, ExportView, Given, Incremental,
    SSE_ALGORITHM, SseAlgorithm,
};
pub use run::Exporter;

/// The kind of these jobs, which is also part of their ARNs.
pub(crate) use zenobe_engine::export::KIND;

/// AWS bills at least this much for an incremental export.
const BILLED_CHANGES_SIZE_BYTES_MIN: u64 = 10_000_000;

/// What an export is asked to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExportParameters {
    /// What the request says. Descriptions repeat it, and a repeated token must come with the same.
    pub(crate) given: Given,
    pub(crate) source: ExportSource,
    /// The `TableId` that clients see.
    pub(crate) table_id: String,
    /// The names of the table's key attributes.
    pub(crate) keys: Vec<String>,
    pub(crate) token: String,
    /// The end of an incremental export, in milliseconds since the epoch.
    pub(crate) to_ms: u64,
    /// What the names of data files are made of, so that an attempt that is repeated writes the same files.
    pub(crate) seed: String,
}

impl ExportParameters {
    pub(crate) fn encode(&self) -> Attributes {
        let text = |text: &str| AttributeValue::S(text.to_owned());
        Attributes::from([
            ("given".to_owned(), AttributeValue::M(self.given.encode())),
            (SOURCE.to_owned(), AttributeValue::M(self.source.encode())),
            ("table_id".to_owned(), text(&self.table_id)),
            ("keys".to_owned(), AttributeValue::L(self.keys.iter().map(|it| text(it)).collect())),
            ("token".to_owned(), text(&self.token)),
            ("to_ms".to_owned(), AttributeValue::N(self.to_ms.into())),
            ("seed".to_owned(), text(&self.seed)),
        ])
    }

    /// `None` if the row is damaged.
    pub(crate) fn decode(row: &Attributes) -> Option<ExportParameters> {
        let map = |name: &str| match row.get(name) {
            Some(AttributeValue::M(map)) => Some(map),
            _ => None,
        };
        let Some(AttributeValue::L(keys)) = row.get("keys") else { return None };
        let key = |key: &AttributeValue| match key {
            AttributeValue::S(key) => Some(key.clone()),
            _ => None,
        };
        Some(ExportParameters {
            given: Given::decode(map("given")?)?,
            source: ExportSource::decode(map(SOURCE)?.clone()).ok()?,
            table_id: request::text(row, "table_id")?,
            keys: keys.iter().map(key).collect::<Option<_>>()?,
            token: request::text(row, "token")?,
            to_ms: request::number(row, "to_ms")?,
            seed: request::text(row, "seed")?,
        })
    }

    /// Where the export's files are.
    pub(crate) fn layout(&self, export_id: &str) -> Layout {
        Layout::new(self.given.prefix.as_deref(), export_id)
    }
}

pub(crate) fn export_arn(row: &JobRow) -> String {
    format!("{}/{KIND}/{}", arn_of_table(row), row.id)
}

fn arn_of_table(row: &JobRow) -> String {
    table_arn(&row.namespace, row.table.as_deref().unwrap_or_default())
}

/// The size that AWS would bill.
fn billed_size_bytes(parameters: &ExportParameters, progress: &ExportProgress) -> u64 {
    match parameters.source.is_incremental() {
        true => progress.size_bytes.max(BILLED_CHANGES_SIZE_BYTES_MIN),
        false => progress.size_bytes,
    }
}

/// `ExportDescription`.
pub(crate) fn write_export(writer: &mut Writer, row: &JobRow) {
    let Some(parameters) = ExportParameters::decode(&row.parameters) else {
        return writer.object(|_| {});
    };
    let given = &parameters.given;
    writer.object(|writer| {
        writer.name("ExportArn").string(&export_arn(row));
        writer.name("ExportStatus").string(status(&row.status));
        writer.name("StartTime").timestamp(row.started_at_ms);
        if let Some(ended_at_ms) = row.ended_at_ms {
            writer.name("EndTime").timestamp(ended_at_ms);
        }
        if row.status == JobStatus::Completed {
            writer.name("ExportManifest").string(&parameters.layout(&row.id).summary());
        }
        writer.name("TableArn").string(&arn_of_table(row));
        writer.name("TableId").string(&parameters.table_id);
        if given.incremental.is_none() {
            writer.name("ExportTime").timestamp(given.export_time_ms.unwrap_or(row.started_at_ms));
        }
        writer.name("ClientToken").string(&parameters.token);
        given.write(writer, parameters.to_ms);
        writer.name("DestinationType").string("S3");
        if row.status == JobStatus::Completed {
            let progress = ExportProgress::decode(&row.progress);
            let billed = billed_size_bytes(&parameters, &progress);
            writer.name("BilledSizeBytes").integer(billed);
            writer.name("ItemCount").integer(progress.items);
        }
        if let JobStatus::Failed { code, message } = &row.status {
            write_failure(writer, code, message);
        }
    });
}

/// `ExportSummary`.
pub(crate) fn write_export_summary(writer: &mut Writer, row: &JobRow) {
    let parameters = ExportParameters::decode(&row.parameters);
    let export_type = match parameters.is_some_and(|it| it.source.is_incremental()) {
        true => ExportType::Incremental,
        false => ExportType::Full,
    };
    writer.object(|writer| {
        writer.name("ExportArn").string(&export_arn(row));
        writer.name("ExportStatus").string(status(&row.status));
        writer.name("ExportType").string(EXPORT_TYPE.name_of(&export_type));
    });
}

fn status(status: &JobStatus) -> &'static str {
    match status {
        JobStatus::Running | JobStatus::Cancelling => "IN_PROGRESS",
        JobStatus::Completed => "COMPLETED",
        JobStatus::Failed { .. } | JobStatus::Cancelled => "FAILED",
    }
}

/// The namespace and the parts behind it of `arn:<partition>:dynamodb:<region>:<account>:table/<table>/export/<id>`.
pub(crate) struct ExportArn {
    pub(crate) namespace: Namespace,
    pub(crate) table: String,
    pub(crate) id: String,
}

impl ExportArn {
    pub(crate) fn parse(arn: &str) -> Option<ExportArn> {
        let parts: Vec<&str> = arn.splitn(6, ':').collect();
        let ["arn", _, "dynamodb", region, account, resource] = parts[..] else { return None };
        let elements: Vec<&str> = resource.split('/').collect();
        let ["table", table, KIND, id] = elements[..] else { return None };
        let namespace = Namespace { account: account.to_owned(), region: region.to_owned() };
        Some(ExportArn { namespace, table: table.to_owned(), id: id.to_owned() })
    }
}
