//! Why a test does not get what it wants.

use zenobe_database::{NotInMemory, OpenError};

use super::{RuleError, TooManyRules};
use crate::triggers::TriggerError;

/// Why something can't be done, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error(transparent)]
    TooManyRules(#[from] TooManyRules),
    #[error("there is no fault {id}")]
    NoFault { id: String },
    #[error(transparent)]
    NotInMemory(#[from] NotInMemory),
    #[error("`{name}` is not a valid snapshot name; use 1 to 64 letters, digits, `-`, `_` and `.`")]
    SnapshotName { name: String },
    #[error("there is no snapshot `{name}`")]
    NoSnapshot { name: String },
    #[error("there are {max} snapshots already; remove one first")]
    TooManySnapshots { max: usize },
    #[error("there is no fork {id}")]
    NoFork { id: String },
    #[error("there are {max} forks already, all in use; end one first")]
    TooManyForks { max: usize },
    #[error("there is no table {table}")]
    NoTable { table: String },
    #[error("table {table} has no stream")]
    NoStream { table: String },
    #[error("the stream of table {table} has too many shards to split them once more")]
    TooManyShards { table: String },
    #[error(
        "table {table} has point-in-time recovery, and its past would be lost; disable it first"
    )]
    HasHistory { table: String },
    #[error("other servers use the same store; only a database of its own can be reset")]
    IsShared,
    #[error("an index of table {table} is being created or deleted; wait for it")]
    IndexesInFlux { table: String },
    #[error("a fork cannot listen: {0}")]
    Listen(std::io::Error),
    #[error("the database cannot be copied: {0}")]
    Copy(zenobe_store::Error),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the triggers cannot be started: {0}")]
    Triggers(#[from] TriggerError),
    #[error(transparent)]
    Engine(#[from] zenobe_engine::error::Error),
}
