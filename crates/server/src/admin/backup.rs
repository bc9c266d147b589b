//! Backing up the server's data while it serves.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use zenobe_database::Database;
use zenobe_database::backup::{BackupProgress, BackupStage, BackupSummary};
use zenobe_transfer::objects::Location;

use super::{AdminError, parse};

/// Where callers may back up the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupPermission {
    Nowhere,
    To(Location),
    Anywhere,
}

impl BackupPermission {
    fn check(&self, asked: &Location) -> Result<(), AdminError> {
        let refuse = |message: &str| Err(AdminError::new(StatusCode::FORBIDDEN, message));
        match self {
            BackupPermission::Anywhere => Ok(()),
            BackupPermission::To(allowed) if allowed == asked => Ok(()),
            BackupPermission::To(_) => refuse(
                "the server may be backed up only to the place in its option --allow-backup-to",
            ),
            BackupPermission::Nowhere => refuse(
                "callers may not back up this server: start it with --allow-backup-to and the place for its backups",
            ),
        }
    }
}

pub struct BackupMaker {
    permission: BackupPermission,
    database: Database,
    state: Arc<Mutex<State>>,
}

/// The last backup since the server was started.
#[derive(Default)]
struct State {
    to: Option<String>,
    progress: BackupProgress,
    outcome: Option<Result<BackupSummary, String>>,
}

impl BackupMaker {
    pub fn new(permission: BackupPermission, database: Database) -> BackupMaker {
        BackupMaker { permission, database, state: Arc::default() }
    }

    pub fn answer(&self, method: &Method, body: &[u8]) -> Result<Value, AdminError> {
        match *method {
            Method::GET => {}
            Method::POST => self.begin(&parse(body)?)?,
            _ => return Err(AdminError::method("GET and POST")),
        }
        Ok(describe(&self.state.lock()))
    }

    fn begin(&self, request: &Value) -> Result<(), AdminError> {
        let refused = |message: String| AdminError::new(StatusCode::BAD_REQUEST, message);
        let to = request["to"]
            .as_str()
            .ok_or_else(|| refused("expected {\"to\": \"s3://bucket/prefix\"}".to_owned()))?;
        let location: Location = to.parse().map_err(|error| refused(format!("to: {error}")))?;
        self.permission.check(&location)?;
        {
            let mut state = self.state.lock();
            if state.to.is_some() && state.outcome.is_none() {
                let message = "the server is being backed up already";
                return Err(AdminError::new(StatusCode::CONFLICT, message));
            }
            *state = State { to: Some(to.to_owned()), ..State::default() };
        }
        tokio::spawn(carry_out(self.database.clone(), self.state.clone(), location));
        Ok(())
    }
}

async fn carry_out(database: Database, state: Arc<Mutex<State>>, to: Location) {
    let observed = state.clone();
    let observe = move |progress| observed.lock().progress = progress;
    let made = database.back_up(&to, observe).await;
    state.lock().outcome = Some(made.map_err(|error| {
        tracing::error!(%error, "the server was not backed up");
        error.to_string()
    }));
}

fn describe(state: &State) -> Value {
    let summary = state.outcome.as_ref().and_then(|outcome| outcome.as_ref().ok());
    let error = state.outcome.as_ref().and_then(|outcome| outcome.as_ref().err());
    let stage = match (&state.to, &state.outcome) {
        (None, _) => "none",
        (_, Some(Ok(_))) => "done",
        (_, Some(Err(_))) => "failed",
        (_, None) => match state.progress.stage {
            BackupStage::Reading => "reading",
            BackupStage::Storing => "storing",
            _ => "copying",
        },
    };
    let BackupProgress { files, rows, bytes, .. } = state.progress;
    json!({
        "to": state.to,
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
        "error": error,
    })
}
