//! What places are called, and whether they may be served.

use std::fmt;
use std::path::Path;

use zenobe_store::Store;
use zenobe_store::copying::{Obstacle, SealState, check_servable};

use crate::options::Location;
use crate::{OpenError, problem};

/// The name of a place in messages and in the rows of a move: an absolute path, or a URL without its password.
pub fn name_of(location: &Location) -> String {
    match location {
        Location::Memory => "memory".to_owned(),
        Location::Directory { path, .. } => absolute(path),
        #[cfg(feature = "postgres")]
        Location::Postgres { url } => url.to_string(),
    }
}

fn absolute(path: &Path) -> String {
    // The same directory must have the same name, whichever way it was given.
    let path = path.canonicalize().or_else(|_| std::path::absolute(path));
    path.map_or_else(|error| error.to_string(), |path| path.display().to_string())
}

/// Why a place must not be served, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unservable {
    Moved { place: String, to: String },
    Moving { place: String, to: String },
    Incomplete { from: String },
}

impl fmt::Display for Unservable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unservable::Moved { place, to } => write!(
                out,
                "its data was moved to {to}; serve that instead. To use this old copy all the same, run \
                 `zenobe move --from {place} --abandon`"
            ),
            Unservable::Moving { place, to } => write!(
                out,
                "its data is being moved to {to}. Run the same `zenobe move` again to finish that, or \
                 `zenobe move --from {place} --abandon` to stay here"
            ),
            Unservable::Incomplete { from } => write!(
                out,
                "it holds an unfinished copy of {from}. Run the same `zenobe move` again to finish it, \
                 or use an empty store"
            ),
        }
    }
}

/// Refuses what has been moved elsewhere, and what has not arrived yet.
pub(crate) async fn check(location: &Location, store: &dyn Store) -> Result<(), OpenError> {
    if *location == Location::Memory {
        return Ok(());
    }
    let place = name_of(location);
    let failed = |error: zenobe_store::Error| match location {
        Location::Directory { path, .. } => OpenError::Store { path: path.clone(), error },
        _ => OpenError::Read { place: place.clone(), problem: problem(&error) },
    };
    let Some(obstacle) = check_servable(store).await.map_err(failed)? else { return Ok(()) };
    let why = match obstacle {
        Obstacle::Sealed(seal) => {
            let (place, to) = (place.clone(), seal.to);
            match seal.state {
                SealState::Moving => Unservable::Moving { place, to },
                SealState::Moved => Unservable::Moved { place, to },
            }
        }
        Obstacle::Incomplete(note) => Unservable::Incomplete { from: note.from },
    };
    // The caller may open it for something else next.
    let _ = store.close().await;
    Err(OpenError::Unservable { place, why })
}
