//! What was imported, and what was rejected and why.

use std::path::Path;

use serde_json::{Value, json};

use super::ImportError;

/// How many rejected records are kept for the report.
const REJECTIONS_KEPT_MAX: usize = 10_000;
const REJECTIONS_PRINTED_MAX: usize = 10;

#[derive(Debug, Default)]
pub struct Report {
    pub imported: u64,
    pub deleted: u64,
    pub rejected: u64,
    rejections: Vec<Rejection>,
}

#[derive(Debug)]
struct Rejection {
    file: String,
    /// From 1, as people count.
    record: u64,
    reason: String,
}

impl Report {
    pub fn reject(&mut self, file: &str, number: u64, reason: String) {
        self.rejected += 1;
        if self.rejections.len() < REJECTIONS_KEPT_MAX {
            let rejection = Rejection { file: file.to_owned(), record: number + 1, reason };
            self.rejections.push(rejection);
        }
    }

    pub fn print(&self, is_dry_run: bool) {
        let verb = if is_dry_run { "would be imported" } else { "imported" };
        let deleted = match self.deleted {
            0 => String::new(),
            deleted => format!(", {deleted} deleted"),
        };
        println!("{} items {verb}{deleted}, {} records rejected", self.imported, self.rejected);
        for Rejection { file, record, reason } in
            self.rejections.iter().take(REJECTIONS_PRINTED_MAX)
        {
            println!("  {file}, record {record}: {reason}");
        }
        if self.rejected > REJECTIONS_PRINTED_MAX as u64 {
            println!("  and more; --report FILE lists them");
        }
    }

    pub fn to_json(&self) -> Value {
        let rejections: Vec<_> = self
            .rejections
            .iter()
            .map(|it| json!({"file": it.file, "record": it.record, "reason": it.reason}))
            .collect();
        json!({
            "imported": self.imported,
            "deleted": self.deleted,
            "rejected": self.rejected,
            "rejections": rejections,
        })
    }

    /// Reads what [`to_json`](Report::to_json) wrote.
    pub fn from_json(report: &Value) -> Option<Report> {
        let rejection = |it: &Value| {
            Some(Rejection {
                file: it["file"].as_str()?.to_owned(),
                record: it["record"].as_u64()?,
                reason: it["reason"].as_str()?.to_owned(),
            })
        };
        Some(Report {
            imported: report["imported"].as_u64()?,
            deleted: report["deleted"].as_u64()?,
            rejected: report["rejected"].as_u64()?,
            rejections: report["rejections"]
                .as_array()?
                .iter()
                .map(rejection)
                .collect::<Option<_>>()?,
        })
    }

    pub fn write(&self, path: &Path) -> Result<(), ImportError> {
        std::fs::write(path, format!("{:#}\n", self.to_json()))
            .map_err(|error| ImportError::Write { path: path.to_owned(), error })
    }
}
