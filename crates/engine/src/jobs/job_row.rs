//! A job as it is stored.

use zenobe_store::Value;
use zenobe_value::Attributes;

use crate::error::Result;
use crate::row::{Fields, corrupt};
use crate::schema::Namespace;

const WHAT: &str = "the row of a job";

/// Work that outlives its request, and the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow {
    pub namespace: Namespace,
    pub kind: String,
    /// The time of the start in 14 digits, a hyphen and 8 hexadecimal digits: ids sort by time.
    pub id: String,
    pub status: JobStatus,
    pub started_at_ms: u64,
    pub ended_at_ms: Option<u64>,
    /// The table that it works on.
    pub table: Option<String>,
    /// The client's token.
    pub token: Option<String>,
    /// What to do. Only the handler understands it.
    pub parameters: Attributes,
    /// What is done. Only the handler understands it.
    pub progress: Attributes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobStatus {
    Running,
    /// A request has asked it to stop.
    Cancelling,
    Completed,
    Failed {
        code: String,
        message: String,
    },
    Cancelled,
}

impl JobStatus {
    /// Whether nothing more will happen.
    pub fn is_final(&self) -> bool {
        !matches!(self, JobStatus::Running | JobStatus::Cancelling)
    }

    fn name(&self) -> &'static str {
        match self {
            JobStatus::Running => "RUNNING",
            JobStatus::Cancelling => "CANCELLING",
            JobStatus::Completed => "COMPLETED",
            JobStatus::Failed { .. } => "FAILED",
            JobStatus::Cancelled => "CANCELLED",
        }
    }
}

impl JobRow {
    pub(crate) fn encode(&self) -> Value {
        let mut fields = Fields::default();
        fields.text("account", &self.namespace.account);
        fields.text("region", &self.namespace.region);
        fields.text("kind", &self.kind);
        fields.text("id", &self.id);
        fields.text("status", self.status.name());
        if let JobStatus::Failed { code, message } = &self.status {
            fields.text("failure_code", code);
            fields.text("failure_message", message);
        }
        fields.number("started_at_ms", self.started_at_ms);
        fields.optional_number("ended_at_ms", self.ended_at_ms);
        fields.optional_text("table", self.table.as_deref());
        fields.optional_text("token", self.token.as_deref());
        fields.map("parameters", self.parameters.clone());
        fields.map("progress", self.progress.clone());
        fields.encode()
    }

    pub(crate) fn decode(row: &[u8]) -> Result<JobRow> {
        let mut fields = Fields::decode(row, WHAT)?;
        let status = match fields.take_text("status")?.as_str() {
            "RUNNING" => JobStatus::Running,
            "CANCELLING" => JobStatus::Cancelling,
            "COMPLETED" => JobStatus::Completed,
            "CANCELLED" => JobStatus::Cancelled,
            "FAILED" => JobStatus::Failed {
                code: fields.take_text("failure_code")?,
                message: fields.take_text("failure_message")?,
            },
            other => return Err(corrupt(format!("{WHAT} has the status {other}"))),
        };
        Ok(JobRow {
            namespace: Namespace {
                account: fields.take_text("account")?,
                region: fields.take_text("region")?,
            },
            kind: fields.take_text("kind")?,
            id: fields.take_text("id")?,
            status,
            started_at_ms: fields.take_number("started_at_ms")?,
            ended_at_ms: fields.take_optional_number("ended_at_ms")?,
            table: fields.take_optional_text("table")?,
            token: fields.take_optional_text("token")?,
            parameters: fields.take_map("parameters")?,
            progress: fields.take_map("progress")?,
        })
    }
}
