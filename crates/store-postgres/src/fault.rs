//! What an error of a statement means for what was asked.

use std::error::Error as _;

use tokio_postgres::error::SqlState;
use zenobe_store::Error;

#[derive(Debug, Clone)]
pub enum Fault {
    /// Others were there first: read and decide again.
    Conflict,
    /// An addition to what is no counter.
    NoCounter,
    /// The connection is of no use any more, or leads to a server that does not write. The rest is fate.
    Lost(String),
    /// Nothing that trying again would change.
    Refused(String),
}

impl Fault {
    /// For whoever only reads, or has nothing sent that may yet be carried out.
    pub fn into_error(self) -> Error {
        match self {
            Fault::Conflict => Error::Conflict,
            Fault::NoCounter => {
                Error::Corrupt { detail: "an addition to what is not a counter".to_owned() }
            }
            Fault::Lost(detail) => Error::Unavailable { detail },
            Fault::Refused(detail) => Error::Io { detail },
        }
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Fault {
        let Some(state) = error.code() else {
            return Fault::Lost(text(&error));
        };
        match state {
            // A condition that did not hold, a claim that somebody else had, a cycle, a wait that was too long.
            &SqlState::DIVISION_BY_ZERO
            | &SqlState::UNIQUE_VIOLATION
            | &SqlState::T_R_SERIALIZATION_FAILURE
            | &SqlState::T_R_DEADLOCK_DETECTED
            | &SqlState::LOCK_NOT_AVAILABLE => Fault::Conflict,
            &SqlState::INVALID_TEXT_REPRESENTATION => Fault::NoCounter,
            // The server stops or has become a standby, or there are too many connections.
            &SqlState::READ_ONLY_SQL_TRANSACTION => Fault::Lost(text(&error)),
            state if ["08", "53", "57"].iter().any(|class| state.code().starts_with(class)) => {
                Fault::Lost(text(&error))
            }
            _ => Fault::Refused(text(&error)),
        }
    }
}

/// With the server's own words, which `Display` of the error leaves to its source.
pub fn text(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(server), _) => format!("{} ({})", server.message(), server.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}
