//! What is shown while a backup is made, verified or restored.

use std::time::Instant;

use serde_json::Value;
use zenobe_database::backup::{BackupProgress, BackupStage};
use zenobe_load::{human_bytes, human_count};

use crate::commands::live_line::{LiveLine, bar, time_left};

pub struct BackupDisplay {
    line: LiveLine,
    /// The stage, when it began, and what had been done then.
    begin: Option<(&'static str, Instant, u64)>,
}

/// The progress as it is shown, whether a server or this command does the work.
struct ShownBackup {
    stage: &'static str,
    /// Bytes of files, or segments.
    done: u64,
    total: u64,
    detail: String,
}

impl BackupDisplay {
    pub fn new() -> BackupDisplay {
        BackupDisplay { line: LiveLine::new(), begin: None }
    }

    pub fn show(&mut self, progress: &BackupProgress) {
        let files = progress.files;
        let detail = || format!("{} of {} files", files.files, files.files_total);
        let (stage, done, total, detail) = match progress.stage {
            BackupStage::Copying => ("linking the files", 0, 0, String::new()),
            BackupStage::Reading => {
                ("reading", progress.bytes, 0, format!("{} rows", human_count(progress.rows)))
            }
            BackupStage::Storing => ("storing", files.bytes, files.bytes_total, detail()),
            BackupStage::Fetching => ("fetching", files.bytes, files.bytes_total, detail()),
            BackupStage::Applying => {
                let detail =
                    format!("{} of {} segments", progress.segments, progress.segments_total);
                ("applying", progress.segments, progress.segments_total, detail)
            }
        };
        self.show_line(&ShownBackup { stage, done, total, detail });
    }

    /// What a server says of the backup that it makes.
    pub fn show_status(&mut self, status: &Value) {
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        let files = &status["files"];
        let shown = match status["stage"].as_str() {
            Some("reading") => ShownBackup {
                stage: "reading",
                done: number(&status["bytes"]),
                total: 0,
                detail: format!("{} rows", human_count(number(&status["rows"]))),
            },
            Some("storing") => ShownBackup {
                stage: "storing",
                done: number(&files["bytes"]),
                total: number(&files["bytes_total"]),
                detail: format!("{} of {} files", files["done"], files["total"]),
            },
            _ => {
                ShownBackup { stage: "linking the files", done: 0, total: 0, detail: String::new() }
            }
        };
        self.show_line(&shown);
    }

    fn show_line(&mut self, shown: &ShownBackup) {
        let begin = match self.begin {
            Some(begin) if begin.0 == shown.stage => begin,
            _ => *self.begin.insert((shown.stage, Instant::now(), shown.done)),
        };
        self.line.show(|| describe(shown, begin.1.elapsed().as_secs_f64(), begin.2));
    }

    pub fn end(&self) {
        self.line.end();
    }
}

fn describe(shown: &ShownBackup, elapsed_s: f64, done_before: u64) -> String {
    let ShownBackup { stage, done, total, detail } = shown;
    if *total == 0 && *done == 0 {
        return (*stage).to_owned();
    }
    if *total == 0 {
        return format!("{stage} {}, {detail}", human_bytes(*done as f64));
    }
    let rate = done.saturating_sub(done_before) as f64 / elapsed_s.max(0.001);
    let left = time_left(total.saturating_sub(*done), rate);
    format!("{stage} {}  {detail}, {left} left", bar(*done, *total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_much_and_how_long() {
        let shown = ShownBackup {
            stage: "storing",
            done: 3_000,
            total: 12_000,
            detail: "1 of 4 files".into(),
        };
        let line = describe(&shown, 2.0, 1_000);
        assert_eq!(line, "storing [#####               ]  25 %  1 of 4 files, 9 s left");
        let reading = ShownBackup { stage: "reading", done: 0, total: 0, detail: String::new() };
        assert_eq!(describe(&reading, 1.0, 0), "reading");
    }
}
