//! What the error of a statement means for the request.

use std::error::Error as _;

use tokio_postgres::error::SqlState;
use zenobe_store::Error;

#[derive(Debug, Clone)]
pub enum StatementError {
    /// Another write was first: read and decide again.
    Conflict,
    /// An addition to a value that is not a counter.
    NoCounter,
    /// The connection is unusable, or leads to a server that does not accept writes. Whether the statement took effect is unknown.
    Lost(String),
    /// Retrying would not help.
    Refused(String),
}

impl StatementError {
    /// The error of a request that only reads, or that has sent nothing which could still take effect.
    pub fn into_error(self) -> Error {
        match self {
            StatementError::Conflict => Error::Conflict,
            StatementError::NoCounter => {
                Error::Corrupt { detail: "an addition to a value that is not a counter".to_owned() }
            }
            StatementError::Lost(detail) => Error::Unavailable { detail },
            StatementError::Refused(detail) => Error::Io { detail },
        }
    }
}

impl From<tokio_postgres::Error> for StatementError {
    fn from(error: tokio_postgres::Error) -> StatementError {
        let Some(state) = error.code() else {
            return StatementError::Lost(text(&error));
        };
        match state {
            // A failed comparison, a key that another write has claimed, a deadlock, a lock timeout.
            &SqlState::DIVISION_BY_ZERO
            | &SqlState::UNIQUE_VIOLATION
            | &SqlState::T_R_SERIALIZATION_FAILURE
            | &SqlState::T_R_DEADLOCK_DETECTED
            | &SqlState::LOCK_NOT_AVAILABLE => StatementError::Conflict,
            &SqlState::INVALID_TEXT_REPRESENTATION => StatementError::NoCounter,
            // The server is stopping, has become a standby, or has too many connections.
            &SqlState::READ_ONLY_SQL_TRANSACTION => StatementError::Lost(text(&error)),
            state if ["08", "53", "57"].iter().any(|class| state.code().starts_with(class)) => {
                StatementError::Lost(text(&error))
            }
            _ => StatementError::Refused(text(&error)),
        }
    }
}

/// The error with the server's message, which `Display` leaves to the source.
pub fn text(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(server), _) => format!("{} ({})", server.message(), server.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}
