//! What happens to requests of a table that DynamoDB would throttle.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use zenobe_engine::ThroughputMode;
use zenobe_engine::command::TableName;
use zenobe_engine::error::Error;
use zenobe_engine::schema::Namespace;
use zenobe_engine::throughput::ModeTagError;

use super::{Admin, AdminError, parse};

impl Admin {
    pub(super) async fn answer_throughput(
        &self,
        namespace: &Arc<Namespace>,
        method: &Method,
        table: &str,
        body: &[u8],
    ) -> Result<Value, AdminError> {
        let name = TableName { namespace: Arc::clone(namespace), name: table.to_owned() };
        match *method {
            Method::GET => {}
            Method::PUT => {
                let mode = requested_mode(&parse(body)?)?;
                let changed = self.engine.set_throughput_mode(&name, mode).await;
                changed.map_err(|error| table_error(table, &error))?;
            }
            _ => return Err(AdminError::method("GET and PUT")),
        }
        let modes = self.engine.throughput_modes(&name).await;
        let (own, mode) = modes.map_err(|error| table_error(table, &error))?;
        let own = own.map(ThroughputMode::name);
        Ok(json!({ "table": table, "mode": mode.name(), "own_mode": own }))
    }
}

/// `None` lets the table follow the server.
fn requested_mode(request: &Value) -> Result<Option<ThroughputMode>, AdminError> {
    match &request["mode"] {
        Value::String(mode) if mode == "default" => Ok(None),
        Value::String(mode) => mode.parse().map(Some).map_err(|_| unknown_mode()),
        _ => Err(unknown_mode()),
    }
}

fn unknown_mode() -> AdminError {
    let message = r#"expected {"mode": …} with "off", "observe", "enforce" or "default""#;
    AdminError::new(StatusCode::BAD_REQUEST, message)
}

pub(super) fn table_error(table: &str, error: &Error) -> AdminError {
    match error {
        Error::TableNotFound { .. } | Error::ResourceNotFound { .. } => {
            AdminError::new(StatusCode::NOT_FOUND, format!("there is no table {table}"))
        }
        Error::ModeTag(ModeTagError::TooLax { mode, min }) => {
            let message = format!(
                "{table} can't have the mode {}: this server's mode is {} for everybody who uses it; its operator can start it with another --throughput",
                mode.name(),
                min.name()
            );
            AdminError::new(StatusCode::FORBIDDEN, message)
        }
        Error::TooManyTags => {
            let message =
                format!("the mode is a tag, and {table} has no room for another; remove one");
            AdminError::new(StatusCode::CONFLICT, message)
        }
        other => AdminError::new(StatusCode::INTERNAL_SERVER_ERROR, other.to_string()),
    }
}
