//! What can go wrong with a backup. The texts are for operators.

use std::io;
use std::path::{Path, PathBuf};

use zenobe_transfer::objects::ObjectError;

pub type Result<T, E = BackupError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{place}: {error}")]
    Objects { place: String, error: ObjectError },
    /// The object store says that it has stored something, and then does not have it.
    #[error("{place} does not hold what was stored there: {key}: {problem}")]
    NotStored { place: String, key: String, problem: String },
    #[error("the backup is damaged: {object}: {problem}")]
    Damaged { object: String, problem: String },
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("there is no backup at {place}")]
    NoBackup { place: String },
    #[error(
        "there is no backup {id} at {place}; `zenobe backup list --from {place}` shows what is there"
    )]
    NoSuchBackup { place: String, id: String },
    #[error("{place} has no state of that time. {known}")]
    NotCovered { place: String, known: String },
    #[error(
        "{place} holds backups of another database; choose another prefix or an empty directory"
    )]
    OtherDatabase { place: String },
    #[error("{0} is not empty; a backup is restored into an empty or a new directory only")]
    NotEmpty(String),
    #[error("{0}")]
    Source(String),
}

impl BackupError {
    pub(crate) fn damaged(object: impl Into<String>, problem: impl Into<String>) -> BackupError {
        BackupError::Damaged { object: object.into(), problem: problem.into() }
    }

    /// Whether repeating it may help. A store that once gave a wrong answer may give the right one next time.
    pub fn is_transient(&self) -> bool {
        match self {
            BackupError::Objects { error, .. } => error.is_transient(),
            BackupError::NotStored { .. } => true,
            _ => false,
        }
    }
}

/// An error of a file, with its path.
pub(crate) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    move |error| BackupError::Io { path, error }
}
