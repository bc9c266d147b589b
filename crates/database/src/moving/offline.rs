//! Moving a database that nobody uses.

use zenobe_store::Store;
use zenobe_store::copying::{
    self, CopyCounts, CopyState, Seal, SealState, StoreCopy, copy_note, measure,
};

use super::{
    MoveError, MoveObserver, MoveProgress, MoveStage, MoveSummary, failed, new_id, open, refused,
};
use crate::location::name_of;
use crate::options::{Location, Options};

/// Moves the database at one place to another, and calls `observe` now and then. The options other than the location
/// are used for both.
///
/// # Errors
/// If there is nothing to move, if the target is not empty, or if either fails. A move that was cut off is continued by
/// calling this again.
pub async fn move_data(
    from: &Location,
    to: &Location,
    options: &Options,
    observe: &MoveObserver<'_>,
) -> Result<MoveSummary, MoveError> {
    let (from_name, to_name) = (name_of(from), name_of(to));
    check_source_place(from)?;
    if *to == Location::Memory {
        return Err(MoveError::Memory);
    }
    if from_name == to_name {
        return Err(MoveError::SamePlace(from_name));
    }
    let source = open(from, options).await?;
    let target = open(to, options).await?;
    // A directory that did not exist before may have another name now.
    let to_name = name_of(to);
    let moved = run(&*source, &*target, &from_name, &to_name, observe).await;
    for (store, place) in [(target, &to_name), (source, &from_name)] {
        let closed = store.close().await.map_err(failed(place));
        if moved.is_ok() {
            closed?;
        }
    }
    moved
}

fn check_source_place(from: &Location) -> Result<(), MoveError> {
    match from {
        Location::Memory => Err(MoveError::Memory),
        // Opening would create one.
        Location::Directory { path, .. } if !path.join("FORMAT").exists() => {
            Err(MoveError::NoSource(name_of(from)))
        }
        _ => Ok(()),
    }
}

async fn run(
    source: &dyn Store,
    target: &dyn Store,
    from: &str,
    to: &str,
    observe: &MoveObserver<'_>,
) -> Result<MoveSummary, MoveError> {
    let found = check_source(source, from, to).await?;
    let id = found.as_ref().map_or_else(new_id, |seal| seal.id);
    let seal = |state| Seal { id, to: to.to_owned(), state };
    let arrived = copy_note(target).await.map_err(failed(to))?;
    if arrived.is_some_and(|note| note.id == id && note.state == CopyState::Complete) {
        // Cut off between the last two steps.
        seal(SealState::Moved).put(source).await.map_err(failed(from))?;
        return Ok(MoveSummary { copied: CopyCounts::default(), pause: Default::default() });
    }
    let mut progress = MoveProgress::default();
    observe(progress);
    progress.total = measure(source).await.map_err(MoveError::Copy)?;
    if progress.total.rows == 0 {
        return Err(MoveError::EmptySource(from.to_owned()));
    }
    progress.stage = MoveStage::Copying;
    let report = |copied| observe(MoveProgress { copied, ..progress });
    let options = copying::CopyOptions::default();
    let copy = StoreCopy::begin(source, target, None, (id, from), options, &report).await;
    let mut copy = copy.map_err(refused(to))?;
    seal(SealState::Moving).put(source).await.map_err(failed(from))?;
    copy.entries().await.map_err(MoveError::Copy)?;
    copy.logs().await.map_err(MoveError::Copy)?;
    copy.finish().await.map_err(MoveError::Copy)?;
    seal(SealState::Moved).put(source).await.map_err(failed(from))?;
    let copied = copy.progress();
    observe(MoveProgress { stage: MoveStage::Done, copied, ..progress });
    Ok(MoveSummary { copied, pause: Default::default() })
}

/// Refuses a source that has gone elsewhere or is incomplete. Returns the seal of a move to the same target.
async fn check_source(source: &dyn Store, from: &str, to: &str) -> Result<Option<Seal>, MoveError> {
    let note = copy_note(source).await.map_err(failed(from))?;
    if let Some(note) = note.filter(|note| note.state != CopyState::Complete) {
        let (from, original) = (from.to_owned(), note.from);
        return Err(MoveError::SourceIncomplete { from, original });
    }
    let seal = copying::seal(source).await.map_err(failed(from))?;
    match seal {
        Some(Seal { to, state: SealState::Moved, .. }) => {
            Err(MoveError::MovedAlready { from: from.to_owned(), to })
        }
        Some(seal) if seal.to != to => {
            Err(MoveError::MovingElsewhere { from: from.to_owned(), to: seal.to })
        }
        seal => Ok(seal),
    }
}

/// Makes a moved or half-moved place usable again. Returns where it was moved to.
///
/// # Errors
/// If it was not moved.
pub async fn abandon_move(from: &Location, options: &Options) -> Result<String, MoveError> {
    let place = name_of(from);
    check_source_place(from)?;
    let source = open(from, options).await?;
    let seal = copying::seal(&*source).await.map_err(failed(&place))?;
    let Some(seal) = seal else { return Err(MoveError::NotSealed(place)) };
    Seal::remove(&*source).await.map_err(failed(&place))?;
    source.close().await.map_err(failed(&place))?;
    Ok(seal.to)
}
