//! Moving the server's data to another store while it serves.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use zenobe_database::{
    Database, Location, MoveError, MoveProgress, MoveStage, MoveSummary, name_of,
};

use super::long_work::{LastRun, Permission, Refusals};
use super::{AdminError, posted};
use crate::commands::parse_place;
use crate::triggers::Triggers;

/// Where callers may move the server.
pub type MovePermission = Permission<Location>;

const REFUSALS: Refusals = Refusals {
    nowhere: "callers may not move this server: start it with --allow-move-to and the store that it may move to, or stop it \
              and use `zenobe move --from`",
    elsewhere: "the server may be moved only to the store in its option --allow-move-to",
};

type LastMove = LastRun<MoveProgress, MoveSummary>;

pub struct Mover {
    permission: MovePermission,
    database: Database,
    triggers: Arc<Triggers>,
    last: Arc<Mutex<LastMove>>,
}

impl Mover {
    pub fn new(permission: MovePermission, database: Database, triggers: Arc<Triggers>) -> Mover {
        Mover { permission, database, triggers, last: Arc::default() }
    }

    pub fn answer(&self, method: &Method, body: &[u8]) -> Result<Value, AdminError> {
        if let Some(request) = posted(method, body)? {
            self.begin(&request)?;
        }
        Ok(describe(&self.last.lock()))
    }

    fn begin(&self, request: &Value) -> Result<(), AdminError> {
        let place = match request["to"].as_str() {
            Some(text) => parse_place(text)
                .map_err(|problem| AdminError::new(StatusCode::BAD_REQUEST, problem))?,
            None => {
                let message = "expected {\"to\": \"postgres://user@host/database\"}";
                return Err(AdminError::new(StatusCode::BAD_REQUEST, message));
            }
        };
        // As the operator named it: with its password.
        let is_same = |allowed: &Location, asked: &Location| name_of(allowed) == name_of(asked);
        let place = self.permission.check(place, is_same, &REFUSALS)?;
        self.last.lock().begin(name_of(&place), "the server is being moved already")?;
        let (database, triggers) = (self.database.clone(), self.triggers.clone());
        tokio::spawn(carry_out(database, triggers, self.last.clone(), place));
        Ok(())
    }
}

async fn carry_out(
    database: Database,
    triggers: Arc<Triggers>,
    last: Arc<Mutex<LastMove>>,
    place: Location,
) {
    let observed = last.clone();
    let observe = move |progress| observed.lock().progress = progress;
    let moved = database.move_to(&place, observe).await;
    if moved.is_ok()
        && database.engine().is_shared()
        && let Err(error) = triggers.follow_others()
    {
        tracing::error!(%error, "triggers that other nodes add are not seen until a restart");
    }
    last.lock().outcome = Some(moved.map_err(|error: MoveError| {
        tracing::error!(%error, "the server was not moved");
        error.to_string()
    }));
}

fn describe(last: &LastMove) -> Value {
    let MoveProgress { stage, total, copied } = &last.progress;
    let stage = last.stage(match stage {
        MoveStage::Counting => "counting",
        MoveStage::Copying => "copying",
        MoveStage::Following => "following",
        MoveStage::Pausing | MoveStage::Done => "pausing",
    });
    json!({
        "to": last.to,
        "stage": stage,
        "total": {"rows": total.rows, "bytes": total.bytes},
        "copied": {
            "rows": copied.done.rows, "bytes": copied.done.bytes,
            "ranges": copied.ranges, "changes": copied.changes,
        },
        "pause_ms": last.summary().map(|summary| summary.pause.as_millis() as u64),
        "error": last.error(),
    })
}
