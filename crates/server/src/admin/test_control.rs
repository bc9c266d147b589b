//! What a test may do to the server, if it was started with `--test-control`.
//!
//! | request | body | effect |
//! |---|---|---|
//! | `GET`, `POST /_zenobe/test/snapshots` | `{"name": "seeded"}` | lists snapshots, or takes one |
//! | `DELETE /_zenobe/test/snapshots/NAME` | | removes one |
//! | `POST /_zenobe/test/restore` | `{"snapshot": "seeded"}` | returns to a snapshot |
//! | `POST /_zenobe/test/reset` | `{}` or `{"table": "Orders"}` | empties the database or a table |
//! | `GET`, `POST /_zenobe/test/forks` | `{}` or `{"snapshot": "seeded"}` | lists forks, or serves another one |
//! | `DELETE /_zenobe/test/forks/ID` | | ends one |
//! | `GET`, `POST`, `DELETE /_zenobe/test/faults` | a rule, as an object or `{"rule": "kind=drop"}` | lists rules with their counters, adds one, or removes all |
//! | `DELETE /_zenobe/test/faults/ID` | | removes one |
//! | `POST /_zenobe/test/rollover` | `{"table": "Orders"}` | closes the open shards of a stream |
//! | `POST /_zenobe/test/split` | `{"table": "Orders"}` | splits the open shards of a stream |
//!
//! `/_zenobe/clock` moves a driven clock.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use zenobe_engine::schema::Namespace;

use super::{Admin, AdminError, check_method, parse};
use crate::test_control::{ControlError, Rule, TestControl};

impl Admin {
    pub(super) async fn answer_test(
        &self,
        namespace: &Arc<Namespace>,
        method: &Method,
        path: &str,
        body: &[u8],
    ) -> Result<Value, AdminError> {
        let control = self.control.upgrade().ok_or_else(|| {
            let message = "the server was started without --test-control";
            AdminError::new(StatusCode::CONFLICT, message)
        })?;
        let (place, name) = path.split_once('/').unwrap_or((path, ""));
        match (place, name) {
            ("snapshots", "") => snapshots(&control, method, body),
            ("snapshots", name) => {
                check_method(method, &Method::DELETE)?;
                control.snapshots().remove(name)?;
                Ok(json!({"removed": name}))
            }
            ("forks", "") => forks(&control, method, body).await,
            ("forks", id) => {
                check_method(method, &Method::DELETE)?;
                let number = id.parse().map_err(|_| ControlError::NoFork { id: id.to_owned() })?;
                control.forks().end(number, control.environment())?;
                Ok(json!({"ended": number}))
            }
            ("faults", "") => faults(&control, method, body),
            ("faults", id) => {
                check_method(method, &Method::DELETE)?;
                match id.parse().is_ok_and(|number| control.rules().remove(number)) {
                    true => Ok(control.rules().describe()),
                    false => Err(ControlError::NoFault { id: id.to_owned() }.into()),
                }
            }
            ("restore", "") => restore(&control, method, body).await,
            ("reset", "") => reset(&control, namespace, method, body).await,
            ("rollover", "") => roll_over(&control, namespace, method, body).await,
            ("split", "") => split(&control, namespace, method, body).await,
            _ => {
                let message =
                    "there are snapshots, restore, reset, forks, faults, rollover and split";
                Err(AdminError::new(StatusCode::NOT_FOUND, message))
            }
        }
    }
}

fn snapshots(control: &TestControl, method: &Method, body: &[u8]) -> Result<Value, AdminError> {
    match *method {
        Method::GET => {}
        Method::POST => control.take_snapshot(&required(body, "name")?)?,
        _ => return Err(AdminError::method("GET and POST")),
    }
    Ok(control.snapshots().describe())
}

async fn restore(control: &TestControl, method: &Method, body: &[u8]) -> Result<Value, AdminError> {
    check_method(method, &Method::POST)?;
    let name = required(body, "snapshot")?;
    control.restore(&name).await?;
    Ok(json!({"restored": name}))
}

async fn reset(
    control: &TestControl,
    namespace: &Arc<Namespace>,
    method: &Method,
    body: &[u8],
) -> Result<Value, AdminError> {
    check_method(method, &Method::POST)?;
    match optional(body, "table")? {
        Some(table) => {
            control.reset_table(namespace, &table).await?;
            Ok(json!({"reset": table}))
        }
        None => {
            control.reset().await?;
            Ok(json!({"reset": true}))
        }
    }
}

async fn forks(control: &TestControl, method: &Method, body: &[u8]) -> Result<Value, AdminError> {
    match *method {
        Method::GET => Ok(control.forks().describe()),
        Method::POST => {
            let snapshot = optional(body, "snapshot")?;
            // On the heap: opening a database is a large future, and requests should not carry it.
            Ok(Box::pin(control.fork(snapshot.as_deref())).await?)
        }
        _ => Err(AdminError::method("GET and POST")),
    }
}

fn faults(control: &TestControl, method: &Method, body: &[u8]) -> Result<Value, AdminError> {
    match *method {
        Method::GET => {}
        Method::DELETE => control.rules().clear(),
        Method::POST => {
            let request = parse(body)?;
            let rule = match request["rule"].as_str() {
                Some(text) => text.parse::<Rule>(),
                None => Rule::from_json(&request),
            };
            let added = control.rules().add(rule.map_err(ControlError::from)?);
            return Ok(added.map_err(ControlError::from)?.describe());
        }
        _ => return Err(AdminError::method("GET, POST and DELETE")),
    }
    Ok(control.rules().describe())
}

async fn roll_over(
    control: &TestControl,
    namespace: &Arc<Namespace>,
    method: &Method,
    body: &[u8],
) -> Result<Value, AdminError> {
    let table = posted_table(method, body)?;
    control.roll_over(namespace, &table).await?;
    Ok(json!({"rolled_over": table}))
}

async fn split(
    control: &TestControl,
    namespace: &Arc<Namespace>,
    method: &Method,
    body: &[u8],
) -> Result<Value, AdminError> {
    let table = posted_table(method, body)?;
    control.split_shards(namespace, &table).await?;
    Ok(json!({"split": table}))
}

/// The table that a request to change one names.
fn posted_table(method: &Method, body: &[u8]) -> Result<String, AdminError> {
    check_method(method, &Method::POST)?;
    required(body, "table")
}

/// The text of a body's only member, if the body has it.
fn optional(body: &[u8], name: &str) -> Result<Option<String>, AdminError> {
    if body.is_empty() {
        return Ok(None);
    }
    let request = parse(body)?;
    let members: Vec<_> = request.as_object().into_iter().flatten().collect();
    match members[..] {
        [] if request.is_object() => Ok(None),
        [(given, Value::String(text))] if given == name => Ok(Some(text.clone())),
        _ => Err(expected(name)),
    }
}

fn required(body: &[u8], name: &str) -> Result<String, AdminError> {
    optional(body, name)?.ok_or_else(|| expected(name))
}

fn expected(name: &str) -> AdminError {
    let message = format!("expected {{\"{name}\": \"…\"}} with a text");
    AdminError::new(StatusCode::BAD_REQUEST, message)
}

impl From<ControlError> for AdminError {
    fn from(error: ControlError) -> AdminError {
        let status = match &error {
            ControlError::Rule(_) | ControlError::SnapshotName { .. } => StatusCode::BAD_REQUEST,
            ControlError::NoFault { .. }
            | ControlError::NoSnapshot { .. }
            | ControlError::NoFork { .. }
            | ControlError::NoTable { .. } => StatusCode::NOT_FOUND,
            ControlError::TooManyRules(_)
            | ControlError::NotInMemory(_)
            | ControlError::TooManySnapshots { .. }
            | ControlError::TooManyForks { .. }
            | ControlError::NoStream { .. }
            | ControlError::TooManyShards { .. }
            | ControlError::HasHistory { .. }
            | ControlError::IsShared
            | ControlError::IndexesInFlux { .. } => StatusCode::CONFLICT,
            ControlError::Listen(_)
            | ControlError::Copy(_)
            | ControlError::Open(_)
            | ControlError::Triggers(_)
            | ControlError::Engine(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        AdminError::new(status, error.to_string())
    }
}
