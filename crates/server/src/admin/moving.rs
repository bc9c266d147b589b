//! Moving the server's data to another store while it serves.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use zenobe_database::{
    Database, Location, MoveError, MoveProgress, MoveStage, MoveSummary, name_of,
};

use super::{AdminError, parse};
use crate::commands::parse_place;
use crate::triggers::Triggers;

/// Where callers may move the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MovePermission {
    Nowhere,
    To(Location),
    Anywhere,
}

impl MovePermission {
    /// The place that a caller asks for, as the server knows it: with its password.
    fn check(&self, asked: Location) -> Result<Location, AdminError> {
        let refuse = |message: &str| Err(AdminError::new(StatusCode::FORBIDDEN, message));
        match self {
            MovePermission::Anywhere => Ok(asked),
            MovePermission::To(allowed) if name_of(allowed) == name_of(&asked) => {
                Ok(allowed.clone())
            }
            MovePermission::To(_) => {
                refuse("the server may be moved only to the store in its option --allow-move-to")
            }
            MovePermission::Nowhere => refuse(
                "callers may not move this server: start it with --allow-move-to and the store that it may move to, or stop it \
                 and use `zenobe move --from`",
            ),
        }
    }
}

pub struct Mover {
    permission: MovePermission,
    database: Database,
    triggers: Arc<Triggers>,
    state: Arc<Mutex<State>>,
}

/// The last move since the server was started.
#[derive(Default)]
struct State {
    to: Option<String>,
    progress: MoveProgress,
    outcome: Option<Result<MoveSummary, String>>,
}

impl Mover {
    pub fn new(permission: MovePermission, database: Database, triggers: Arc<Triggers>) -> Mover {
        Mover { permission, database, triggers, state: Arc::default() }
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
        let place = match request["to"].as_str() {
            Some(text) => parse_place(text)
                .map_err(|problem| AdminError::new(StatusCode::BAD_REQUEST, problem))?,
            None => {
                let message = "expected {\"to\": \"postgres://user@host/database\"}";
                return Err(AdminError::new(StatusCode::BAD_REQUEST, message));
            }
        };
        let place = self.permission.check(place)?;
        {
            let mut state = self.state.lock();
            if state.to.is_some() && state.outcome.is_none() {
                let message = "the server is being moved already";
                return Err(AdminError::new(StatusCode::CONFLICT, message));
            }
            let to = Some(name_of(&place));
            *state = State { to, ..State::default() };
        }
        tokio::spawn(carry_out(
            self.database.clone(),
            self.triggers.clone(),
            self.state.clone(),
            place,
        ));
        Ok(())
    }
}

async fn carry_out(
    database: Database,
    triggers: Arc<Triggers>,
    state: Arc<Mutex<State>>,
    place: Location,
) {
    let observed = state.clone();
    let observe = move |progress| observed.lock().progress = progress;
    let moved = database.move_to(&place, observe).await;
    if moved.is_ok()
        && database.engine().is_shared()
        && let Err(error) = triggers.follow_others()
    {
        tracing::error!(%error, "triggers that other nodes add are not seen until a restart");
    }
    state.lock().outcome = Some(moved.map_err(|error: MoveError| {
        tracing::error!(%error, "the server was not moved");
        error.to_string()
    }));
}

fn describe(state: &State) -> Value {
    let MoveProgress { stage, total, copied } = &state.progress;
    let stage = match (&state.to, &state.outcome) {
        (None, _) => "none",
        (_, Some(Ok(_))) => "done",
        (_, Some(Err(_))) => "failed",
        (_, None) => match stage {
            MoveStage::Counting => "counting",
            MoveStage::Copying => "copying",
            MoveStage::Following => "following",
            MoveStage::Pausing | MoveStage::Done => "pausing",
        },
    };
    let outcome = state.outcome.as_ref();
    let summary = outcome.and_then(|outcome| outcome.as_ref().ok());
    json!({
        "to": state.to,
        "stage": stage,
        "total": {"rows": total.rows, "bytes": total.bytes},
        "copied": {
            "rows": copied.done.rows, "bytes": copied.done.bytes,
            "ranges": copied.ranges, "changes": copied.changes,
        },
        "pause_ms": summary.map(|summary| summary.pause.as_millis() as u64),
        "error": outcome.and_then(|outcome| outcome.as_ref().err()),
    })
}
