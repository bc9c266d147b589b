//! Backing up the server's data while it serves.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use zenobe_database::Database;
use zenobe_database::backup::{BackupProgress, BackupStage, BackupSummary};
use zenobe_transfer::objects::ObjectLocation;

use super::long_work::{LastRun, Permission, Refusals};
use super::{AdminError, posted};

/// Where callers may back up the server.
pub type BackupPermission = Permission<ObjectLocation>;

const REFUSALS: Refusals = Refusals {
    nowhere: "callers may not back up this server: start it with --allow-backup-to and the place for its backups",
    elsewhere: "the server may be backed up only to the place in its option --allow-backup-to",
};

type LastBackup = LastRun<BackupProgress, BackupSummary>;

pub struct BackupMaker {
    permission: BackupPermission,
    database: Database,
    last: Arc<Mutex<LastBackup>>,
}

impl BackupMaker {
    pub fn new(permission: BackupPermission, database: Database) -> BackupMaker {
        BackupMaker { permission, database, last: Arc::default() }
    }

    pub fn answer(&self, method: &Method, body: &[u8]) -> Result<Value, AdminError> {
        if let Some(request) = posted(method, body)? {
            self.begin(&request)?;
        }
        Ok(describe(&self.last.lock()))
    }

    fn begin(&self, request: &Value) -> Result<(), AdminError> {
        let refused = |message: String| AdminError::new(StatusCode::BAD_REQUEST, message);
        let to = request["to"]
            .as_str()
            .ok_or_else(|| refused("expected {\"to\": \"s3://bucket/prefix\"}".to_owned()))?;
        let location: ObjectLocation =
            to.parse().map_err(|error| refused(format!("to: {error}")))?;
        let location = self.permission.check(location, ObjectLocation::eq, &REFUSALS)?;
        self.last.lock().begin(to.to_owned(), "the server is being backed up already")?;
        tokio::spawn(carry_out(self.database.clone(), self.last.clone(), location));
        Ok(())
    }
}

async fn carry_out(database: Database, last: Arc<Mutex<LastBackup>>, to: ObjectLocation) {
    let observed = last.clone();
    let observe = move |progress| observed.lock().progress = progress;
    let made = database.back_up(&to, observe).await;
    last.lock().outcome = Some(made.map_err(|error| {
        tracing::error!(%error, "the server was not backed up");
        error.to_string()
    }));
}

fn describe(last: &LastBackup) -> Value {
    let stage = last.stage(match last.progress.stage {
        BackupStage::Reading => "reading",
        BackupStage::Storing => "storing",
        _ => "copying",
    });
    let summary = last.summary();
    let BackupProgress { files, rows, bytes, .. } = last.progress;
    json!({
        "to": last.to,
        "stage": stage,
        "files": {
            "done": files.files, "total": files.files_total, "known": files.files_known,
            "bytes": files.bytes, "bytes_total": files.bytes_total, "bytes_known": files.bytes_known,
        },
        "rows": rows,
        "bytes": bytes,
        "id": summary.map(|summary| &summary.id),
        "at_ms": summary.map(|summary| summary.at_ms),
        "ranges": summary.map(|summary| summary.ranges),
        "error": last.error(),
    })
}
