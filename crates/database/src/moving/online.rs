//! Moving a database while it is served.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tokio::time::timeout;
use zenobe_engine::Engine;
use zenobe_store::Store;
use zenobe_store::copying::{self, Seal, SealState, StoreCopy, measure};
use zenobe_store_embedded::{EmbeddedStore, PausedWrites};

use super::{
    MoveError, MoveObserver, MoveProgress, MoveStage, MoveSummary, failed, new_id, open, refused,
};
use crate::Database;
use crate::exclusive::Exclusive;
use crate::location::name_of;
use crate::options::{Location, Options};

/// Writes may wait while this many changes are copied: some tens of milliseconds.
const CHANGES_LEFT_MAX: usize = 256;
/// Writes don't wait longer for the last changes. Clients give up after a minute, and often sooner.
const PAUSE_MAX: Duration = Duration::from_secs(10);

impl Database {
    /// Moves the database to an empty store while it is in use, and continues on that store. Reads and writes that run meanwhile
    /// don't fail; writes wait for a moment at the end. Calls `observe` now and then.
    ///
    /// The old directory is then sealed: it can't be opened by accident. The next process must be given the new place.
    ///
    /// # Errors
    /// If the database is not in a directory, if the target is not empty, or if either fails. The database then stays
    /// where it is.
    pub async fn move_to(
        &self,
        to: &Location,
        observe: impl Fn(MoveProgress) + Send + Sync + 'static,
    ) -> Result<MoveSummary, MoveError> {
        let database = MovedDatabase {
            engine: Arc::clone(&self.open.engine),
            embedded: self.open.embedded.clone(),
            options: self.open.options.clone(),
            is_moving: Arc::clone(&self.open.is_moving),
        };
        let to = to.clone();
        // The work continues even if the caller stops waiting for it, and takes no time from the caller's runtime.
        let moving = self.open.upkeep.runtime.spawn(async move {
            let _running = Exclusive::begin(&database.is_moving)
                .ok_or(MoveError::NotMovable("it is being moved already"))?;
            run(&database, &to, &observe).await
        });
        let ended = |_| Err(MoveError::NotMovable("it is being closed"));
        moving.await.unwrap_or_else(ended)
    }
}

/// What a move needs of an open database. It must not keep the database itself open.
struct MovedDatabase {
    engine: Arc<Engine>,
    embedded: Option<Arc<EmbeddedStore>>,
    options: Options,
    is_moving: Arc<AtomicBool>,
}

async fn run(
    database: &MovedDatabase,
    to: &Location,
    observe: &MoveObserver<'_>,
) -> Result<MoveSummary, MoveError> {
    let Some(source) = &database.embedded else {
        return Err(MoveError::NotMovable(
            "only a database in a directory can be moved while it is served",
        ));
    };
    if source.is_handed_over() {
        return Err(MoveError::NotMovable(
            "it has been moved already; restart it at its new place",
        ));
    }
    let (from_name, to_name) = (name_of(&database.options.location), name_of(to));
    if *to == Location::Memory {
        return Err(MoveError::Memory);
    }
    if from_name == to_name {
        return Err(MoveError::SamePlace(from_name));
    }
    let target = open(to, &database.options).await?;
    // A directory that did not exist before may have another name now.
    let to_name = name_of(to);
    let moved = copy(database, source, &target, &from_name, &to_name, observe).await;
    if moved.is_err() {
        // The source stays in use, so nothing is lost if the target can't be closed.
        let _ = target.close().await;
    }
    moved
}

async fn copy(
    database: &MovedDatabase,
    source: &EmbeddedStore,
    target: &Arc<dyn Store>,
    from: &str,
    to: &str,
    observe: &MoveObserver<'_>,
) -> Result<MoveSummary, MoveError> {
    let mut progress = MoveProgress::default();
    observe(progress);
    progress.total = measure(source).await.map_err(MoveError::Copy)?;
    let tracker = source.track_changes().map_err(failed(from))?;
    let stage = parking_lot::Mutex::new(MoveStage::Copying);
    let report = |copied| {
        let stage = *stage.lock();
        observe(MoveProgress { stage, copied, ..progress });
    };
    let (id, options) = (new_id(), copying::CopyOptions::default());
    let copy =
        StoreCopy::begin(source, &**target, Some(&tracker), (id, from), options, &report).await;
    let mut copy = copy.map_err(refused(to))?;
    copy.entries().await.map_err(MoveError::Copy)?;
    *stage.lock() = MoveStage::Following;
    copy.logs().await.map_err(MoveError::Copy)?;
    copy.catch_up(CHANGES_LEFT_MAX).await.map_err(MoveError::Copy)?;

    *stage.lock() = MoveStage::Pausing;
    let begin = Instant::now();
    let last_changes = async {
        let paused = source.pause_writes().await.map_err(failed(from))?;
        copy.catch_up_at_last().await.map_err(MoveError::Copy)?;
        copy.logs().await.map_err(MoveError::Copy)?;
        Ok(paused)
    };
    let paused = timeout(PAUSE_MAX, last_changes).await.unwrap_or(Err(MoveError::PauseTooLong))?;
    // From the next step on, others can open the target.
    database.engine.set_shared(target.is_shared());
    let seal = Seal { id, to: to.to_owned(), state: SealState::Moving };
    if let Err(error) = switch(&mut copy, &paused, seal, from).await {
        database.engine.set_shared(false);
        return Err(error);
    }
    paused.hand_over(Arc::clone(target));
    let (copied, pause) = (copy.progress(), begin.elapsed());
    tracing::info!(from, to, ?pause, rows = copied.done.rows, "the database has moved");
    observe(MoveProgress { stage: MoveStage::Done, copied, ..progress });
    Ok(MoveSummary { copied, pause })
}

/// Makes the target the one that is served. The source is sealed before and after, so that a crash at any moment leaves no
/// two that can be served.
async fn switch(
    copy: &mut StoreCopy<'_>,
    paused: &PausedWrites,
    seal: Seal,
    from: &str,
) -> Result<(), MoveError> {
    let sealed = paused.seal(&seal).await.map_err(failed(from));
    let finished = match sealed {
        Ok(()) => copy.finish().await.map_err(MoveError::Copy),
        Err(error) => Err(error),
    };
    let to = &seal.to;
    if let Err(error) = finished {
        // The source stays in use, so the target must not look complete. Not every failure tells whether it does.
        if let Err(error) = copy.reopen().await {
            tracing::error!(%error, to, "a move failed, and the target may look complete; do not use it");
        }
        if let Err(error) = paused.unseal().await {
            tracing::error!(%error, from, "a move failed, and the source may still be sealed; if it refuses to be served, run `zenobe move --abandon --from` with it");
        }
        return Err(error);
    }
    // The target is complete, and the source cannot be opened any more: there is no way back. If the last seal fails, only
    // the mark is wrong; the same command with `--from` repairs it.
    if let Err(error) = paused.seal(&Seal { state: SealState::Moved, ..seal.clone() }).await {
        tracing::warn!(%error, from, "the move is complete, but the old directory is still marked as being moved");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
