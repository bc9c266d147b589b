//! Moving a database from one store to another: with nobody using it ([`move_data`]), or while it is served
//! ([`Database::move_to`](crate::Database::move_to)).
//!
//! `zenobe_store::copying` copies and verifies. This module says in which order the two stores learn of it, so that at
//! every moment one of them can be served, or none, but never both:
//!
//! | | source | target |
//! |---|---|---|
//! | before | served | empty |
//! | copying, nobody uses it | sealed: moving | unfinished |
//! | copying while it is served | served | unfinished |
//! | the last changes have been copied (writes wait) | sealed: moving | unfinished |
//! | the target has been told that it is complete | sealed: moving | complete |
//! | after | sealed: moved | served |
//!
//! A move that is cut off is run again. It continues where the target has been verified, or compares everything
//! if the source was used in between.

mod offline;
mod online;

use std::sync::Arc;
use std::time::Duration;

use zenobe_store::copying::{Amount, CopyCounts, CopyError};
use zenobe_store::{Error, Store};

use crate::options::{Location, Options};
use crate::{OpenError, OpenedStore, open_store, problem};

pub use offline::{abandon_move, move_data};

#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("there is no data directory at {0}")]
    NoSource(String),
    #[error("{0} is empty; there is nothing to move")]
    EmptySource(String),
    #[error("{0} cannot be moved to itself")]
    SamePlace(String),
    #[error("a database in memory cannot be moved")]
    Memory,
    #[error("{from} was moved to {to} already")]
    MovedAlready { from: String, to: String },
    #[error(
        "{from} is being moved to {to}: finish that first, or run `zenobe move --from {from} --abandon`"
    )]
    MovingElsewhere { from: String, to: String },
    #[error("{from} is itself an unfinished copy of {original}")]
    SourceIncomplete { from: String, original: String },
    #[error("{to} is not empty; a database is moved into an empty store only")]
    NotEmpty { to: String },
    #[error("{to} holds an unfinished copy of {from}: finish that move, or use an empty store")]
    OtherCopy { to: String, from: String },
    #[error("{0} is not being moved and has not been moved")]
    NotSealed(String),
    #[error("this server cannot move itself: {0}")]
    NotMovable(&'static str),
    #[error(
        "the last changes took so long that writes would have had to wait for more than ten seconds; everything is as it \
         was. Run it again when there are fewer writes, or when the target answers faster"
    )]
    PauseTooLong,
    #[error(
        "the move failed; the source has lost nothing, and the target keeps what was verified. Run the same command to \
         continue: {0}"
    )]
    Copy(CopyError),
    #[error("cannot read or write {place}: {}", problem(error))]
    Store { place: String, error: Error },
}

/// What a move is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MoveStage {
    #[default]
    Counting,
    Copying,
    /// Copying what has changed meanwhile.
    Following,
    /// Writes wait for the last changes.
    Pausing,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MoveProgress {
    pub stage: MoveStage,
    /// What there is to copy, as far as it has been counted.
    pub total: Amount,
    pub copied: CopyCounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveSummary {
    pub copied: CopyCounts,
    /// How long writes had to wait at the end.
    pub pause: Duration,
}

pub(crate) type MoveObserver<'a> = dyn Fn(MoveProgress) + Send + Sync + 'a;

/// Opens a store, whether it may be served or not.
async fn open(location: &Location, options: &Options) -> Result<Arc<dyn Store>, MoveError> {
    let options = Options { location: location.clone(), ..options.clone() };
    let OpenedStore { store, .. } = open_store(&options).await?;
    Ok(store)
}

fn failed(place: &str) -> impl Fn(Error) -> MoveError {
    let place = place.to_owned();
    move |error| MoveError::Store { place: place.clone(), error }
}

fn refused(to: &str) -> impl Fn(CopyError) -> MoveError {
    let to = to.to_owned();
    move |error| match error {
        CopyError::NotEmpty => MoveError::NotEmpty { to: to.clone() },
        CopyError::OtherCopy { from } => MoveError::OtherCopy { to: to.clone(), from },
        error => MoveError::Copy(error),
    }
}

/// Distinguishes one move from all others.
fn new_id() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    // Seeded by the operating system.
    RandomState::new().hash_one(std::process::id())
}
