//! When the disk fails: writes stop, reads go on, and the store recovers by itself once it can.
//!
//! Any error of a write to RocksDB or of a sync of its log fails every write that is not yet acknowledged,
//! with [`Error::Io`]. Whether such a write is on disk is unknown. Nothing of it is published, and no
//! decision is based on it: readers keep seeing the last durable state, and writes are refused with
//! [`Error::WritesDisabled`] until the database has been closed and opened again. Opening it replays the
//! log as it is on disk, so that what is read and decided afterwards is what a restart would find.
//!
//! Reopening is tried once a second, as soon as a probe file can be written and synced and nobody holds a
//! snapshot of the old database. Reads wait for it. If the database cannot be opened again, reads fail too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use zenobe_store::{Error, Result};

use crate::database::Database;
use crate::directory::{Directory, probe_room};
use crate::group::Group;
use crate::shared::{Absence, Shared};
use crate::view::View;

/// How long to wait before each attempt to recover.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(1);

/// How long an attempt waits for reads that are running, while new ones wait for it.
const READERS_WAIT: Duration = Duration::from_millis(200);

/// The room that a disk must have before writes are tried again.
const RECOVERY_ROOM_BYTES: usize = 8 << 20;

/// Fails every write that has not been acknowledged, these groups among them, and refuses new ones.
pub(crate) fn disable_writes(shared: &Shared, error: &Error, groups: Vec<Group>) {
    tracing::error!("writing failed, so the store refuses writes until it has recovered: {error}");
    let (waiting, last_order) = shared.queue.fail(error.to_string());
    // From here on nobody is decided on what has been lost.
    shared.overlay.settle(last_order);
    shared.overlay.clear();
    shared.known_counters.clear();
    let error = Error::Io { detail: error.to_string() };
    let waiting = Group { batches: waiting, outcomes: Vec::new(), view: None };
    fail_groups(shared, &error, groups);
    fail_groups(shared, &error, vec![waiting]);
}

pub(crate) fn fail_groups(shared: &Shared, error: &Error, groups: Vec<Group>) {
    for group in groups {
        let (count, size_bytes) = (group.batches.len(), group.size_bytes());
        group.fail(error);
        shared.queue.release(count, size_bytes);
    }
}

/// Opens the database again as soon as that is possible. `None` if the store is closed before.
pub(crate) fn recover(shared: &Shared, database: Arc<Database>) -> Option<Arc<Database>> {
    let directory = Arc::clone(database.directory());
    drop(database);
    let mut reported = None;
    while !shared.queue.wait_unless_closed(RECOVERY_INTERVAL) {
        let reopened = probe_room(directory.path(), RECOVERY_ROOM_BYTES)
            .map_err(|error| Error::Io { detail: format!("the disk still fails: {error}") })
            .and_then(|()| reopen(shared, &directory));
        match reopened {
            Ok(database) => {
                tracing::warn!("the database has been reopened; the store takes writes again");
                shared.queue.recover();
                return Some(database);
            }
            Err(error) => {
                // Once per cause, not once per second.
                let text = error.to_string();
                if reported.as_ref() != Some(&text) {
                    tracing::warn!("not recovered yet: {text}");
                    reported = Some(text);
                }
            }
        }
    }
    None
}

fn reopen(shared: &Shared, directory: &Arc<Directory>) -> Result<Arc<Database>> {
    // Absent already if an earlier attempt closed the database but could not open it.
    if let Some(view) = shared.withdraw(Absence::Reopening) {
        close(view).map_err(|view| {
            shared.publish_again(view);
            Error::Io { detail: "a snapshot of the failed database is still in use".to_owned() }
        })?;
    }
    match Database::open(Arc::clone(directory), &shared.options) {
        Ok(database) => {
            let database = Arc::new(database);
            shared.publish_again(Arc::new(View::new(Arc::clone(&database))));
            Ok(database)
        }
        Err(error) => {
            shared.withdraw(Absence::CannotReopen { detail: error.to_string() });
            Err(error)
        }
    }
}

/// Closes a database by dropping its last view, or hands the view back if others still use it.
fn close(mut view: Arc<View>) -> std::result::Result<(), Arc<View>> {
    let begun = Instant::now();
    loop {
        match Arc::try_unwrap(view) {
            Ok(only) if only.is_last() => return Ok(()),
            Ok(other) => view = Arc::new(other),
            Err(used) => view = used,
        }
        if begun.elapsed() > READERS_WAIT {
            return Err(view);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
