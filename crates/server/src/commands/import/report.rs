//! What was imported, and what was rejected and why.

use std::path::Path;

use serde_json::json;

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

    pub fn write(&self, path: &Path) -> Result<(), ImportError> {
        let rejections: Vec<_> = self
            .rejections
            .iter()
            .map(|it| json!({"file": it.file, "record": it.record, "reason": it.reason}))
            .collect();
        let report = json!({
            "imported": self.imported,
            "deleted": self.deleted,
            "rejected": self.rejected,
            "rejections": rejections,
        });
        std::fs::write(path, format!("{report:#}\n"))
            .map_err(|error| ImportError::Write { path: path.to_owned(), error })
    }
}
