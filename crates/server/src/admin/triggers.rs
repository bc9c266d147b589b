//! Triggers over HTTP.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use zenobe_engine::schema::Namespace;

use super::{Admin, AdminError, parse};
use crate::triggers::{TriggerDefinition, TriggerError};

impl Admin {
    pub(super) async fn answer_triggers(
        &self,
        namespace: &Arc<Namespace>,
        method: &Method,
        body: &[u8],
    ) -> Result<Value, AdminError> {
        match *method {
            Method::GET => Ok(json!({ "triggers": self.triggers.list(namespace).await? })),
            Method::POST => {
                let definition = TriggerDefinition::parse(&parse(body)?)
                    .map_err(|error| AdminError::new(StatusCode::BAD_REQUEST, error.to_string()))?;
                let (name, table) = (definition.name.clone(), definition.table.clone());
                self.triggers.add(namespace, definition).await?;
                let mut status = self.triggers.status(namespace, &name).await?;
                status["hint"] = json!(self.triggers.hint(namespace, &table).await);
                Ok(status)
            }
            _ => Err(AdminError::method("GET and POST")),
        }
    }

    pub(super) async fn answer_trigger(
        &self,
        namespace: &Arc<Namespace>,
        method: &Method,
        name: &str,
    ) -> Result<Value, AdminError> {
        match *method {
            Method::GET => Ok(self.triggers.status(namespace, name).await?),
            Method::DELETE => {
                self.triggers.remove(namespace, name).await?;
                Ok(json!({ "removed": name }))
            }
            _ => Err(AdminError::method("GET and DELETE")),
        }
    }
}

impl From<TriggerError> for AdminError {
    fn from(error: TriggerError) -> AdminError {
        let status = match &error {
            TriggerError::NotFound(_) => StatusCode::NOT_FOUND,
            TriggerError::Exists(_) | TriggerError::Configured(_) | TriggerError::TooMany => {
                StatusCode::CONFLICT
            }
            TriggerError::DeadLetter(_) => StatusCode::BAD_REQUEST,
            TriggerError::Thread(_)
            | TriggerError::DeadLetterDirectory(_)
            | TriggerError::Engine(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        AdminError::new(status, error.to_string())
    }
}
